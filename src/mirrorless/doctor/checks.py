"""All checks of one flow, in an order in which each may rely on the earlier ones."""

from __future__ import annotations

import difflib
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING, Final

from mirrorless import client_logs
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.compaction import CLEANUP_POLICY, COMPACT
from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.groups import list_groups
from mirrorless.clusters.identity import ends_of
from mirrorless.clusters.msk import is_serverless
from mirrorless.clusters.replication_factors import broker_count
from mirrorless.clusters.side_by_side import each
from mirrorless.clusters.topics import partition_counts, replica_counts
from mirrorless.copy.api import first_copy
from mirrorless.doctor.clocks import clock_agrees
from mirrorless.doctor.connectivity import reach
from mirrorless.doctor.examples import literals
from mirrorless.doctor.findings import Finding, Status, some_of
from mirrorless.doctor.internal_topics import End, internal_topics, replication_factors
from mirrorless.doctor.kinds import absent_kinds
from mirrorless.doctor.limits import LIMITS, RecordLimits
from mirrorless.doctor.mirrormaker2 import signs_of_mirrormaker2
from mirrorless.doctor.probes import Probes
from mirrorless.doctor.rights_check import Names, rights_there
from mirrorless.doctor.running_copies import RUNNING, running_copies
from mirrorless.doctor.serverless import serverless
from mirrorless.doctor.socket_buffers import BUFFERS, shortest_round_trip_s, socket_buffers
from mirrorless.errors import ClusterError, CopiedClusterIdError, LoopError, SameClusterError
from mirrorless.filters import group_filter_for, replicated_topics
from mirrorless.metadata.fences import unexplained_fences
from mirrorless.metadata.kind_results import synced_kinds
from mirrorless.metadata.loop_check import refuse_loops
from mirrorless.metadata.plan import came_back
from mirrorless.metadata.service_records import replicated_on
from mirrorless.progress.topic import ProgressTopic
from mirrorless.rights import Function, Side, functions_of, needed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from confluent_kafka.admin import ClusterMetadata

    from mirrorless.settings import Cluster, Flow

_IDS: Final = "cluster ids"
_LOOPS: Final = "loops"
_FENCES: Final = "fences"
_FIRST_COPY: Final = "first copy"
_ENGINES: Final = frozenset({Function.COPY, Function.PARTITION_COPY})
_COPYING: Final = _ENGINES | {Function.TOPIC_DISCOVERY, Function.CONFIG_SYNC}
_OF_GROUPS: Final = frozenset({Function.CHECKPOINT, Function.COPY, Function.VERIFY_COPY, Function.DRILL})


def examine(flow: Flow, functions: Iterable[Function] | None = None) -> list[Finding]:
    """Check both ends of a flow, for all of its functions or for some, without writing anything.

    Raises ConfigurationError for a policy, a filter or a kind that cannot be used.
    """
    client_logs.set_up()
    synced_kinds(flow)
    chosen = functions_of(flow) if functions is None else frozenset(functions)
    clusters = {Side.SOURCE: flow.source, Side.TARGET: flow.target}
    wanted = {row.side for row in needed(flow, chosen)}
    found: list[Finding] = []
    ends: dict[Side, ClusterMetadata] = {}
    sides = [side for side in Side if side in wanted]
    for side, (steps, metadata) in zip(sides, each([partial(reach, clusters[side]) for side in sides]), strict=True):
        found += steps
        if metadata is not None:
            ends[side] = metadata
    return [*found, *_Examination(flow, chosen, clusters, wanted, ends).all()]


