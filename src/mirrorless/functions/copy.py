"""copy: copies the flow's partitions until the next invocation is ready to, without Spark."""

from __future__ import annotations

import json
import math
import os
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mirrorless.copy.api import Control, CopyOutcome, FlowRef, FunctionsEngine, MemoryLimits
from mirrorless.functions.client_cache import ClientCache
from mirrorless.functions.copy_companions import Companions
from mirrorless.functions.environment import copy_environment
from mirrorless.functions.events import COPY_SHARE, CopyShareEvent
from mirrorless.functions.runtime_context import runtime_context
from mirrorless.progress.run_marks import Share
from mirrorless.publishing.lease_meter import LeaseMeter
from mirrorless.settings.aws import client

if TYPE_CHECKING:
    from mirrorless.copy.api import Report, RunResult
    from mirrorless.functions.budget import TimeBudget
    from mirrorless.functions.invocation import Invocation
    from mirrorless.functions.runtime_context import Sink

_LOCAL_MB: Final = 1_024
"""`mirrorless run`: what MirrorMaker 2's own process has at least; a flow that keeps up uses a tenth of it."""
_LOOK_S: Final = 0.05
_HEARTBEAT_S: Final = 2.0
"""Long enough for a heartbeat at the next full second."""
_TICKS: Final = 11 / 6
"""The longest run, in ticks: ten seconds less than two ticks of a minute."""


@dataclass(slots=True)
class _Warm:
    """What is kept between the invocations of one share."""

    engine: FunctionsEngine
    meter: LeaseMeter

    def close(self) -> None:
        self.engine.close()


@dataclass(frozen=True, slots=True)
class _RunTime:
    """The time of one run on Lambda: the invocation's, but no more than nearly two ticks."""

    budget: TimeBudget
    longest_s: float
    began: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        """Seconds for work."""
        return min(self.budget.left_s, max(0.0, self.began + self.longest_s - time.monotonic()))


@dataclass(frozen=True, slots=True)
class _Unlimited:
    """The time of a run on one machine, which its control ends."""

    left_s: float = math.inf


_warm: Final = ClientCache(_Warm.close)


def copy_partitions(invocation: Invocation) -> dict[str, Any]:
    """Copy the share of this invocation; share 0, which the schedule starts, starts the others beside its own work.

    On Lambda heartbeats and checkpoints are emitted meanwhile; on one machine their own functions do that. Raises
    `MirrorlessError`.
    """
    event, flow = invocation.event, invocation.flow
    share = Share(event.number, event.of) if isinstance(event, CopyShareEvent) else Share(0, _number())
    given = runtime_context()
    if given is not None and given.copy.over:
        return {"note": "everything was copied"}
    time_left = _Unlimited() if given else _RunTime(invocation.budget, flow.copy_tick_seconds * _TICKS)
    key = f"{flow.name} {share.number}/{share.of}"
    control = Control() if given is None else given.copy.function_control
    with _warm.kept(key, (flow.connections, control), lambda: _new(invocation, share, control)) as warm:
        if given is not None and not given.copy.wait_to_begin(0):
            warm.engine.prepare()
            while not given.copy.wait_to_begin(_LOOK_S):
                if invocation.budget.is_used_up():
                    return {"note": "the run ended before the topics were compared"}

        def leased(reports: list[Report]) -> None:
            if given is not None:
                given.copy.lease_ended(reports)
            samples = warm.meter.lease(reports, now_ms=int(time.time() * 1000))
            invocation.sink.leased(flow, samples)

        with (
            _Others(share, invocation.sink) as others,
            Companions(invocation, enabled=share.number == 0, emits=given is None) as companions,
        ):
            result = warm.engine.run(time_left, leased, claims=others.start, begins=companions.start)
            if result.paused and flow.copy_idle_exit and given is None:
                companions.start()  # nothing else emits them
                time.sleep(_HEARTBEAT_S)
    if given is not None and result.over:
        given.copy.ended(CopyOutcome(complete=result.complete, stuck=result.stuck))
    if result.trouble and given is None:  # on one machine the control has shown it
        invocation.sink.tell("warning", result.trouble)
    if result.copied:
        invocation.measure("copy-running", 1)
    return _answer(share, result) | companions.answer


def _new(invocation: Invocation, share: Share, control: Control) -> _Warm:
    given, flow = runtime_context(), invocation.flow
    place = FlowRef(
        location=copy_environment().config, flow=flow.name, bounded=given is not None and given.copy.bounded
    )
    memory = MemoryLimits.within(int(os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", _LOCAL_MB)))
    engine = FunctionsEngine(place, control=control, memory=memory, share=share)
    return _Warm(engine, LeaseMeter(flow.cloudwatch_topics, only_troubled=True))


def _number() -> int:
    return 1 if runtime_context() is not None else copy_environment().functions


class _Others:
    """Invokes this function for every other share, from `start` on, in a thread that ends with the context.

    Those that cannot be invoked are logged, each is left to the next scheduled invocation, and this one copies its own
    share.
    """

    def __init__(self, share: Share, sink: Sink) -> None:
        self._share = share
        self._sink = sink
        self._thread: threading.Thread | None = None

    def __enter__(self) -> _Others:
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._thread.join()

    def start(self) -> None:
        """Begin to invoke them: functions copy the flow."""
        if self._share.of > 1 and self._share.number == 0 and self._thread is None:
            self._thread = threading.Thread(target=self._invoke, name="shares", daemon=True)
            self._thread.start()

    def _invoke(self) -> None:
        name, of = os.environ["AWS_LAMBDA_FUNCTION_NAME"], self._share.of
        left, failed, reason = list(range(1, of)), list[int](), ""
        while left:
            number = left[0]
            try:
                with client("lambda", region=None) as function:
                    while left:
                        number = left.pop(0)
                        event = {"source": COPY_SHARE, "number": number, "of": of}
                        function.invoke(FunctionName=name, InvocationType="Event", Payload=json.dumps(event).encode())
            except Exception as error:  # noqa: BLE001 -- it would end the thread, and no line would show why
                reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
                failed.append(number)
                left = [one for one in left if one != number]
        if failed:
            shares = ", ".join(map(str, failed))
            self._sink.tell("error", f"function {name}: starting shares {shares} of {of} failed: {reason}")


def _answer(share: Share, result: RunResult) -> dict[str, Any]:
    return {
        "note": result.note,
        "copied": result.copied,
        "records": result.records,
        "bytes": result.copied_bytes,
        "lag_records": result.lag_records,
        "waited_s": result.waited_s,
        **({"share": f"{share.number} of {share.of}"} if share.of > 1 else {}),
    }
