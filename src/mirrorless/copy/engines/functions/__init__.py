"""The functions engine: copies in the process that calls it, one run after the other, without Spark."""
