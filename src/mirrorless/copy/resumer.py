"""Brings copies to where they go on: asks the target's leaders, all that one leads at once, then has them fetched."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from kafka import errors as kafka_errors

from mirrorless.batches.header import FormatError
from mirrorless.copy.few_replicas import TooFewReplicas
from mirrorless.errors import ClusterError, Gap, MirrorlessError, PartitionError
from mirrorless.protocol.leaders import TROUBLE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from mirrorless.copy.fetcher import Fetcher
    from mirrorless.copy.partition import PartitionCopy
    from mirrorless.copy.positions import Positions
    from mirrorless.copy.resume import Decision, TargetState
    from mirrorless.copy.verdicts import Verdicts
    from mirrorless.protocol.wire import Wire

_HURRIES = 5


class Resumer:
    """Resumes what `verdicts` says is to be resumed, as soon as nothing of it is on its way; what fails is its trouble.

    `spawn` runs a coroutine beside the caller. While a copy waits that has not failed often, the fetcher is to hurry:
    an answer that is waited for holds up who is added.
    """

    def __init__(
        self,
        *,
        target: Wire,
        positions: Positions,
        verdicts: Verdicts,
        fetcher: Fetcher,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._target = target
        self._positions = positions
        self._verdicts = verdicts
        self._fetcher = fetcher
        self._spawn = spawn

    def begin_due(self, now: float) -> None:
        """Begin with those whose time has come, as of `time.monotonic`."""
        by_node: dict[int, list[PartitionCopy]] = defaultdict(list)
        for copy in [copy for copy in self._verdicts.to_resume if copy.in_flight == 0 and copy.retry_at <= now]:
            node = self._target.leader(copy.remote_place)
            if node is None:
                self._verdicts.later(copy, f"{copy.row.remote_topic}-{copy.row.partition} has no leader at the moment")
            else:
                del self._verdicts.to_resume[copy]
                by_node[node].append(copy)
        for node, copies in by_node.items():
            self._spawn(self._resume(node, copies))
        self._fetcher.hurried = any(
            copy.attempts < _HURRIES and copy.retry_at < math.inf for copy in self._verdicts.to_resume
        )

    async def _resume(self, node: int, copies: Sequence[PartitionCopy]) -> None:
        try:
            decisions = await self._positions.decisions(node, copies)
        except (kafka_errors.KafkaError, ClusterError) as error:
            for copy in copies:
                self._not_resumed(copy, error)
            return
        for copy, one in decisions.items():
            if isinstance(one, tuple):
                self._spawn(self._settle(copy, node, *one))
            else:
                self._not_resumed(copy, one)

    async def _settle(self, copy: PartitionCopy, node: int, state: TargetState, decision: Decision) -> None:
        try:
            await self._positions.settle(copy, node, state, decision)
        except (kafka_errors.KafkaError, MirrorlessError, FormatError) as error:
            self._not_resumed(copy, error)
        else:
            copy.error = None
            self._verdicts.moved(copy)
            self._fetcher.add(copy)

    def _not_resumed(self, copy: PartitionCopy, error: BaseException) -> None:
        if isinstance(error, Gap):
            self._verdicts.gap(copy, error)
        elif isinstance(error, TooFewReplicas):
            self._verdicts.too_few_replicas(copy, error)
        elif isinstance(error, (*TROUBLE, ClusterError)):
            self._verdicts.later(copy, error)
        elif isinstance(error, PartitionError):
            self._verdicts.halt(copy, error)
        else:
            self._verdicts.halt(copy, copy.error_at_append(str(error)))
