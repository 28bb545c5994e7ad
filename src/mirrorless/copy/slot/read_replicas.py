"""Which broker a partition is fetched from: its leader, or the replica that the leader names (KIP-392).

A follower may lag, and its log may begin elsewhere. Only the leader shows that a log begins, ends, was truncated or has
no record left. An error of a follower sends the copy back to the leader, and so do answers without records, if the
leader has some.

Source of the rules: the Java client's `AbstractFetch.selectReadReplica` and `SubscriptionState.preferredReadReplica`.
Unlike it, the copy then reads from the leader for a while without its rack: the leader would name the follower again,
until that has left the in-sync replicas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mirrorless.kafka_python.connection_manager import ExtraConnection, Node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.protocol.cluster_client import ClusterClient

_PAUSE_S: Final = 1.0
_DOUBLED: Final = 10
"""How often a pause is doubled at most."""
_SILENT_S: Final = 10.0
"""A follower whose answer takes so long is not waited for; without records it comes after half a second."""


class ServingBroker(NamedTuple):
    """A broker to fetch from; `alone`: as from a leader that must not name another replica.

    That is a connection of its own, so that neither waits for the other's answer.
    """

    node: int
    alone: bool = False

    @property
    def connection(self) -> Node:
        """The connection for its requests."""
        return ExtraConnection(self.node, 2) if self.alone else self.node


class _Named(NamedTuple):
    """A follower that the leader named, until `until` (`time.monotonic`)."""

    follower: int
    leader: int
    until: float


class _Pause(NamedTuple):
    """No follower is read until `until` (`time.monotonic`), after so many failures in a row."""

    failures: int
    until: float


class ReadReplicas:
    """Chooses the broker for each partition of a fetcher. Times are those of `time.monotonic`."""

    def __init__(self, source: ClusterClient) -> None:
        self._source = source
        self._named: dict[PartitionCopy, _Named] = {}
        self._pauses: dict[PartitionCopy, _Pause] = {}
        self._asked: dict[ServingBroker, float] = {}
        self._positions: dict[PartitionCopy, int] = {}
        self._still: set[PartitionCopy] = set()

    def broker_for(self, copy: PartitionCopy, *, now: float) -> ServingBroker | None:
        """Return the broker to fetch a partition from, None while it has no leader.

        A follower is forgotten after `metadata.max.age.ms`, if the leader moves, and if it is offline or hangs.
        """
        leader = self._source.leader(copy.place)
        named = self._named.get(copy)
        if named is not None:
            if leader != named.leader or now >= named.until or not copy.row.followable:
                del self._named[copy]
            elif not self._source.has_replica(copy.place, named.follower) or self._hangs(named.follower, now):
                self.leave(copy, now=now)
            else:
                return ServingBroker(named.follower)
        if leader is None:
            return None
        pause = self._pauses.get(copy)
        paused = pause is not None and now < pause.until
        return ServingBroker(leader, alone=paused or (bool(self._source.rack) and not copy.row.followable))

    def is_follower(self, copy: PartitionCopy, broker: ServingBroker) -> bool:
        """Whether a partition is fetched from this broker although that does not lead it."""
        named = self._named.get(copy)
        return named is not None and named.follower == broker.node

    @property
    def from_followers(self) -> list[PartitionCopy]:
        """The partitions that are fetched from a follower."""
        return list(self._named)

    def follow(self, copy: PartitionCopy, node: int, *, now: float) -> None:
        """Fetch from the replica that a partition's leader named, if it is usable."""
        leader = self._source.leader(copy.place)
        if leader is None or node == leader:
            self.leave(copy, now=now)  # the metadata are old
        else:
            self._named[copy] = _Named(node, leader, now + self._source.metadata_max_age_s)

    def leave(self, copy: PartitionCopy, *, now: float) -> None:
        """Fetch from the leader for a while, twice as long after each failure, up to `metadata.max.age.ms`."""
        self._named.pop(copy, None)
        failures = self._pauses[copy].failures if copy in self._pauses else 0
        pause_s = min(_PAUSE_S * 2.0 ** min(failures, _DOUBLED), self._source.metadata_max_age_s)
        self._pauses[copy] = _Pause(failures + 1, now + pause_s)
        self._source.refresh_leaders()

    def served(self, copy: PartitionCopy) -> None:
        """Note that a follower sent records."""
        self._pauses.pop(copy, None)

    def asked(self, broker: ServingBroker, *, now: float) -> None:
        """Note that a request is sent."""
        self._asked[broker] = now

    def answered(self, broker: ServingBroker) -> None:
        """Note that the request was answered, or failed."""
        self._asked.pop(broker, None)

    def tick(self, copies: Mapping[TopicPartition, PartitionCopy]) -> None:
        """Forget partitions that are not copied any more, and note positions; to be called every second."""
        self._named = {copy: one for copy, one in self._named.items() if copies.get(copy.place) is copy}
        self._pauses = {copy: one for copy, one in self._pauses.items() if copies.get(copy.place) is copy}
        before, self._positions = self._positions, {copy: copy.fetch_from for copy in self._named}
        self._still = {copy for copy, at in self._positions.items() if copy.is_behind and before.get(copy) == at}

    def waits(self, copy: PartitionCopy, broker: ServingBroker) -> bool:
        """Whether a partition waits for a follower, which may have the records that its leader has in a moment.

        For the first second: the follower knows the leader's high watermark from its next request on.
        """
        return self.is_follower(copy, broker) and copy not in self._still

    def _hangs(self, follower: int, now: float) -> bool:
        asked = self._asked.get(ServingBroker(follower))
        return asked is not None and now - asked > _SILENT_S
