"""Record batches as bytes: what a batch says about itself, and how it is made to fit the target. No I/O."""
