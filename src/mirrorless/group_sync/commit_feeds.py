"""What groups of a cluster commit, as they do: from `__consumer_offsets`, or by asking for it."""

from __future__ import annotations

import time
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

from confluent_kafka import OFFSET_END, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from mirrorless.clusters.client_settings import SOON_RECONNECTED
from mirrorless.clusters.consumers import reader, waiting
from mirrorless.clusters.groups import Committed, GroupOffsets, list_groups
from mirrorless.clusters.internal_topics import GROUP_COMMITS_TOPIC
from mirrorless.errors import ClusterUnavailable
from mirrorless.group_sync.offsets_topic import UnknownFormat, parse_key, parse_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from confluent_kafka import Consumer

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.group_sync.offsets_topic import CommitKey
    from mirrorless.settings import Cluster

Commits = dict[str, dict["TopicPartition", Committed | None]]
"""The last commits by group, and by topic and partition; None for one that was deleted, or has expired."""
_A_TIME: Final = 10_000
_BUFFER_KB: Final = 16_384
_MOST_KEYS: Final = 1 << 15
_METADATA_S: Final = 10.0
_ASK_EVERY_S: Final = 0.5
_ALL_WITHIN_S: Final = 30.0
"""Other groups are asked for in turn."""
_LATELY_S: Final = 60.0


class NotReadable(Exception):
    """The commits cannot be read from `__consumer_offsets`, and why."""


class CommitFeed(Protocol):
    """Finds what groups commit from now on."""

    def take(self, wait_s: float) -> Commits:
        """Return the commits since the last call; waits for the first one so long. Raises `ClusterUnavailable`."""

    def close(self) -> None:
        """Close the connections."""


class TopicFeed:
    """Reads `__consumer_offsets` from its end on: groups that do not commit cost nothing.

    Raises `NotReadable` here and in `take` where the topic may not be read, or has records of an unknown version.
    """

    def __init__(self, cluster: Cluster, *, wants: Callable[[str, str], bool]) -> None:
        self._alias = cluster.alias
        self._wants = wants
        self._wanted = lru_cache(_MOST_KEYS)(self._read_key)  # groups commit the same partitions again
        # Commits in transactions that are open, or were aborted, do not count (KIP-98).
        self._consumer: Consumer = reader(
            cluster,
            isolation_level="read_committed",
            enable_partition_eof=False,
            auto_offset_reset="latest",
            queued_max_messages_kbytes=_BUFFER_KB,
            **SOON_RECONNECTED,
        )
        try:
            self._assign()
        except BaseException:
            self._consumer.close()
            raise

    def _assign(self) -> None:
        try:
            found = self._consumer.list_topics(GROUP_COMMITS_TOPIC, timeout=_METADATA_S).topics.get(GROUP_COMMITS_TOPIC)
        except KafkaException as error:
            raise ClusterUnavailable(error.args[0].str(), cluster=self._alias) from error
        if found is None or found.error is not None or not found.partitions:
            reason = "it is not visible" if found is None or found.error is None else found.error.str()
            raise NotReadable(f"{GROUP_COMMITS_TOPIC} of {self._alias}: {reason}")
        self._consumer.assign(
            [ConfluentTopicPartition(GROUP_COMMITS_TOPIC, one, OFFSET_END) for one in found.partitions]
        )

    def take(self, wait_s: float) -> Commits:
        """Return the commits since the last call; raises `NotReadable`."""
        found: Commits = {}
        for message in waiting(self._consumer, _A_TIME, seconds=wait_s):
            if (error := message.error()) is not None:
                if error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.UNKNOWN_TOPIC_OR_PART):
                    raise NotReadable(f"{GROUP_COMMITS_TOPIC} of {self._alias}: {error.str()}")
                continue  # the library connects again by itself
            try:
                key, value = self._wanted(message.key()), message.value()
                if key is not None:
                    found.setdefault(key.group, {})[key.place] = None if value is None else parse_value(value)
            except UnknownFormat as unknown:
                raise NotReadable(str(unknown)) from unknown
        return found

    def _read_key(self, key: bytes | None) -> CommitKey | None:
        """Return what a record is about; None if it is not about offsets that are followed."""
        found = None if key is None else parse_key(key)
        return found if found is not None and self._wants(found.group, found.place[0]) else None

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()


class AskingFeed:
    """Asks for the offsets of active groups twice a second, and for those of all others in turn.

    A group is active while it has members, or if its offsets changed lately: Spark, Flink and resets commit without
    joining a group.

    What a group has when it is first asked for is not reported: a checkpoint run has it.
    """

    def __init__(self, cluster: Cluster, admin: Admin, *, wants: Callable[[str, str], bool]) -> None:
        self._admin = admin
        self._wants = wants
        self._offsets = GroupOffsets(cluster)
        self._known: dict[str, Mapping[TopicPartition, Committed]] = {}
        self._changed_at: dict[str, float] = {}
        self._others: Iterator[str] = iter(())
        self._due = 0.0

    def take(self, wait_s: float) -> Commits:
        """Return the commits since the last call, if it is time to ask."""
        began = time.monotonic()
        if began < self._due:
            time.sleep(min(wait_s, self._due - began))
            return {}
        activity, _ = list_groups(self._admin)
        self._changed_at = {group: at for group, at in self._changed_at.items() if began - at < _LATELY_S}
        active = [group for group, state in activity.items() if state.may_have_members or group in self._changed_at]
        idle = list(activity.keys() - active)
        found: Commits = {}
        for group, offsets in self._offsets.committed([*active, *self._next_of(idle)]):
            if isinstance(offsets, str):
                continue  # the next checkpoint run reports it
            mine = {place: one for place, one in offsets.items() if self._wants(group, place[0])}
            before = self._known.get(group)
            self._known[group] = mine
            if before is not None and before != mine:
                found[group] = dict.fromkeys(before.keys() - mine.keys())
                found[group] |= {at: one for at, one in mine.items() if before.get(at) != one}
                self._changed_at[group] = began
        for gone in self._known.keys() - activity.keys():
            found[gone] = dict.fromkeys(self._known.pop(gone))
        took_s = time.monotonic() - began
        self._due = began + max(_ASK_EVERY_S, 2 * took_s)
        return found

    def _next_of(self, idle: list[str]) -> list[str]:
        """Return the next of the groups without members, so that each has its turn within `_ALL_WITHIN_S`."""
        most = max(1, round(len(idle) * _ASK_EVERY_S / _ALL_WITHIN_S + 0.5)) if idle else 0
        some = list(islice(self._others, most))
        if len(some) < most:
            self._others = iter(idle)
            some += islice(self._others, most - len(some))
        return list(dict.fromkeys(some))

    def close(self) -> None:
        """Close the connections."""
        self._offsets.close()
