"""Groups of topics with records of both sides move to the first record that they have not read, of either side."""

from __future__ import annotations

import random
import time
from contextlib import closing
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from mirrorless.clusters.admin import Admin
from mirrorless.offsets.failover_plan import failover_plan
from mirrorless.offsets.translation import Translated
from mirrorless.offsets.turn_translation import translator_of
from mirrorless.settings import load
from tests.support.both_ways import BothWays, numbered
from tests.support.offsets import commit
from tests.support.world import fill

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from tests.support.world import World


def log_of(cluster: EmbeddedCluster, topic: str) -> list[tuple[int, bytes]]:
    """Offsets and values of partition 0."""
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "test", "enable.auto.commit": False}
    )
    end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1]
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[tuple[int, bytes]] = []
    while not found or found[-1][0] < end - 1:
        found += [(one.offset(), one.value()) for one in consumer.consume(1_000, timeout=0.5)]  # type: ignore[misc]
    consumer.close()
    return found


def expected(here: list[tuple[int, bytes]], there: list[tuple[int, bytes]], offset: int, end: int) -> tuple[int, int]:
    """Where a consumer at `offset` continues that has read everything before it, and what it reads again."""
    was_read = {value for at, value in here if at < offset}
    target = next((at for at, value in there if value not in was_read), end)
    return target, sum(value in was_read for at, value in there if at > target)


def test_every_offset_translates_to_the_first_unread_record(world: World) -> None:
    both = BothWays(world)
    chance = random.Random(3)
    written = {"a": 0, "b": 0}
    sides = {"a": world.source, "b": world.target}
    for _ in range(25):
        for origin, cluster in sides.items():
            begins = written[origin]
            written[origin] += chance.choice([0, 1, 3, 20])
            fill(cluster, both.topic, numbered(origin, begins, written[origin]))
        if chance.random() < 0.4:
            both.there.copy_to_the_end()
        if chance.random() < 0.4:
            both.back.copy_to_the_end()
    here, there = log_of(world.source, both.topic), log_of(world.target, both.topic)
    end = there[-1][0] + 1
    flow = next(one for one in load(str(world.file)).flows if one.name == world.flow)
    place = both.topic, 0
    with closing(translator_of(flow, source=Admin(flow.source), target=Admin(flow.target))) as translator:
        translator.refresh([place])
        offsets = range(here[-1][0] + 2)
        answers = translator.translate({place: offsets}, deadline=time.monotonic() + 60)[place]
        for offset in offsets:
            answer = answers[offset]
            assert isinstance(answer, Translated), (offset, answer)
            target, again = expected(here, there, offset, end)
            assert (answer.downstream, answer.exact) == (target, True), (offset, answer)
            if offset % 7 == 0:
                assert translator.read_again(place, offset, answer) == again, (offset, answer)

    commit(world.source, f"{both.topic}-group", {place: 30})
    world.write_settings(groups=f"{both.topic}-.*")
    (forecast,) = failover_plan(load(str(world.file)).flows[0]).forecasts
    assert (forecast.target_offset, forecast.read_again) == expected(here, there, 30, end)