class _Examination:
    """The checks after those of `connectivity`; `ends` are the reachable sides, with their metadata."""

    def __init__(
        self,
        flow: Flow,
        functions: frozenset[Function],
        clusters: Mapping[Side, Cluster],
        wanted: set[Side],
        ends: Mapping[Side, ClusterMetadata],
    ) -> None:
        self._flow = flow
        self._functions = functions
        self._clusters = clusters
        self._wanted = wanted
        self._metadata = ends
        self._admins = {side: Admin(clusters[side]) for side in ends}
        self._round_trips_s: dict[Side, float | None] = {}
        self._ends = {
            side: End(side, clusters[side].alias, replica_counts(metadata), broker_count(metadata))
            for side, metadata in ends.items()
        }

    def all(self) -> list[Finding]:
        """Run every check; those that need an unreachable end are reported as not checked."""
        found = [self._ids()] if len(self._wanted) > 1 else []
        if any(one.status is Status.FAILED for one in found):
            return found  # one cluster at both ends: other findings would be about another flow
        with ExitStack() as stack:
            opened = each([partial(Probes, self._clusters[side]) for side in self._metadata])
            probes = {side: stack.enter_context(one) for side, one in zip(self._metadata, opened, strict=True)}
            # Before the requests of other checks take their time.
            self._round_trips_s = dict(
                zip(probes, each([partial(shortest_round_trip_s, one) for one in probes.values()]), strict=True)
            )
            # Side by side: each check is a few requests that wait for each other, and clusters may be far away.
            checks: list[Callable[[], list[Finding]]] = [
                partial(self._one_end, side, probes.get(side)) for side in Side if side in self._wanted
            ]
            if self._functions & _COPYING:
                checks += [self._loops, self._fences, partial(self._limits, probes)]
            if self._functions & _ENGINES:
                checks += [partial(self._mirrormaker2, probes), lambda: [self._running()], self._first_copy]
            found += [one for some in each(checks) for one in some]
        return found

    def _ids(self) -> Finding:
        if (missing := self._unreached(*Side)) is not None:
            return Finding(check=_IDS, status=Status.NOT_CHECKED, text=missing)
        at_source, at_target = self._metadata[Side.SOURCE], self._metadata[Side.TARGET]
        source, target = self._admins[Side.SOURCE], self._admins[Side.TARGET]
        try:
            ends = ends_of(self._flow, source=source, target=target, at_source=at_source, at_target=at_target)
        except CopiedClusterIdError as error:
            return Finding(check=_IDS, status=Status.FAILED, text=error.reason, fix=error.fix)
        except SameClusterError as error:
            text = f"source and target are the same cluster ({error.cluster_id})"
            return Finding(check=_IDS, status=Status.FAILED, text=text, fix=error.fix)
        except ClusterError as error:
            return Finding(check=_IDS, status=Status.NOT_CHECKED, text=str(error))
        text = f"cluster ids differ: {ends.source_id}, {ends.target_id}"
        if at_source.cluster_id == at_target.cluster_id:
            text += f"; both report {at_source.cluster_id}, and mirrorless.cluster.id distinguishes them"
        return Finding(check=_IDS, status=Status.OK, text=text)

    def _loops(self) -> list[Finding]:
        """Check for a flow with a reverse direction whether a topic would be replicated in a loop."""
        topics = {topic for end in self._ends.values() for topic in end.topics}
        try:
            ways_back = refuse_loops(self._flow, topics)
        except LoopError as error:
            names = ", ".join(error.path)
            text = f"topic {error.topic} would be replicated in a loop by {names}, which all keep the topic's name"
            fix = "exclude the topic from one of these flows (topics.exclude), or use DefaultReplicationPolicy"
            return [Finding(check=_LOOPS, status=Status.FAILED, text=text, fix=fix)]
        text = f"no topic would be replicated back by {', '.join(ways_back)}"
        return [Finding(check=_LOOPS, status=Status.OK, text=text)] if ways_back else []

    def _first_copy(self) -> list[Finding]:
        """Look for records that a first copy would write a second time, or append its own to."""
        if len(self._admins) < len(Side):
            return []
        flow, target = self._flow, self._admins[Side.TARGET]
        there = partition_counts(self._metadata[Side.TARGET])
        counts = partition_counts(self._metadata[Side.SOURCE])
        try:
            remote = replicated_on(flow, self._admins[Side.SOURCE], counts)
            counts = {t: min(counts[t], there[name]) for t, name in remote.items() if name in there}
            with closing(ProgressTopic(flow, target, must_exist=False)) as progress:
                known = progress.read()
                if progress.refused is not None:
                    return []  # the check of rights names it
            not_copied, others = first_copy(
                flow, source=self._admins[Side.SOURCE], target=target, remote=remote, counts=counts, known=known
            )
        except ClusterError as error:
            return [Finding(check=_FIRST_COPY, status=Status.NOT_CHECKED, text=str(error))]
        return [
            Finding(check=_FIRST_COPY, status=Status.WARNING, text=text, fix=fix)
            for text, _, fix in (line.partition("; ") for line in (not_copied, others) if line is not None)
        ]

    def _fences(self) -> list[Finding]:
        """Look for topics whose writers are blocked by a fence that no operation explains."""
        try:
            ends = {self._clusters[side].alias: admin for side, admin in self._admins.items()}
            lines = unexplained_fences(self._flow, ends) if len(ends) == len(Side) else []
        except ClusterError as error:
            return [Finding(check=_FENCES, status=Status.NOT_CHECKED, text=str(error))]
        found = [line.split(": remove it with ", maxsplit=1) for line in lines]
        return [Finding(check=_FENCES, status=Status.WARNING, text=text, fix=fix) for text, fix in found]

    def _one_end(self, side: Side, probes: Probes | None) -> list[Finding]:
        alias = self._clusters[side].alias
        if probes is None:
            reason = f"{alias} is unreachable"
            undone = ["rights", "internal topics", "replication factors", "clock"]
            undone += [BUFFERS] if self._functions & _ENGINES else []
            return [Finding(check=one, status=Status.NOT_CHECKED, text=reason, cluster=alias) for one in undone]
        flow, end = self._flow, self._ends[side]
        functions, admin = self._functions, self._admins[side]
        checks: list[Callable[[], list[Finding]]] = [
            lambda: rights_there(flow, side, probes=probes, names=self._names(), functions=functions),
            lambda: [replication_factors(flow, end, functions=functions)],
            lambda: internal_topics(flow, end, admin=admin, probes=probes, functions=functions),
            partial(self._serverless, side),
            lambda: absent_kinds(flow, side),
            lambda: [clock_agrees(probes, alias)],
            partial(self._socket_buffers, side, probes),
        ]
        return [one for some in each(checks) for one in some]

    def _socket_buffers(self, side: Side, probes: Probes) -> list[Finding]:
        if not self._functions & _ENGINES:
            return []
        alias, brokers = self._clusters[side].alias, sorted(self._metadata[side].brokers)
        round_trip_s = self._round_trips_s[side]
        return [socket_buffers(probes, side, alias, brokers=brokers, round_trip_s=round_trip_s)]

    def _serverless(self, side: Side) -> list[Finding]:
        counts = partition_counts(self._metadata[side])
        return serverless(
            self._flow,
            side,
            admin=self._admins[side],
            counts=counts,
            remote=self._compacted() if side is Side.TARGET and is_serverless(self._flow.target) else {},
            functions=self._functions,
        )

    def _compacted(self) -> dict[str, int]:
        """Remote topics of the source's compacted topics, with their partitions; empty if the source is unreachable."""
        metadata, admin = self._metadata.get(Side.SOURCE), self._admins.get(Side.SOURCE)
        if metadata is None or admin is None:
            return {}
        counts = partition_counts(metadata)
        remote = replicated_on(self._flow, admin, counts)
        try:
            configs, _ = topic_configs(admin, remote)
        except ClusterError:
            return {}
        compacted = [
            topic
            for topic, one in configs.items()
            if CLEANUP_POLICY in one and COMPACT in (one[CLEANUP_POLICY].value or "")
        ]
        return {remote[topic]: counts[topic] for topic in compacted}

    def _names(self) -> Names:
        """The visible names of the source; empty if it is unreachable."""
        metadata, admin = self._metadata.get(Side.SOURCE), self._admins.get(Side.SOURCE)
        if metadata is None or admin is None:
            return Names((), ())
        groups: list[str] = []
        if self._functions & _OF_GROUPS:
            try:
                groups = sorted(filter(group_filter_for(self._flow).selects, list_groups(admin)[0]))
            except ClusterError:
                groups = []
        return Names(tuple(replicated_on(self._flow, admin, partition_counts(metadata))), tuple(groups))

    def _limits(self, probes: Mapping[Side, Probes]) -> list[Finding]:
        alias = self._flow.target.alias
        found: list[Finding] = []
        reason = self._unreached(*Side)
        if reason is None:
            counts = partition_counts(self._metadata[Side.SOURCE])
            remote = replicated_on(self._flow, self._admins[Side.SOURCE], counts)
            limits = RecordLimits(
                flow=self._flow,
                source=self._admins[Side.SOURCE],
                target=self._admins[Side.TARGET],
                probes=probes[Side.TARGET],
                remote=remote,
                counts=counts,
                replicas=self._ends[Side.TARGET].replicas,
            )
            found.append(self._topics(remote))
            try:
                return [*found, *limits.check()]
            except ClusterError as error:
                reason = str(error)
        undone = [Finding(check=check, status=Status.NOT_CHECKED, text=reason, cluster=alias) for check in LIMITS]
        return [*found, *undone]

    def _topics(self, remote: Mapping[str, str]) -> Finding:
        """Check what would be replicated; a topic that is named but not visible would be skipped silently."""
        alias = self._flow.source.alias
        unseen = [topic for topic in literals(self._flow.topics, replicated_topics(self._flow)) if topic not in remote]
        if unseen:
            text = f"topics not visible and not replicated: {some_of(unseen)}"
            close = difflib.get_close_matches(unseen[0], self._ends[Side.SOURCE].topics, n=1)
            text += f"; did you mean {close[0]}?" if close else ""
            fix = "correct topics, create the missing topics, or grant DESCRIBE on them"
            return Finding(check="topics", status=Status.WARNING, text=text, cluster=alias, fix=fix)
        if returned := came_back(self._flow, remote):
            return Finding(check="topics", status=Status.WARNING, text=returned[0], cluster=alias)
        if not remote:
            text = "no visible topic would be replicated"
            fix = "correct topics or topics.exclude, or grant DESCRIBE on those to replicate"
            return Finding(check="topics", status=Status.WARNING, text=text, cluster=alias, fix=fix)
        return Finding(check="topics", status=Status.OK, text=f"{len(remote)} to replicate", cluster=alias)

    def _mirrormaker2(self, probes: Mapping[Side, Probes]) -> list[Finding]:
        reason = self._unreached(Side.TARGET)
        if reason is None:
            topics = set(self._ends[Side.TARGET].topics)
            try:
                return signs_of_mirrormaker2(self._flow, probes=probes[Side.TARGET], topics=topics)
            except ClusterError as error:
                reason = str(error)
        alias = self._flow.target.alias
        return [Finding(check="MirrorMaker 2", status=Status.NOT_CHECKED, text=reason, cluster=alias)]

    def _running(self) -> Finding:
        if (reason := self._unreached(Side.TARGET)) is not None:
            alias = self._flow.target.alias
            return Finding(check=RUNNING, status=Status.NOT_CHECKED, text=reason, cluster=alias)
        return running_copies(self._flow, self._ends[Side.TARGET].topics)

    def _unreached(self, *sides: Side) -> str | None:
        missing = [self._clusters[side].alias for side in sides if side not in self._metadata]
        return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} unreachable" if missing else None
