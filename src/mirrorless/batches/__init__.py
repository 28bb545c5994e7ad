"""Record batches as bytes: reading them, and making them fit for the target. No I/O."""
