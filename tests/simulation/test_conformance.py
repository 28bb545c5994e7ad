"""The simulated broker answers as Kafka does: the same sequences of requests, sent to both, have the same answers."""

from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ConsumerPartition
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.batches.header import TRANSACTIONAL, scan
from mirrorless.batches.stamp import stamp
from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.kafka_python.event_loop import EventLoop
from mirrorless.protocol.cluster_client import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, ClusterClient
from mirrorless.protocol.markers import delete_records, write_markers
from mirrorless.protocol.requests import ProducerState
from mirrorless.settings import Cluster
from tests.simulation.client import SimulatedClient
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.log import batch_of
from tests.simulation.running import prepared
from tests.simulation.world import Process, World, clock
from tests.support.releases import start_release

if TYPE_CHECKING:
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.local.embedded_kafka import EmbeddedCluster

TOPIC = "conformance"
SEQUENCES = 200
STEPS = 12
LIMIT_BYTES = 1_000
FIRST_PRODUCER = 1 << 61
NOW_MS = int(time.time() * 1000)
"""As of markers: brokers begin a segment after a week of timestamps, and no fetch goes beyond its segment."""


_KINDS = "append", "again", "fetch", "mark", "ask", "delete", "write", "end"
_WEIGHTS = 8, 3, 4, 2, 2, 1, 2, 1
APPLICATIONS = 3


class Step(NamedTuple):
    """A request and its numbers."""

    name: str
    numbers: tuple[int, ...]


def script(seed: int, *, transactions: bool = False) -> list[Step]:
    """A sequence of requests: most continue a producer, others repeat, leave out, go back, or ask outside the log."""
    random = Random(seed)
    steps: list[Step] = []
    positions: dict[int, tuple[int, int]] = {}
    sent: list[tuple[int, ...]] = []
    open_ones: set[int] = set()
    kinds = len(_KINDS) if transactions else 6
    end = 0
    for _ in range(STEPS):
        kind = random.choices(_KINDS[:kinds], _WEIGHTS[:kinds])[0]
        if kind == "append":
            producer = random.randrange(3)
            epoch, sequence = positions.get(producer, (0, 0))
            change = random.random()
            if change < 0.1:
                epoch, sequence = epoch + 1, random.choice((0, 0, sequence))
            elif change < 0.2:
                sequence += random.choice((1, 3))
            elif change < 0.25:
                epoch = max(0, epoch - 1)
            count = random.choice((1, 2, 5, 30))
            one = producer, epoch, sequence, count
            sent.append(one)
            steps.append(Step("append", one))
            positions[producer] = epoch, sequence + count
            end += count
        elif kind == "again" and sent:
            steps.append(Step("append", random.choice(sent[-8:])))
        elif kind == "fetch":
            isolation = random.choice((READ_UNCOMMITTED, READ_COMMITTED))
            steps.append(Step("fetch", (random.randrange(-1, end + 3), isolation)))
        elif kind == "mark":
            producer = random.randrange(4)
            steps.append(Step("mark", (producer, positions.get(producer, (0, 0))[0] + random.choice((0, 0, 1, -1)))))
        elif kind == "delete":
            steps.append(Step("delete", (random.randrange(end + 4),)))
        elif kind == "write":
            application, count = random.randrange(APPLICATIONS), random.choice((1, 3))
            steps.append(Step("write", (application, count)))
            open_ones.add(application)
            end += count
        elif kind == "end" and open_ones:
            steps.append(_end(open_ones, random))
            end += 1
        steps.append(Step("ask", ()))
    while open_ones:
        steps += [_end(open_ones, random), Step("fetch", (0, READ_COMMITTED)), Step("ask", ())]
    return steps


def _end(open_ones: set[int], random: Random) -> Step:
    one = random.choice(sorted(open_ones))
    open_ones.discard(one)
    return Step("end", (one, random.randrange(2)))


class Applications(Protocol):
    """Producers with transactions, one at a time each."""

    def write(self, place: TopicPartition, one: int, count: int) -> None:
        """Write a batch, in a transaction that begins if none is open."""

    def end(self, place: TopicPartition, one: int, *, commit: bool) -> None:
        """End the transaction, and wait until the marker is there."""

    def number(self, producer_id: int) -> int:
        """A number for a producer's id that is the same for both."""


