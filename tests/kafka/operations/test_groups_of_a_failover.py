"""Groups in different positions fail over: the forecast, the report, and what their consumers then read agree."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from mirrorless.clusters.groups import GroupOffsets
from mirrorless.offsets.checkpoint_pass import Checkpoints
from mirrorless.offsets.failover_plan import failover_plan
from mirrorless.operation_log.records import OperationKind
from mirrorless.operations import run
from mirrorless.operations.refusals import Terms
from mirrorless.operations.report import as_fields
from mirrorless.settings import load
from tests.kafka.offsets.test_active_groups import member
from tests.support.moving import PARTITIONS, Applications, plain
from tests.support.offsets import commit, committed
from tests.support.world import fill

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.world import World

pytestmark = pytest.mark.timeout(300)

RECORDS = 1_000
START = 200
"""Of the remote partition 1: retention has deleted what is before it."""
FINALLY = {
    "equal": (0, 900),
    "behind": (0, 900),
    "set-back": (0, 150),
    "own": (0, 500),
    "active": (0, 500),
    "new": (0, 250),
    "zero": (0, 0),
    "end": (0, RECORDS),
    "retention": (1, 100),
    "metadata": (0, 640),
}
"""The partition and last offset of each group on the source."""
CONTINUES = {group: offset for group, (_, offset) in FINALLY.items()} | {"own": 700, "active": 300, "retention": START}
AGAIN, SKIPPED = {"active": 200}, {"own": 200}
LAGS = {"behind": 500, "active": 200, "metadata": 40}
"""How many records each group would read again if it continued at its offset on the target."""


class Groups:
    """A topic that is copied, and ten groups."""

    def __init__(self, world: World) -> None:
        self.world, self.topic = world, world.topic(partitions=2)
        self.remote = world.remote(self.topic)
        world.write_settings(groups=f"{self.topic}-.*", **{"sync.group.offsets.enabled": "true"})
        fill(world.source, self.topic, (b"%d" % (number // 2) for number in range(2 * RECORDS)), partitions=2)
        world.copy_to_the_end()
        place = TopicPartition(self.remote, 1, START)
        admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
        admin.delete_records([place])[place].result()
        self._commit({"equal": 900, "behind": 400, "set-back": 900, "own": 500, "zero": 900, "metadata": 600})
        self.sync()
        commit(world.target, self.name("own"), {(self.remote, 0): 700})
        commit(world.target, self.name("active"), {(self.remote, 0): 300})
        self._commit({"set-back": 100, "zero": 0})
        self.sync()
        self._commit({group: offset for group, (_, offset) in FINALLY.items()})

    def name(self, group: str) -> str:
        return f"{self.topic}-{group}"

    def _commit(self, offsets: Mapping[str, int]) -> None:
        for group, offset in offsets.items():
            place = (self.topic, FINALLY[group][0])
            metadata = "of streams" if group == "metadata" else ""
            commit(self.world.source, self.name(group), {place: offset}, metadata=metadata)

    def sync(self, *, commits: bool = True) -> None:
        """Emit checkpoints in a process that knows nothing of earlier ones, and commit group offsets."""
        with closing(Checkpoints(load(str(self.world.file)).flow(self.world.flow))) as passes:
            assert passes.emit().troubles == []
            if commits:
                assert passes.sync_groups().troubles == []

    def numbers(self, found: Mapping[str, int]) -> dict[str, int]:
        """Positive numbers by group, without the test's topic."""
        return {group.removeprefix(f"{self.topic}-"): number for group, number in found.items() if number}

    def read(self, group: str) -> set[int]:
        """What the group reads on the target, in the partition that it was reading on the source."""
        partition = FINALLY[group][0]
        consumer = Consumer(
            {"bootstrap.servers": self.world.target.bootstrap_servers, "group.id": self.name(group)}
            | {"enable.auto.commit": False, "auto.offset.reset": "error"}
        )
        begin = committed(self.world.target, self.name(group))[self.remote, partition]
        consumer.assign([TopicPartition(self.remote, partition, begin)])
        found = consumer.consume(RECORDS - begin, timeout=30) if begin < RECORDS else []
        consumer.close()
        return {int(one.value() or b"-1") for one in found}


