"""Proof that both sides of a flow hold the same: records, metadata, group offsets. Reads only."""
