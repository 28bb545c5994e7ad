"""Copies with identical offsets: what the target's log lacks up to a source offset goes in, an append at it comes out.

A record is appended only where the target's log ends at the record's source offset. Offsets without a record are taken
by markers; those before the first record, by filler that is deleted.
"""
