"""The two clusters of an operation: the flows between them, and the operations that both logs have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.admin import Admin
from mirrorless.errors import ClusterError, ClusterUnavailable, ConfigurationError, OperationError
from mirrorless.loops import keeps_names, opposite, shares_topics, skips_copies
from mirrorless.operation_log.records import EVERYTHING, OperationKind, Operations
from mirrorless.operation_log.topic import OperationTopic

if TYPE_CHECKING:
    from mirrorless.settings import Flow, Settings

_ANSWER_S: Final = 5.0


@dataclass
class ClusterPair:
    """Both clusters of a file's flow to `target`: its flows in both directions, and the logs of operations."""

    settings: Settings
    forward: Flow
    reverse: Flow | None
    logs: dict[str, OperationTopic] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    @classmethod
    def to(cls, settings: Settings, target: str) -> ClusterPair:
        """Choose the flow to a cluster; raises ConfigurationError if there is none, or more than one."""
        flows = [flow for flow in settings.flows if flow.target.alias == target]
        if not flows:
            raise ConfigurationError(f"no enabled flow has the target {target}", file=settings.file)
        if len(flows) > 1:
            names = ", ".join(flow.name for flow in flows)
            if any(skips_copies(flow) for flow in flows):
                # With a file of two clusters, records of the third would count as those of the source.
                raise ConfigurationError(
                    f"several flows have the target {target}: {names}; with mirrorless.loops=skip, applications of "
                    "three clusters are moved by hand: `mirrorless failover-plan` has the positions of groups",
                    file=settings.file,
                )
            raise ConfigurationError(
                f"several flows have the target {target}: {names}; use a file with one of them", file=settings.file
            )
        return cls.of(settings, flows[0])

    @classmethod
    def of(cls, settings: Settings, forward: Flow) -> ClusterPair:
        """Return the pair of a flow."""
        back = f"{forward.target.alias}->{forward.source.alias}"
        reverse = next((flow for flow in settings.flows if flow.name == back), None)
        return cls(settings, forward, reverse)

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
        return _merged(found, self.aliases), self.failures

    def close(self) -> None:
        """Close the connections."""
        for log in self.logs.values():
            log.close()


def _merged(found: dict[str, Operations], pair: frozenset[str]) -> Operations:
    """Of each operation the state of the cluster that decides, which is its target; of the other one if need be."""
    merged = Operations()
    for alias, operations in found.items():
        for one in operations.of(pair):
            if one.id not in merged.by_id or alias == one.request.target:
                merged.by_id[one.id] = one
    return merged


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
            f"flow {name} keeps topic names, so its topics move together: remove --topics, or name them in `topics` of "
            "a file of their own"
        )


def refuse_open(operations: Operations, pair: ClusterPair) -> None:
    """Raise `OperationError` if an operation of the pair is open."""
    one = operations.open(pair.aliases)
    if one is not None:
        by = f", run by {one.owner_text}" if one.owner_text else ""
        raise OperationError(
            f"{one.request.kind} {one.id} from {one.request.source} to {one.request.target} is open{by}: run "
            f"`mirrorless operation {pair.settings.file} continue` or `abort`"
        )
