"""Group offsets at once: commits on the source are committed on the target within about a second.

The checkpoint runs of `offsets` translate the offsets of all groups at their interval. Here only groups that have just
committed are looked at: `offsets_topic` and `commit_feeds` find them, `follower` translates and commits.
"""
