"""Checks that the target's topics take the source's records: their size, and their timestamps.

Limits are the topic's `max.message.bytes`, `message.timestamp.type`, `message.timestamp.before.max.ms` and
`.after.max.ms` (KIP-937; 1 h ahead is the default from Kafka 4.0 on, KIP-1030). A remote topic that is not there yet
has those that its creation would give it, which brokers tell without creating it (KIP-525).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from mirrorless.clusters.configs import topic_configs
from mirrorless.doctor.findings import Finding, Status, some_of
from mirrorless.doctor.probes import NotSaid
from mirrorless.errors import ClusterError
from mirrorless.filters import config_filter_for
from mirrorless.metadata.config_plan import creation_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.configs import Configs
    from mirrorless.doctor.probes import Probes
    from mirrorless.settings import Flow

SIZE, TIMESTAMPS = "message size", "timestamps"
_MAX_BYTES: Final = "max.message.bytes"
_TYPE: Final = "message.timestamp.type"
_BEFORE: Final = "message.timestamp.before.max.ms"
_AFTER: Final = "message.timestamp.after.max.ms"
_WATCHED: Final = (_MAX_BYTES, _TYPE, _BEFORE, _AFTER)
_HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class _Pair:
    """A source topic with its partition count, and the configs on both sides."""

    topic: str
    remote: str
    partitions: int
    source: Mapping[str, str | None]
    target: Mapping[str, str | None]

    def limit(self, name: str, *, side: Mapping[str, str | None] | None = None) -> int | None:
        """A limit of the target's, or of the given side; None where there is none."""
        value = (self.target if side is None else side).get(name)
        return None if value is None or int(value) >= 2**63 - 1 else int(value)


@dataclass(frozen=True, slots=True)
class Limits:
    """Compares the topics of `remote`, by source topic; `counts` are partitions, `there` the target's topics."""

    flow: Flow
    source: Admin
    target: Admin
    probes: Probes
    remote: Mapping[str, str]
    counts: Mapping[str, int]
    there: frozenset[str]

    def check(self) -> list[Finding]:
        """One finding about sizes and one about timestamps; raises `ClusterError`."""
        alias = self.flow.target.alias
        if not self.remote:
            text = f"no topic of {self.flow.source.alias} that the flow replicates can be seen"
            return [_unchecked(check, text, alias) for check in (SIZE, TIMESTAMPS)]
        try:
            pairs = list(self._pairs())
        except NotSaid as error:
            return [_unchecked(check, str(error), alias) for check in (SIZE, TIMESTAMPS)]
        return [_sizes(pairs, alias), self._timestamps(pairs)]

    def _pairs(self) -> Iterator[_Pair]:
        source, refused = topic_configs(self.source, self.remote)
        if refused:
            raise NotSaid(f"the configs of {some_of(sorted(refused))} cannot be read on {self.flow.source.alias}")
        here = [name for name in self.remote.values() if name in self.there]
        target, refused = topic_configs(self.target, here)
        if refused:
            raise NotSaid(f"the configs of {some_of(sorted(refused))} cannot be read on {self.flow.target.alias}")
        chosen = config_filter_for(self.flow)
        created: dict[frozenset[tuple[str, str]], Mapping[str, str | None]] = {}
        for topic, name in self.remote.items():
            config = creation_config(chosen, source[topic])
            if name in target:
                own = config if self.flow.sync_topic_configs_enabled else {}
                found = _values(target[name]) | {key: value for key, value in own.items() if key in _WATCHED}
            else:
                like = frozenset(config.items())
                if like not in created:
                    created[like] = self._created(name, config)
                found = dict(created[like])
            yield _Pair(topic, name, self.counts[topic], _values(source[topic]), found)

    def _created(self, name: str, config: Mapping[str, str]) -> Mapping[str, str | None]:
        """What the target would give a new topic; without the source's configs if it refuses those."""
        alias = self.flow.target.alias
        for wanted in (config, {}):
            code, reason, found = self.probes.creation(name, partitions=1, replication_factor=-1, config=wanted)
            if not code:
                if found is None:
                    raise NotSaid(f"{alias} does not say what configs {name} would get; it takes DESCRIBE_CONFIGS")
                return found
        raise NotSaid(f"{alias} would not create {name}: {reason}")

    def _timestamps(self, pairs: list[_Pair]) -> Finding:
        alias = self.flow.target.alias
        replaced = [one.remote for one in pairs if one.target.get(_TYPE) == "LogAppendTime"]
        if replaced:
            text = f"{some_of(replaced)} replaces the timestamps of records by its own (message.timestamp.type)"
            fix = "set message.timestamp.type=CreateTime there"
            return Finding(check=TIMESTAMPS, status=Status.WARNING, text=text, cluster=alias, fix=fix)
        now_ms = int(time.time() * 1000)
        old = [one for one in pairs if one.limit(_BEFORE) is not None]
        early = [one for one in pairs if one.limit(_AFTER) is not None and _narrower(one)]
        try:
            oldest = self._found(old, OffsetSpec.for_timestamp(0), min)
            newest = self._found(early, OffsetSpec.max_timestamp(), max)
        except ClusterError as error:
            return _unchecked(TIMESTAMPS, str(error), alias)
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
        if beyond:
            fix = f"raise {_BEFORE} or {_AFTER} on the remote topic while the past is copied"
            return Finding(check=TIMESTAMPS, status=Status.FAILED, text=some_of(beyond), cluster=alias, fix=fix)
        topics = f"{len(pairs)} topic{'' if len(pairs) == 1 else 's'}"
        text = f"{topics}: kept, and no record is outside of what the target takes"
        if early:
            text += f"; it takes records at most {_hours(min(one.limit(_AFTER) or 0 for one in early))} ahead of now"
        return Finding(check=TIMESTAMPS, status=Status.OK, text=text, cluster=alias)

    def _found(self, pairs: Iterable[_Pair], spec: OffsetSpec, furthest: Callable[[int, int], int]) -> dict[str, int]:
        """The lowest or highest timestamp of each topic's records, in ms; topics without records are left out."""
        wanted = {TopicPartition(one.topic, number): spec for one in pairs for number in range(one.partitions)}
        found: dict[str, int] = {}
        for place, future in (self.source.client.list_offsets(wanted) if wanted else {}).items():
            at_ms = self.source.result(future).timestamp
            if at_ms is not None and at_ms >= 0:
                found[place.topic] = furthest(found.get(place.topic, at_ms), at_ms)
        return found


