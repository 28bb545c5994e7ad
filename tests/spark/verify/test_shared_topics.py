"""Topics with records of both sides (`mirrorless.both.directions=skip`): each flow's own records are compared."""

from __future__ import annotations

import json
import random
import time
from typing import TYPE_CHECKING

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from mirrorless.batches.rebuild import merge
from mirrorless.batches.records import Records, varint
from mirrorless.batches.stamp import stamp
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.kafka_python.event_loop import EventLoop
from mirrorless.progress.producer_ids import producer_id
from mirrorless.protocol.cluster_client import ClusterClient
from mirrorless.settings import load
from mirrorless.verify.comparison import ComparisonTerms, verify_flow
from mirrorless.verify.findings import DIFFERENT, IDENTICAL, DifferenceKind
from tests.support.both_ways import BothWays, numbered, progress_records
from tests.support.moving import plain
from tests.support.world import fill

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mirrorless.verify.findings import VerificationResult
    from tests.support.world import World


def verified(spark: SparkSession, world: World) -> VerificationResult:
    flow = next(one for one in load(str(world.file)).flows if one.name == world.flow)
    return verify_flow(spark, flow, ComparisonTerms(window_records=100), say=lambda _: None)[0]


def test_each_flow_is_compared_by_its_own_records(spark: SparkSession, world: World) -> None:
    both = BothWays(world)
    chance = random.Random(5)
    written = {"a": 0, "b": 0}
    for number in range(8):
        for origin, cluster in (("a", world.source), ("b", world.target)):
            begins = written[origin]
            written[origin] += chance.choice([1, 30, 400])
            fill(cluster, both.topic, numbered(origin, begins, written[origin]))
        if number % 4 == 3:
            both.copy()
    for one, origin in ((both.there, "a"), (both.back, "b")):
        found = verified(spark, one)
        assert found.status == IDENTICAL, found
        assert sum(partition.records for partition in found.partitions) == written[origin]

    admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    place = TopicPartition(both.topic, 0, 150)
    admin.delete_records([place])[place].result()
    for one in (both.there, both.back):
        assert verified(spark, one).status == IDENTICAL

    append_as_copy(both, b"a nobody wrote")
    found = verified(spark, both.there)
    assert found.status == DIFFERENT
    assert [one.kind for one in found.differences] == [DifferenceKind.EXTRA]
    assert verified(spark, both.back).status == IDENTICAL


def append_as_copy(both: BothWays, value: bytes) -> None:
    """Append a record to the target as the copy would, which the source does not have."""
    world = both.there
    source_id = Admin(plain(world.source)).metadata().cluster_id
    ((_, last),) = progress_records(world)
    rest = varint(-1) + varint(len(value)) + value + varint(0)
    (built,) = merge([(0, Records([0], [int(time.time() * 1000)], [rest]))], max_bytes=1_000)
    batch = stamp(
        built.header,
        built.body,
        producer_id=producer_id(str(source_id), both.topic, 0),
        producer_epoch=0,
        base_sequence=json.loads(last or b"")["sequence"],
    )
    net = EventLoop()
    wire = ClusterClient(net, cluster="target", config=for_kafka_python(plain(world.target), role="producer"))

    async def append() -> None:
        await wire.connect(timeout_ms=10_000, topics=[both.topic])
        node = wire.leader((both.topic, 0))
        assert node is not None
        (appended,) = await wire.append(node, [((both.topic, 0), batch)], timeout_ms=10_000)
        assert not appended.error_code

    net.run(append)
    wire.close()
    net.close()
