"""heartbeat beats on the clock for a minute; heartbeat_monitor measures what comes over and notices what does not."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.formats import Heartbeat
from mirrorless.functions.heartbeat import due, pairs_of
from mirrorless.settings import load
from tests.support.events import msk, record, schedule
from tests.support.world import producer, read

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from tests.functions.conftest import Aws, Start
    from tests.support.world import World


def beats(cluster: EmbeddedCluster, source: str, target: str) -> list[int]:
    found = [Heartbeat.parse(seen.key, seen.value) for seen in read(cluster, "heartbeats")[0]]
    return [
        one.timestamp_ms for one in found if isinstance(one, Heartbeat) and (one.source, one.target) == (source, target)
    ]


def test_it_beats_until_its_time_is_over_and_says_what_is_left(world: World, start: Start) -> None:
    world.topic()
    world.write_settings(**{"emit.heartbeats.enabled": "true", "emit.heartbeats.interval.seconds": "1"})
    function = start("heartbeat")
    answer = function.invoke(schedule(), timeout_s=8)
    there = beats(world.target, world.source_alias, world.target_alias)
    # The way back has no stack of its own, as it is not enabled.
    back = beats(world.source, world.target_alias, world.source_alias)
    assert len(there) + len(back) == answer["beats"] >= 4
    assert abs(len(there) - len(back)) <= 1
    # Some seconds may be over before the first beats.
    assert len(answer["left"]) + answer["beats"] in range(100, 121, 2)
    assert [one // 1000 - there[0] // 1000 for one in there] == list(range(len(there)))


@pytest.mark.parametrize("interval_s", [1, 7, 60, 90, 600])
def test_minute_after_minute_no_beat_is_missing_and_none_is_twice(world: World, interval_s: int) -> None:
    world.topic()
    world.write_settings(**{"emit.heartbeats.enabled": "true", "emit.heartbeats.interval.seconds": str(interval_s)})
    settings = load(world.file)
    (pair,) = [one for one in settings.heartbeats if one.name == world.flow]
    begin = 1_700_000_023.0
    sent = [at for minute in range(30) for at in due(pair, begin=begin + 60 * minute, now=begin + 60 * minute)]
    assert sent == [second for second in range(1_700_000_024, 1_700_000_024 + 1800) if second % interval_s == 0]


def test_the_way_back_beats_by_itself_where_it_is_enabled(world: World) -> None:
    world.topic()
    world.write_settings(
        **{"emit.heartbeats.enabled": "true", f"{world.target_alias}->{world.source_alias}.enabled": "true"}
    )
    settings = load(world.file)
    assert [pair.name for pair in pairs_of(settings, settings.flow(world.flow))] == [world.flow]


def test_heartbeats_are_measured_and_what_is_none_goes_to_the_failure_destination(
    world: World, aws: Aws, start: Start
) -> None:
    world.topic()
    topic = world.remote("heartbeats")
    queue = aws.queue()
    now_ms = int(time.time() * 1000)
    beat = Heartbeat(source=world.target_alias, target=world.source_alias, timestamp_ms=now_ms - 1500)
    function = start("heartbeat_monitor", MIRRORLESS_FAILURES=queue)
    answer = function.invoke(
        msk(
            record(topic, offset=1, key=beat.key(), value=beat.value(), headers=(("h", b"\xff"), ("h", b"\x01"))),
            record(
                topic,
                offset=2,
                key=beat.key(),
                value=beat.value(),
                timestamp_ms=now_ms,
                timestamp_type="LOG_APPEND_TIME",
            ),
            record(topic, offset=3, key=beat.key(), value=None),
            record(topic, offset=4, key=None, value=b"\x00"),
            record(topic, offset=5, key=b"", value=b"") | {"value": "no base64!"},
        )
    )
    assert answer["records"] == 4
    assert answer["refused"] == 2
    assert answer["last_seen_ms"] == {f"{world.target_alias}->{world.source_alias}": now_ms - 1500}
    by_clock, by_broker = function.metrics()["heartbeat-latency-ms"]
    assert by_clock >= 1500
    assert by_broker == 1500
    assert function.metrics()["records-refused"] == [2]

    sqs = aws.client("sqs")
    bodies = [message["Body"] for message in sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]]
    assert len(bodies) == 2
    assert any('"offset": 4' in body and "not a heartbeat: " in body for body in bodies)
    assert any('"offset": 5' in body and "the event's record is malformed: " in body for body in bodies)


def test_the_age_of_the_last_heartbeat_tells_that_they_are_missing(world: World, start: Start) -> None:
    topic = world.topic()
    world.write_settings(topics=f"{topic}, heartbeats")
    function = start("heartbeat_monitor")
    assert "no heartbeat was replicated yet" in function.invoke(schedule())["note"]
    assert function.metrics() == {}

    at_ms = int((datetime.now(UTC).timestamp() - 100) * 1000)
    beat = Heartbeat(source=world.target_alias, target=world.source_alias, timestamp_ms=at_ms)
    admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
    admin.create_topics([NewTopic(world.remote("heartbeats"), 1, 1)])[world.remote("heartbeats")].result()
    client = producer(world.target)
    client.produce(world.remote("heartbeats"), key=beat.key(), value=beat.value())
    assert client.flush(30) == 0
    answer = function.invoke(schedule())
    assert answer["last_seen_ms"] == at_ms
    assert 100 <= answer["age_s"] < 200
    assert function.metrics()["heartbeat-age-seconds"][0] >= 100