async def answers(client: Any, applications: Applications, place: TopicPartition, steps: list[Step]) -> list[Any]:  # noqa: ANN401
    """Send the requests one after the other; returns what was answered."""
    found: list[Any] = []
    node = client.leader(place)
    for name, numbers in steps:
        match name, numbers:
            case "append", (producer, epoch, sequence, count):
                batch = batch_of([(None, b"x" * 40)] * count, timestamp_ms=NOW_MS)
                stamped = stamp(
                    batch.header,
                    batch.body,
                    producer_id=FIRST_PRODUCER + producer,
                    producer_epoch=epoch,
                    base_sequence=sequence,
                )
                (one,) = await client.append(node, [(place, stamped)], timeout_ms=5_000)
                found.append((one.error_code, None if one.error_code else one.base_offset))
            case "fetch", (offset, isolation):
                one = await client.fetch_one(node, (place, offset, -1), isolation=isolation)
                headers = [
                    (
                        header.base_offset,
                        header.next_offset,
                        applications.number(header.producer_id),
                        header.producer_epoch if header.producer_id >= FIRST_PRODUCER else 0,
                        header.is_control,
                        header.is_transactional,
                    )
                    for header, _ in scan(bytes(one.records))
                ]
                aborted = sorted((applications.number(producer), first) for producer, first in one.aborted)
                ends = (one.last_stable_offset, one.high_watermark, aborted)
                found.append((one.error_code, None if one.error_code else ends, headers))
            case "mark", (producer, epoch):
                marker = FIRST_PRODUCER + producer
                found.append(await write_markers(client, node, place, producer=marker, epoch=max(0, epoch), count=1))
            case "delete", (offset,):
                found.append(await delete_records(client, node, {place: offset}))
            case "write", (one, count):
                applications.write(place, one, count)
                found.append(None)
            case "end", (one, commit):
                applications.end(place, one, commit=bool(commit))
                found.append(None)
            case "ask", ():
                first, high, log_end, *known = await client.in_order(
                    node,
                    client.offsets(node, [place], at=EARLIEST),
                    client.offsets(node, [place], at=LATEST),
                    client.log_ends(node, [place]),
                    *(client.producers(node, {place: FIRST_PRODUCER + one}) for one in range(4)),
                )
                states = [one[place] for one in known]
                found.append(
                    (
                        [tuple(one[place]) for one in (first, high, log_end)],
                        [tuple(one) if isinstance(one, ProducerState) else one for one in states],
                    )
                )
    return found


class RealApplications:
    """Producers of librdkafka."""

    def __init__(self, cluster: EmbeddedCluster, topic: str) -> None:
        self._servers = cluster.bootstrap_servers
        self._topic = topic
        self._producers: list[Producer] = []
        self._open: set[int] = set()
        self._reader = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": "conformance",
                "isolation.level": "read_uncommitted",  # or ends are those of the oldest open transaction
            }
        )

    def write(self, place: TopicPartition, one: int, count: int) -> None:
        """As of `Applications`."""
        while len(self._producers) <= one:
            number = len(self._producers)
            settings = {
                "bootstrap.servers": self._servers,
                "transactional.id": f"{self._topic}-{number}",
                "linger.ms": 200,
            }
            self._producers.append(Producer(settings))
            self._producers[-1].init_transactions(30)
        producer = self._producers[one]
        if one not in self._open:
            producer.begin_transaction()
            self._open.add(one)
        for _ in range(count):
            producer.produce(place[0], b"x" * 40, partition=place[1])
        producer.flush(30)

    def end(self, place: TopicPartition, one: int, *, commit: bool) -> None:
        """As of `Applications`."""
        self._open.discard(one)
        before = self._end_of(place)
        (self._producers[one].commit_transaction if commit else self._producers[one].abort_transaction)(30)
        while self._end_of(place) == before:  # the coordinator writes the marker a moment later
            time.sleep(0.005)

    def _end_of(self, place: TopicPartition) -> int:
        _, end = self._reader.get_watermark_offsets(ConsumerPartition(*place), timeout=30)
        return int(end)

    def number(self, producer_id: int) -> int:
        """As of `Applications`: brokers assign them."""
        return producer_id if producer_id < 0 or producer_id >= FIRST_PRODUCER else 0

    def close(self) -> None:
        """End all."""
        self._reader.close()


