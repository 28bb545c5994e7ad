"""Notes on the source of a flow, as records of the progress topic that Kafka Connect ignores.

They name the topics at the last discovery, for flows that begin at the latest offset: topics that were created since
are copied from the beginning. And they name the ids of clusters whose records a flow skips
(`mirrorless.both.directions=skip`): a cluster that is down must not stop flows between two others. A cluster that was
replaced has several ids, since its earlier records are still there.
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


def discovered(cluster: str, topic: str, partitions: int | None) -> tuple[bytes, bytes | None]:
    """Key and value of the note on a topic of the source, whose alias is `cluster`; None if it is gone."""
    value = None if partitions is None else json.dumps({"partitions": partitions}).encode()
    return _key(cluster, "discovered", topic), value


def origin(cluster: str, alias: str, ids: list[str]) -> tuple[bytes, bytes]:
    """Key and value of the note on the ids of the cluster `alias`, the latest last, for flows from `cluster`."""
    return _key(cluster, "origin", alias), json.dumps({"ids": ids}).encode()


def _key(cluster: str, kind: str, name: str) -> bytes:
    return _prefix(cluster, kind) + json.dumps(name, ensure_ascii=False).encode() + b"}]"


def _prefix(cluster: str, kind: str) -> bytes:
    return f'["mirrorless",{{"cluster":{json.dumps(cluster, ensure_ascii=False)},"{kind}":'.encode()


class SourceNotes:
    """Partition counts by topic, and cluster ids by alias, as read from the progress topic.

    `cluster` is the alias of the flow's source.
    """

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self._prefixes = _prefix(cluster, "discovered"), _prefix(cluster, "origin")
        self.partitions: dict[str, int] = {}
        self.ids: dict[str, list[str]] = {}

    def take(self, key: bytes | None, value: bytes | None) -> bool:
        """Process a record of the progress topic if it is a note; returns whether it is."""
        if key is None or not key.startswith(self._prefixes):
            return False
        try:
            names = json.loads(key)[1]
            name = str(names["discovered"] if "discovered" in names else names["origin"])
            if value is None:
                (self.partitions if "discovered" in names else self.ids).pop(name, None)
            elif "discovered" in names:
                self.partitions[name] = int(json.loads(value)["partitions"])
            else:
                self.ids[name] = [str(one) for one in json.loads(value)["ids"]]
        except (ValueError, KeyError, TypeError, AttributeError):
            return True
        return True


def is_new(place: TopicPartition, seen: Mapping[str, int]) -> bool:
    """Whether a partition is missing in `seen`, topics with partition counts; never before the first discovery.

    A topic that did not exist at the last discovery, and was recreated, is new.
    """
    return bool(seen) and place[1] >= seen.get(place[0], 0)
