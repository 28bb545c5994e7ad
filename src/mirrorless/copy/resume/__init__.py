"""Where a partition continues: progress and the target's log go in; an offset and an epoch come out."""
