"""A topic that was copied and is deleted on the source is reported once, and stays in the status."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from mirrorless.cli import root
from mirrorless.copy.planning.lease_planner import LeasePlanner
from tests.support.world import delete, fill

if TYPE_CHECKING:
    from tests.support.world import World


def gone(world: World) -> list[dict[str, Any]]:
    result = CliRunner().invoke(root, ["status", str(world.file), "--json"])
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)["flows"][world.flow]["gone"]
    return found


def test_a_topic_that_is_deleted_on_the_source(world: World) -> None:
    topic, other = world.topic(), world.topic()
    for name in (topic, other):
        fill(world.source, name, [b"a record"])
    world.copy()
    assert gone(world) == []
    flow = world.place().load()
    with closing(LeasePlanner(flow, bounded=False)) as planner:
        planner.plan(flow)
        assert planner.news == ""
        delete(world.source, topic)
        planner.plan(flow)
        line = f"{topic} was copied but is no longer on {world.source_alias}: the topic was deleted, "
        assert planner.news.startswith(line)
        planner.plan(flow)
        assert planner.news == ""

    (one,) = gone(world)
    assert (one["topic"], one["remote_topic"]) == (topic, world.remote(topic))
    shown = CliRunner().invoke(root, ["status", str(world.file)]).stdout
    assert f"{world.flow}: {line}" in shown
    delete(world.target, world.remote(topic))
    assert gone(world) == []
