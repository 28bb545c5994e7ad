"""The two clusters of an operation: the flows between them, and the operations that both logs have."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.admin import Admin
from mirrorless.copy.progress.mark_reader import MarkReader
from mirrorless.copy.progress.run_marks import deployment_of
from mirrorless.errors import ClusterError, ClusterUnavailable, ConfigurationError, OperationError
from mirrorless.loops import keeps_names, opposite, shares_topics
from mirrorless.operation_log.records import EVERYTHING, OperationKind, merged
from mirrorless.operation_log.topic import OperationTopic

if TYPE_CHECKING:
    from mirrorless.operation_log.records import Operations
    from mirrorless.settings import Flow, Settings

_ANSWER_S: Final = 5.0
_LOOK_S: Final = 0.5


@dataclass
class ClusterPair:
    """Both clusters of a file's flow to `target`: its flows in both directions, and the logs of operations."""

    settings: Settings
    forward: Flow
    reverse: Flow | None
    logs: dict[str, OperationTopic] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    @classmethod
    def to(cls, settings: Settings, target: str, source: str | None = None) -> ClusterPair:
        """Choose the flow to a cluster, from `source` where several lead there; raises ConfigurationError for none."""
        flows = [flow for flow in settings.flows if flow.target.alias == target]
        if not flows:
            targets = ", ".join(dict.fromkeys(flow.target.alias for flow in settings.flows))
            raise ConfigurationError(f"no enabled flow has the target {target}; targets: {targets}", file=settings.file)
        chosen = [flow for flow in flows if source in (None, flow.source.alias)]
        if not chosen:
            raise ConfigurationError(f"no enabled flow leads from {source} to {target}", file=settings.file)
        if len(chosen) > 1:
            names = ", ".join(flow.name for flow in flows)
            raise ConfigurationError(
                f"several flows have the target {target}: {names}; name the one that applications leave with --from",
                file=settings.file,
            )
        return cls.of(settings, chosen[0])

    @classmethod
    def of(cls, settings: Settings, forward: Flow) -> ClusterPair:
        """Return the pair of a flow."""
        back = f"{forward.target.alias}->{forward.source.alias}"
        reverse = next((flow for flow in settings.flows if flow.name == back), None)
        return cls(settings, forward, reverse)

    @property
    def overlapping(self) -> list[Flow]:
        """A flow for each other pair of the file that has one of the two clusters."""
        found: dict[frozenset[str], Flow] = {}
        for flow in self.settings.flows:
            aliases = frozenset((flow.source.alias, flow.target.alias))
            if aliases & self.aliases and aliases != self.aliases:
                found.setdefault(aliases, flow)
        return list(found.values())

    @property
    def aliases(self) -> frozenset[str]:
        """The aliases of both clusters."""
        return frozenset((self.forward.source.alias, self.forward.target.alias))

    def read(self) -> tuple[Operations, dict[str, str]]:
        """Read the operations of both clusters, as far as they answer; returns them, and why one does not.

        A cluster that did not answer once is not asked again.

        Raises `ClusterUnavailable` if none does.
        """
        found: dict[str, Operations] = {}
        for cluster in (self.forward.target, self.forward.source):
            if cluster.alias in self.failures:
                continue
            try:
                if cluster.alias not in self.logs:
                    admin = Admin(cluster)
                    admin.metadata(timeout_s=_ANSWER_S)
                    self.logs[cluster.alias] = OperationTopic(self.forward, cluster, admin)
                found[cluster.alias] = self.logs[cluster.alias].read()
            except ClusterError as error:
                self.failures[cluster.alias] = str(error)
        if not found:
            raise ClusterUnavailable(next(iter(self.failures.values())), cluster=self.forward.target.alias)
        return merged(found, self.aliases), self.failures

    def fenced_topics(self, alias: str, *, besides: str = "") -> set[str]:
        """The topics of a cluster that are fenced now, as the logs say, by operations of any pair but one.

        Raises `ClusterUnavailable`.
        """
        found = {name: log.read() for name, log in self.logs.items() if name not in self.failures}
        return merged(found).fenced_on(alias, besides=besides)

    def next_number(self) -> int:
        """The number of the next operation: one more than the highest in the logs that were read last.

        Logs have the operations of every pair with their cluster, so connected clusters share one sequence.
        """
        return 1 + max(log.operations.highest for alias, log in self.logs.items() if alias not in self.failures)

    def close(self) -> None:
        """Close the connections."""
        for log in self.logs.values():
            log.close()


