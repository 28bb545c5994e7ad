"""Records the ids of clusters whose records a flow skips (`mirrorless.both.directions=skip`), in the progress topic.

A cluster that is down must not stop flows between two others, so its id is kept; Kafka Connect ignores these records.
A cluster that was replaced has several: its earlier records are still there.
"""

from __future__ import annotations

import json


def origin_key(source: str, origin: str) -> bytes:
    """Key of the record of the cluster with the alias `origin`, for flows from `source`."""
    return _prefix(source) + json.dumps(origin, ensure_ascii=False).encode() + b"}]"


def origin_value(ids: list[str]) -> bytes:
    """Value of such a record: cluster ids, the latest last."""
    return json.dumps({"ids": ids}).encode()


def _prefix(source: str) -> bytes:
    return b'["mirrorless",{"cluster":%s,"origin":' % json.dumps(source, ensure_ascii=False).encode()


class OriginClusters:
    """Cluster ids by alias, as read from the progress topic of flows from the cluster `source`."""

    def __init__(self, source: str) -> None:
        self._begins = _prefix(source)
        self.ids: dict[str, list[str]] = {}

    def take(self, key: bytes | None, value: bytes | None) -> bool:
        """Process a record of the progress topic if it is about an origin; returns whether it is."""
        if key is None or not key.startswith(self._begins):
            return False
        try:
            alias = str(json.loads(key)[1]["origin"])
            if value is None:
                self.ids.pop(alias, None)
            else:
                self.ids[alias] = [str(one) for one in json.loads(value)["ids"]]
        except (ValueError, KeyError, TypeError, AttributeError):
            return True
        return True

    def forget(self) -> None:
        """Forget all records: the topic is read from its beginning again."""
        self.ids.clear()
