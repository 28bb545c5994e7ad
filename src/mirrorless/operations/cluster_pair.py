"""The two clusters of an operation: the flows between them, and the operations that both logs have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.admin import Admin
from mirrorless.errors import ClusterError, ClusterUnavailable, ConfigurationError, OperationError
from mirrorless.operation_log.records import merged
from mirrorless.operation_log.topic import OperationTopic

if TYPE_CHECKING:
    from mirrorless.operation_log.records import Operations
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

    @property
    def refused(self) -> dict[str, str]:
        """Why the operations of a cluster that answers could not be read, by alias: they are unknown, not none."""
        return {alias: log.refused for alias, log in self.logs.items() if log.refused is not None}

    def every_operation(self) -> Operations:
        """The operations of any pair that the logs have now.

        Raises `ClusterUnavailable`.
        """
        return merged({name: log.read() for name, log in self.logs.items() if name not in self.failures})

    def fenced_topics(self, alias: str, *, besides: str = "") -> set[str]:
        """The topics of a cluster that are fenced now, as the logs say, by operations of any pair but one.

        Raises `ClusterUnavailable`.
        """
        return self.every_operation().fenced_on(alias, besides=besides)

    def next_number(self) -> int:
        """The number of the next operation: one more than the highest in the logs that were read last.

        Logs have the operations of every pair with their cluster, so connected clusters share one sequence.
        """
        return 1 + max(log.operations.highest for alias, log in self.logs.items() if alias not in self.failures)

    def close(self) -> None:
        """Close the connections."""
        for log in self.logs.values():
            log.close()


def refuse_open(operations: Operations, pair: ClusterPair) -> None:
    """Raise `OperationError` if an operation of the pair is open."""
    one = operations.open(pair.aliases)
    if one is not None:
        by = f", run by {one.owner_text}" if one.owner_text else ""
        raise OperationError(
            f"{one.request.kind} {one.id} from {one.request.source} to {one.request.target} is open{by}: run "
            f"`mirrorless operation {pair.settings.file} continue` or `abort`"
        )