class SimulatedApplications:
    """The same on a simulated cluster."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._sequences: dict[tuple[TopicPartition, int], int] = {}

    def write(self, place: TopicPartition, one: int, count: int) -> None:
        """As of `Applications`."""
        sequence = self._sequences.get((place, one), 0)
        self._sequences[place, one] = sequence + count
        batch = batch_of(
            [(None, b"x" * 40)] * count,
            timestamp_ms=NOW_MS,
            producer_id=one,
            producer_epoch=0,
            base_sequence=sequence,
            attributes=TRANSACTIONAL,
        )
        self._cluster.log(*place).write(batch)

    def end(self, place: TopicPartition, one: int, *, commit: bool) -> None:
        """As of `Applications`."""
        self._cluster.log(*place).mark(one, 0, commit=commit, now_ms=NOW_MS)

    def number(self, producer_id: int) -> int:
        """As of `Applications`."""
        return producer_id if producer_id < 0 or producer_id >= FIRST_PRODUCER else 0


def of_kafka(cluster: EmbeddedCluster, scripts: dict[TopicPartition, list[Step]]) -> dict[TopicPartition, list[Any]]:
    """What a real broker answers."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    config = {"max.message.bytes": str(LIMIT_BYTES)}
    (created,) = admin.create_topics([NewTopic(TOPIC, len(scripts), 1, config=config)]).values()
    created.result(30)
    settings = Cluster(alias="real", bootstrap_servers=cluster.bootstrap_servers)
    net = EventLoop()
    client = ClusterClient(net, cluster="real", config=for_kafka_python(settings, role="producer"))

    async def all_answers() -> dict[TopicPartition, list[Any]]:
        await client.connect(timeout_ms=20_000, topics={TOPIC})
        for place in scripts:  # a broker leads new partitions a moment after they were created
            while (await client.producers(client.leader(place) or 1, {place: 0}))[place] is not None:
                await net.sleep(0.1)
        await client.learn({TOPIC})
        return {place: await answers(client, applications, place, steps) for place, steps in scripts.items()}

    applications = RealApplications(cluster, TOPIC)
    try:
        found: dict[TopicPartition, list[Any]] = net.run(all_answers)
        return found
    finally:
        applications.close()
        client.close()
        net.close()


def simulated(scripts: dict[TopicPartition, list[Step]]) -> dict[TopicPartition, list[Any]]:
    """What the simulated broker answers."""
    world = World(0)
    cluster = SimulatedCluster(world, "simulated")
    cluster.create(TOPIC, len(scripts))
    for partition in cluster.topics[TOPIC].partitions:
        partition.log.max_message_bytes = LIMIT_BYTES
    found: dict[TopicPartition, list[Any]] = {}
    with prepared():
        clock.world = world
        process = Process(world, "process")
        client = SimulatedClient(process, cluster)

        async def all_answers() -> None:
            await client.connect(timeout_ms=20_000, topics={TOPIC})
            for place, steps in scripts.items():
                found[place] = await answers(client, SimulatedApplications(cluster), place, steps)

        process.start(all_answers())
        world.run(100_000.0, until=lambda: len(found) == len(scripts))
        world.close()
    return found


def test_answers_of_both(source: EmbeddedCluster) -> None:
    scripts = {(TOPIC, number): script(number) for number in range(SEQUENCES)}
    compare(of_kafka(source, scripts), simulated(scripts), scripts)


@pytest.mark.nightly
def test_answers_about_transactions(target: EmbeddedCluster) -> None:
    scripts = {(TOPIC, number): script(number, transactions=True) for number in range(SEQUENCES)}
    compare(of_kafka(target, scripts), simulated(scripts), scripts)


@pytest.mark.nightly
def test_answers_of_an_earlier_release() -> None:
    """The oldest release, where the product has other ways."""
    scripts = {(TOPIC, number): script(number, transactions=True) for number in range(SEQUENCES)}
    with start_release("2.8.2") as cluster:
        compare(of_kafka(cluster, scripts), simulated(scripts), scripts)


def compare(
    real: dict[TopicPartition, list[Any]],
    other: dict[TopicPartition, list[Any]],
    scripts: dict[TopicPartition, list[Step]],
) -> None:
    """Fail with the first difference of each sequence."""
    different = [
        f"sequence {place[1]}, request {at}, {steps[at]} after {steps[max(0, at - 6) : at]}: Kafka {mine}, not {theirs}"
        for place, steps in scripts.items()
        for at, (mine, theirs) in enumerate(zip(real[place], other[place], strict=True))
        if mine != theirs
    ]
    first: dict[str, str] = {}
    for line in different:
        first.setdefault(line.split(",")[0], line)
    assert not first, f"{len(first)} sequences differ:\n" + "\n".join(list(first.values())[:5])


def test_scripts_reach_errors() -> None:
    """The sequences are worth it: refused, repeated and accepted appends are among them."""
    scripts = {(TOPIC, number): script(number) for number in range(SEQUENCES)}
    codes = {
        answer[0]
        for place, found in simulated(scripts).items()
        for step, answer in zip(scripts[place], found, strict=True)
        if step.name in ("append", "fetch")
    }
    assert codes >= {0, 1, 10, 45, 47}
