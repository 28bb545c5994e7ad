"""Runs an operation: one step after the other, by one owner at a time, on any machine."""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.target_state import OperationWriter
from mirrorless.errors import ClusterError, MirrorlessError, OperationError
from mirrorless.operation_log import records
from mirrorless.operation_log.records import WARNED, OperationOutcome, StepRecord, StepState
from mirrorless.operations.steps.context import OwnershipLost, StepFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mirrorless.operation_log.records import Entry, OperationState
    from mirrorless.operation_log.topic import OperationTopic
    from mirrorless.operations.steps.context import OperationContext, OperationStep


RENEW_S: Final = 2.0
_MISSED: Final = 2
"""An owner that could not renew so often stops itself."""
_DEAD_S: Final = RENEW_S * (_MISSED + 1)
"""A process that shows no sign of life for so long does not own an operation any more."""
_LOOK_S: Final = 0.5


class Ownership:
    """The current term of an operation, kept by renewals until `release`.

    `log` is the topic of the cluster that applications move to, which decides; `mirror` that of the other one, None if
    it does not answer: what cannot be written there is left out. `follows_suspect`: the owner before may be suspended,
    and do once more what it was about to, since it has not said that it stopped.
    """

    def __init__(self, operation: OperationState, log: OperationTopic, mirror: OperationTopic | None) -> None:
        self.operation = operation
        self._log = log
        self._mirror = mirror
        self._owner = uuid.uuid4().hex
        self._term = 0
        self._renewed = time.monotonic()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.follows_suspect = False

    def claim(self, *, take_over: bool = False, say: Callable[[str], None] = lambda _: None) -> None:
        """Take the next term once the last owner is dead; with `take_over` at once.

        Raises `OperationError` if another process is alive, or was faster; `ClusterError`.
        """
        number = self.operation.id
        self._read()
        if self.operation.owner is not None and not take_over:
            say(f"waiting {_DEAD_S:.0f} s to see whether {self.operation.owner_text} still runs it")
            seen, until = self.operation.renewals, time.monotonic() + _DEAD_S
            while time.monotonic() < until:
                time.sleep(_LOOK_S)
                if self._read().renewals != seen:
                    raise OperationError(
                        f"{self.operation.request.kind} {number} is run by {self.operation.owner_text}; wait for it, "
                        "or give --take-over"
                    )
        self._term, self.follows_suspect = self.operation.term + 1, self.operation.owner is not None and not take_over
        text = f"process {os.getpid()} on {socket.gethostname()}"
        self.write(records.claim(number, owner=self._owner, term=self._term, text=text, ms=_now_ms()))
        if self._read().owner != self._owner:
            raise OperationError(f"{self.operation.request.kind} {number} is run by {self.operation.owner_text}")
        self._renewed = time.monotonic()
        self._thread = threading.Thread(target=self._renew, name="operation owner", daemon=True)
        self._thread.start()

    @property
    def writer(self) -> OperationWriter:
        """What this term's writes of target states carry."""
        return OperationWriter(self.operation.number, self._term)

    def check(self) -> None:
        """Raise `OwnershipLost` unless this process still owns the operation; `ClusterError` if that is not known."""
        if time.monotonic() - self._renewed > RENEW_S * _MISSED + RENEW_S:
            raise OwnershipLost(
                "this process could not renew its ownership, and stops: run `mirrorless operation FILE continue`"
            )
        operation = self._read()
        if not operation.is_open:
            raise OwnershipLost("the operation was ended by another one")
        if operation.owner != self._owner:
            raise OwnershipLost(f"the operation was taken over by {operation.owner_text}")

    def note(self, step: str, record: StepRecord) -> None:
        """Write the state of a step."""
        self.write(records.step(self.operation.id, step, record, owner=self._owner, term=self._term))
        self._read()

    def end(self, outcome: OperationOutcome, reason: str = "") -> None:
        """End the operation."""
        self.write(
            records.end(self.operation.id, outcome, owner=self._owner, term=self._term, ms=_now_ms(), reason=reason)
        )
        self._read()

    def write(self, *entries: Entry) -> None:
        """Append to the topic that decides, then to the other one."""
        with self._lock:
            self._log.append(*entries)
        if self._mirror is not None:
            try:
                self._mirror.append(*entries)
            except ClusterError:
                self._mirror = None

    def release(self) -> None:
        """Stop renewing, and say so: the next owner need not wait."""
        self._over.set()
        if self._thread is None:
            return
        self._thread.join()
        self._thread = None
        if self.operation.is_open and self.operation.owner == self._owner:
            with suppress(MirrorlessError):
                self.write(records.released(self.operation.id, owner=self._owner, term=self._term))

    def _read(self) -> OperationState:
        with self._lock:
            operations = self._log.read()
        self.operation = operations.by_id[self.operation.id]
        return self.operation

    def _renew(self) -> None:
        while not self._over.wait(RENEW_S):
            sent = time.monotonic()
            renewal = records.renewal(self.operation.id, owner=self._owner, term=self._term, ms=_now_ms())
            try:
                with self._lock:  # the other cluster's topic needs no renewals, and may be slow
                    self._log.append(renewal)
            except MirrorlessError:
                continue
            self._renewed = sent


