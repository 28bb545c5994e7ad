"""Detects a MirrorMaker 2 that still runs for the flow: both would copy every record, so the target has it twice.

Three signs on the target: members of its Connect group; progress without the fields of this program that is newer than
this program's; a task with the recent status RUNNING. No right is required for them: what is not visible is reported.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from mirrorless.clusters.consumers import reader, waiting
from mirrorless.clusters.mirrormaker2 import group_of, nodes_run
from mirrorless.doctor.findings import Finding, Status, some_of
from mirrorless.doctor.probes import NotSaid
from mirrorless.errors import ClusterUnavailable
from mirrorless.progress.records import Progress, SourcePartition, parse
from mirrorless.rights import Operation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.doctor.probes import Probes
    from mirrorless.settings import Cluster, Flow

_CHECK: Final = "MirrorMaker 2"
_RECENT_MS: Final = 10 * 60_000
_READING_S: Final = 20.0


class _Unreadable(Exception):
    """A topic cannot be read, or not in time."""


@dataclass(slots=True)
class _Seen:
    """The content of the progress topic: when each side wrote last (ms, 0: never), and connectors of other names.

    `beside_ms` is when MirrorMaker 2 last wrote to the same key after this program: while both copy, this program's
    progress is the newest, since it is written every second and not every minute.
    """

    theirs_ms: int = 0
    ours_ms: int = 0
    beside_ms: int = 0
    ours: set[SourcePartition] = field(default_factory=set)
    strangers: dict[str, int] = field(default_factory=dict)

    def take(self, flow: Flow, key: bytes | None, value: bytes | None, timestamp_ms: int) -> None:
        """Process one record."""
        match parse(key, value):
            case (SourcePartition(cluster=flow.progress_alias, connector=name) as where, Progress(sequence=sequence)):
                if name != flow.connector_name:
                    self.strangers[name] = self.strangers.get(name, 0) + 1
                elif sequence is not None:
                    self.ours_ms = max(self.ours_ms, timestamp_ms)
                    self.ours.add(where)
                else:
                    self.theirs_ms = max(self.theirs_ms, timestamp_ms)
                    if where in self.ours:
                        self.beside_ms = max(self.beside_ms, timestamp_ms)

    @property
    def wrote_ms(self) -> int:
        """When MirrorMaker 2 wrote last; 0 if that was before this program took over."""
        return self.theirs_ms if self.theirs_ms > self.ours_ms else self.beside_ms


def signs_of_mirrormaker2(flow: Flow, *, probes: Probes, topics: set[str]) -> list[Finding]:
    """Look for a MirrorMaker 2; `probes` ask the target, `topics` are its visible topics.

    Raises `ClusterUnavailable` if the login token has expired.
    """
    alias = flow.target.alias
    signs: list[str] = []
    unseen: list[str] = []
    seen = _Seen()
    group = group_of(flow)
    try:
        if probes.refused_groups(Operation.DESCRIBE, [group]):
            unseen.append(f"group {group}")
        elif nodes_run(flow):
            signs.append(f"group {group} has members")
    except (NotSaid, ClusterUnavailable) as error:
        unseen.append(f"group {group} ({error})")
    now_ms = time.time() * 1000
    status = f"mm2-status.{flow.worker_alias}.internal"
    try:
        for key, value, at_ms in _records(flow.target, flow.offset_storage_topic, topics):
            seen.take(flow, key, value, at_ms)
    except _Unreadable:
        unseen.append(flow.offset_storage_topic)
    if now_ms - seen.wrote_ms < _RECENT_MS:
        signs.append(f"MirrorMaker 2 wrote progress {(now_ms - seen.wrote_ms) / 1000:.0f} s ago")
    try:
        running = [at_ms for _, value, at_ms in _records(flow.target, status, topics) if b'"RUNNING"' in (value or b"")]
        if running and now_ms - max(running) < _RECENT_MS:
            signs.append(f"{status} has status RUNNING, written {(now_ms - max(running)) / 1000:.0f} s ago")
    except _Unreadable:
        unseen.append(status)
    return [_told(alias, signs, unseen), *_strangers(flow, seen)]


def _told(alias: str, signs: list[str], unseen: list[str]) -> Finding:
    if signs:
        fix = "stop MirrorMaker 2 before this flow runs: otherwise both copy every record"
        return Finding(check=_CHECK, status=Status.WARNING, text=_and(signs), cluster=alias, fix=fix)
    if len(unseen) > 2:
        return Finding(check=_CHECK, status=Status.NOT_CHECKED, text=f"could not read {_and(unseen)}", cluster=alias)
    told = f"no sign of MirrorMaker 2{f'; could not read {_and(unseen)}' if unseen else ''}"
    return Finding(check=_CHECK, status=Status.OK, text=told, cluster=alias)


def _strangers(flow: Flow, seen: _Seen) -> list[Finding]:
    if not seen.strangers:
        return []
    names = some_of(sorted(seen.strangers))
    return [
        Finding(
            check="progress to take over",
            status=Status.WARNING,
            text=f"{sum(seen.strangers.values())} offsets belong to connector {names} and are not taken over",
            cluster=flow.target.alias,
            fix=f"the copy resumes from progress of {flow.connector_name}; to take over other offsets, set "
            "mirrorless.connector.name to their connector",
        )
    ]


def _records(cluster: Cluster, topic: str, topics: set[str]) -> Iterator[tuple[bytes | None, bytes | None, int]]:
    """Yield all records of a topic, none if it does not exist."""
    if topic not in topics:
        return
    consumer = reader(cluster)
    try:
        partitions = consumer.list_topics(topic, timeout=_READING_S).topics[topic].partitions
        consumer.assign([ConfluentTopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
        missing = set(partitions)
        until = time.monotonic() + _READING_S
        while missing and time.monotonic() < until:
            for message in waiting(consumer, 10_000, seconds=0.2):
                error = message.error()
                if error is None:
                    yield message.key(), message.value(), message.timestamp()[1]
                elif error.code() == KafkaError._PARTITION_EOF:
                    missing.discard(message.partition() or 0)
                elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
                    raise _Unreadable
        if missing:
            raise _Unreadable
    except KafkaException as error:
        raise _Unreadable from error
    finally:
        consumer.close()


def _and(parts: list[str]) -> str:
    return ", ".join(parts)
