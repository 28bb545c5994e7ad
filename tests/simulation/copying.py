"""Schedules of copiers: one seed is a flow, its processes, what is written to it, and what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from mirrorless.batches.header import TRANSACTIONAL
from mirrorless.settings import Cluster, Flow
from tests.simulation.cluster import BROKERS, NAMES, SimulatedCluster
from tests.simulation.copier import CopierProcess, Marks, set_tick
from tests.simulation.log import batch_of
from tests.simulation.truth import Fate, Truth, value_of
from tests.simulation.world import Violation, World

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mirrorless.clusters.topic_partition import TopicPartition

TOPIC, REMOTE = "t", "A.t"
_DAY_MS = 86_400_000
_SETTLES_S = 400.0


@dataclass(frozen=True)
class Fault:
    """Something that happens `at` so many seconds of the schedule; `how` are numbers from 0 to 1 that say how."""

    at: float
    kind: str
    how: tuple[float, ...]

    def __str__(self) -> str:
        return f"{self.at:7.2f} s {self.kind} {' '.join(f'{one:.3f}' for one in self.how)}"


@dataclass(frozen=True)
class Setup:
    """What a schedule begins with."""

    partitions: int
    copiers: int
    identical: bool
    transactions: bool
    old: bool
    pass_gaps: bool
    leave_out: bool
    seconds: float
    lease_s: float
    tick_s: float


KINDS = {
    "kill": 6,
    "suspend": 6,
    "restart": 3,
    "lose requests": 8,
    "lose answers": 8,
    "hold link": 5,
    "slow link": 2,
    "broker down": 3,
    "leader moves": 8,
    "followers stop": 4,
    "tail lost": 4,
    "source tail lost": 2,
    "producers expire": 4,
    "retention": 3,
    "source recreated": 2,
    "target recreated": 2,
    "partition added": 2,
    "fence": 3,
    "progress moves": 2,
}
"""Kinds of faults with their weights."""
SOURCE_LOSES = frozenset({"source tail lost", "source recreated"})
TARGET_LOSES = frozenset({"tail lost", "target recreated"})
"""Never both in one schedule: what the target lost is then counted back from an end that the source does not have any
more, and some records are copied again (seed 1170 of the first version)."""


def setup_of(seed: int) -> tuple[Setup, list[Fault]]:
    """What a seed stands for."""
    random = Random(f"copy {seed}")
    identical = random.random() < 0.3
    setup = Setup(
        partitions=random.choice((1, 1, 2, 3)),
        copiers=random.choice((1, 1, 2, 2, 3)),
        identical=identical,
        transactions=random.random() < 0.4,
        old=random.random() < 0.15,
        pass_gaps=random.random() < 0.8,
        leave_out=random.random() < 0.3,
        seconds=random.choice((5.0, 10.0, 20.0)),
        lease_s=random.choice((3.0, 8.0, 20.0)),
        tick_s=random.choice((0.05, 0.1, 0.25)),
    )
    if setup.old:
        setup = replace(setup, copiers=1)
    spared = random.choice((SOURCE_LOSES, TARGET_LOSES))
    kinds = [kind for kind in KINDS if _applies(kind, setup) and kind not in spared]
    some = random.sample(kinds, k=min(len(kinds), random.choice((2, 4, 8, 20))))
    weights = [KINDS[kind] for kind in some]
    count = random.choice((0, 2, 4, 8, 16))
    faults = [
        Fault(
            random.random() * setup.seconds,
            random.choices(some, weights)[0],
            tuple(random.random() for _ in range(4)),
        )
        for _ in range(count)
    ]
    return setup, sorted(faults, key=lambda one: one.at)


def _applies(kind: str, setup: Setup) -> bool:
    if setup.identical and kind in ("source recreated", "source tail lost", "target recreated", "tail lost"):
        return False  # nothing but a copy into an empty topic repairs these
    # Two runs with records that the target forgets: decision 0012.
    return not (setup.old and kind == "suspend")


class Copying:
    """One schedule; `without` are numbers of faults that are left out."""

    def __init__(self, seed: int, *, without: Collection[int] = (), trace: bool = False) -> None:
        self.setup, self.faults = setup_of(seed)
        self._without = frozenset(without)
        self.world = world = World(seed)
        world.trace = [] if trace else None
        set_tick(self.setup.tick_s)
        self.source, self.target = SimulatedCluster(world, "A"), SimulatedCluster(world, "B")
        client = {"bootstrap_servers": "simulated:9092"}
        self.flow = Flow(
            source=Cluster(alias="A", **client),
            target=Cluster(alias="B", **client),
            offsets="identical" if self.setup.identical else "dense",
        )
        self.remote = self.flow_remote()
        self.truth = Truth(self.source, self.target, {TOPIC: self.remote}, identical=self.setup.identical)
        self.source.create(TOPIC, self.setup.partitions)
        self.target.create(self.remote, self.setup.partitions)
        self.target.create(self.flow.offset_storage_topic, 2)
        self.marks = Marks()
        self.copiers: list[CopierProcess] = []
        self._numbers = 0
        self._transactions = 0
        self._decided: dict[int, bool] = {}
        self._actions: dict[str, Callable[..., None]] = {
            "kill": self._kill,
            "suspend": self._suspend,
            "restart": self._restart,
            "lose requests": self._lose_requests,
            "lose answers": self._lose_answers,
            "hold link": self._hold_link,
            "slow link": self._slow_link,
            "broker down": self._broker_down,
            "leader moves": self._leader_moves,
            "followers stop": self._followers_stop,
            "tail lost": self._tail_lost,
            "source tail lost": self._source_tail_lost,
            "producers expire": self._producers_expire,
            "retention": self._retention,
            "source recreated": self._source_recreated,
            "target recreated": self._target_recreated,
            "partition added": self._partition_added,
            "fence": self._fence,
            "progress moves": self._progress_moves,
        }

    @property
    def copied(self) -> int:
        """Records that were copied."""
        return self.truth.copied

    @property
    def may_be_left_out(self) -> list[Fault]:
        """What a shorter form of the schedule may lack."""
        return self.faults

    def flow_remote(self) -> str:
        """The remote topic's name."""
        return REMOTE

    def run(self) -> None:
        """Run it to the end; raises `Violation`, or what the product's code failed with."""
        world, setup = self.world, self.setup
        for _ in range(setup.copiers):
            self._begin_copier(delay=world.random.random() * 3)
        self._write_later()
        for number, fault in enumerate(self.faults):
            if number not in self._without:
                world.later(fault.at, None, _calling(self._do, fault))
        try:
            world.run(setup.seconds)
            self._heal()
            self._begin_copier(delay=0.0)
            world.run(_SETTLES_S, until=self._is_over)
            self.truth.check_whole()
        except Violation as error:
            states = [
                f"{one.name}: {r.topic}-{r.partition} {r.state} {r.error or ''}"
                for one in self.copiers
                if not one.dead
                for r in one.reports
            ]
            raise Violation(f"{error}; {'; '.join(states)}") from None
        finally:
            world.close()

    def _is_over(self) -> bool:
        return not self.truth.missing()

    def _do(self, fault: Fault) -> None:
        self.world.events[fault.kind] += 1
        self.world.note(f"--- {fault}")
        self._actions[fault.kind](*fault.how)

    # Processes

    def _begin_copier(self, *, delay: float) -> None:
        def begin() -> None:
            self._numbers += 1
            setup = self.setup
            terms: dict[str, Any] = {
                "seconds": setup.lease_s,
                "pass_gaps": setup.pass_gaps or self._is_healed,
                "leave_out": setup.leave_out,
            }
            world = self.world
            one = CopierProcess(
                world,
                f"copier {self._numbers}",
                flow=self.flow,
                topics={TOPIC: self.remote},
                marks=self.marks,
                terms=terms,
                ahead_s=(world.random.random() - 0.5) * 240,
            )
            self.copiers.append(one)

        self.world.later(delay, None, begin)

    _is_healed = False

    def _pick(self, how: float) -> CopierProcess | None:
        alive = [one for one in self.copiers if not one.dead]
        return alive[int(how * len(alive))] if alive else None

    def _kill(self, which: float, pause: float, *_: float) -> None:
        if (one := self._pick(which)) is not None:
            one.kill()
            self._begin_copier(delay=pause * pause * 20)

    def _suspend(self, which: float, long: float, slept: float, other: float) -> None:
        if (one := self._pick(which)) is None:
            return
        one.suspend()
        seconds = 0.01 * 6000**long
        self.world.later(seconds, None, lambda: one.resume(slept=slept < 0.5))
        if other < 0.5:
            self._begin_copier(delay=other * 10)

    def _restart(self, which: float, pause: float, *_: float) -> None:
        if (one := self._pick(which)) is not None:
            one.stopping = True
            self._begin_copier(delay=pause * 3)

    def _links(self, which: float, side: float) -> list[Any]:
        one = self._pick(which)
        return [] if one is None else [(one.source if side < 0.4 else one.target).link]

    def _lose_requests(self, which: float, side: float, count: float, _: float) -> None:
        for link in self._links(which, side):
            link.lose_requests += 1 + int(count * 6)

    def _lose_answers(self, which: float, side: float, count: float, _: float) -> None:
        for link in self._links(which, side):
            link.lose_answers += 1 + int(count * 6)

    def _hold_link(self, which: float, side: float, long: float, _: float) -> None:
        for link in self._links(which, side):
            link.held_until = self.world.now + 0.1 * 600**long

    def _slow_link(self, which: float, side: float, long: float, _: float) -> None:
        for link in self._links(which, side):
            link.slow_s = long * long

    # Brokers

    def _cluster(self, side: float) -> SimulatedCluster:
        return self.source if side < 0.4 else self.target

    def _place(self, cluster: SimulatedCluster, which: float) -> TopicPartition | None:
        name = TOPIC if cluster is self.source else self.remote
        topic = cluster.topics.get(name)
        return None if topic is None else (name, int(which * len(topic.partitions)))

    def _broker_down(self, side: float, which: float, long: float, _: float) -> None:
        cluster, broker = self._cluster(side), BROKERS[int(which * 3)]
        cluster.down.add(broker)
        for topic in cluster.topics.values():
            for number, partition in enumerate(topic.partitions):
                if partition.leader is not None and partition.leader % NAMES == broker:
                    other = next((one for one in BROKERS if one not in cluster.down), None)
                    cluster.move_leader((topic.name, number), other)
        self.world.later(long * 10, None, lambda: cluster.down.discard(broker))

    def _leader_moves(self, side: float, which: float, to: float, _: float) -> None:
        cluster = self._cluster(side)
        if (place := self._place(cluster, which)) is not None:
            log = cluster.log(*place)
            before = log.end
            # A clean election: the new leader has what is replicated.
            cluster.move_leader(place, BROKERS[int(to * 3)], lost=log.high_watermark)
            self._after_cut(cluster, place, before)

    def _progress_moves(self, which: float, to: float, *_: float) -> None:
        topic = self.flow.offset_storage_topic
        self.target.move_leader((topic, int(which * 2)), BROKERS[int(to * 3)])

    def _followers_stop(self, side: float, which: float, long: float, how: float) -> None:
        cluster = self._cluster(side)
        if (place := self._place(cluster, which)) is None:
            return
        log = cluster.log(*place)
        log.hold()

        def end() -> None:
            if log.held_at is None or not cluster.has(place) or cluster.log(*place) is not log:
                return
            if how < 0.5:
                log.catch_up()
            else:
                before = log.end
                cluster.move_leader(place, BROKERS[int(how * 3)], lost=log.high_watermark)
                self._after_cut(cluster, place, before)

        self.world.later(0.05 + long * 8, None, end)

    def _tail_lost(self, which: float, much: float, to: float, _: float) -> None:
        """An unclean election on the target."""
        if (place := self._place(self.target, which)) is not None:
            log = self.target.log(*place)
            before = log.end
            cut = max(log.start, log.end - int(much * much * 60))
            self.target.move_leader(place, BROKERS[int(to * 3)], lost=cut)
            self._after_cut(self.target, place, before)

    def _source_tail_lost(self, which: float, much: float, to: float, _: float) -> None:
        if (place := self._place(self.source, which)) is not None:
            log = self.source.log(*place)
            before = log.end
            cut = max(log.start, log.end - int(much * much * 60))
            self.source.move_leader(place, BROKERS[int(to * 3)], lost=cut)
            self._after_cut(self.source, place, before)

    def _after_cut(self, cluster: SimulatedCluster, place: TopicPartition, before: int) -> None:
        log = cluster.log(*place)
        if log.end >= before:
            return
        if cluster is self.source:
            self.truth.of(place).lose(since=log.end)
            self.truth.cut.add(place)
            for producer in sorted(log.open.keys() & self._decided):
                # The coordinator writes a marker again that a leader lost (or an administrator, KIP-664).
                log.mark(producer, 0, commit=self._decided[producer], now_ms=self.world.now_ms)
        else:
            self.truth.truncated(place)

    def _producers_expire(self, *_: float) -> None:
        for topic in self.target.topics.values():
            for partition in topic.partitions:
                partition.log.expire_producers(self.world.now_ms)

    def _retention(self, side: float, which: float, much: float, _: float) -> None:
        cluster = self._cluster(side)
        if (place := self._place(cluster, which)) is None:
            return
        log = cluster.log(*place)
        before = log.start + int((log.stable - log.start) * much)
        bases = [one.header.base_offset for one in log.batches if one.header.base_offset <= before]
        if not bases:
            return
        if cluster is self.target:
            self.truth.retained(place, bases[-1])
        log.delete_before(bases[-1])
        if cluster is self.source:
            self.truth.of(place).lose(below=log.start)

    def _source_recreated(self, pause: float, *_: float) -> None:
        if TOPIC not in self.source.topics:
            return
        count = len(self.source.topics[TOPIC].partitions)
        self.source.delete(TOPIC)
        for partition in range(count):
            self.truth.of((TOPIC, partition)).lose(since=0)
        self.world.later(0.01 + pause * pause * 5, None, lambda: self._create(self.source, TOPIC, count))

    def _target_recreated(self, pause: float, *_: float) -> None:
        if self.remote not in self.target.topics:
            return
        count = len(self.target.topics[self.remote].partitions)
        self.target.delete(self.remote)
        for partition in range(count):
            self.truth.truncated((self.remote, partition))
        self.world.later(0.01 + pause * pause * 5, None, lambda: self._create(self.target, self.remote, count))

    def _create(self, cluster: SimulatedCluster, name: str, count: int) -> None:
        if name not in cluster.topics:
            cluster.create(name, count)

    def _partition_added(self, pause: float, *_: float) -> None:
        if TOPIC in self.source.topics:
            self.source.add_partitions(TOPIC, 1)

            def follow() -> None:
                if TOPIC in self.source.topics and self.remote in self.target.topics:
                    wanted = len(self.source.topics[TOPIC].partitions)
                    self.target.add_partitions(
                        self.remote, max(0, wanted - len(self.target.topics[self.remote].partitions))
                    )

            self.world.later(pause * 4, None, follow)

    def _fence(self, long: float, *_: float) -> None:
        if (topic := self.target.topics.get(self.remote)) is not None:
            for partition in topic.partitions:
                partition.log.max_message_bytes = 78

            def remove() -> None:
                for partition in topic.partitions:
                    partition.log.max_message_bytes = None

            self.world.later(long * 8, None, remove)

    def _heal(self) -> None:
        """Nothing fails any more, all who write end, and partitions are the same on both sides."""
        self.world.note("--- healed")
        self._is_healed = True
        for cluster in (self.source, self.target):
            cluster.down.clear()
            for topic in cluster.topics.values():
                for number, partition in enumerate(topic.partitions):
                    if partition.leader is None:
                        cluster.move_leader((topic.name, number), BROKERS[0])
                    partition.log.max_message_bytes = None
                    partition.log.catch_up()
        for name, cluster in ((TOPIC, self.source), (self.remote, self.target)):
            self._create(cluster, name, self.setup.partitions)
        there, remote = self.source.topics[TOPIC], self.target.topics[self.remote]
        self.target.add_partitions(self.remote, max(0, len(there.partitions) - len(remote.partitions)))
        for one in self.copiers:
            for link in (one.source.link, one.target.link):
                link.lose_requests = link.lose_answers = 0
                link.slow_s = 0.0
                link.held_until = min(link.held_until, self.world.now)
            one.resume(slept=False)
            one.stopping = True

    # Applications

    def _write_later(self) -> None:
        random = self.world.random

        def write() -> None:
            if self._is_healed:
                return
            if TOPIC in self.source.topics:
                for _ in range(random.choice((1, 1, 2, 5))):
                    partitions = self.source.topics[TOPIC].partitions
                    self._produce((TOPIC, random.randrange(len(partitions))))
            self.world.later(random.choice((0.01, 0.1, 0.5, 2.0)), None, write)

        self.world.later(0.0, None, write)

    def _produce(self, place: TopicPartition) -> None:
        partition = self.source.topics[place[0]].partitions[place[1]]
        if partition.leader is None or partition.leader % NAMES in self.source.down:
            return
        random, log, records = self.world.random, partition.log, self.truth.of(place)
        transactional = self.setup.transactions and random.random() < 0.5
        count = random.choice((1, 1, 3, 10))
        numbers = records.add(log.end, count, Fate.OPEN if transactional else Fate.COMMITTED)
        age_ms = int(random.random() * 4 * _DAY_MS) if self.setup.old else 0
        producer: dict[str, int] = {}
        if transactional:
            self._transactions += 1
            producer = {
                "producer_id": self._transactions,
                "producer_epoch": 0,
                "base_sequence": 0,
                "attributes": TRANSACTIONAL,
            }
        batch = batch_of(
            [(None, value_of(number)) for number in numbers], timestamp_ms=self.world.now_ms - age_ms, **producer
        )
        log.write(batch)
        if transactional:
            self._end_later(place, log, self._transactions, numbers, commit=random.random() < 0.7)

    def _end_later(self, place: TopicPartition, log: Any, producer: int, numbers: range, *, commit: bool) -> None:  # noqa: ANN401
        def end() -> None:
            if not self.source.has(place) or self.source.log(*place) is not log:
                return
            if producer not in log.open:
                return  # an election lost it
            self._decided[producer] = commit
            log.mark(producer, 0, commit=commit, now_ms=self.world.now_ms)
            self.truth.of(place).end(numbers, commit=commit)

        self.world.later(self.world.random.choice((0.0, 0.05, 0.5, 3.0)), None, end)


def _calling(work: Callable[[Fault], None], fault: Fault) -> Callable[[], None]:
    return lambda: work(fault)