def run_steps(
    steps: Sequence[OperationStep],
    context: OperationContext,
    ownership: Ownership,
    *,
    report: Callable[[str, str], None],
) -> None:
    """Do every step that is not done; `report` gets a step's name and its result in one line.

    Raises `StepFailed` and `MirrorlessError`; what was done is recorded.
    """
    for step in steps:
        context.operation = ownership.operation
        record = context.operation.steps.get(step.name)
        if record is not None and record.state is StepState.DONE:
            continue
        ownership.check()
        known = len(context.warnings)
        if record is None or record.state is StepState.UNDONE:
            began_ms = _now_ms()
            planned = step.plan(context)
            ownership.check()
            data = planned | {WARNED: context.warnings[known:]}
            record = StepRecord(state=StepState.BEGUN, began_ms=began_ms, data=data)
            ownership.note(step.name, record)
            known = len(context.warnings)
        ownership.check()
        report(step.name, "")
        context.operation = ownership.operation
        data = step.act(context, record.data)
        data[WARNED] = [*record.data.get(WARNED, ()), *context.warnings[known:]]
        ownership.check()
        ownership.note(
            step.name, StepRecord(state=StepState.DONE, began_ms=record.began_ms, ended_ms=_now_ms(), data=data)
        )
        report(step.name, step.text(data))
    context.operation = ownership.operation


def undo_steps(
    steps: Sequence[OperationStep],
    context: OperationContext,
    ownership: Ownership,
    *,
    report: Callable[[str, str], None],
) -> None:
    """Undo what was begun, the last step first. Raises `MirrorlessError`; what was undone is recorded."""
    for step in reversed(steps):
        context.operation = ownership.operation
        record = context.operation.steps.get(step.name)
        if record is None or record.state is StepState.UNDONE:
            continue
        ownership.check()
        step.undo(context, record.data)
        undone = StepRecord(state=StepState.UNDONE, began_ms=record.began_ms, ended_ms=_now_ms(), data=record.data)
        ownership.note(step.name, undone)
        report(step.name, "undone")


def may_be_undone(operation: OperationState) -> bool:
    """Whether applications have not begun to move: later an operation can only be continued."""
    record = operation.steps.get("open")
    return record is None or record.state is StepState.UNDONE


def failure_of(error: BaseException) -> tuple[str, tuple[str, ...]]:
    """Return a failed step's reason and lines."""
    if isinstance(error, StepFailed):
        return error.reason, error.lines
    return ("interrupted" if isinstance(error, KeyboardInterrupt) else str(error)), ()


def _now_ms() -> int:
    return int(time.time() * 1000)
