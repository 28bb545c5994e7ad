"""Compares both sides of a flow: records, metadata, group offsets. Reads only."""
