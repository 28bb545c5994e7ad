"""One topic both ways, with `mirrorless.both.directions=skip`: each side gets the other's records once, in order."""

from __future__ import annotations

import json
import random

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.copy.planning.lease_planner import LeasePlanner
from tests.support.both_ways import BothWays, numbered, progress_records, write_progress_records
from tests.support.secured import eventually
from tests.support.world import World, fill


@pytest.fixture
def both(world: World) -> BothWays:
    return BothWays(world)


def test_each_side_gets_the_others_records_once(both: BothWays) -> None:
    here, there = both.there.source, both.there.target
    for number in range(6):
        fill(here, both.topic, numbered("a", 10 * number, 10 * number + 10))
        both.copy()
        fill(there, both.topic, numbered("b", 7 * number, 7 * number + 7))
        both.copy()

    both.check(numbered("a", 0, 60), numbered("b", 0, 42))
    reports = both.there.copy()
    assert all(report.records == 0 for report in reports)


def test_batches_of_all_kinds_are_skipped(both: BothWays) -> None:
    """One by one, large, compressed, and transactions with aborts, mixed with copied ones."""
    sides = {"a": both.there.source, "b": both.there.target}
    wanted: dict[str, list[bytes]] = {"a": [], "b": []}
    chance = random.Random(1)
    for number in range(12):
        for origin, cluster in sides.items():
            begins = len(wanted[origin])
            some = numbered(origin, begins, begins + chance.choice([1, 3, 40, 500]))
            batches, codec = chance.choice([1, 20, 10_000]), chance.choice(["none", "lz4"])
            if number % 4 == 3:
                client = Producer(
                    {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": f"{both.topic}-{origin}"}
                )
                client.init_transactions(60)
                client.begin_transaction()
                client.produce(both.topic, value=origin.encode() + b"-aborted", partition=0)
                client.flush(60)
                client.abort_transaction(60)
                client.begin_transaction()
                for value in some:
                    client.produce(both.topic, value=value, partition=0)
                client.commit_transaction(60)
            else:
                fill(
                    cluster,
                    both.topic,
                    some,
                    batch_num_messages=batches,
                    compression_type=codec,
                )
            wanted[origin] += some
        if chance.random() < 0.7:
            both.copy()
    both.copy()

    both.check(wanted["a"], wanted["b"])


def test_a_copy_resumes_among_records_that_others_appended(both: BothWays) -> None:
    """The progress topic is older than the target, which has records of both sides after it."""
    here, there = both.there.source, both.there.target
    fill(here, both.topic, numbered("a", 0, 50))
    both.copy()
    fill(there, both.topic, numbered("b", 0, 50))
    fill(here, both.topic, numbered("a", 50, 90))
    old = progress_records(both.there)
    both.there.copy_to_the_end()
    fill(there, both.topic, numbered("b", 50, 120))
    write_progress_records(both.there, old)

    fill(here, both.topic, numbered("a", 90, 100))
    both.copy()

    both.check(numbered("a", 0, 100), numbered("b", 0, 120))


def test_a_remote_topic_that_was_created_again_is_a_gap(both: BothWays) -> None:
    """Though local writers have filled it further than the copy was."""
    there = both.there.target
    fill(both.there.source, both.topic, numbered("a", 0, 100))
    both.there.copy_to_the_end()
    admin = AdminClient({"bootstrap.servers": there.bootstrap_servers})
    admin.delete_topics([both.topic])[both.topic].result()
    eventually(lambda: both.topic not in admin.list_topics(timeout=60).topics)
    admin.create_topics([NewTopic(both.topic, 1, 1)])[both.topic].result()
    fill(there, both.topic, numbered("b", 0, 110))

    (report,) = both.there.copy()
    assert report.state == "halted"
    assert report.error is not None
    assert "the remote topic was deleted and recreated: its id is " in report.error
    both.there.write_settings(**{"mirrorless.on.gap": "continue"})
    both.there.copy_to_the_end()
    both.back.copy_to_the_end()
    both.check(numbered("a", 0, 100), numbered("b", 0, 110))


def test_of_a_lost_tail_only_the_copys_own_records_are_copied_again(both: BothWays) -> None:
    """The progress is ahead of the log, of whose end most records were others'."""
    fill(both.there.source, both.topic, numbered("a", 0, 50))
    both.there.copy_to_the_end()
    fill(both.there.target, both.topic, numbered("b", 0, 10))
    key, value = next(one for one in progress_records(both.there) if b"sequence" in (one[1] or b""))
    said = json.loads(value or b"{}")
    ahead = {"offset": said["offset"] + 5, "sequence": said["sequence"] + 5, "downstream": 200}
    fill(both.there.source, both.topic, numbered("a", 50, 55))
    write_progress_records(both.there, [(key, json.dumps(said | ahead).encode())])
    both.there.write_settings(**{"mirrorless.on.gap": "continue"})
    both.there.copy_to_the_end()
    both.back.copy_to_the_end()
    both.check(numbered("a", 0, 55), numbered("b", 0, 10))


def test_what_mirrormaker_2_copied_is_not_copied_back(both: BothWays) -> None:
    fill(both.there.source, both.topic, numbered("a", 0, 20))
    both.there.copy_to_the_end()
    key, _ = progress_records(both.there)[0]
    write_progress_records(both.there, [(key, b'{"offset":19}')])  # as MirrorMaker 2 has it
    both.back.discover()
    planner = LeasePlanner(both.back.place().load(), bounded=True)
    try:
        assert planner.plan(both.back.place().load()) == []
        assert "1 partitions are not copied, among them " in planner.waiting
        assert "MirrorMaker 2 copied records" in planner.waiting
    finally:
        planner.close()