def refuse_names(pair: ClusterPair, kind: OperationKind, topics: str) -> None:
    """Raise `OperationError` for what is not supported where a flow keeps topic names.

    Copiers cannot leave single topics out, so the whole flow moves; and it only returns along a flow that takes turns
    with it.
    """
    if not keeps_names(pair.forward) or shares_topics(pair.forward):
        return
    name = pair.forward.name
    if kind is OperationKind.FAILBACK and opposite(pair.forward) is None:
        raise OperationError(
            f"flow {name} keeps topic names, so failback needs the opposite flow too: enable both directions, and set "
            "mirrorless.active.cluster to the cluster that applications wrote to before the failover"
        )
    if topics != EVERYTHING:
        raise OperationError(
            f"flow {name} keeps topic names, so its topics move together: remove --topics. A topic that is to move "
            "alone needs a file in which both clusters have other aliases, before it is copied first"
        )


def refuse_other_files(pair: ClusterPair) -> None:
    """Raise `OperationError` if the flow has to stop, and another file has a flow between the same clusters that runs.

    The stop is Connect's record of the connector: it holds for every file with these aliases. A mark that is there is
    watched until it is renewed, or was valid without that. Raises `ClusterUnavailable`.
    """
    flow = pair.forward
    if not keeps_names(flow) or shares_topics(flow):
        return
    deployment = deployment_of(pair.settings.file, flow.name)
    with closing(MarkReader(flow)) as reader:
        found = {mark.run: mark for mark in reader.read().of_others(flow, deployment=deployment)}
        until = {run: time.monotonic() + mark.valid_ms / 1000 for run, mark in found.items()}
        while left := [mark for run, mark in found.items() if time.monotonic() < until[run]]:
            now = {mark.run: mark for mark in reader.read().of_others(flow, deployment=deployment)}
            if any(now[run] != mark for run, mark in found.items() if run in now):
                raise OperationError(
                    f"another file copies other topics from {flow.source.alias} to {flow.target.alias}, and this move "
                    "would stop them too: name all topics in one file, or give the clusters other aliases in the other "
                    "file before it copies"
                )
            found = {mark.run: found[mark.run] for mark in left if mark.run in now}
            time.sleep(_LOOK_S)


def refuse_open(operations: Operations, pair: ClusterPair) -> None:
    """Raise `OperationError` if an operation of the pair is open."""
    one = operations.open(pair.aliases)
    if one is not None:
        by = f", run by {one.owner_text}" if one.owner_text else ""
        raise OperationError(
            f"{one.request.kind} {one.id} from {one.request.source} to {one.request.target} is open{by}: run "
            f"`mirrorless operation {pair.settings.file} continue` or `abort`"
        )


def refuse_fenced(operations: Operations, pair: ClusterPair, kind: OperationKind) -> None:
    """Raise `OperationError` if a fence on the target blocks the flow to it, which skips copies."""
    target = pair.forward.target.alias
    if kind is not OperationKind.FAILOVER and shares_topics(pair.forward) and operations.fences_on(target):
        raise OperationError(
            f"the fence of the last move is up on {target}, and blocks {pair.forward.name}: run `mirrorless "
            f"operation {pair.settings.file} close` first"
        )


def refuse_overlapping(pair: ClusterPair, kind: OperationKind) -> None:
    """Raise `OperationError` for open operations and standing fences of other pairs that have one of the clusters.

    A failover does not wait for an operation that cannot be continued, since the cluster that decides is down.
    """
    target = pair.forward.target.alias
    for flow in pair.overlapping:
        other = ClusterPair.of(pair.settings, flow)
        with closing(other):
            try:
                operations, failures = other.read()
            except ClusterUnavailable:
                continue  # neither of them answers, so nothing is under way between them
            one = operations.open(other.aliases)
            if one is not None and not (kind is OperationKind.FAILOVER and one.request.target in failures):
                refuse_open(operations, other)
            if operations.fences_on(target):
                raise OperationError(
                    f"the fence of a move to another cluster is up on {target}: run `mirrorless operation "
                    f"{pair.settings.file} close` first"
                )
