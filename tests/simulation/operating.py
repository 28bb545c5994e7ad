"""Schedules of operations: one seed is a file, its processes, the commands of operators, and what goes wrong."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from mirrorless.clusters.target_state import TargetState, TargetStates
from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.functions.engine import FunctionsEngine
from mirrorless.copy.flow.memory_limits import SPARK_WORKER
from mirrorless.copy.flow.reference import FlowRef
from mirrorless.errors import MirrorlessError
from mirrorless.metadata.planning import Part
from mirrorless.metadata.sync_pass import one_pass
from mirrorless.offsets.checkpoint_pass import Checkpoints
from mirrorless.operation_log.records import OperationKind, OperationOutcome
from mirrorless.operations import run
from mirrorless.operations.close import close_fence
from mirrorless.operations.refusals import Terms
from mirrorless.settings import load
from tests.simulation import system_threads as threads
from tests.simulation.administration import MAX_BYTES, AdministeredCluster
from tests.simulation.applications import Reader, Writer, live
from tests.simulation.copier import set_tick
from tests.simulation.network import SyncProcess
from tests.simulation.setups import Fault
from tests.simulation.world import Violation, World, clock

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mirrorless.copy.partition.lease_rows import Report
    from mirrorless.operation_log.records import OperationState
    from mirrorless.operations.run import Ended
    from tests.simulation.system_threads import SimulatedThread

TOPIC = "t"
_FENCED = "78"
_ENDS_S = 900.0
_CATCHES_UP_S = 400.0
_DISCOVERY_S = 10.0
_PATIENCE_S = 100.0
"""How long an operator waits for the command before."""
_QUIET_S = 1_004.0
"""Until then nothing goes wrong."""
_CHECKPOINT_S = 6.0
_TICK_S = 20.0
_EXACT_TICK_S = 60.0
"""How often the function `copy` is invoked. With identical offsets an invocation waits for 35 s after a kill, so that
one whose successor is ready before that copies nothing: then as often as by default."""
KINDS = {
    "kill": 4,
    "suspend": 8,
    "suspend long": 4,
    "lose requests": 6,
    "lose answers": 6,
    "hold link": 4,
    "slow link": 2,
    "cluster down": 2,
    "broker down": 2,
    "kill copier": 2,
}
"""Kinds of faults with their weights."""


@dataclass(frozen=True)
class Step:
    """A command that an operator gives `at` so many seconds, from a machine whose clock is `ahead_s` ahead.

    One that does not interrupt waits until the commands before it have ended, unless they are suspended.
    Its process is suspended before the write `stop_at`, as `SyncProcess` counts them, or killed if `stop_s` is 0.
    """

    at: float
    command: str
    ahead_s: float = 0.0
    stop_at: tuple[str, int] | None = None
    stop_s: float = 0.0
    interrupts: bool = False

    def __str__(self) -> str:
        stop = f", stopped before {self.stop_at[0]} {self.stop_at[1]} for {self.stop_s:.0f} s" if self.stop_at else ""
        return f"{self.at:7.2f} s {self.command} (clock {self.ahead_s:+.0f} s{stop})"


@dataclass(frozen=True)
class Setup:
    """What a schedule begins with."""

    turns: bool
    identical: bool
    fence: str
    partitions: int
    copies: bool
    checkpoints: bool
    reads: bool
    copier_stops: int
    stays_s: float
    stranded: str
    returns_s: float
    steps: tuple[Step, ...]


@dataclass
class Given:
    """A command that was given, and what came of it."""

    command: str
    process: SyncProcess
    thread: SimulatedThread
    ended: Ended | None = None
    lines: list[str] | None = None
    refused: str = ""


STORIES: tuple[tuple[str, ...], ...] = (
    ("switchover B",),
    ("switchover B", "close"),
    ("switchover B", "switchover A"),
    ("switchover B", "close", "switchover A", "close"),
    ("failover B",),
    ("failover B", "failback A"),
    ("failover B", "failback A", "close"),
    ("drill", "switchover B"),
)
_EFFECTS = {"switchover": 12, "failover": 8, "failback": 16, "close": 6, "drill": 1, "continue": 12, "abort": 8}
_RECORDS = {"switchover": 40, "failover": 26, "failback": 46, "close": 2, "drill": 1, "continue": 30, "abort": 16}
"""About how many writes each command has, of each kind."""
INTERRUPTING = (
    "continue",
    "abort",
    "continue",
    "abort",
    "close",
    "switchover B",
    "switchover A",
    "failover B",
    "drill",
)


def setup_of(seed: int) -> tuple[Setup, list[Fault]]:
    """What a seed stands for."""
    random = Random(f"operate {seed}")
    turns = random.random() < 0.5
    suspended = random.random() < 0.6
    steps = _suspended_steps(random) if suspended else _steps(random)
    seconds = steps[-1].at + 5.0
    setup = Setup(
        turns=turns,
        identical=turns and random.random() < 0.4,
        fence=random.choice(("config", "acl")),
        partitions=random.choice((1, 2)),
        copies=random.random() < (0.3 if suspended else 0.6),
        checkpoints=random.random() < 0.3,
        reads=random.random() < 0.7,
        copier_stops=random.choice((0, 0, 0, *range(1, 8))),
        stays_s=random.choice((0.2, 2.0, 8.0)),
        stranded=random.choice(("topic", "leave", "reset")),
        returns_s=random.choice((1.0, 12.0, 12.0, 12.0)),
        steps=tuple(sorted(steps, key=lambda one: one.at)),
    )
    some = random.sample(list(KINDS), k=random.choice((1, 2, 4, len(KINDS))))
    weights = [KINDS[kind] for kind in some]
    faults = [
        Fault(
            4.0 + random.random() * seconds,
            random.choices(some, weights)[0],
            tuple(random.random() for _ in range(4)),
        )
        for _ in range(random.choice((0, 0, 1, 2) if suspended else (0, 1, 2, 4, 8)))
    ]
    return setup, sorted(faults, key=lambda one: one.at)


def _steps(random: Random) -> list[Step]:
    """Commands one after the other, and others in between."""
    story = random.choice(STORIES)
    gap = random.choice((5.0, 15.0))
    steps = [Step(4.0 + gap * number, command, _ahead(random)) for number, command in enumerate(story)]
    return steps + [
        Step(4.0 + random.random() * (steps[-1].at + gap), random.choice(INTERRUPTING), _ahead(random), interrupts=True)
        for _ in range(random.choice((0, 0, 1, 1, 2)))
    ]


def _suspended_steps(random: Random) -> list[Step]:
    """Commands, one of them suspended before a write while another process continues or aborts, then resumed."""
    story = random.choice(STORIES)
    which = random.randrange(len(story))
    steps: list[Step] = []
    at = 4.0
    for number, command in enumerate(story):
        if number < which or command == "drill":
            steps.append(Step(at, command, _ahead(random)))
            at += 12.0
            continue
        if number == which:
            stop_s = random.choice((0.0, 9.0, 20.0, 30.0, 45.0, 90.0, 700.0))
            steps.append(Step(at, command, _ahead(random), _stop_at(random, command), stop_s))
            at += 4.0 + random.random() * 4
            if random.random() < 0.9:
                other = random.choice(("continue", "abort"))
                stop = _stop_at(random, other) if random.random() < 0.3 else None
                stop_s = random.choice((20.0, 45.0, 90.0))
                steps.append(Step(at, other, _ahead(random), stop, stop_s, interrupts=True))
                at += 12.0
                if stop is not None:
                    steps.append(Step(at, random.choice(("continue", "abort")), _ahead(random)))
                    at += 10.0
            if random.random() < 0.4:
                steps.append(Step(at, command, _ahead(random)))
                at += 10.0
            continue
        steps.append(Step(at, command, _ahead(random)))
        at += 12.0
    if random.random() < 0.5:
        steps.append(Step(at, random.choice(("close", "switchover A", "switchover B")), _ahead(random)))
    return steps


def _stop_at(random: Random, command: str) -> tuple[str, int]:
    """A write of a command."""
    kind, most = ("effect", _EFFECTS) if random.random() < 0.75 else ("record", _RECORDS)
    return kind, random.randint(1, most[command.split(maxsplit=1)[0]])


def _ahead(random: Random) -> float:
    return random.choice((0.0, 0.0, 120.0, -120.0))


class _TimeLeft:
    """The time of one invocation, as `functions.copy` has it."""

    def __init__(self, tick_s: float) -> None:
        self._until = clock.monotonic() + tick_s * 11 / 6

    @property
    def left_s(self) -> float:
        """Seconds for work."""
        return max(0.0, self._until - clock.monotonic())


class Operating:
    """One schedule; `without` are numbers of faults that are left out, after them numbers of steps.

    A `setup` without faults is for what a test gives in place of the seed's.
    """

    def __init__(
        self, seed: int, *, without: Collection[int] = (), trace: bool = False, setup: Setup | None = None
    ) -> None:
        self.setup, self.faults = setup_of(seed) if setup is None else (setup, [])
        self._without = frozenset(without)
        self.world = world = World(seed)
        world.trace = [] if trace else None
        set_tick(0.5)
        self._folder = TemporaryDirectory()
        folder = Path(self._folder.name)
        self.clusters = {alias: AdministeredCluster(world, alias) for alias in ("A", "B")}
        self.file, self.switch = folder / "mm2.properties", folder / "bootstrap"
        self.switch.write_text(self.clusters["A"].address)
        self.file.write_text(self._properties())
        self.settings = load(str(self.file))
        self.clusters["A"].create(TOPIC, self.setup.partitions)
        self.given: list[Given] = []
        self.background: list[SyncProcess] = []
        self.writers: list[Writer] = []
        self.readers: list[Reader] = []
        self._invoking = False
        self._stops_until = math.inf
        self._left = 0
        self._tick_s = _EXACT_TICK_S if self.setup.identical else _TICK_S
        self._actions: dict[str, Callable[..., None]] = {
            "kill": self._kill,
            "suspend": self._suspend,
            "suspend long": self._suspend_long,
            "lose requests": self._lose_requests,
            "lose answers": self._lose_answers,
            "hold link": self._hold_link,
            "slow link": self._slow_link,
            "cluster down": self._cluster_down,
            "broker down": self._broker_down,
            "kill copier": self._kill_copier,
        }

    @property
    def may_be_left_out(self) -> list[Fault | Step]:
        """What a shorter form of the schedule may lack."""
        return [*self.faults, *self.setup.steps]

    @property
    def copied(self) -> int:
        """Records that applications have written."""
        return sum(len(one.acknowledged) for one in self.writers)

    def _properties(self) -> str:
        setup = self.setup
        topics = TOPIC if setup.turns else f".*{TOPIC}"
        said = {
            "clusters": "A, B",
            "A.bootstrap.servers": self.clusters["A"].address,
            "B.bootstrap.servers": self.clusters["B"].address,
            "A->B.enabled": "true",
            "B->A.enabled": "true",
            "A->B.topics": topics,
            "B->A.topics": topics,
            "groups": "g.*",
            "mirrorless.switch": f"file:{self.switch}",
            "mirrorless.fence": setup.fence,
            "mirrorless.fence.quiet.seconds": "1",
            "sync.topic.acls.enabled": "true",
            "refresh.topics.interval.seconds": "1",
        }
        if setup.turns:
            said |= {"replication.policy.class": "IdentityReplicationPolicy", "mirrorless.active.cluster": "A"}
        if setup.identical:
            said |= {"mirrorless.offsets": "identical"}
        return "".join(f"{key}={value}\n" for key, value in said.items())

    # Run

    def run(self) -> None:
        """Run it to the end; raises `Violation`, or what the product's code failed with."""
        world, setup = self.world, self.setup
        try:
            self._prepare()
            self._before = self._snapshot()
            steps = [one for at, one in enumerate(setup.steps) if len(self.faults) + at not in self._without]
            for one in steps:
                world.later(one.at, None, partial(self._give, one))
            for number, fault in enumerate(self.faults):
                if number not in self._without:
                    world.later(fault.at, None, partial(self._do, fault))
            self._left = len(steps)
            last = max([*(one.at for one in steps), *(one.at for one in self.faults)], default=0.0)
            world.run(last + 2.0)
            self._wait(lambda: not self._left, 2_000.0, "commands were not given")
            world.run(2.0)
            self._heal()
            self._wait(self._idle, _ENDS_S, "operators have not ended")
            self._finish()
        except Violation as error:
            raise Violation(f"{error}; {'; '.join(self.story())}") from None
        finally:
            threads.end_all()
            world.close()
            self._folder.cleanup()

    def story(self) -> list[str]:
        """What came of each command."""
        return [
            f"{one.command}: "
            + (
                one.refused
                or ("killed" if one.process.dead else "")
                or (str(one.ended.error or one.ended.operation.outcome) if one.ended else "")
                or " ".join(one.lines or ["?"])
            )
            for one in self.given
        ]

    def _prepare(self) -> None:
        """Create topics, the ACL that the fence needs, and let processes and applications begin."""
        if self.setup.fence == "acl":
            for cluster in self.clusters.values():
                cluster.allow("User:app", TOPIC)
        self._background("discovery", self._discovers)
        self._wait(self._is_discovered, 60.0, "topics were not created")
        for partition in range(self.setup.partitions):
            self.writers.append(Writer(self.world, self.switch, TOPIC, partition, stays_s=self.setup.stays_s))
        if self.setup.reads:
            topics = (TOPIC,) if self.setup.turns else (TOPIC, "A.t", "B.t")
            self.readers.append(Reader(self.world, self.switch, "g", topics))
        if self.setup.copies:
            self._begin_copiers()
        if self.setup.checkpoints:
            self._background("checkpoints", self._checkpoints)
        if not self.setup.copies:
            self._copy_once()

    def _is_discovered(self) -> bool:
        remote = TOPIC if self.setup.turns else "A.t"
        there = self.clusters["B"].topics
        return remote in there and "mm2-offsets.A.internal" in there

    def _background(self, name: str, work: Callable[[], None]) -> None:
        process = SyncProcess(self.world, name)
        self.background.append(process)
        if self.setup.copier_stops and name.startswith("copier") and _QUIET_S < self.world.now < self._stops_until:
            process.stop_at["effect", self.setup.copier_stops] = (10.0 + self.world.random.random() * 60.0, False)
        process.begin(work)

    def _begin_copiers(self) -> None:
        """Invoke the function `copy` of each flow, again and again, each time as a process of its own."""
        if self._invoking:
            return
        self._invoking = True
        for flow in self.settings.flows:
            self._invoke(flow.name)

    def _invoke(self, flow: str) -> None:
        if self._invoking:
            self._background(f"copier {flow}", lambda: self._copies(flow))
            self.world.later(self._tick_s, None, lambda: self._invoke(flow))

    def _copy_once(self) -> None:
        """Have a copy of some records without a process that copies on."""
        self._begin_copiers()
        self.world.run(4.0)
        self._invoking = False
        for one in self.background:
            if one.name.startswith("copier"):
                one.kill()

    def _copies(self, flow: str) -> None:
        place = FlowRef(location=str(self.file), flow=flow)
        engine = FunctionsEngine(place, control=Control(), memory=SPARK_WORKER)
        try:
            result = engine.run(_TimeLeft(self._tick_s), self._reported)
            self.world.note(f"copier {flow}: {result.note} {result.trouble or ''}")
        except MirrorlessError as error:
            self.world.note(f"copier {flow}: {error}")
        finally:
            engine.close()

    def _reported(self, reports: list[Report]) -> None:
        for one in reports:
            if one.error:
                self.world.note(f"{one.topic}-{one.partition} {one.state}: {one.error}")

    def _discovers(self) -> None:
        while True:
            for flow in self.settings.flows:
                try:
                    found = one_pass(flow, [Part.TOPICS, Part.CONFIGS, Part.ACLS])
                    for one in found.failures:
                        self.world.note(f"discovery {flow.name}: {one.error}")
                except MirrorlessError as error:
                    self.world.note(f"discovery {flow.name}: {error}")
            clock.sleep(_DISCOVERY_S)

    def _checkpoints(self) -> None:
        passes: dict[str, Checkpoints] = {}
        flows = {flow.name: flow for flow in self.settings.flows}
        while True:
            for name, flow in flows.items():
                try:
                    if name not in passes:
                        passes[name] = Checkpoints(flow)
                    if passes[name].stopped() is None:
                        passes[name].emit()
                        if flow.sync_group_offsets_enabled:
                            passes[name].sync_groups()
                except MirrorlessError as error:
                    self.world.note(f"checkpoints {name}: {error}")
            clock.sleep(_CHECKPOINT_S)

    # Commands

    def _give(self, step: Step, waited_s: float = 0.0) -> None:
        busy = [one for one in self.given if not (one.thread.over or one.process.dead or one.process.suspended)]
        if busy and not step.interrupts and waited_s < _PATIENCE_S:
            self.world.later(1.0, None, partial(self._give, step, waited_s + 1.0))
            return
        if step.command.startswith("failback") and not step.interrupts and waited_s < _PATIENCE_S:
            # Producers have to be away from the old cluster for ten seconds.
            self.world.later(self.setup.returns_s, None, partial(self._give, step, _PATIENCE_S))
            return
        self._left -= 1
        given = self._begun(step.command, ahead_s=step.ahead_s)
        if step.stop_at is not None:
            given.process.stop_at[step.stop_at] = (step.stop_s, step.at % 2 < 1)

    def _begun(self, command: str, *, ahead_s: float = 0.0) -> Given:
        name = f"{command} #{len(self.given)}"
        process = SyncProcess(self.world, name, ahead_s=ahead_s)
        given = Given(command, process, process.begin(lambda: self._command(given)))
        self.world.note(f"{name} begins")
        self.given.append(given)
        return given

    def _command(self, given: Given) -> None:
        word, _, target = given.command.partition(" ")
        name = given.process.name
        progress = run.OperationProgress(
            step=lambda step, text: self.world.note(f"{name}: {step}: {text}"),
            say=lambda text: self.world.note(f"{name}: {text}"),
        )
        try:
            match word:
                case "continue":
                    given.ended = run.resume(self.settings, progress=progress)
                case "abort":
                    given.ended = run.abort(self.settings, progress=progress)
                case "close":
                    given.lines = close_fence(self.settings)
                case "drill":
                    given.lines = self._drill()
                case _:
                    terms = Terms(stranded=self.setup.stranded)
                    given.ended = run.begin(self.settings, OperationKind(word), target, terms, progress)
        except MirrorlessError as error:
            given.refused = str(error)
        if given.ended is not None:
            one = given.ended
            self.world.note(f"{name}: {one.operation.outcome} {one.error} {one.lines} {one.warnings}")
        self.world.note(f"{name} ends: {given.refused or given.lines or ''}")

    def _drill(self) -> list[str]:
        from mirrorless.operations.drill.checks import check_all  # noqa: PLC0415
        from mirrorless.operations.drill.gather import gather  # noqa: PLC0415

        flow = self.settings.flow("A->B")
        facts = gather(flow, location=str(self.file), most_positions=20, chance=Random(1))
        return [f"{one.check}: {one.status}" for one in check_all(facts)]

    # Faults

    def _do(self, fault: Fault) -> None:
        self.world.events[fault.kind] += 1
        self.world.note(f"fault: {fault}")
        self._actions[fault.kind](*fault.how)

    def _operator(self, which: float) -> SyncProcess | None:
        alive = [one.process for one in self.given if not one.process.dead and not one.thread.over]
        return alive[int(which * len(alive))] if alive else None

    def _kill(self, which: float, *_: float) -> None:
        if (process := self._operator(which)) is not None:
            process.kill()

    def _kill_copier(self, which: float, *_: float) -> None:
        some = [one for one in self.background if one.name.startswith("copier") and not one.dead]
        if some:
            some[int(which * len(some))].kill()

    def _suspend(self, which: float, how_long: float, slept: float, *_: float) -> None:
        self._stop(which, 0.05 * (400**how_long), slept)

    def _suspend_long(self, which: float, how_long: float, slept: float, *_: float) -> None:
        self._stop(which, 20.0 * (6**how_long), slept)

    def _stop(self, which: float, seconds: float, slept: float) -> None:
        process = self._operator(which)
        if process is not None:
            process.suspend()
            self.world.later(seconds, None, lambda: process.resume(slept=slept < 0.5))

    def _someone(self, which: float) -> SyncProcess | None:
        """An operator, rather than one of the other processes."""
        found = self._operator(which)
        alive = [one for one in self.background if not one.dead]
        return found or (alive[int(which * len(alive))] if alive else None)

    def _lose_requests(self, which: float, cluster: float, count: float, *_: float) -> None:
        if (process := self._someone(which)) is not None:
            process.network(self._alias(cluster)).lose_requests += 1 + int(count * 3)

    def _lose_answers(self, which: float, cluster: float, count: float, *_: float) -> None:
        if (process := self._someone(which)) is not None:
            process.network(self._alias(cluster)).lose_answers += 1 + int(count * 3)

    def _hold_link(self, which: float, cluster: float, how_long: float, *_: float) -> None:
        if (process := self._someone(which)) is not None:
            network = process.network(self._alias(cluster))
            network.held_until = max(network.held_until, self.world.now + 0.5 * (80**how_long))

    def _slow_link(self, which: float, cluster: float, slow: float, *_: float) -> None:
        if (process := self._someone(which)) is not None:
            process.network(self._alias(cluster)).slow_s = 0.5 * slow

    def _cluster_down(self, cluster: float, how_long: float, *_: float) -> None:
        self._down(self.clusters[self._alias(cluster)], {1, 2, 3}, 5.0 * (10**how_long))

    def _broker_down(self, cluster: float, how_long: float, which: float, *_: float) -> None:
        self._down(self.clusters[self._alias(cluster)], {1 + int(which * 3)}, 1.0 * (10**how_long))

    def _down(self, cluster: AdministeredCluster, brokers: set[int], seconds: float) -> None:
        cluster.down |= brokers
        self.world.later(seconds, None, lambda: cluster.up(brokers))

    def _alias(self, which: float) -> str:
        return "A" if which < 0.5 else "B"

    def _heal(self) -> None:
        """End all faults; copiers of the next minute are still stopped, then each copies to its end."""
        self.world.note("everything is healed")
        self._stops_until = self.world.now + 60.0
        for cluster in self.clusters.values():
            cluster.up({1, 2, 3})
        for process in self.world.processes:
            if isinstance(process, SyncProcess):
                for network in process.networks.values():
                    network.lose_requests = network.lose_answers = 0
                    network.held_until = network.slow_s = 0.0
                process.resume(slept=False)

    # What must hold

    def _idle(self) -> bool:
        return all(one.thread.over or one.process.dead for one in self.given)

    def _wait(self, over: Callable[[], bool], seconds: float, what: str | Callable[[], str]) -> None:
        """Run until something is true; raises `Violation` if it does not become so in time."""
        until = self.world.now + seconds
        while not over():
            if self.world.now >= until:
                raise Violation(f"{what if isinstance(what, str) else what()} after {seconds:.0f} s")
            self.world.run(min(0.5, until - self.world.now))
            self._fail_with_threads()

    def _fail_with_threads(self) -> None:
        for one in threads.SimulatedThread.every:
            if one.error is not None:
                error, one.error = one.error, None
                raise error

    def _do_command(self, command: str) -> Given:
        given = self._begun(command)
        self._wait(lambda: given.thread.over, _ENDS_S, f"{command} has not ended")
        return given

    def _operations(self) -> list[OperationState]:
        """All operations, as a process that only reads finds them."""
        found: list[OperationState] = []
        process = SyncProcess(self.world, "show")
        thread = process.begin(lambda: found.extend(run.show(self.settings)[0]))
        self._wait(lambda: thread.over, 120.0, "operations could not be read")
        return found

    def _finish(self) -> None:
        """Let what is open end, close, and compare everything."""
        self._fail_with_threads()
        for _ in range(4):
            found = self._operations()
            if not any(one.is_open for one in found):
                break
            given = self._do_command("continue")
            if given.ended is not None and given.ended.error and not given.ended.is_restored:
                self._do_command("abort")
        else:
            raise Violation("an operation stays open")
        completed = [one for one in found if one.outcome is OperationOutcome.COMPLETED]
        alias = live(self.world, self.switch)
        wanted = completed[-1].request.target if completed else "A"
        if alias != wanted:
            raise Violation(f"the switch names {alias}, but applications were moved to {wanted}")
        abandoned = bool(completed) and completed[-1].request.kind is OperationKind.FAILOVER and self.setup.turns
        if not abandoned:
            closed = self._do_command("close")
            if closed.refused:
                raise Violation(f"close: {closed.refused}")
            for line in closed.lines or ():
                if "no operation explains" in line:
                    raise Violation(f"close: {line}")
        self._check_fences(alias, abandoned=abandoned)
        if not completed and not self.setup.checkpoints:
            self._check_restored()
        self._check_writers(alias)
        self._begin_copiers()
        for one in self.writers:
            one.stopped = True
        if abandoned:
            self._check_abandoned(alias)
            return
        self._check_states(alias)
        self._wait(lambda: not self._lacks(alias), _CATCHES_UP_S, lambda: self._lacking(alias))
        self._check_records(alias)
        self._check_groups(alias)
        self._check_report(completed)

    def _check_fences(self, alias: str, *, abandoned: bool) -> None:
        for cluster in self.clusters.values():
            explained = abandoned and cluster.alias != alias
            for name, topic in cluster.topics.items():
                if topic.configs.get(MAX_BYTES) == _FENCED and not explained:
                    raise Violation(
                        f"{name} on {cluster.alias} has {MAX_BYTES}={_FENCED}, and no operation explains it"
                    )
            denied = [one for one in cluster.acls if one.permission == "DENY"]
            if denied and not explained:
                raise Violation(f"{denied[0]} on {cluster.alias}, and no operation explains it")

    def _check_writers(self, alias: str) -> None:
        """Applications write to the live cluster."""
        before = self.copied
        self.world.run(12.0)
        self._fail_with_threads()
        if self.copied == before:
            raise Violation(f"nobody can write to {alias}")
        for one in self.writers:
            last = max(one.acknowledged)
            if one.acknowledged[last][0] != alias:
                raise Violation(f"a writer writes to {one.acknowledged[last][0]}, and {alias} is live")

    def _check_states(self, alias: str) -> None:
        """Somebody copies what is written now."""
        other = "B" if alias == "A" else "A"
        states = {}
        process = SyncProcess(self.world, "states")

        def read() -> None:
            for flow in self.settings.flows:
                states[flow.name] = TargetStates(flow).read()

        thread = process.begin(read)
        self._wait(lambda: thread.over, 120.0, "target states could not be read")
        self._fail_with_threads()
        if states[f"{alias}->{other}"] is not TargetState.STARTED:
            raise Violation(f"{alias}->{other} is {states[f'{alias}->{other}']}: nothing is replicated")
        back = states[f"{other}->{alias}"]
        if self.setup.turns and back is TargetState.STARTED:
            raise Violation("both flows are started")
        if not self.setup.turns and back is not TargetState.STARTED:
            raise Violation(f"{other}->{alias} is {back}")

    def _acknowledged(self) -> Counter[int]:
        return Counter(number for one in self.writers for number in one.acknowledged)

    def _has(self, alias: str, *topics: str) -> Counter[int]:
        found: Counter[int] = Counter()
        for topic in topics:
            for some in self.clusters[alias].values(topic).values():
                found.update(int.from_bytes(one) for one in some)
        return found

    def _names(self, alias: str) -> tuple[str, ...]:
        other = "B" if alias == "A" else "A"
        return (TOPIC,) if self.setup.turns else (TOPIC, f"{other}.{TOPIC}")

    def _lacks(self, alias: str) -> Counter[int]:
        """What the clusters lack: the live one of everything, the other one of what was written to the live one."""
        other = "B" if alias == "A" else "A"
        wanted = self._acknowledged() - self._tail()
        missing = wanted - self._has(alias, *self._names(alias))
        written = Counter(
            number for one in self.writers for number, (there, _) in one.acknowledged.items() if there == alias
        )
        return missing + (written - self._tail() - self._has(other, TOPIC if self.setup.turns else f"{alias}.{TOPIC}"))

    def _lacking(self, alias: str) -> str:
        lacks = sorted(self._lacks(alias))
        where = {one: (self._has("A", *self._names("A"))[one], self._has("B", *self._names("B"))[one]) for one in lacks}
        return f"{alias} is live; {len(lacks)} records are not everywhere (on A, on B): {[*where.items()][:4]}"

    def _tail(self) -> Counter[int]:
        """Records that a failover of flows that take turns may have left on the old cluster."""
        if not self.setup.turns:
            return Counter()
        moved = [one for one in self.given if one.command.startswith("failover")]
        if not moved:
            return Counter()
        return Counter(
            number for one in self.writers for number, (there, _) in one.acknowledged.items() if there == "A"
        )

    def _check_records(self, alias: str) -> None:
        has, wanted = self._has(alias, *self._names(alias)), self._acknowledged()
        if lost := wanted - self._tail() - has:
            raise Violation(f"{alias} lacks {sum(lost.values())} records: {sorted(lost)[:5]}")
        if more := has - wanted:
            raise Violation(f"{alias} has records twice: {sorted(more)[:5]}")
        if self.setup.turns:
            for one in self.clusters:
                self._check_order(one)

    def _check_order(self, alias: str) -> None:
        """With one name on both clusters, what a writer wrote last is last."""
        for number, values in self.clusters[alias].values(TOPIC).items():
            some = [int.from_bytes(one) for one in values]
            if some != sorted(some):
                raise Violation(f"{TOPIC}-{number} on {alias} is out of order: {some}")

    def _check_restored(self) -> None:
        """Undone means that both clusters are as before."""
        now = self._snapshot()
        for what, before in self._before.items():
            if now.get(what) != before:
                raise Violation(f"everything was undone, but {what} is {now.get(what)}, not {before}")
        if created := [what for what in now.keys() - self._before.keys() if what.startswith("group")]:
            raise Violation(f"everything was undone, but {created[0]} was created: {now[created[0]]}")

    def _snapshot(self) -> dict[str, object]:
        """What an operation changes that is undone."""
        found: dict[str, object] = {}
        for alias, cluster in self.clusters.items():
            found[f"ACLs of {alias}"] = frozenset(cluster.acls)
            for name in sorted(cluster.topics.keys() & {TOPIC, "A.t", "B.t"}):
                found[f"configs of {name} on {alias}"] = dict(cluster.topics[name].configs)
        for name, group in self.clusters["B"].groups.items():
            if group.offsets:
                found[f"group {name}"] = {place: offset for place, (offset, _) in group.offsets.items()}
        return found

    def _check_report(self, completed: list[OperationState]) -> None:
        """A group has read no more records again than the report of the only move says."""
        if len(completed) != 1 or completed[0].request.kind is not OperationKind.SWITCHOVER:
            return
        said = completed[0].data("groups")
        for one in self.readers:
            again = said["read_again"].get(one.group, 0)
            if one.group not in said["staying"] and one.repeated["B"] > again:
                raise Violation(
                    f"group {one.group} has read {one.repeated['B']} records again, the report says {again}"
                )

    def _check_groups(self, alias: str) -> None:
        """A group reads everything in the end."""
        wanted = self._acknowledged() - self._tail()
        for one in self.readers:
            self._wait(
                lambda one=one: not wanted.keys() - one.seen.keys(),  # type: ignore[misc]
                60.0,
                lambda one=one: (  # type: ignore[misc]
                    f"group {one.group} on {alias} has not read {sorted(wanted.keys() - one.seen.keys())[:5]}"
                ),
            )

    def _check_abandoned(self, alias: str) -> None:
        """After a failover of flows that take turns none copies, until the failback."""
        has = self._has(alias, TOPIC)
        if more := has - self._acknowledged():
            raise Violation(f"{alias} has records twice: {sorted(more)[:5]}")
        self._check_order(alias)
