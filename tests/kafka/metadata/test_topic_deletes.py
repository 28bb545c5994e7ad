"""A remote topic is deleted with its source topic; one with a record of others, or without the delay, is kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from mirrorless.cli import root
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.topics import partition_counts
from mirrorless.metadata.kinds import topic_deletes
from tests.support.secured import eventually
from tests.support.world import delete, fill

if TYPE_CHECKING:
    import pytest

    from tests.support.world import World


def run(word: str, world: World) -> Any:  # noqa: ANN401 -- a document in JSON
    done = CliRunner().invoke(root, [word, str(world.file), "--json"])
    assert done.stdout, done.output
    return json.loads(done.stdout)["flows"][world.flow]


def deletes(world: World) -> dict[str, tuple[str | None, str]]:
    """What is planned for each remote topic, and why."""
    plan = run("plan", world)
    some = [one for one in (*plan["actions"], *plan["not_moved"]) if one.get("kind") == "topic-deletes"]
    return {one["on"]: (one["change"] and one["change"]["do"], one["reason"]) for one in some}


def applied(world: World) -> list[str | None]:
    """The errors of what is done about deleted topics."""
    return [one["error"] for one in run("apply", world)["actions"] if one.get("kind") == "topic-deletes"]


def remote_topics(world: World) -> set[str]:
    there = partition_counts(Admin(world.place().load().target).metadata())
    return {world.remote(topic) for topic in world.topics if world.remote(topic) in there}


def test_only_a_copy_without_records_of_others_is_deleted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, gone, mixed = world.topic(1), world.topic(2), world.topic(1)
    for topic in (kept, gone, mixed):
        fill(world.source, topic, [b"%d" % number for number in range(100)], partitions=2 if topic == gone else 1)
    world.copy_to_the_end()
    fill(world.target, world.remote(mixed), [b"of an application"])
    world.write_settings(**{"mirrorless.sync.topic.deletes": "true"})
    for topic in (gone, mixed):
        delete(world.source, topic)

    planned = deletes(world)
    assert planned[world.remote(gone)][0] == "note"
    change, reason = planned[world.remote(mixed)]
    assert change is None
    assert f"records of others cannot be excluded: {world.remote(mixed)}-0" in reason

    assert applied(world) == [None]
    assert deletes(world)[world.remote(gone)][0] == "look"

    monkeypatch.setattr(topic_deletes, "DELAY_S", 0)
    assert applied(world) == [None]
    eventually(lambda: remote_topics(world) == {world.remote(kept), world.remote(mixed)})
    assert set(deletes(world)) == {world.remote(mixed)}
