"""A copy rests while the progress topic, or its group, tells that a MirrorMaker 2 copies the same partitions."""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer

from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.spark.lease_source import LeaseReader, SlotLease
from mirrorless.copy.planning import mm2_coexistence as mirrormaker2
from mirrorless.copy.planning.lease_planner import LeasePlanner
from mirrorless.errors import MirrorMaker2Runs
from mirrorless.progress.records import CONNECTOR, Progress, SourcePartition
from tests.support.secured import eventually
from tests.support.world import fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.settings import Flow
    from tests.support.world import World

FIX = (
    "stop MirrorMaker 2, otherwise both copy every record; {} until its nodes have stopped, or have written no "
    "progress for 150 s"
)
OURS = Progress(last_offset=5, sequence=6, epoch=0, last_downstream=5)


@pytest.fixture
def planner(world: World) -> Iterator[LeasePlanner]:
    """Of a flow with one topic, that has two records."""
    fill(world.source, world.topic(), [b"one", b"two"])
    world.discover()
    with closing(LeasePlanner(world.place().load(), bounded=False)) as planner:
        yield planner


def rows(planner: LeasePlanner) -> int:
    return sum(map(len, planner.plan(planner.flow)))


def write(world: World, *said: Progress, topic: str = "", connector: str = CONNECTOR) -> None:
    """Write progress of the world's topic, or of another one."""
    key = SourcePartition(world.source_alias, topic or world.topics[0], 0, connector).progress_key()
    client = Producer({"bootstrap.servers": world.target.bootstrap_servers, "partitioner": "murmur2"})
    for one in said:
        client.produce(world.progress_topic, key=key, value=one.to_bytes())
    assert client.flush(30) == 0


@contextmanager
def node(world: World) -> Iterator[None]:
    """A member of the group that MirrorMaker 2's nodes are members of."""
    member = Consumer(
        {
            "bootstrap.servers": world.target.bootstrap_servers,
            "group.id": f"{world.source_alias}-mm2",
        }
    )
    member.subscribe([world.progress_topic])
    try:
        eventually(lambda: member.poll(0.1) is not None or bool(member.assignment()))
        yield
    finally:
        member.close()


