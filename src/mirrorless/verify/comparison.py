"""Compares both sides of one flow: metadata, records, group offsets. Reads only, and continues after differences."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from mirrorless.clusters.configs import topic_configs
from mirrorless.errors import ClusterError, ConfigurationError, MirrorlessError, one_line
from mirrorless.metadata.planning import Admins
from mirrorless.settings.patterns import compile_patterns
from mirrorless.settings.values import timestamp_ms
from mirrorless.verify.drill_down import MOST_DIFFERENCES, READ_RECORDS, narrow
from mirrorless.verify.findings import Difference, PartitionResult, VerificationResult
from mirrorless.verify.fingerprints import Fingerprints
from mirrorless.verify.group_offsets import GroupComparison, GroupsCompared
from mirrorless.verify.metadata_diff import Metadata, compare_metadata
from mirrorless.verify.one_process import OneProcess
from mirrorless.verify.pairing import Paired, Pairing
from mirrorless.verify.ranges import pieces
from mirrorless.verify.results import (
    ComparisonState,
    failed,
    keyed_result,
    moved,
    result,
    shortage,
    touched,
    unread_result,
)
from mirrorless.verify.selected_offsets import EVERYTHING
from mirrorless.verify.window import WINDOW_RECORDS, Window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from mirrorless.clusters.configs import Configs
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.settings import Flow
    from mirrorless.verify.latest_limits import Latest
    from mirrorless.verify.ranges import OffsetRange
    from mirrorless.verify.selected_offsets import Selection

EVERY_TOPIC: Final = (".*",)
_ROUNDS: Final = 20
_AGE: Final = re.compile(r"([0-9]{1,6})([hd])")
_UNITS_S: Final = {"h": 3600, "d": 86400}
# As Java prints an error, and as Py4J quotes one.
_CAUSE: Final = "Caused by: "
_THROWN: Final = ": "


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonTerms:
    """What to compare: topics whose whole name matches one of `topics`, records from `since_ms` on, a `share` of them.

    Windows have `window_records` records; around differences, up to `read_records` are read one by one.
    """

    topics: tuple[str, ...] = EVERY_TOPIC
    since_ms: int | None = None
    share: float = 1.0
    window_records: int = WINDOW_RECORDS
    read_records: int = READ_RECORDS

    @classmethod
    def read(cls, *, topics: str, since: str | None, percent: float | None) -> ComparisonTerms:
        """Parse the arguments: patterns with commas, a time, and percent of the records.

        A time has a zone, is in ms, or is an age in hours or days, such as `26h` or `7d`. Raises `ConfigurationError`.
        """
        patterns = tuple(one.strip() for one in topics.split(",") if one.strip())
        try:
            compile_patterns(patterns)
        except ValueError as error:
            raise ConfigurationError(str(error), key="--topics", value=topics) from None
        try:
            since_ms = None if since is None else _since_ms(since)
        except ValueError:
            reason = "use a time with its zone such as 2026-01-31T12:00:00Z, or an age such as 26h or 7d"
            raise ConfigurationError(reason, key="--since", value=since) from None
        return cls(topics=patterns, since_ms=since_ms, share=1.0 if percent is None else percent / 100)


def _since_ms(text: str) -> int:
    if (age := _AGE.fullmatch(text.strip())) is not None:
        return int((time.time() - int(age[1]) * _UNITS_S[age[2]]) * 1000)
    return int(str(timestamp_ms(text)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedWindow:
    """A window of the Parquet output; `round` counts how often its partition was paired again."""

    topic: str
    partition: int
    round: int
    window: Window


class Engine(Protocol):
    """Reads both sides; `errors` are those of a topic or partition that cannot be read, of which others may be."""

    @property
    def name(self) -> str:
        """For error lines."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """See above."""

    def windows(
        self, stretches: Sequence[OffsetRange], *, window_records: int, selection: Selection
    ) -> list[list[Window]]:
        """Return the windows of each range, in order, of the `selection`."""

    def latest(self, partitions: Sequence[Paired], *, selection: Selection) -> list[Latest]:
        """Compare the latest values of these partitions, of the `selection`."""


def _engine(spark: SparkSession | None, flow: Flow) -> Engine:
    if spark is None:
        return OneProcess(flow)
    from mirrorless.verify.spark_engine import SparkEngine  # noqa: PLC0415 -- Spark may not be installed

    return SparkEngine(spark, flow)


class FlowComparison:
    """One comparison of one flow, in this process if `spark` is None.

    `say` receives the current step, in a few words; `windows` the compared windows.
    """

    def __init__(
        self, spark: SparkSession | None, flow: Flow, terms: ComparisonTerms, *, say: Callable[[str], None]
    ) -> None:
        self._engine = _engine(spark, flow)
        self._flow = flow
        self._terms = terms
        self._say = say
        self._troubles: list[str] = []
        self._notes: list[str] = []
        self.windows: list[ComparedWindow] = []
        self._selection = EVERYTHING

    def run(self) -> VerificationResult:
        """Compare everything; the result has what could not be compared. Raises `MirrorlessError` if nothing can."""
        began_ms = int(time.time() * 1000)
        admins = Admins.of(self._flow)
        patterns = compile_patterns(self._terms.topics)
        self._say("metadata")
        metadata = compare_metadata(
            self._flow, admins, wanted=lambda topic: any(one.fullmatch(topic) for one in patterns)
        )
        self._troubles += self._unmatched(metadata, patterns)
        results, differences = self._records(admins, metadata)
        self._say("group offsets")
        compared = self._groups(admins, metadata)
        troubles = [f"{one.topic}-{one.partition}: {one.trouble}" for one in results if one.trouble is not None]
        return VerificationResult(
            flow=self._flow.name,
            began_ms=began_ms,
            ended_ms=int(time.time() * 1000),
            partitions=tuple(results),
            differences=(*metadata.differences, *differences, *compared.differences),
            troubles=(*metadata.troubles, *self._troubles, *troubles, *compared.troubles),
            notes=(*metadata.notes, *self._notes, *compared.notes),
        )

    def _unmatched(self, metadata: Metadata, patterns: Sequence[re.Pattern[str]]) -> Iterator[str]:
        """Report requested topics that do not exist, which would otherwise pass for identical."""
        if metadata.troubles:
            return  # it may be a topic that is not visible
        name = self._flow.name
        if self._terms.topics == EVERY_TOPIC and not metadata.remote:
            alias = self._flow.source.alias
            yield (
                f"nothing to compare: {alias} has no visible topic that {name} replicates; "
                "check `topics` of the flow, and that its user has DESCRIBE on these topics"
            )
        elif not patterns:
            yield "nothing to compare: --topics has no pattern"
        else:
            for one in patterns:
                if not any(one.fullmatch(topic) for topic in metadata.remote):
                    yield f"--topics={one.pattern}: {name} replicates no visible topic of this name"

    def _groups(self, admins: Admins, metadata: Metadata) -> GroupsCompared:
        """Compare groups; a failure here leaves the earlier results unchanged."""
        try:
            groups = GroupComparison(self._flow, source=admins.source, target=admins.target, remote=metadata.remote)
            try:
                return groups.compare()
            finally:
                groups.close()
        except MirrorlessError as error:
            return GroupsCompared(troubles=[f"group offsets: {error}"])

    def _records(self, admins: Admins, metadata: Metadata) -> tuple[list[PartitionResult], list[Difference]]:
        configs, refused = topic_configs(admins.source, metadata.remote)
        # The cleanup policy decides how it is compared: the wrong method finds differences where there are none.
        self._troubles += [
            f"{topic}: its records are not compared, because reading its configs failed: {one.text}"
            for topic, one in refused.items()
        ]
        remote = {topic: name for topic, name in metadata.remote.items() if topic not in refused}
        compacted = {topic for topic, one in configs.items() if _is_compacted(one)}
        results, differences, unread = self._of_topics(admins, remote, compacted)
        if unread:
            # Retention may have overtaken the comparison: repeat it from where both sides begin now.
            remote = {topic: remote[topic] for topic in unread}
            self.windows = [one for one in self.windows if one.topic not in unread]
            results = [one for one in results if one.topic not in unread]
            differences = [one for one in differences if one.topic not in unread]
            for topic, name in remote.items():  # each topic as soon as it is paired
                again, more, _ = self._of_topics(admins, {topic: name}, compacted)
                results, differences = results + again, differences + more
        return sorted(results, key=lambda one: (one.topic, one.partition)), differences

    def _of_topics(
        self, admins: Admins, remote: Mapping[str, str], compacted: set[str]
    ) -> tuple[list[PartitionResult], list[Difference], set[str]]:
        """Results, differences, and the topics that could not be read completely."""
        self._say("offsets on both sides")
        pairing = Pairing(self._flow, source=admins.source, target=admins.target, remote=remote)
        try:
            paired = pairing.pair(since_ms=self._terms.since_ms)
            self._selection = pairing.select(paired)
        finally:
            pairing.close()
        left_out = [failed(one, one.trouble) for one in paired if one.trouble is not None]
        whole = [one for one in paired if one.trouble is None]
        plain = [one for one in whole if one.place[0] not in compacted]
        keyed = [one for one in whole if one.place[0] in compacted]
        self._troubles += [
            f"{one.place[0]}-{one.place[1]}: {one.uncounted}" for one in plain if one.uncounted is not None
        ]
        compared, differences = self._by_windows(plain)
        by_keys, of_keys = self._by_keys(keyed)
        compared, differences = compared + by_keys, differences + of_keys
        unread = {one.topic for one in compared if one.trouble is not None}
        return [*left_out, *compared], differences, unread

    def _by_windows(self, partitions: Sequence[Paired]) -> tuple[list[PartitionResult], list[Difference]]:
        states = {one.place: ComparisonState(one, [*shortage(one)], not_copied=one.not_copied) for one in partitions}
        todo = [piece for one in partitions for stretch in one.stretches for piece in self._pieces(one, stretch)]
        source = Fingerprints(self._flow.source, isolation="read_committed", selected=self._selection.source)
        target = Fingerprints(self._flow.target, isolation="read_committed", selected=self._selection.target)
        try:
            for number in range(_ROUNDS):
                if not todo:
                    break
                self._say("records" if number == 0 else f"records after differences, round {number}")
                rest: list[OffsetRange] = []
                for stretch, windows in self._compared(todo, states):
                    state = states[stretch.topic, stretch.partition]
                    self._take(state, windows, number)
                    if all(one.same for one in windows):
                        continue
                    try:
                        if stretch.same_offsets and (apart := moved(stretch, windows, source=source, target=target)):
                            state.differences += apart
                            continue
                        found = narrow(
                            stretch, windows, source=source, target=target, read_records=self._terms.read_records
                        )
                    except ClusterError as error:
                        state.paired.trouble = str(error)
                        continue
                    if found.unexplained:
                        state.paired.trouble = "its windows differ, but all records on both sides are the same"
                        continue
                    state.not_copied += found.not_copied
                    state.differences += found.differences
                    state.different += touched(windows, found.differences)
                    state.more = state.more or found.more
                    if found.rest is not None and len(state.differences) < MOST_DIFFERENCES:
                        rest.append(found.rest)
                    elif found.rest is not None:
                        state.more = True
                todo = rest
            for stretch in todo:
                states[stretch.topic, stretch.partition].more = True
        finally:
            source.close()
            target.close()
        left = [state for state in states.values() if state.paired.trouble is None]
        lost = [failed(one.paired, one.paired.trouble) for one in states.values() if one.paired.trouble is not None]
        return [*map(result, left), *lost], [one for state in states.values() for one in state.differences]

    def _pieces(self, one: Paired, stretch: OffsetRange) -> Iterable[OffsetRange]:
        share = self._terms.share
        if not stretch.closed:
            return [stretch]
        return pieces(stretch, one.line, share=share, least_records=self._terms.window_records)

    def _compared(
        self, stretches: Sequence[OffsetRange], states: dict[TopicPartition, ComparisonState]
    ) -> list[tuple[OffsetRange, list[Window]]]:
        """Windows of the ranges; if that fails, half of the topics at a time, so that one does not block all."""
        try:
            found = self._engine.windows(
                stretches, window_records=self._terms.window_records, selection=self._selection
            )
        except self._engine.errors as error:
            topics = sorted({one.topic for one in stretches})
            if len(topics) == 1:
                for state in states.values():
                    if state.paired.place[0] == topics[0]:
                        state.paired.trouble = f"{self._engine.name} could not read it: {first_line(error)}"
                return []
            first = set(topics[: len(topics) // 2])
            halves = (
                [one for one in stretches if one.topic in first],
                [one for one in stretches if one.topic not in first],
            )
            return [done for half in halves for done in self._compared(half, states)]
        return list(zip(stretches, found, strict=True))

    def _take(self, state: ComparisonState, windows: Sequence[Window], number: int) -> None:
        topic, partition = state.paired.place
        self.windows += [ComparedWindow(topic=topic, partition=partition, round=number, window=one) for one in windows]
        state.size_bytes += sum(one.size_bytes for one in windows)
        if number == 0:
            state.windows += len(windows)
            state.records += sum(min(one.records, one.remote_records) for one in windows)

    def _by_keys(self, partitions: Sequence[Paired]) -> tuple[list[PartitionResult], list[Difference]]:
        if unknown := [one for one in partitions if one.certain_end is None]:
            results, differences = self._by_keys([one for one in partitions if one.certain_end is not None])
            return [*results, *map(unread_result, unknown)], differences
        if not partitions:
            return [], []
        self._say("latest values of compacted topics")
        try:
            found = self._engine.latest(partitions, selection=self._selection)
        except self._engine.errors as error:
            if len(partitions) > 1:
                middle = len(partitions) // 2
                halves = [self._by_keys(some) for some in (partitions[:middle], partitions[middle:])]
                return [one for results, _ in halves for one in results], [one for _, some in halves for one in some]
            return [failed(partitions[0], f"{self._engine.name} could not read it: {first_line(error)}")], []
        results, differences = [], []
        for one, latest in zip(partitions, found, strict=True):
            results.append(keyed_result(one, latest))
            differences += [*shortage(one), *latest.differences]
        return results, differences


def _is_compacted(configs: Configs) -> bool:
    policy = configs.get("cleanup.policy")
    return policy is not None and "compact" in (policy.value or "")


def first_line(error: Exception) -> str:
    """The message of an error, in one line; of Java's errors, the last cause."""
    text = str(error).strip().splitlines()
    causes = [line for line in text if line.startswith((_CAUSE, _THROWN))]
    line = causes[-1] if causes else text[0] if text else type(error).__name__
    return one_line(line.removeprefix(_CAUSE).removeprefix(_THROWN)[:300])


def verify_flow(
    spark: SparkSession | None, flow: Flow, terms: ComparisonTerms, *, say: Callable[[str], None]
) -> tuple[VerificationResult, list[ComparedWindow]]:
    """Compare one flow, in this process if `spark` is None; if nothing can be compared, the result has the reason."""
    comparison = FlowComparison(spark, flow, terms, say=say)
    began_ms = int(time.time() * 1000)
    try:
        return comparison.run(), comparison.windows
    except MirrorlessError as error:
        now_ms = int(time.time() * 1000)
        verdict = VerificationResult(flow=flow.name, began_ms=began_ms, ended_ms=now_ms, troubles=(str(error),))
        return verdict, comparison.windows
