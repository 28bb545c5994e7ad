"""One schedule: a command is suspended before one of its writes, another process completes or undoes, it wakes up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from unittest.mock import patch

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.target_state import TargetState, TargetStates
from mirrorless.copy.engines.copy_once import copy_once
from mirrorless.errors import MirrorlessError, OperationError
from mirrorless.metadata.fences import unexplained_fences
from mirrorless.operation_log.records import OperationKind, OperationOutcome
from mirrorless.operations import run, runner
from mirrorless.operations.close import close_fence
from mirrorless.operations.refusals import Terms
from mirrorless.operations.steps import stranded_tail
from mirrorless.operations.steps.context import OwnershipLost
from mirrorless.operations.steps.fence import QuietStep
from mirrorless.settings import load
from tests.support.metadata import discover_topics
from tests.support.moving import PARTITIONS, Applications, checkpoint
from tests.support.offsets import commit
from tests.support.world import World, fill, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import NoReturn

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from mirrorless.operation_log.records import OperationState
    from mirrorless.settings import Settings

IDLE_MS: Final = 8_000
"""`connections.max.idle.ms` of the brokers: an abort waits for it."""
_ENDS_S: Final = 240.0
_COPIED: Final = range(300)
_TAIL: Final = range(300, 330)
_LIVE: Final = range(1000, 1060)
_MEANWHILE: Final = range(2000, 2030)
_AFTER: Final = range(3000, 3010)


@dataclass(frozen=True)
class Case:
    """What is suspended: `command` is switchover, failover, failback, close, abort or continue."""

    command: str
    turns: bool = False
    stranded: str = "list"

    def __str__(self) -> str:
        names = "turns" if self.turns else "default names"
        return f"{self.command}{f' --stranded {self.stranded}' if self.stranded != 'list' else ''}, {names}"


CASES: Final = (
    Case("switchover"),
    Case("switchover", turns=True),
    Case("failover"),
    Case("failover", turns=True),
    Case("failback"),
    Case("failback", turns=True, stranded="topic"),
    Case("failback", turns=True, stranded="leave"),
    Case("failback", turns=True, stranded="reset"),
    Case("close"),
    Case("close", turns=True),
    Case("abort"),
    Case("abort", turns=True),
    Case("continue"),
    Case("continue", turns=True),
)
MEANWHILE: Final = ("continue", "abort")


@dataclass
class Result:
    """What was seen: `wrong` has a line for each broken promise, `label` the write before which it was suspended."""

    label: str = ""
    ended: str = ""
    wrong: list[str] = field(default_factory=list)


class Schedule:
    """A world of its own on two clusters, in which `case` is suspended before write `at`."""

    def __init__(self, clusters: tuple[EmbeddedCluster, EmbeddedCluster], folder: Path, case: Case) -> None:
        self.case = case
        self.world = World(*clusters, folder)
        extra = {"mirrorless.fence.quiet.seconds": "0.2"}
        self.applications = Applications(self.world, extra, takes_turns=case.turns)
        self.topic = self.applications.topic
        self.settings: Settings = load(str(self.world.file))
        self._clusters = {self.world.source_alias: self.world.source, self.world.target_alias: self.world.target}
        self._written = {self.world.source_alias: Counter(_COPIED)}
        self._prepare()

    def run(self, at: int | str, meanwhile: str, *, ahead_s: float = 0.0) -> Result:
        """Run it; the result has no label if there are fewer writes."""
        result = Result()
        process, lines = self._suspended(at, ahead_s)
        if process is None:
            return result
        result.label = lines()[-1]
        try:
            with _quick():
                result.ended = self._meanwhile(meanwhile)
                live = self._live()
                if not self._is_open():  # else writers are still blocked
                    self._write(live, _MEANWHILE, result)
        finally:
            os.kill(process.pid, signal.SIGCONT)
        try:
            process.wait(_ENDS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            result.wrong.append(f"the suspended process did not end in {_ENDS_S:.0f} s")
        with _quick():
            self._finish(result, live)
        return result

    def _prepare(self) -> None:
        world, topic = self.world, self.topic
        fill(world.source, topic, [b"%d" % number for number in _COPIED], partitions=PARTITIONS)
        world.copy_to_the_end()
        commit(world.source, f"{topic}-0", {(topic, 0): 40})
        checkpoint(self.settings.flow(world.flow))
        if self.case.command == "failback":
            fill(world.source, topic, [b"%d" % number for number in _TAIL], partitions=PARTITIONS)
            if not self.case.turns or self.case.stranded in ("topic", "leave"):
                self._written[world.source_alias].update(_TAIL)
            self._begin(OperationKind.FAILOVER, world.target_alias)
            self._write(world.target_alias, _LIVE, Result())
            self._discover_back()
        elif self.case.command == "close":
            self._begin(OperationKind.SWITCHOVER, world.target_alias)
            self._discover_back()
        elif self.case.command in ("abort", "continue"):
            with patch.object(QuietStep, "act", _lose):
                run.begin(self.settings, OperationKind.SWITCHOVER, world.target_alias, Terms())

    def _discover_back(self) -> None:
        """Let the opposite flow's topics be there, so that its preflight passes."""
        if not self.case.turns:
            discover_topics(self.settings.flow(f"{self.world.target_alias}->{self.world.source_alias}"))

    def _begin(self, kind: OperationKind, target: str) -> None:
        ended = run.begin(self.settings, kind, target, Terms(stranded=self.case.stranded))
        assert ended.error is None, (ended.error, ended.lines)

    def _arguments(self) -> list[str]:
        command, file = self.case.command, str(self.world.file)
        if command in ("close", "abort", "continue"):
            return ["operation", file, command, "--yes"]
        target = self.world.source_alias if command == "failback" else self.world.target_alias
        stranded = ["--stranded", self.case.stranded] if self.case.stranded != "list" else []
        clocks = [f"doctor {alias}, clock" for alias in self._clusters]  # a check that fails from a minute on
        accepted = [] if command == "failover" else [word for one in clocks for word in ("--accept", one)]
        return [command, file, "--to", target, "--yes", *stranded, *accepted]

    def _suspended(
        self, at: int | str, ahead_s: float
    ) -> tuple[subprocess.Popen[bytes] | None, Callable[[], list[str]]]:
        said = self.world.folder / "process.log"

        def lines() -> list[str]:
            return [one for one in said.read_text().splitlines() if one.startswith("write ")]

        with said.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.suspended.process", str(at), str(ahead_s), *self._arguments()],
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + _ENDS_S
        while time.monotonic() < until:
            done, status = os.waitpid(process.pid, os.WNOHANG | os.WUNTRACED)
            if done and os.WIFSTOPPED(status):
                return process, lines
            if done:
                process.returncode = os.waitstatus_to_exitcode(status)
                return None, lines
            time.sleep(0.02)
        process.kill()
        raise AssertionError(f"{self.case} did not come to write {at}\n{said.read_text()}")

    def _meanwhile(self, what: str) -> str:
        """Continue or abort what is open, as another operator; where nothing is, do the same as the process."""
        try:
            ended = (run.abort if what == "abort" else run.resume)(self.settings)
        except OperationError as error:
            if "no operation is open" not in str(error):
                ended = run.resume(self.settings)  # applications have begun to move
            else:
                return self._as_the_process()
        return f"{what}: {ended.error or ended.operation.outcome}"

    def _as_the_process(self) -> str:
        if self.case.command == "close":
            close_fence(self.settings)
            self._begin(OperationKind.SWITCHOVER, self.world.source_alias)
            return "closed and moved back"
        if self.case.command in ("abort", "continue"):
            return "it had ended"
        target = self.world.source_alias if self.case.command == "failback" else self.world.target_alias
        kind = OperationKind(self.case.command)
        if self._last() is not None and self._last().request.target == target:  # type: ignore[union-attr]
            return "it had ended"
        self._begin(kind, target)
        return "moved by the other"

    def _last(self) -> OperationState | None:
        found, _ = run.show(self.settings)
        completed = [one for one in found if one.outcome is OperationOutcome.COMPLETED]
        return completed[-1] if completed else None

    def _is_open(self) -> bool:
        return any(one.is_open for one in run.show(self.settings)[0])

    def _waits_for_failback(self) -> bool:
        """After a failover no flow of two that take turns copies."""
        last = self._last()
        return self.case.turns and last is not None and last.request.kind is OperationKind.FAILOVER

    def _live(self) -> str:
        last = self._last()
        return self.world.source_alias if last is None else last.request.target

    def _write(self, alias: str, values: range, result: Result) -> None:
        try:
            fill(
                self._clusters[alias],
                self.topic,
                [b"%d" % number for number in values],
                partitions=PARTITIONS,
                message_timeout_ms=20_000,
            )
        except AssertionError:
            result.wrong.append(f"{alias} does not take records")
            return
        self._written.setdefault(alias, Counter()).update(values)

    def _has(self, alias: str, topic: str) -> Counter[int]:
        cluster = self._clusters[alias]
        if topic not in Admin(self.settings.flow(self.world.flow).source).metadata().topics and alias == (
            self.world.source_alias
        ):
            return Counter()
        if topic not in Admin(self.settings.flow(self.world.flow).target).metadata().topics and alias == (
            self.world.target_alias
        ):
            return Counter()
        found = read(cluster, topic, isolation="read_committed")
        return Counter(int(one.value or b"0") for some in found.values() for one in some)

    def _finish(self, result: Result, live: str) -> None:
        try:
            if self._is_open():
                again = run.resume(self.settings)
                result.ended += f"; continued: {again.error or again.operation.outcome}"
                live = self._live()
            elif (now := self._live()) != live:
                result.wrong.append(f"applications were sent to {now} after {live} was open")
            closed = [] if self._waits_for_failback() else close_fence(self.settings)
        except MirrorlessError as error:
            result.wrong.append(f"{type(error).__name__}: {error}")
            return
        result.wrong += [f"close: {line}" for line in closed if "no operation explains" in line]
        for flow in self.settings.flows:
            ends = {flow.source.alias: Admin(flow.source), flow.target.alias: Admin(flow.target)}
            result.wrong += unexplained_fences(flow, ends)
        self._write(live, _AFTER, result)
        self._compare_live(result, live)
        if not self._waits_for_failback():
            self._compare_other(result, live)

    def _compare_live(self, result: Result, live: str) -> None:
        """What applications wrote while a cluster was open is on the live one once, and nothing else."""
        other = next(alias for alias in self._clusters if alias != live)
        has = self._has(live, self.topic)
        if not self.case.turns:
            has += self._has(live, f"{other}.{self.topic}")
        wanted: Counter[int] = sum(self._written.values(), Counter())
        if self.case.turns and self.case.stranded == "topic":
            has += self._has(other, f"{self.topic}.stranded")  # the tail, on the cluster that was live before
            wanted += Counter(_TAIL) if live == self.world.source_alias else Counter()
            if live != self.world.source_alias:
                wanted = Counter({one: number for one, number in wanted.items() if one not in _TAIL})
        if self.case.turns and self.case.command == "failback" and live == self.world.target_alias:
            wanted = Counter({one: number for one, number in wanted.items() if one not in _TAIL})
        if not self.case.turns:
            self._copied(live, other, wanted, result)
            return
        self._say(result, live, has, wanted)

    def _copied(self, live: str, other: str, wanted: Counter[int], result: Result) -> None:
        """With default names the other cluster's records are in its remote topic, once copied."""
        self._until_copied(f"{other}->{live}", result)
        has = self._has(live, self.topic) + self._has(live, f"{other}.{self.topic}")
        self._say(result, live, has, wanted)

    def _compare_other(self, result: Result, live: str) -> None:
        """Some flow copies what was written meanwhile to the other cluster."""
        other = next(alias for alias in self._clusters if alias != live)
        name = f"{live}->{other}"
        flow = self.settings.flow(name)
        state = TargetStates(flow).read()
        if state is not TargetState.STARTED:
            result.wrong.append(f"{name} is {state}")
            return
        if self.case.turns and TargetStates(self.settings.flow(f"{other}->{live}")).read() is TargetState.STARTED:
            result.wrong.append("both flows are started")
            return
        self._until_copied(name, result)
        remote = self.topic if self.case.turns else f"{live}.{self.topic}"
        has = self._has(other, remote)
        written = self._written.get(live, Counter())
        lacking = [number for number in (*_MEANWHILE, *_AFTER) if has[number] != written[number]]
        if lacking:
            result.wrong.append(f"{other} has {[(number, has[number]) for number in lacking[:5]]} …")

    def _until_copied(self, name: str, result: Result) -> None:
        flow = self.settings.flow(name)
        for attempt in range(3):
            try:
                discover_topics(flow)
                copy_once(self.settings, flow)
            except MirrorlessError as error:
                if attempt == 2:
                    result.wrong.append(f"{name}: {error}")
                time.sleep(1)

    def _say(self, result: Result, alias: str, has: Counter[int], wanted: Counter[int]) -> None:
        if lost := wanted - has:
            result.wrong.append(f"{alias} lacks {sum(lost.values())}: {sorted(lost)[:5]}")
        if more := has - wanted:
            result.wrong.append(f"{alias} has {sum(more.values())} more: {sorted(more)[:5]}")


@contextmanager
def _quick() -> Iterator[None]:
    """The other operator knows soon that the process is silent, and that writers of the tail have ended."""
    before = runner._DEAD_S, stranded_tail._ACTIVE_S
    runner._DEAD_S, stranded_tail._ACTIVE_S = 1.0, 0.0  # type: ignore[misc]
    try:
        yield
    finally:
        runner._DEAD_S, stranded_tail._ACTIVE_S = before  # type: ignore[misc]


def _lose(*_: object) -> NoReturn:
    """Leave the operation open in place of a step, as if the process was killed there."""
    raise OwnershipLost("interrupted")
