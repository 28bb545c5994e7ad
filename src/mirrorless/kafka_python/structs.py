"""Small types and functions of kafka-python that are used as they are."""

from __future__ import annotations

from kafka.future import Future
from kafka.partitioner.default import murmur2
from kafka.record.default_records import DefaultRecordBatch
from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = ["DefaultRecordBatch", "Future", "OffsetAndMetadata", "TopicPartition", "murmur2"]
