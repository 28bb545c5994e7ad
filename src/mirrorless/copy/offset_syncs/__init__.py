"""Offset syncs: acknowledged appends go in; records of the offset syncs topic come out."""
