"""MirrorMaker 2 without the Connect cluster."""
