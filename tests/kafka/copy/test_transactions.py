"""Committed records arrive, aborted ones and markers do not, and the target stays dense."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from mirrorless.clusters.admin import Admin
from mirrorless.copy.flow.status import status_of
from mirrorless.copy.slot import progress_tracker
from mirrorless.progress.topic import ProgressTopic
from mirrorless.protocol.cluster_client import ClusterClient
from tests.kafka.copy.test_resume_at_target import write_progress
from tests.support.world import World, fill, read, values

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster


def transactional(cluster: EmbeddedCluster, name: str) -> Producer:
    client = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": name, "linger.ms": 0})
    client.init_transactions(20)
    return client


def test_committed_and_aborted_transactions_interleaved(world: World) -> None:
    topic = world.topic()
    good = transactional(world.source, f"good-{topic}")
    bad = transactional(world.source, f"bad-{topic}")
    for round_ in range(5):
        good.begin_transaction()
        bad.begin_transaction()
        for number in range(20):
            good.produce(topic, value=b"good %d %d" % (round_, number))
            bad.produce(topic, value=b"bad %d %d" % (round_, number))
            good.flush()
            bad.flush()
        good.commit_transaction()
        bad.abort_transaction()
        fill(world.source, topic, [b"plain %d" % round_])
    reports = world.copy()
    assert world.assert_equal(topic) == 105
    assert reports[0].records == 105
    found = values(read(world.target, world.remote(topic))[0])
    assert found == [
        value
        for round_ in range(5)
        for value in [*(b"good %d %d" % (round_, number) for number in range(20)), b"plain %d" % round_]
    ]
    assert sum(report.records for report in world.copy()) == 0


def test_an_open_transaction_is_waited_for_and_not_copied(world: World) -> None:
    topic = world.topic()
    client = transactional(world.source, f"open-{topic}")
    fill(world.source, topic, [b"before"])
    client.begin_transaction()
    client.produce(topic, value=b"pending")
    client.flush()
    world.write_settings(**{"mirrorless.lease.seconds": "3"})
    (report,) = world.copy()
    assert (report.records, report.state, report.lag_records) == (1, "copying", 1)
    client.commit_transaction()
    assert sum(report.records for report in world.copy()) == 1
    assert values(read(world.target, world.remote(topic))[0]) == [b"before", b"pending"]


def test_an_open_transaction_that_holds_others_back_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = world.topic()
    client = transactional(world.source, f"hangs-{topic}")
    fill(world.source, topic, [b"before"])
    client.begin_transaction()
    client.produce(topic, value=b"pending")
    client.flush()
    fill(world.source, topic, [b"behind"] * 5)
    monkeypatch.setattr(progress_tracker, "_LONG_OPEN_S", 1.0)
    (report,) = world.copy_unbounded(seconds=4)
    assert (report.records, report.state, report.lag_records) == (1, "waiting", 6)
    assert f"{topic}-0: transaction open for " in str(report.error)
    assert "at offset 1 blocks the next 6 offsets; they are copied when it commits or aborts" in str(report.error)
    assert status_of(world.place().load()).lag_records == 6
    client.abort_transaction()
    (report,) = world.copy_unbounded(seconds=4)
    assert (report.records, report.state, report.lag_records, report.error) == (5, "caught up", 0, None)


@pytest.mark.nightly
def test_a_takeover_behind_an_open_transaction_waits_without_asking_all_the_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = world.topic()
    client = transactional(world.source, f"taken-{topic}")
    world.copy()
    client.begin_transaction()
    client.produce(topic, value=b"pending")
    client.flush()
    fill(world.source, topic, [b"read by MirrorMaker 2"] * 5)
    write_progress(world, topic, b'{"offset":3}')
    fetches = []
    fetch = ClusterClient.fetch

    async def counted(self: ClusterClient, *what: Any, **how: Any) -> Any:  # noqa: ANN401
        fetches.append(time.monotonic())
        return await fetch(self, *what, **how)

    monkeypatch.setattr(ClusterClient, "fetch", counted)
    (report,) = world.copy_unbounded(seconds=10)
    assert (report.state, report.next_offset, report.lag_records) == ("caught up", 4, 2)
    assert sum(at > fetches[-1] - 3 for at in fetches) < 15
    client.abort_transaction()
    (report,) = world.copy_unbounded(seconds=4)
    assert (report.records, report.next_offset, report.lag_records) == (2, 7, 0)


def test_a_topic_of_nothing_but_aborted_records_is_caught_up(world: World) -> None:
    topic = world.topic()
    client = transactional(world.source, f"never-{topic}")
    for number in range(3):
        client.begin_transaction()
        client.produce(topic, value=b"%d" % number)
        client.flush()
        client.abort_transaction()
    reports = world.copy()
    assert [(report.state, report.records, report.lag_records) for report in reports] == [("caught up", 0, 0)]
    assert world.copy() == []  # the progress is behind the markers


def test_the_leader_epoch_that_tells_a_cut_log_outlives_an_answer_without_records(world: World) -> None:
    topic = world.topic()
    client = transactional(world.source, f"quiet-{topic}")
    client.begin_transaction()
    client.produce(topic, value=b"a")
    client.commit_transaction()

    def move_the_high_watermark() -> None:
        client.begin_transaction()
        client.produce(topic, value=b"b")
        client.flush()

    later = threading.Timer(4, move_the_high_watermark)
    later.start()
    reports = world.copy_unbounded(seconds=8)
    later.join()
    assert [report.next_offset for report in reports] == [2]  # behind the marker
    flow = world.place().load()
    with closing(ProgressTopic(flow, Admin(flow.target))) as progress:
        known = progress.read()[topic, 0].progress
    assert known is not None
    assert (known.last_offset, known.leader_epoch) == (1, 0)
    client.abort_transaction()
