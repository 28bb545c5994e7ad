"""Reads the progress topic of a flow: once from the beginning, then only what is new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.clusters.replay import Replay
from mirrorless.copy.progress import Known, Progress, parse

if TYPE_CHECKING:
    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topics import Place
    from mirrorless.settings import Flow


class ProgressTopic:
    """What the progress topic says of a flow's source partitions; `admin` is a client of the target."""

    def __init__(self, flow: Flow, admin: Admin) -> None:
        self._alias = flow.source.alias
        self._connector = flow.connector_name
        self._known: dict[Place, Known] = {}
        # Without the topic nothing is known of how far the copy is, which is not the same as that nothing was copied.
        self._replay = Replay(topic=flow.offset_storage_topic, cluster=flow.target, admin=admin, must_exist=True)

    def read(self) -> dict[Place, Known]:
        """Catch up with the topic's end and return what is known; raises `ClusterUnavailable`."""
        # Of most keys there are many records, of which only the last one need be parsed.
        for key, value in dict(self._replay.read(self._forget)).items():
            self._take(key, value)
        return self._known

    def close(self) -> None:
        """Close the connection."""
        self._replay.close()

    def _forget(self) -> None:
        self._known = {}

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        read = parse(key, value)
        if read is None or read[0].cluster != self._alias:
            return
        where, said = read
        if isinstance(said, Progress | None) and where.connector != self._connector:
            return
        self._known.setdefault((where.topic, where.partition), Known()).take(said)
