"""Brings copies to where they go on: asks the target's leaders, all that one leads at once, then has them fetched."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from mirrorless.batches.header import FormatError
from mirrorless.copy.partition.min_insync_replicas import TooFewReplicas
from mirrorless.errors import ClusterError, Gap, MirrorlessError, PartitionError
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.protocol.leaders import TROUBLE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.resume.decision import Decision, RemoteLogState
    from mirrorless.copy.resume.resolver import PositionResolver
    from mirrorless.copy.slot.error_policy import ErrorPolicy
    from mirrorless.copy.slot.fetcher import Fetcher
    from mirrorless.protocol.cluster_client import ClusterClient

_HURRIES = 5


class Resumer:
    """Resumes what `verdicts` says is to be resumed, as soon as nothing of it is on its way; what fails is its trouble.

    `spawn` runs a coroutine beside the caller. While a copy waits that has not failed often, the fetcher is to hurry:
    an answer that is waited for holds up who is added.
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
        """Begin with those whose time has come, as of `time.monotonic`."""
        by_node: dict[int, list[PartitionCopy]] = defaultdict(list)
        for copy in [copy for copy in self._error_policy.to_resume if copy.in_flight == 0 and copy.retry_at <= now]:
            node = self._target.leader(copy.remote_place)
            if node is None:
                self._error_policy.later(
                    copy, f"{copy.row.remote_topic}-{copy.row.partition} has no leader at the moment"
                )
            else:
                del self._error_policy.to_resume[copy]
                by_node[node].append(copy)
        for node, copies in by_node.items():
            self._spawn(self._resume(node, copies))
        self._fetcher.hurried = any(
            copy.attempts < _HURRIES and copy.retry_at < math.inf for copy in self._error_policy.to_resume
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
                self._spawn(self._settle(copy, node, *one))
            else:
                self._not_resumed(copy, one)

    async def _settle(self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Decision) -> None:
        try:
            await self._resolver.settle(copy, node, state, decision)
        except (kafka_errors.KafkaError, MirrorlessError, FormatError) as error:
            self._not_resumed(copy, error)
        else:
            copy.error = None
            self._error_policy.moved(copy)
            self._fetcher.add(copy)

    def _not_resumed(self, copy: PartitionCopy, error: BaseException) -> None:
        if isinstance(error, Gap):
            self._error_policy.gap(copy, error)
        elif isinstance(error, TooFewReplicas):
            self._error_policy.too_few_replicas(copy, error)
        elif isinstance(error, (*TROUBLE, ClusterError)):
            self._error_policy.later(copy, error)
        elif isinstance(error, PartitionError):
            self._error_policy.halt(copy, error)
        else:
            self._error_policy.halt(copy, copy.error_at_append(str(error)))
