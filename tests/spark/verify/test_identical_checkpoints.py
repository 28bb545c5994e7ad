"""Offsets that are kept outside of Kafka are valid on both sides: a file of a consumer, a checkpoint of Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.kafka.identical.test_identical_copy import identical
from tests.support.identical import delete_before
from tests.support.offsets import transactions
from tests.support.world import fill

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from tests.support.world import World


def read_on(cluster: EmbeddedCluster, topic: str, file: Path, most: int) -> list[bytes]:
    """Read at most so many committed records from the offset in a file on, and write the next one's there."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "none",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    start = json.loads(file.read_text()) if file.exists() else 0
    first, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)
    consumer.assign([TopicPartition(topic, 0, max(start, first))])
    found: list[bytes] = []
    while len(found) < most and (messages := consumer.consume(most - len(found), timeout=5)):
        for one in messages:
            assert one.error() is None
            found.append(one.value() or b"")
            file.write_text(json.dumps((one.offset() or 0) + 1))
    consumer.close()
    return found


def query(spark: SparkSession, cluster: EmbeddedCluster, topic: str, folder: Path, most: int) -> list[bytes]:
    """Let a streaming query take what there is, in batches of so many offsets; returns what its sink has."""
    rows = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", cluster.bootstrap_servers)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", most)
        .load()
        .select("value")
    )
    running = (
        rows.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .option("path", str(folder / "sink"))
        .trigger(availableNow=True)
        .start()
    )
    assert running.awaitTermination(120)
    return sorted(row.value for row in spark.read.parquet(str(folder / "sink")).collect())


@pytest.mark.nightly
def test_a_file_and_a_checkpoint_move_there_and_back(world: World, spark: SparkSession, tmp_path: Path) -> None:
    """The topic begins late and has holes: what was deleted, markers and aborted records."""
    world.write_settings(**{"replication.policy.class": "IdentityReplicationPolicy"})
    topic = identical(world)
    fill(world.source, topic, (b"deleted %d" % number for number in range(700)))
    delete_before(world.source, topic, 700)
    written: list[bytes] = []
    read: list[bytes] = []
    file = tmp_path / "offset"
    for number, cluster in enumerate((world.source, world.target, world.source)):
        some = [b"%d %03d" % (number, one) for one in range(200)]
        fill(world.source, topic, some)
        transactions(world.source, topic, 6, records=2, aborted_every=2, writer=number)
        world.copy_to_the_end()
        written += some
        read += read_on(cluster, topic, file, 110)
        sink = query(spark, cluster, topic, tmp_path, 75)
        assert [one for one in sink if one in written] == written  # once each
    read += read_on(world.target, topic, file, 10_000)
    assert [one for one in read if one in written] == written
    assert sink == sorted(read)
