"""Checks that the target accepts and keeps the source's records: size, timestamps, in-sync replicas, retention.

Limits are the topic's `max.message.bytes`, `message.timestamp.type`, `message.timestamp.before.max.ms` and
`.after.max.ms` (KIP-937; 1 h ahead is the default since Kafka 4.0, KIP-1030), `min.insync.replicas`, `retention.ms`
and `retention.bytes`. A remote topic that does not exist yet has those that its creation would give it, which brokers
report without creating it (KIP-525). Topics that cannot be checked do not hide the findings about others.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from confluent_kafka import TopicPartition as ConfluentTopicPartition
from confluent_kafka.admin import OffsetSpec

from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.side_by_side import side_by_side
from mirrorless.doctor.findings import Finding, Status, some_of
from mirrorless.doctor.probes import NotSaid
from mirrorless.doctor.replicas import enough_replicas
from mirrorless.errors import ClusterError
from mirrorless.metadata.expected_configs import Target, Unread, topic_pairs
from mirrorless.metadata.fences import FENCED_BYTES, MAX_BYTES
from mirrorless.metadata.retention import compare_retention
from mirrorless.metadata.serverless import target_filter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.effective_configs import EffectiveConfigs
    from mirrorless.doctor.probes import Probes
    from mirrorless.metadata.expected_configs import TopicPair
    from mirrorless.settings import Flow

SIZE, TIMESTAMPS, REPLICAS, RETENTION = "message size", "timestamps", "in-sync replicas", "retention"
LIMITS: Final = (SIZE, TIMESTAMPS, REPLICAS, RETENTION)
_TYPE: Final = "message.timestamp.type"
_BEFORE: Final = "message.timestamp.before.max.ms"
_AFTER: Final = "message.timestamp.after.max.ms"
_HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class RecordLimits:
    """Compares the topics of `remote`, by source topic; `counts` are their partitions.

    `replicas` are the topics of the target, each with the smallest number of replicas of a partition.
    """

    flow: Flow
    source: Admin
    target: Admin
    probes: Probes
    remote: Mapping[str, str]
    counts: Mapping[str, int]
    replicas: Mapping[str, int]
    _unread: Unread = field(default_factory=Unread, init=False)

    def check(self) -> list[Finding]:
        """Findings about each of `LIMITS`; raises `ClusterError`."""
        alias = self.flow.target.alias
        if not self.remote:
            text = f"no topic of {self.flow.source.alias} that the flow replicates is visible"
            return [_unchecked(check, text, alias) for check in LIMITS]
        pairs = self._pairs()
        if not pairs:
            return [_unchecked(check, str(self._unread), alias) for check in LIMITS]
        found = [
            _sizes(pairs, alias),
            *self._timestamps(pairs),
            enough_replicas(self.flow, pairs, check=REPLICAS),
            self._retention(pairs),
        ]
        return [self._with_unread(one) for one in found]

    def _pairs(self) -> list[TopicPair]:
        there = [name for name in self.remote.values() if name in self.replicas]
        (source, unread), (target, refused) = side_by_side(
            lambda: topic_configs(self.source, self.remote), lambda: topic_configs(self.target, there)
        )
        self._unread.add(f"reading the configs of {{}} failed on {self.flow.source.alias}", sorted(unread))
        self._unread.add(f"reading the configs of {{}} failed on {self.flow.target.alias}", sorted(refused))
        return list(
            topic_pairs(
                self.flow,
                remote=self.remote,
                counts=self.counts,
                chosen=target_filter(self.flow, on_creation=True),
                source=source,
                target=Target(replicas=self.replicas, configs=target),
                would_be=self._would_be,
                unread=self._unread,
            )
        )

    def _would_be(self, name: str, config: Mapping[str, str]) -> EffectiveConfigs | str:
        try:
            return self.probes.creation(name, partitions=1, replication_factor=-1, config=config)
        except NotSaid as error:
            return f"{{}}: {error}"

    def _with_unread(self, one: Finding) -> Finding:
        """Add to a finding the topics that were not checked; without other findings, the check was not made."""
        unread = str(self._unread)
        if not unread or one.status is Status.NOT_CHECKED:
            return one
        if one.status is Status.OK:
            return _unchecked(one.check, unread, self.flow.target.alias)
        return replace(one, text=f"{one.text}; not checked: {unread}")

    def _retention(self, pairs: Sequence[TopicPair]) -> Finding:
        alias = self.flow.target.alias
        shorter = compare_retention(self.flow, target_filter(self.flow, on_creation=True), pairs)
        if shorter is None:
            text = f"{_topics(pairs)}: kept at least as long as on {self.flow.source.alias}"
            return Finding(check=RETENTION, status=Status.OK, text=text, cluster=alias)
        return Finding(check=RETENTION, status=Status.WARNING, text=shorter.text, cluster=alias, fix=shorter.fix)

    def _timestamps(self, pairs: Sequence[TopicPair]) -> list[Finding]:
        """A warning for topics that replace timestamps, which refuse none, and the finding about all others."""
        alias = self.flow.target.alias
        replacing = [one for one in pairs if one.target.get(_TYPE) == "LogAppendTime"]
        keeping = [one for one in pairs if one.target.get(_TYPE) != "LogAppendTime"]
        found: list[Finding] = []
        if replacing:
            replaces = "replaces" if len(replacing) == 1 else "replace"
            text = f"{some_of([one.remote for one in replacing])} {replaces} the timestamps of records by the time of "
            text += f"the append ({_TYPE}=LogAppendTime)"
            fix = f"set {_TYPE}=CreateTime on these topics"
            found.append(Finding(check=TIMESTAMPS, status=Status.WARNING, text=text, cluster=alias, fix=fix))
        if keeping:
            kept = self._kept_timestamps(keeping)
            if not (replacing and kept.status is Status.OK):
                found.append(kept)
        return found

    def _kept_timestamps(self, pairs: Sequence[TopicPair]) -> Finding:
        alias = self.flow.target.alias
        now_ms = int(time.time() * 1000)
        old = [one for one in pairs if one.limit(_BEFORE) is not None]
        early = [one for one in pairs if one.limit(_AFTER) is not None and _narrower(one)]
        oldest, silent = self._found(old, OffsetSpec.for_timestamp(0), min)
        newest, also_silent = self._found(early, OffsetSpec.max_timestamp(), max)
        silent |= also_silent
        beyond = [
            _refused(one, _BEFORE, now_ms - oldest[one.topic], "old")
            for one in old
            if one.topic in oldest and now_ms - oldest[one.topic] > (one.limit(_BEFORE) or 0)
        ]
        beyond += [
            _refused(one, _AFTER, newest[one.topic] - now_ms, "ahead of now")
            for one in early
            if one.topic in newest and newest[one.topic] - now_ms > (one.limit(_AFTER) or 0)
        ]
        unread = [f"{topic}: {reason}" for topic, reason in sorted(silent.items())]
        if beyond:
            fix = f"raise {_BEFORE} or {_AFTER} on the remote topic while old records are copied"
            text = some_of(beyond) + (f"; not checked: {some_of(unread)}" if unread else "")
            return Finding(check=TIMESTAMPS, status=Status.FAILED, text=text, cluster=alias, fix=fix)
        if unread:
            return _unchecked(TIMESTAMPS, some_of(unread), alias)
        text = f"{_topics(pairs)}: kept, and all records are within the target's limits"
        if early:
            hours = _hours(min(one.limit(_AFTER) or 0 for one in early))
            text += f"; the target accepts records at most {hours} ahead of now"
        return Finding(check=TIMESTAMPS, status=Status.OK, text=text, cluster=alias)

    def _found(
        self, pairs: Iterable[TopicPair], spec: OffsetSpec, furthest: Callable[[int, int], int]
    ) -> tuple[dict[str, int], dict[str, str]]:
        """The lowest or highest timestamp of each topic's records, in ms; and why others could not be read.

        Topics without records are omitted.
        """
        wanted = {ConfluentTopicPartition(one.topic, number): spec for one in pairs for number in range(one.partitions)}
        found: dict[str, int] = {}
        silent: dict[str, str] = {}
        for place, future in (self.source.client.list_offsets(wanted) if wanted else {}).items():
            try:
                at_ms = self.source.result(future).timestamp
            except ClusterError as error:
                silent[place.topic] = str(error)
                continue
            if at_ms is not None and at_ms >= 0:
                found[place.topic] = furthest(found.get(place.topic, at_ms), at_ms)
        return found, silent


def _sizes(pairs: Sequence[TopicPair], alias: str) -> Finding:
    small = [
        (one, theirs, ours)
        for one in pairs
        if (theirs := one.source_limit(MAX_BYTES)) is not None
        and (ours := one.limit(MAX_BYTES)) is not None
        and ours < theirs
    ]
    if not small:
        text = f"{_topics(pairs)}: the target accepts the largest batches of the source"
        return Finding(check=SIZE, status=Status.OK, text=text, cluster=alias)
    if fenced := [one.remote for one, _, ours in small if ours == int(FENCED_BYTES)]:
        return Finding(
            check=SIZE,
            status=Status.WARNING,
            text=f"the fence of an operation is up ({MAX_BYTES}={FENCED_BYTES}): {some_of(fenced)}",
            cluster=alias,
            fix="when no client writes to these topics any more, run `mirrorless operation FILE close`",
        )
    told = [f"{one.remote} accepts {ours:,} bytes, {one.topic} {theirs:,}" for one, theirs, ours in small]
    most = max(theirs for _, theirs, _ in small)
    return Finding(
        check=SIZE,
        status=Status.FAILED,
        text=some_of(told),
        cluster=alias,
        fix=f"set {MAX_BYTES} of these remote topics, or message.max.bytes of {alias}'s brokers, to {most}",
    )


def _narrower(one: TopicPair) -> bool:
    theirs, ours = one.source_limit(_AFTER), one.limit(_AFTER)
    return ours is not None and (theirs is None or ours < theirs)


def _refused(one: TopicPair, name: str, off_ms: int, how: str) -> str:
    limit = one.target[name]
    return f"{one.topic} has a record {_hours(off_ms)} {how}, which {one.remote} refuses ({name}={limit})"


def _hours(milliseconds: int) -> str:
    hours = milliseconds / _HOUR_MS
    return f"{hours / 24:.0f} days" if hours > 72 else f"{hours:.0f} h" if hours >= 2 else f"{hours * 60:.0f} min"


def _topics(pairs: Sequence[TopicPair]) -> str:
    return f"{len(pairs)} topic{'' if len(pairs) == 1 else 's'}"


def _unchecked(check: str, text: str, alias: str) -> Finding:
    return Finding(check=check, status=Status.NOT_CHECKED, text=text, cluster=alias)
