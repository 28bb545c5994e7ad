"""The simulated broker answers as Kafka does: the same sequences of requests, sent to both, have the same answers."""

from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.batches.header import scan
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


class Step(NamedTuple):
    """A request and its numbers."""

    name: str
    numbers: tuple[int, ...]


def script(seed: int) -> list[Step]:
    """A sequence of requests: most continue a producer, others repeat, leave out, go back, or ask outside the log."""
    random = Random(seed)
    steps: list[Step] = []
    positions: dict[int, tuple[int, int]] = {}
    sent: list[tuple[int, ...]] = []
    end = 0
    for _ in range(STEPS):
        kind = random.choices(("append", "again", "fetch", "mark", "ask", "delete"), (8, 3, 4, 2, 2, 1))[0]
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
        steps.append(Step("ask", ()))
    return steps


async def answers(client: Any, place: TopicPartition, steps: list[Step]) -> list[Any]:  # noqa: ANN401
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
                        header.producer_id,
                        header.producer_epoch,
                        header.is_control,
                    )
                    for header, _ in scan(bytes(one.records))
                ]
                ends = (one.last_stable_offset, one.high_watermark, sorted(one.aborted))
                found.append((one.error_code, None if one.error_code else ends, headers))
            case "mark", (producer, epoch):
                marker = FIRST_PRODUCER + producer
                found.append(await write_markers(client, node, place, producer=marker, epoch=max(0, epoch), count=1))
            case "delete", (offset,):
                found.append(await delete_records(client, node, {place: offset}))
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
        return {place: await answers(client, place, steps) for place, steps in scripts.items()}

    try:
        found: dict[TopicPartition, list[Any]] = net.run(all_answers)
        return found
    finally:
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
                found[place] = await answers(client, place, steps)

        process.start(all_answers())
        world.run(100_000.0, until=lambda: len(found) == len(scripts))
        world.close()
    return found


def test_answers_of_both(source: EmbeddedCluster) -> None:
    scripts = {(TOPIC, number): script(number) for number in range(SEQUENCES)}
    real, other = of_kafka(source, scripts), simulated(scripts)
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
