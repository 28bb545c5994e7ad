"""Schedules of copiers: one seed is a flow, its processes, what is written to it, and what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mirrorless.batches.rebuild import records_of
from mirrorless.copy.identical.claims import WAIT_S
from mirrorless.copy.partition.send_window import remembered_ms
from mirrorless.progress.run_marks import Share
from mirrorless.settings import Cluster, Flow
from tests.simulation.cluster import BROKERS, NAMES, SimulatedCluster
from tests.simulation.copier import CopierProcess, Marks, set_tick
from tests.simulation.functions import FunctionContainer
from tests.simulation.log import EXPIRY_MS
from tests.simulation.setups import ONE_WAY, setup_of
from tests.simulation.truth import Truth
from tests.simulation.turns import TurnProcess
from tests.simulation.world import Violation, World
from tests.simulation.writers import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mirrorless.clusters.topic_partition import TopicPartition
    from tests.simulation.setups import Fault, Setup

TOPIC = "t"
_SETTLES_S = 400.0
_QUIET_S = 3.0
_FORGETS_S = 0.3
_HEALED_S = 8.0
_SUSPENDED_S = 60.0
_BEYOND_A_LEASE_S = 10.0
_LIMIT_S = 4.0
_ALL_DIE = 0.4
_KEEPS_NAMES = {"replication_policy_class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}


@dataclass
class Direction:
    """One flow with what it has to copy; `runs`: processes copy it. `origins` is as in `LeaseRow`."""

    flow: Flow
    truth: Truth
    writer: Writer
    remote: str
    origins: str | None
    runs: bool
    marks: Marks = field(default_factory=Marks)
    copiers: list[CopierProcess] = field(default_factory=list)
    containers: list[FunctionContainer] = field(default_factory=list)


class Copying:
    """One schedule; `without` are numbers of faults that are left out, `setup` replaces what the seed stands for."""

    def __init__(
        self, seed: int, *, without: Collection[int] = (), setup: Setup | None = None, trace: bool = False
    ) -> None:
        drawn, self.faults = setup_of(seed)
        self.setup = drawn if setup is None else setup
        self._without = frozenset(without)
        self.world = world = World(seed)
        world.trace = [] if trace else None
        set_tick(self.setup.tick_s)
        self.source, self.target = SimulatedCluster(world, "A"), SimulatedCluster(world, "B")
        self.directions = [self._direction(self.source, self.target, number=0)]
        if self.setup.mode not in ONE_WAY:
            self.directions.append(self._direction(self.target, self.source, number=1))
        for one in self.directions:
            for name, cluster in ((TOPIC, one.truth.source), (one.remote, one.truth.target)):
                self._create(cluster, name, self.setup.partitions)
            one.truth.target.create(one.flow.offset_storage_topic, 2)
        if self.setup.expiry_s:
            world.later(_FORGETS_S, None, self._forget_regularly)
        self.turn: TurnProcess | None = None
        self._numbers = 0
        self._is_healed = False
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
            "source cleaned": self._source_cleaned,
            "producers expire": self._producers_expire,
            "retention": self._retention,
            "source recreated": self._source_recreated,
            "target recreated": self._target_recreated,
            "partition added": self._partition_added,
            "fence": self._fence,
            "progress moves": self._progress_moves,
        }

    @property
    def may_be_left_out(self) -> list[Fault]:
        """What a shorter form of the schedule may lack."""
        return self.faults

    def _direction(self, source: SimulatedCluster, target: SimulatedCluster, *, number: int) -> Direction:
        client = {"bootstrap_servers": "simulated:9092"}
        setup, kept = self.setup, self.setup.mode not in ONE_WAY
        flow = Flow(
            source=Cluster(alias=source.alias, **client),
            target=Cluster(alias=target.alias, **client),
            offsets="identical" if setup.identical else "dense",
            **(_KEEPS_NAMES if kept else {}),
        )
        remote = TOPIC if kept else f"{source.alias}.{TOPIC}"
        truth = Truth(source, target, {TOPIC: remote}, identical=setup.identical, origin=number)
        runs = number == 0 or setup.mode == "skip"
        origins = target.id if setup.mode == "skip" else None
        writer = Writer(truth, TOPIC, setup, writes=runs)
        marks = Marks(setup.lease_s + _BEYOND_A_LEASE_S if setup.expiry_s else 0.0)
        return Direction(flow, truth, writer, remote, origins, runs, marks)

    @property
    def copied(self) -> int:
        """How many records were copied."""
        return sum(one.truth.copied for one in self.directions)

    @property
    def copiers(self) -> list[CopierProcess]:
        """All processes that were begun."""
        return [process for one in self.directions for process in one.copiers]

    def run(self) -> None:
        """Run it to the end; raises `Violation`, or what the product's code failed with."""
        world, setup = self.world, self.setup
        for one in self.directions:
            for _ in range(setup.copiers):
                if one.runs:
                    self._begin_copier(one, delay=world.random.random() * 3)
        if setup.mode == "functions":
            self._deliver_regularly()
        if setup.mode == "turns":
            world.later(setup.seconds * world.random.uniform(0.2, 0.6), None, self._begin_turn)
        for number, fault in enumerate(self.faults):
            if number not in self._without:
                world.later(fault.at, None, _calling(self._do, fault))
        try:
            world.run(setup.seconds)
            self._heal()
            world.run(_SETTLES_S, until=self._is_over)
            if setup.mode not in ONE_WAY:
                world.run(_QUIET_S)  # transactions end; nothing else is copied, or a record would be there twice
                world.run(_SETTLES_S, until=self._is_over)
            for one in self.directions:
                one.truth.check_whole()
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
        turned = self.setup.mode != "turns" or (self.turn is not None and self.turn.is_over)
        return turned and not any(one.truth.missing() for one in self.directions)

    def _do(self, fault: Fault) -> None:
        self.world.events[fault.kind] += 1
        self.world.note(f"--- {fault}")
        self._actions[fault.kind](*fault.how)

    # Processes

    def _begin_copier(self, direction: Direction, *, delay: float) -> None:
        def begin() -> None:
            if not direction.runs:
                return
            self._numbers += 1
            setup, world = self.setup, self.world
            terms: dict[str, Any] = {
                # A gap counts after some seconds of one lease.
                "seconds": max(setup.lease_s, _HEALED_S) if self._is_healed else setup.lease_s,
                "pass_gaps": setup.pass_gaps or self._is_healed,
                "leave_out": setup.leave_out,
            }
            if setup.expiry_s:
                terms["remembered_ms"] = remembered_ms(int(setup.expiry_s * 1000))
            if setup.mode == "functions":
                for number in range(setup.shares):
                    self._deliver(direction, terms, Share(number, setup.shares))
                return
            one = CopierProcess(
                world,
                f"copier {self._numbers}",
                flow=direction.flow,
                topics={TOPIC: direction.remote},
                marks=direction.marks,
                terms=terms,
                origins=direction.origins,
                ahead_s=(world.random.random() - 0.5) * 240,
            )
            direction.copiers.append(one)

        self.world.later(delay, None, begin)

    def _deliver(self, direction: Direction, terms: dict[str, Any], share: Share) -> None:
        """Invoke a container that is free, or a new one."""
        random = self.world.random
        usable = [one for one in direction.containers if one.share == share and not one.dead]
        free = [one for one in usable if not one.is_busy and not one.stopping]
        if free and random.random() < 0.8:
            container = random.choice(free)
        else:
            container = FunctionContainer(
                self.world,
                f"container {self._numbers}" + (f" of share {share.number}" if share.of > 1 else ""),
                flow=direction.flow,
                topics={TOPIC: direction.remote},
                marks=direction.marks,
                terms=terms,
                ahead_s=(random.random() - 0.5) * 240,
            )
            container.share = share
            direction.containers.append(container)
            direction.copiers.append(container)
        container.invoke(limit_s=_LIMIT_S + self._every_s * random.choice((0.5, 1.0, 1.5)))

    @property
    def _every_s(self) -> float:
        """How often events arrive; with identical offsets a container waits that long for the one before it."""
        return max(self.setup.lease_s, WAIT_S + 10) if self.setup.identical else self.setup.lease_s

    def _deliver_regularly(self) -> None:
        """Events arrive at their time, some of them twice."""
        for _ in range(self.world.random.choice((1, 1, 1, 1, 1, 2))):
            self._begin_copier(self.directions[0], delay=self.world.random.random() * 0.2)
        self.world.later(self._every_s, None, self._deliver_regularly)

    def _begin_turn(self) -> None:
        """Move the applications to the other cluster, and then the turn."""
        before, after = self.directions
        before.writer.writes = False

        def stop() -> bool:
            """Stop what copies; returns whether nothing does. The mark of one that is frozen expires."""
            before.runs = False
            alive = [one for one in before.copiers if not one.dead and not one.ended]
            for one in alive:
                one.stopping = True
            return all(one.suspended and self.world.now - one.suspended_at > _SUSPENDED_S for one in alive)

        def begin() -> None:
            after.writer.writes = not self._is_healed
            after.runs = True
            for _ in range(self.setup.copiers):
                self._begin_copier(after, delay=self.world.random.random())

        self.turn = TurnProcess(self.world, before.flow, after.flow, topic=TOPIC, stop=stop, begin=begin)

    def _pick(self, how: float) -> tuple[Direction, CopierProcess] | None:
        alive = [(one, process) for one in self.directions for process in one.copiers if not process.dead]
        return alive[int(how * len(alive))] if alive else None

    def _kill(self, which: float, pause: float, *_: float) -> None:
        if (found := self._pick(which)) is not None:
            found[1].kill()
            self._begin_copier(found[0], delay=pause * pause * 20)

    def _suspend(self, which: float, long: float, slept: float, other: float) -> None:
        if (found := self._pick(which)) is None:
            return
        direction, one = found
        one.suspend()
        seconds = 0.01 * 6000**long
        self.world.later(seconds, None, lambda: one.resume(slept=slept < 0.5))
        if other < 0.5:
            self._begin_copier(direction, delay=other * 10)

    def _restart(self, which: float, pause: float, *_: float) -> None:
        if (found := self._pick(which)) is not None:
            found[1].stopping = True
            self._begin_copier(found[0], delay=pause * 3)

    def _links(self, which: float, side: float) -> list[Any]:
        found = self._pick(which)
        return [] if found is None else [(found[1].source if side < 0.4 else found[1].target).link]

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
        name = TOPIC if cluster is self.source else self.directions[0].remote
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
        one = self.directions[int(which * 1000) % len(self.directions)]
        place = one.flow.offset_storage_topic, int(which * 2)
        one.truth.target.move_leader(place, BROKERS[int(to * 3)])

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
        for one in self.directions:
            if cluster is one.truth.source:
                one.truth.of(place).lose(since=log.end)
                one.truth.cut.add(place)
                one.writer.mark_again(log)
            else:
                one.truth.truncated(place)

    def _source_cleaned(self, which: float, most: float, spared: float, how: float) -> None:
        """Log compaction on the source, sometimes while no process runs."""
        if how < _ALL_DIE:
            for one in self.directions[0].copiers:
                if not one.dead:
                    one.kill()
                    self._begin_copier(self.directions[0], delay=1.0 + how * 5)
        self.world.later(how, None, lambda: self._clean(which, most, spared))

    def _clean(self, which: float, most: float, spared: float) -> None:
        """Remove records, but none of the last batches, which are the active segment's."""
        if (place := self._place(self.source, which)) is None:
            return
        log = self.source.log(*place)
        below = [one for one in log.batches if one.header.next_offset <= log.stable]
        below = below[: max(0, len(below) - 1 - int(spared * 3))]
        offsets = [at for one in below if not one.header.is_control for at in records_of(one.header, one.body).offsets]
        removed = {at for at in offsets if self.world.random.random() < most * most}
        log.clean(removed)
        self.directions[0].truth.cleaned(place, removed)

    def _producers_expire(self, *_: float) -> None:
        for one in self.directions:
            self._forget(one.truth.target)

    def _forget(self, cluster: SimulatedCluster) -> None:
        expiry_ms = int(self.setup.expiry_s * 1000) or EXPIRY_MS
        for topic in cluster.topics.values():
            for partition in topic.partitions:
                partition.log.expire_producers(self.world.now_ms, expiry_ms)

    def _forget_regularly(self) -> None:
        self._forget(self.target)
        self.world.later(_FORGETS_S, None, self._forget_regularly)

    def _retention(self, side: float, which: float, much: float, _: float) -> None:
        # Where topics are shared, a copy's last record may be deleted, and on the other side all that shows where it
        # was.
        cluster = self._cluster(side) if self.setup.mode in ONE_WAY else self.source
        if (place := self._place(cluster, which)) is None:
            return
        log = cluster.log(*place)
        before = log.start + int((log.stable - log.start) * much)
        bases = [one.header.base_offset for one in log.batches if one.header.base_offset <= before]
        if not bases:
            return
        for one in self.directions:
            if cluster is one.truth.target:
                one.truth.retained(place, bases[-1])
        log.delete_before(bases[-1])
        for one in self.directions:
            if cluster is one.truth.source:
                one.truth.of(place).lose(below=log.start)

    def _source_recreated(self, pause: float, *_: float) -> None:
        self._recreate(self.source, TOPIC, 0.01 + pause * pause * 5)

    def _target_recreated(self, pause: float, *_: float) -> None:
        self._recreate(self.target, self.directions[0].remote, 0.01 + pause * pause * 5)

    def _recreate(self, cluster: SimulatedCluster, name: str, seconds: float) -> None:
        if name not in cluster.topics:
            return
        count = len(cluster.topics[name].partitions)
        cluster.delete(name)
        for one in self.directions:
            for place in [(name, partition) for partition in range(count)]:
                if cluster is one.truth.source:
                    one.truth.of(place).lose(since=0)
                else:
                    one.truth.truncated(place)
        self.world.later(seconds, None, lambda: self._create(cluster, name, count))

    def _create(self, cluster: SimulatedCluster, name: str, count: int) -> None:
        if name not in cluster.topics:
            cluster.create(name, count)

    def _partition_added(self, pause: float, *_: float) -> None:
        remote = self.directions[0].remote
        if TOPIC in self.source.topics:
            self.source.add_partitions(TOPIC, 1)

            def follow() -> None:
                if TOPIC in self.source.topics and remote in self.target.topics:
                    wanted = len(self.source.topics[TOPIC].partitions)
                    self.target.add_partitions(remote, max(0, wanted - len(self.target.topics[remote].partitions)))

            self.world.later(pause * 4, None, follow)

    def _fence(self, long: float, *_: float) -> None:
        if (topic := self.target.topics.get(self.directions[0].remote)) is not None:
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
        for one in self.directions:
            one.writer.ended = True
            for name, cluster in ((TOPIC, one.truth.source), (one.remote, one.truth.target)):
                self._create(cluster, name, self.setup.partitions)
        there, remote = self.source.topics[TOPIC], self.target.topics[self.directions[0].remote]
        self.target.add_partitions(remote.name, max(0, len(there.partitions) - len(remote.partitions)))
        for process in self.copiers:
            for link in (process.source.link, process.target.link):
                link.lose_requests = link.lose_answers = 0
                link.slow_s = 0.0
                link.held_until = min(link.held_until, self.world.now)
            process.resume(slept=False)
            process.stopping = True
        for one in self.directions:
            if one.runs:
                self._begin_copier(one, delay=0.0)


def _calling(work: Callable[[Fault], None], fault: Fault) -> Callable[[], None]:
    return lambda: work(fault)
