"""How a partition is named everywhere."""

from __future__ import annotations

TopicPartition = tuple[str, int]
"""A topic's name and the number of one of its partitions."""
