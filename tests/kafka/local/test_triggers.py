"""Locally too, functions are woken by records: events of Lambda's shape, from the end of a topic on."""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.client import MirrorClient
from mirrorless.clusters.internal_topics import heartbeats_topic
from mirrorless.formats import Heartbeat, OffsetSync
from mirrorless.heartbeats import look
from mirrorless.local.msk_trigger import MskPoller
from mirrorless.local.wiring import MskTrigger
from tests.support.events import msk, record
from tests.support.heard import Heard, first_pass, without_copy
from tests.support.offsets import commit
from tests.support.secured import eventually
from tests.support.world import fill, producer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.settings.model import Flow
    from tests.support.world import World


class Events:
    """A poller of one topic, and the events that it hands over."""

    def __init__(self, world: World, topic: str, *, window_s: float = 1.0, batch_size: int = 100) -> None:
        self.found: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        self._ended = threading.Event()
        cluster = world.place().load().source
        trigger = MskTrigger(
            function="checkpoint",
            topics=(topic,),
            cluster=cluster,
            batch_size=batch_size,
            window_s=window_s,
        )
        self.told: list[str] = []
        self.poller = MskPoller(trigger, self._hand, tell=self.told.append, ended=self._ended.is_set)
        self.poller.start()

    def _hand(self, event: Mapping[str, Any]) -> threading.Event:
        self.found.put(event)
        handled = threading.Event()
        handled.set()
        return handled

    def wait_until_assigned(self) -> None:
        eventually(lambda: self.poller.is_placed)

    def end(self) -> None:
        self._ended.set()
        self.poller.join(until=time.monotonic() + 10)


def make(world: World, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()


def newest_source(flow: Flow) -> str | None:
    last = look(flow.target, heartbeats_topic(flow).name, count=1).last
    return last.source if last else None


def test_an_event_is_what_lambda_hands_over(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"before"])
    events = Events(world, topic)
    events.wait_until_assigned()
    headers: list[tuple[str, str | bytes | None]] = [("h", b"\xff\x01"), ("h", b""), ("g", b"x")]
    client = producer(world.source)
    client.produce(topic, key=b"k", value=b"v\x00", headers=headers, timestamp=1545084650987, partition=0)
    client.produce(topic, value=None, key=b"", timestamp=1545084650988, partition=0)
    client.produce(topic, value=b"", timestamp=1545084650989, partition=0)
    assert client.flush(30) == 0
    event = events.found.get(timeout=60)
    events.end()
    assert events.told == []
    reference = msk(
        record(topic, offset=1, key=b"k", value=b"v\x00", headers=(("h", b"\xff\x01"), ("h", b""), ("g", b"x"))),
        record(topic, offset=2, key=b"", value=None, timestamp_ms=1545084650988),
        record(topic, offset=3, key=None, value=b"", timestamp_ms=1545084650989),
        source="SelfManagedKafka",
    )
    del reference["eventSourceArn"]  # a cluster off MSK has none
    assert event == reference | {"bootstrapServers": world.source.bootstrap_servers}


def test_a_full_event_does_not_wait_and_a_topic_that_comes_later_is_read_whole(world: World) -> None:
    world.topic()
    topic = f"later-{world.source_alias}"
    events = Events(world, topic, window_s=3600, batch_size=3)
    time.sleep(1)
    make(world, topic)
    fill(world.source, topic, (b"%d" % n for n in range(7)))
    found = [events.found.get(timeout=60) for _ in range(2)]
    events.end()
    offsets = [one["offset"] for event in found for one in event["records"][f"{topic}-0"]]
    assert offsets == [0, 1, 2, 3, 4, 5]
    assert events.found.empty()


def test_offset_syncs_wake_checkpoints_and_what_is_none_is_told_once(world: World) -> None:
    topic = world.topic()
    group = f"group-{topic}"
    fill(world.source, topic, (b"%d" % n for n in range(100)))
    commit(world.source, group, {(topic, 0): 42})
    world.write_settings(groups=group, **{"emit.checkpoints.interval.seconds": "3600"})
    world.copy()  # it makes the topic of offset syncs
    syncs = f"mm2-offset-syncs.{world.target_alias}.internal"
    heard = Heard()
    with without_copy(world.file, heard) as run:
        first_pass(run)
        run.start()
        eventually(lambda: all(poller.is_placed for poller in run.pollers if poller.topics == (syncs,)))
        assert heard.checkpoints == []
        sync = OffsetSync(topic=topic, partition=0, last_upstream=99, last_downstream=99)
        client = producer(world.source)
        client.produce(syncs, key=sync.key(), value=sync.value(), partition=0)
        client.produce(syncs, key=b"none", value=b"no sync", partition=0)
        assert client.flush(30) == 0
        eventually(lambda: len(heard.checkpoints) == 1)
        stopping = time.monotonic()
    assert time.monotonic() - stopping < 5
    assert heard.checkpoints[0]["refused"] == 1
    assert heard.values["records-refused"] == [1]
    ((_, told),) = heard.troubles
    assert told.startswith(f"checkpoint: a record cannot be processed: record_topic {syncs}, record_partition 0, ")
    translated = MirrorClient(world.place().load().target).translate_offsets(world.source_alias, group)
    assert {place: offset for place, (offset, _) in translated.items()} == {(world.remote(topic), 0): 42}


def test_heartbeats_are_sent_at_once_and_those_that_arrive_are_measured(world: World) -> None:
    world.topic()
    world.write_settings(**{"emit.heartbeats.enabled": "true"})
    arriving = world.remote("heartbeats")
    admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
    admin.create_topics([NewTopic(arriving, 1, 1)])[arriving].result()
    flow = world.place().load()
    heard = Heard()
    with without_copy(world.file, heard) as run:
        run.start()
        eventually(lambda: all(poller.is_placed for poller in run.pollers if poller.topics == (arriving,)))
        now_ms = int(time.time() * 1000)
        beat = Heartbeat(source=world.target_alias, target=world.source_alias, timestamp_ms=now_ms - 1500)
        client = producer(world.target)
        client.produce(arriving, key=beat.key(), value=beat.value(), timestamp=now_ms)
        assert client.flush(30) == 0
        eventually(lambda: len(heard.values["heartbeat-latency-ms"]) == 1)
        eventually(lambda: newest_source(flow) == world.source_alias)
    assert 1500 <= heard.values["heartbeat-latency-ms"][0] < 20_000
    assert heard.values["heartbeat-age-seconds"][0] >= 1.5
    # The invocation of a minute was cut short, and said how many it had sent.
    assert heard.values["heartbeat-count"][0] >= 1
    assert heard.troubles == []