def _sizes(pairs: list[_Pair], alias: str) -> Finding:
    small = [
        (one, theirs, ours)
        for one in pairs
        if (theirs := one.limit(_MAX_BYTES, side=one.source)) is not None
        and (ours := one.limit(_MAX_BYTES)) is not None
        and ours < theirs
    ]
    if not small:
        text = f"{len(pairs)} topic{'' if len(pairs) == 1 else 's'}: the target takes what the source took"
        return Finding(check=SIZE, status=Status.OK, text=text, cluster=alias)
    told = [f"{one.remote} takes {ours:,} bytes, {one.topic} {theirs:,}" for one, theirs, ours in small]
    most = max(theirs for _, theirs, _ in small)
    return Finding(
        check=SIZE,
        status=Status.FAILED,
        text=some_of(told),
        cluster=alias,
        fix=f"set {_MAX_BYTES} of these remote topics, or message.max.bytes of {alias}'s brokers, to {most}",
    )


def _narrower(one: _Pair) -> bool:
    theirs, ours = one.limit(_AFTER, side=one.source), one.limit(_AFTER)
    return ours is not None and (theirs is None or ours < theirs)


def _refused(one: _Pair, name: str, off_ms: int, how: str) -> str:
    limit = one.target[name]
    return f"{one.topic} has a record {_hours(off_ms)} {how}, which {one.remote} refuses ({name}={limit})"


def _hours(milliseconds: int) -> str:
    hours = milliseconds / _HOUR_MS
    return f"{hours / 24:.0f} days" if hours > 72 else f"{hours:.0f} h" if hours >= 2 else f"{hours * 60:.0f} min"


def _values(configs: Configs) -> dict[str, str | None]:
    return {name: configs[name].value for name in _WATCHED if name in configs}


def _unchecked(check: str, text: str, alias: str) -> Finding:
    return Finding(check=check, status=Status.NOT_CHECKED, text=text, cluster=alias)
