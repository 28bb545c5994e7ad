"""Resumes copies: asks the target's leaders, each for all its partitions at once, then has them fetched."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from mirrorless.batches.header import FormatError
from mirrorless.copy.partition.errors import append_error
from mirrorless.copy.partition.min_insync_replicas import TooFewReplicas
from mirrorless.errors import ClusterError, Gap, MirrorlessError, PartitionError
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.protocol.leaders import TROUBLE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.resume.resolver import AskAgain, PositionResolver
    from mirrorless.copy.slot.error_policy import ErrorPolicy
    from mirrorless.copy.slot.fetcher import Fetcher
    from mirrorless.protocol.cluster_client import ClusterClient

_HURRIES = 5


class Resumer:
    """Resumes the copies that `error_policy` has to resume; failures go back to it.

    `spawn` runs a coroutine beside the caller. While a copy that has not failed often is to be resumed, the fetcher
    does not wait long for answers: a request in flight delays a partition that is added.
    """

    def __init__(
        self,
        *,
        target: ClusterClient,
        resolver: PositionResolver,
        error_policy: ErrorPolicy,
        fetcher: Fetcher,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._target = target
        self._resolver = resolver
        self._error_policy = error_policy
        self._fetcher = fetcher
        self._spawn = spawn

    def begin_due(self, now: float) -> None:
        """Resume the copies that are due by now, in `time.monotonic` seconds."""
        by_node: dict[int, list[PartitionCopy]] = defaultdict(list)
        for copy in self._error_policy.take_due(now):
            if copy.exact is not None and not copy.row.is_first:
                self._error_policy.leave_to_next_lease(copy, _left_to_another_run(copy))
                continue
            node = self._target.leader(copy.remote_place)
            if node is None:
                remote, partition = copy.remote_place
                self._error_policy.retry_later(copy, f"{remote}-{partition} has no leader at the moment")
            else:
                by_node[node].append(copy)
        for node, copies in by_node.items():
            self._spawn(self._resume(node, copies))
        self._fetcher.hurry(
            any(copy.retry.attempts < _HURRIES and not copy.retry.is_never for copy in self._error_policy.to_resume)
        )

    async def _resume(self, node: int, copies: Sequence[PartitionCopy]) -> None:
        try:
            decisions = await self._resolver.decisions(node, copies)
        except (kafka_errors.KafkaError, ClusterError) as error:
            for copy in copies:
                self._not_resumed(copy, error)
            return
        for copy, one in decisions.items():
            if isinstance(one, tuple):
                self._spawn(self._settle(copy, self._resolver.settle(copy, node, *one)))
            else:
                self._not_resumed(copy, one)

    async def _settle(self, copy: PartitionCopy, settling: Coroutine[Any, Any, AskAgain | None]) -> None:
        try:
            again = await settling
        except (kafka_errors.KafkaError, MirrorlessError, FormatError) as error:
            self._not_resumed(copy, error)
            return
        if again is not None:
            self._error_policy.retry_later(copy, again.reason)
        else:
            self._error_policy.position_changed(copy)
            self._fetcher.add(copy)

    def _not_resumed(self, copy: PartitionCopy, error: BaseException) -> None:
        if isinstance(error, Gap):
            self._error_policy.gap_found(copy, error)
        elif isinstance(error, TooFewReplicas):
            self._error_policy.too_few_replicas(copy, error)
        elif isinstance(error, (*TROUBLE, ClusterError)):
            self._error_policy.retry_later(copy, error)
        elif isinstance(error, PartitionError):
            self._error_policy.halt(copy, error)
        else:
            self._error_policy.halt(copy, append_error(copy, str(error)))


def _left_to_another_run(copy: PartitionCopy) -> str:
    return (
        f"another run of this flow copies {copy.row.topic}-{copy.row.partition} with identical offsets; this run "
        "continues when the other has stopped"
    )
