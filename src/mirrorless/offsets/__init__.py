"""Offsets of consumer groups on the other cluster: syncs, translation, checkpoints, group offsets."""
