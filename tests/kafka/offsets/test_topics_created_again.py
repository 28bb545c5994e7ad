"""A source topic that is deleted and created again is another topic: no offset in it is one of the copy before."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from mirrorless.cli import root
from mirrorless.offsets.checkpoint_pass import Checkpoints
from mirrorless.offsets.failover_plan import failover_plan
from tests.kafka.copy.test_gaps import create_again
from tests.support.offsets import commit, committed, flow_of
from tests.support.world import World, fill

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from mirrorless.offsets.checkpoint_pass import GroupSyncReport, PassReport
    from mirrorless.settings import Flow

OLD, NEW = 100, 150
REASON = "the source topic was deleted and recreated, and nothing of the new topic was copied"


def passed(flow: Flow) -> tuple[PassReport, GroupSyncReport]:
    """One pass of a cold checkpoint function."""
    with closing(Checkpoints(flow)) as passes:
        return passes.emit(), passes.sync_groups()


def numbered(topic: str, *offsets: int) -> dict[str, dict[tuple[str, int], int]]:
    """A group for each offset, named after it."""
    return {f"{topic}-{offset}": {(topic, 0): offset} for offset in offsets}


def translated(world: World, group: str) -> tuple[int, list[dict[str, Any]], str]:
    """What `mirrorless offsets translate` reports: its exit status, offsets and standard error."""
    command = ["offsets", "translate", str(world.file), "--from", world.source_alias, "--group", group, "--json"]
    result = CliRunner().invoke(root, command)
    return result.exit_code, json.loads(result.stdout)["offsets"], result.stderr


@pytest.mark.parametrize("noticed", [True, False], ids=["the copy has halted", "the copy has not noticed"])
def test_groups_stay_where_they_are_until_the_new_topic_is_copied(world: World, *, noticed: bool) -> None:
    topic = world.topic()
    remote, moved = world.remote(topic), f"{topic}-moved"
    fill(world.source, topic, (b"old %d" % number for number in range(OLD)))
    world.copy()
    flow = flow_of(world, groups=f"{topic}-.*", **{"sync.group.offsets.enabled": "true"})
    commit(world.source, moved, {(topic, 0): 80})
    passed(flow)
    assert committed(world.target, moved)[remote, 0] == 80

    create_again(world.source, topic)
    fill(world.source, topic, (b"new %d" % number for number in range(NEW)))
    groups = numbered(topic, 10, 140)
    for group, offsets in ({moved: {(topic, 0): 95}} | groups).items():
        commit(world.source, group, offsets)
    if noticed:
        (report,) = world.copy()
        assert report.state == "halted"
    found, synced = passed(flow)
    assert (found.emitted, found.unknown, synced.written) == (0, {REASON: 3}, 0)
    assert committed(world.target, moved)[remote, 0] == 80
    assert not any(committed(world.target, group) for group in groups)

    plan = failover_plan(flow)
    assert {one.group for one in plan.forecasts} == {moved, *groups}
    for one in plan.forecasts:
        assert (one.target_offset, one.how, one.read_again) == (None, REASON, None)
        assert (one.not_copied, one.not_copied_exact) == (NEW, True)
    for group in (moved, f"{topic}-10"):
        status, answers, errors = translated(world, group)
        assert (status, answers) == (1, [])
        assert (
            f"{remote}: offsets are not translated: {topic} was deleted and recreated on {world.source_alias} (its id "
            in errors
        )

    # With `continue` the new topic goes behind the old copy.
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    reports = world.copy_to_the_end()
    assert sum(report.records for report in reports) == NEW
    found, _ = passed(flow)
    assert (found.emitted, dict(found.unknown)) == (3, {})
    places = {group: committed(world.target, group)[remote, 0] for group in (moved, *groups)}
    assert places == {moved: OLD + 95, f"{topic}-10": OLD + 10, f"{topic}-140": OLD + 140}
    _, answers, errors = translated(world, moved)
    assert ([one["offset"] for one in answers], errors) == ([OLD + 95], "")
    assert {one.not_copied for one in failover_plan(flow).forecasts} == {0}


@pytest.mark.nightly
def test_a_halt_is_known_while_the_source_is_down(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, (b"%d" % number for number in range(OLD)))
    world.copy()
    flow = flow_of(world, groups=topic)
    commit(world.source, topic, {(topic, 0): 80})
    passed(flow)
    create_again(world.source, topic)
    fill(world.source, topic, [b"new"])
    assert [report.state for report in world.copy()] == ["halted"]
    world.write_settings(**{f"{world.source_alias}.bootstrap.servers": "127.0.0.1:1"})
    (one,) = failover_plan(world.place().load()).forecasts
    assert (one.source_offset, one.target_offset, one.how) == (80, None, REASON)
    status, answers, errors = translated(world, topic)
    assert (status, answers) == (1, [])
    assert (
        f"{topic} was deleted and recreated on {world.source_alias}; no record of the new topic is copied yet" in errors
    )


def test_a_group_does_not_return_to_a_topic_that_was_created_again(
    source: EmbeddedCluster, target: EmbeddedCluster, tmp_path: Path
) -> None:
    there, back = World(source, target, tmp_path / "there"), World(target, source, tmp_path / "back")
    back.source_alias, back.target_alias = there.target_alias, there.source_alias
    back.flow = f"{back.source_alias}->{back.target_alias}"
    for world in (there, back):
        world.folder.mkdir()
    topic = there.topic()
    remote = there.remote(topic)
    forward = flow_of(there, groups=f"{topic}-.*", **{"sync.group.offsets.enabled": "true"})
    flow = flow_of(back, groups=f"{topic}-.*", **{"sync.group.offsets.enabled": "true"})
    fill(source, topic, (b"old %d" % number for number in range(OLD)))
    there.copy()
    stays, went = f"{topic}-stays", f"{topic}-went"
    commit(source, stays, {(topic, 0): 70})
    passed(forward)
    commit(target, went, {(remote, 0): 90})

    create_again(source, topic)
    fill(source, topic, (b"new %d" % number for number in range(NEW)))
    found, synced = passed(flow.among(aliases=(), circle=[forward]))
    assert (found.emitted, found.unknown, synced.written) == (0, {REASON: 2}, 0)
    assert not committed(source, went)
