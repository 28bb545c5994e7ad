"""A client of librdkafka and one of kafka-python read an archive as a cluster."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

from mirrorless.archive.broker import ArchiveBroker
from mirrorless.archive.object_store import open_store
from mirrorless.archive.view import ArchiveView
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.groups import Committed, GroupOffsets, list_groups
from mirrorless.clusters.topics import high_watermarks, log_starts, topic_ids
from mirrorless.settings import Cluster
from tests.support.archived import TOPIC_ID, plain, put, remember, transaction

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ArchiveBroker]:
    store = open_store(f"file://{tmp_path}")
    end = put(store, 0, [plain(0), plain(10)])
    end = put(store, end, [*transaction(20, 5, commit=False), *transaction(31, 5, commit=True)], aborted=[(5, 20)])
    put(store, end, [plain(42)])
    remember(store, {("orders", 0): 52}, groups={"billing": {("orders", 0): (31, "note")}})
    with ArchiveBroker(ArchiveView(store)) as served:
        yield served


def offsets(broker: ArchiveBroker, isolation: str) -> list[int]:
    """Every offset that a consumer reads."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": "x",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "isolation.level": isolation,
        }
    )
    until = time.monotonic() + 20
    consumer.assign([TopicPartition("orders", 0, OFFSET_BEGINNING)])
    came = list[Message]()
    while not (came and came[-1].error()) and time.monotonic() < until:
        came += consumer.consume(100, timeout=0.2)
    consumer.close()
    return [message.offset() or 0 for message in came if not message.error()]


def test_a_consumer_reads_committed_records_at_their_offsets(broker: ArchiveBroker) -> None:
    assert offsets(broker, "read_committed") == [*range(20), *range(31, 41), *range(42, 52)]
    assert offsets(broker, "read_uncommitted") == [*range(30), *range(31, 41), *range(42, 52)]


def test_administration_sees_what_the_cluster_had(broker: ArchiveBroker) -> None:
    cluster = Cluster(alias="vault", bootstrap_servers=broker.address)
    admin = Admin(cluster)
    place = ("orders", 0)
    assert str(admin.metadata().cluster_id) == broker.view.identity.cluster_id
    assert topic_ids(admin, ["orders"])[0]["orders"].replace("-", "") == TOPIC_ID
    assert (log_starts(admin, [place])[0], high_watermarks(admin, [place])[0]) == ({place: 0}, {place: 52})
    configs = topic_configs(admin, ["orders"])[0]["orders"]
    assert {name: (one.value, one.origin) for name, one in configs.items()} == {"retention.ms": ("1000", 1)}
    assert list(list_groups(admin)[0]) == ["billing"]
    groups = GroupOffsets(cluster)
    assert dict(groups.committed(["billing"])) == {"billing": {place: Committed(31, "note")}}
    groups.close()
