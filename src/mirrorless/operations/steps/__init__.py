"""The steps of operations: each is safe to repeat, records what it is about to change, and can undo it exactly."""