@pytest.mark.parametrize("answers", [True, False], ids=["the source answers", "the source is down"])
def test_ten_groups_in_different_positions(world: World, answers: bool) -> None:
    groups = Groups(world)
    if not answers:
        groups.sync(commits=False)
        world.write_settings(**{f"{world.source_alias}.bootstrap.servers": "127.0.0.1:1"})
    there = member(world.target, groups.name("active"), groups.remote, "classic")
    settings = load(str(world.file))
    plan = failover_plan(settings.flow(world.flow)).forecasts
    ended = run.begin(settings, OperationKind.FAILOVER, world.target_alias, Terms())
    there.close()
    assert ended.error is None, ended
    report = as_fields(ended)["groups"]

    assert groups.numbers({one.group: one.continues_at or 0 for one in plan}) == groups.numbers(CONTINUES)
    again = groups.numbers({one.group: one.read_again or 0 for one in plan})
    assert groups.numbers(report["read_again"]) == again
    # Without the source an offset ahead of its checkpoint may be one that was followed.
    skipped = SKIPPED if answers else {}
    assert groups.numbers({one.group: one.skipped for one in plan}) == groups.numbers(report["skipped"]) == skipped
    how = {one.group.removeprefix(f"{groups.topic}-"): one.how for one in plan}
    assert (how["own"] == "followed") is not answers
    unmoved = groups.numbers({one.group: one.read_again_now or 0 for one in plan})
    assert not answers or unmoved == LAGS
    assert report["active_on_target"] == [groups.name("active")]
    warnings = [line for line in ended.warnings if "skips up to" in line]
    assert len(warnings) == len(skipped)
    assert (
        not answers
        or f"--group {groups.name('own')} --reset-offsets --topic {groups.remote}:0 --to-offset 500" in (warnings[0])
    )

    read = {group: groups.read(group) for group in FINALLY}
    really_again = {group: sum(one < FINALLY[group][1] for one in some) for group, some in read.items()}
    really_skipped = {
        group: len(set(range(max(offset, START if partition else 0), RECORDS)) - read[group])
        for group, (partition, offset) in FINALLY.items()
    }
    assert groups.numbers(really_again) == AGAIN
    assert groups.numbers(really_skipped) == SKIPPED
    # Without the source a group may have read up to the end.
    assert again == (AGAIN if answers else groups.numbers({group: RECORDS - at for group, at in CONTINUES.items()}))
    with closing(GroupOffsets(plain(world.target))) as offsets:
        ((_, kept),) = offsets.committed([groups.name("metadata")])
    assert [one.metadata for one in kept.values()] == ["of streams"]  # type: ignore[union-attr]


def test_groups_return_from_copies(world: World) -> None:
    """Filters that select the copies too: a group that consumed in one is translated back, with and without its source.

    One that the flow's own commit moved there is where it is at home.
    """
    applications = Applications(world, {"sync.group.offsets.enabled": "true"})
    topic, remote = applications.topic, world.remote(applications.topic)
    moved, stayed, *_ = applications.groups
    fill(world.source, topic, [b"%d" % number for number in range(300)], partitions=PARTITIONS)
    world.copy_to_the_end()
    settings = load(str(world.file))
    there, back = settings.flow(world.flow), settings.flow(f"{world.target_alias}->{world.source_alias}")
    for group in (moved, stayed):
        commit(world.source, group, {(topic, 0): 60})
    with closing(Checkpoints(there)) as passes:
        passes.emit()
        assert passes.sync_groups().written == 2
    commit(world.target, moved, {(remote, 0): 80})
    with closing(Checkpoints(back)) as passes:
        assert passes.emit().unknown == {}
    for answers in (True, False):
        (one,) = failover_plan(back, asks_source=answers).forecasts
        assert (one.group, one.remote_topic, one.returns) == (moved, topic, True)
        assert (one.source_offset, one.target_offset, one.committed, one.continues_at) == (80, 80, 60, 80)
        assert (one.skipped, one.read_again) == (0, 0 if answers else 20)