def test_while_it_writes_progress(world: World, planner: LeasePlanner, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rows(planner) == 1
    # Ours came behind its own, as it does every second; neither hides the other.
    write(world, Progress(last_offset=0), OURS)
    for _ in range(2):
        with pytest.raises(MirrorMaker2Runs) as raised:
            rows(planner)
    assert str(raised.value) == (
        f"cluster {world.target_alias}: MirrorMaker 2 copies this flow too, {world.topics[0]}-0 among others: "
        + FIX.format("replication pauses")
    )
    monkeypatch.setattr(mirrormaker2, "QUIET_S", 0.0)
    assert rows(planner) == 1


def test_what_it_wrote_while_the_topic_could_not_be_read(world: World, planner: LeasePlanner) -> None:
    write(world, Progress(last_offset=0))
    assert rows(planner) == 1
    for _ in range(2):
        planner._progress.close()  # as a read that fails does: the next one begins at the beginning
        assert rows(planner) == 1
    write(world, Progress(last_offset=1))
    planner._progress.close()
    with pytest.raises(MirrorMaker2Runs):
        rows(planner)


def test_nobody_has_a_lease_and_the_reason_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirrorless.copy.engines.lease_plans._RETRY_S", 0.1)
    world.topic()
    world.discover()
    control = Control(str(world.folder))
    reader = LeaseReader(world.place(bounded=False), control)
    with ExitStack() as stack:
        stack.callback(reader.stop)
        assert len(reader.partitions({"lease": 0}, {"lease": 1})) == 1
        write(world, Progress(last_offset=0))
        assert reader.partitions({"lease": 1}, {"lease": 2}) == []
        assert "MirrorMaker 2 copies this flow too" in control.complaint()
        assert control.unreachable()
        monkeypatch.setattr(mirrormaker2, "QUIET_S", 0.0)
        assert len(reader.partitions({"lease": 2}, {"lease": 3})) == 1
        assert not control.complaint()


def test_what_it_wrote_before_is_taken_over(world: World) -> None:
    world.topic()
    world.discover()
    write(world, Progress(last_offset=0))
    with closing(LeasePlanner(world.place().load(), bounded=False)) as planner:
        assert rows(planner) == 1


def test_other_topics_and_other_connectors_are_no_business_of_the_flow(world: World, planner: LeasePlanner) -> None:
    assert rows(planner) == 1
    write(world, Progress(last_offset=0), topic="another")
    write(world, Progress(last_offset=0), connector="another")
    write(world, OURS)
    assert rows(planner) == 1


def test_its_nodes_are_waited_for_where_it_was_the_last_to_copy(
    world: World, planner: LeasePlanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(world, Progress(last_offset=0))
    group = f"{world.source_alias}-mm2"
    with node(world):
        for _ in range(2):
            with pytest.raises(MirrorMaker2Runs) as raised:
                rows(planner)
        # Of a node that runs for other flows only, that is all there ever is.
        monkeypatch.setattr(mirrormaker2, "QUIET_S", 0.0)
        assert rows(planner) == 1
        monkeypatch.undo()
        assert rows(planner) == 1
    assert str(raised.value) == (
        f"cluster {world.target_alias}: MirrorMaker 2 runs (group {group} has members), and was the last to copy "
        f"{world.topics[0]}-0 among others: " + FIX.format("these partitions wait")
    )


def test_a_topic_that_it_has_just_let_go_does_not_hold_up_the_others(
    world: World, planner: LeasePlanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it copied while that is not sure, be its last progress a moment old, or older than this run."""
    fill(world.source, world.topic(), [b"one", b"two"])
    moves = world.topics[1]
    write(world, Progress(last_offset=0), topic=moves)
    assert rows(planner) == 1
    world.discover()
    flow = world.place().load()
    with node(world):
        for offset in range(2):
            assert [row.topic for pile in planner.plan(flow) for row in pile] == world.topics[:1]
            assert f"was the last to copy {moves}-0" in planner.waiting
            write(world, Progress(last_offset=offset), topic=moves)
        monkeypatch.setattr(mirrormaker2, "QUIET_S", 0.0)
        assert sum(map(len, planner.plan(flow))) == 2
        assert not planner.waiting
        monkeypatch.undo()
        assert planner.waiting == ""
        with pytest.raises(MirrorMaker2Runs, match=f"copies this flow too, {moves}-0"):  # that progress was recent
            planner.plan(flow)
    assert sum(map(len, planner.plan(flow))) == 2


def test_a_copy_with_an_end_waits_until_it_shows(
    world: World, planner: LeasePlanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirrorless.copy.engines.lease_plans._RETRY_S", 0.1)
    write(world, Progress(last_offset=0))
    control = Control(str(world.folder))
    reader = LeaseReader(world.place(bounded=True), control)
    with node(world), ExitStack() as stack:
        stack.callback(reader.stop)
        monkeypatch.setattr(mirrormaker2, "QUIET_S", 3.0)
        (lease,) = reader.partitions({"lease": 0}, {"lease": 1})
        assert isinstance(lease, SlotLease)
        assert len(lease.rows) == 1
        write(world, Progress(last_offset=1))
        with pytest.raises(MirrorMaker2Runs, match="copies this flow too"):
            reader.partitions({"lease": 1}, {"lease": 2})


def test_it_goes_on_as_soon_as_they_are_gone(world: World, planner: LeasePlanner) -> None:
    assert rows(planner) == 1
    with node(world):
        write(world, Progress(last_offset=0))
        with pytest.raises(MirrorMaker2Runs):
            rows(planner)
    assert rows(planner) == 1
    # Another one, of which no nodes are seen.
    write(world, Progress(last_offset=1))
    with pytest.raises(MirrorMaker2Runs):
        rows(planner)


def test_its_nodes_alone_are_no_reason(world: World, planner: LeasePlanner) -> None:
    write(world, Progress(last_offset=0), OURS)
    with node(world):
        assert rows(planner) == 1


def test_what_it_wrote_before_it_left_is_known(
    world: World, planner: LeasePlanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leaves(_: Flow) -> bool:
        write(world, Progress(last_offset=1))
        return False

    write(world, Progress(last_offset=0))
    monkeypatch.setattr(mirrormaker2, "nodes_run", leaves)
    ((row,),) = planner.plan(planner.flow)
    assert row.last_offset == 1


def test_what_it_wrote_before_it_left_a_copy_that_rests_is_known(
    world: World, planner: LeasePlanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leaves(_: Flow) -> bool:
        write(world, Progress(last_offset=1))
        return False

    assert rows(planner) == 1
    write(world, Progress(last_offset=0))
    monkeypatch.setattr(mirrormaker2, "nodes_run", lambda _: True)
    with pytest.raises(MirrorMaker2Runs):
        rows(planner)
    monkeypatch.setattr(mirrormaker2, "nodes_run", leaves)
    ((row,),) = planner.plan(planner.flow)
    assert row.last_offset == 1
    assert rows(planner) == 1  # what it wrote at its end is no sign of another one


def test_nodes_that_were_met_are_not_gone_while_their_group_is_not_listed(
    world: World, planner: LeasePlanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    for last_offset in range(2):  # where the copy starts, and while it runs
        write(world, Progress(last_offset=last_offset))
        for runs in (True, None):
            monkeypatch.setattr(mirrormaker2, "nodes_run", lambda _, runs=runs: runs)
            with pytest.raises(MirrorMaker2Runs):
                rows(planner)
        monkeypatch.setattr(mirrormaker2, "nodes_run", lambda _: False)
        assert rows(planner) == 1


def test_a_partition_that_was_taken_over_is_no_sign_though_no_record_came_since(world: World) -> None:
    fill(world.source, world.topic(), [b"one", b"two"])
    world.discover()
    write(world, Progress(last_offset=1))
    (report,) = world.copy_unbounded(seconds=1)
    assert report.state == "caught up"
    with node(world), closing(LeasePlanner(world.place().load(), bounded=False)) as again:
        assert rows(again) == 1


def test_who_plans_with_new_clients_has_seen_what_the_one_before_saw(world: World, planner: LeasePlanner) -> None:
    assert rows(planner) == 1
    write(world, Progress(last_offset=0))
    renewed = planner.with_new_clients()
    with closing(renewed), pytest.raises(MirrorMaker2Runs, match="copies this flow too"):
        rows(renewed)


def test_a_source_that_ends_before_what_is_taken_over_is_told(world: World) -> None:
    fill(world.source, world.topic(), [b"one", b"two"])
    world.discover()
    write(world, Progress(last_offset=9))
    (report,) = world.copy()
    assert report.state == "halted"
    assert report.error is not None
    assert "the source ends at 2, 8 offsets before the copy's" in report.error
