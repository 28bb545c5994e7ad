"""Records which topics existed on the source at the last discovery, in the progress topic; Kafka Connect ignores them.

Only used by flows that begin at the latest offset: topics that were created since are copied from the beginning.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.settings import Flow


def starts_at_latest(flow: Flow) -> bool:
    """Whether partitions of a flow begin at the latest offset."""
    return flow.auto_offset_reset == "latest" and flow.start_timestamp_ms is None


def key_of(cluster: str, topic: str) -> bytes:
    """Key of the record of a source topic; `cluster` is the source's alias."""
    return _prefix(cluster) + json.dumps(topic, ensure_ascii=False).encode() + b"}]"


def value_of(partitions: int) -> bytes:
    """Value of the record of a source topic."""
    return json.dumps({"partitions": partitions}).encode()


def _prefix(cluster: str) -> bytes:
    return b'["mirrorless",{"cluster":%s,"discovered":' % json.dumps(cluster, ensure_ascii=False).encode()


class DiscoveredTopics:
    """Source topics with their partition counts, as read from the progress topic.

    `cluster` is the alias of the flow's source.
    """

    def __init__(self, cluster: str) -> None:
        self._begins = _prefix(cluster)
        self.partitions: dict[str, int] = {}

    def take(self, key: bytes | None, value: bytes | None) -> bool:
        """Process a record of the progress topic if it is about a discovered topic; returns whether it is."""
        if key is None or not key.startswith(self._begins):
            return False
        try:
            topic = str(json.loads(key)[1]["discovered"])
            if value is None:
                self.partitions.pop(topic, None)
            else:
                self.partitions[topic] = int(json.loads(value)["partitions"])
        except (ValueError, KeyError, TypeError, AttributeError):
            return True
        return True

    def forget(self) -> None:
        """Forget all records: the topic is read from its beginning again."""
        self.partitions.clear()


def is_new(place: TopicPartition, seen: Mapping[str, int]) -> bool:
    """Whether a partition is missing in `seen`, topics with partition counts; never before the first discovery.

    A topic that did not exist at the last discovery, and was recreated, is new.
    """
    return bool(seen) and place[1] >= seen.get(place[0], 0)
