"""Checks both ends of a flow before it runs; writes nothing."""
