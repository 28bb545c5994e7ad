"""Gaps of partitions that MirrorMaker 2 copied before, or in between: what it passed, and what it cannot go on from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.progress.records import Progress
from mirrorless.protocol.cluster_client import ClusterClient
from tests.kafka.copy.test_beside_mirrormaker2 import write
from tests.kafka.copy.test_gaps import create_again, delete_before
from tests.support.world import fill, read, values

if TYPE_CHECKING:
    from mirrorless.protocol.requests import Offset
    from tests.support.world import World


@pytest.mark.parametrize("meanwhile", [True, False], ids=["halted, then written on", "at once"])
def test_the_copy_goes_on_where_the_source_ends_before_what_is_taken_over(world: World, meanwhile: bool) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"one", b"two"])
    world.discover()
    write(world, Progress(last_offset=9))
    if meanwhile:
        assert world.copy()[0].state == "halted"
        fill(world.source, topic, [b"%d" % number for number in range(98)])
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    (report,) = world.copy()
    assert (report.state, report.gaps, report.records) == ("caught up", 1, 98 if meanwhile else 0)
    fill(world.source, topic, [b"more"] * 3)
    (report,) = world.copy()
    assert (report.state, report.gaps, report.records) == ("caught up", 0, 3)
    write(world, Progress(last_offset=9))  # as if this run had died before it wrote its own
    fill(world.source, topic, [b"one more"])
    (report,) = world.copy()
    assert (report.state, report.gaps, report.records) == ("caught up", 0, 1)
    assert values(read(world.target, world.remote(topic))[0]) == values(read(world.source, topic)[0])[2:]


def test_a_gap_that_mirrormaker2_has_passed_is_over(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"%d" % number for number in range(100)])
    world.copy()
    fill(world.source, topic, [b"%d" % number for number in range(100, 200)])
    delete_before(world.source, topic, 150)
    assert world.copy()[0].state == "halted"
    fill(world.target, world.remote(topic), [b"%d" % number for number in range(150, 200)])
    write(world, Progress(last_offset=199))
    fill(world.source, topic, [b"more"] * 5)
    (report,) = world.copy()
    assert (report.state, report.records, report.gaps) == ("caught up", 5, 0)
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    fill(world.source, topic, [b"more"] * 5)
    (report,) = world.copy()
    assert (report.state, report.records, report.gaps) == ("caught up", 5, 0)
    assert len(read(world.target, world.remote(topic))[0]) == 160


def test_a_topic_created_again_that_mirrormaker2_has_begun_anew_is_no_gap_any_more(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"%d" % number for number in range(100)])
    world.copy()
    create_again(world.source, topic)
    fill(world.source, topic, [b"%d" % number for number in range(40)])
    assert world.copy()[0].state == "halted"
    fill(world.target, world.remote(topic), [b"%d" % number for number in range(40)])
    write(world, Progress(last_offset=39))
    for _ in range(2):
        fill(world.source, topic, [b"more"] * 5)
        (report,) = world.copy()
        assert (report.state, report.records, report.gaps) == ("caught up", 5, 0)
        world.write_settings(**{"mirrorless.on.gap": "continue"})


def test_a_remote_topic_that_is_made_anew_before_anything_came_behind_a_takeover(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"%d" % number for number in range(100)])
    world.discover()
    fill(world.target, world.remote(topic), [b"%d" % number for number in range(100)])
    write(world, Progress(last_offset=99))
    (report,) = world.copy_unbounded(seconds=2)
    assert (report.state, report.records) == ("caught up", 0)
    world.write_settings(**{"mirrorless.lease.seconds": "60"})  # long enough to look again and again
    create_again(world.target, world.remote(topic))
    fill(world.source, topic, [b"%d" % number for number in range(100, 150)])
    (report,) = world.copy()
    assert report.state == "halted"
    assert "the remote partition ends at 0, before the acknowledged record 99" in (report.error or "")
    assert read(world.target, world.remote(topic)) == {0: []}
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    (report,) = world.copy()
    assert (report.state, report.records, report.gaps) == ("caught up", 150, 1)
    assert world.assert_equal(topic) == 150


def test_a_gap_that_was_passed_behind_a_takeover_is_not_passed_again_without_progress(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"%d" % number for number in range(200)])
    delete_before(world.source, topic, 150)
    world.discover()
    fill(world.target, world.remote(topic), [b"%d" % number for number in range(100)])
    write(world, Progress(last_offset=99))
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    (report,) = world.copy()
    assert (report.state, report.records, report.gaps) == ("caught up", 50, 1)
    write(world, Progress(last_offset=99))  # as if this run had died before it wrote its own
    fill(world.source, topic, [b"more"])
    (report,) = world.copy()
    assert (report.state, report.records, report.gaps) == ("caught up", 1, 0)


def taken_over(world: World) -> str:
    """A topic whose first 60 records are gone, of which MirrorMaker 2 copied 40, and nothing came since."""
    topic = world.topic()
    fill(world.source, topic, [b"%d" % number for number in range(100)])
    delete_before(world.source, topic, 60)
    world.discover()
    fill(world.target, world.remote(topic), [b"%d" % number for number in range(60, 100)])
    write(world, Progress(last_offset=99))
    (report,) = world.copy_unbounded(seconds=2)
    assert (report.state, report.records) == ("caught up", 0)
    world.write_settings(**{"mirrorless.lease.seconds": "60"})
    return topic


def test_both_topics_are_created_again_behind_a_takeover(world: World) -> None:
    topic = taken_over(world)
    create_again(world.source, topic)
    create_again(world.target, world.remote(topic))
    fill(world.source, topic, [b"new %d" % number for number in range(150)])
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    (report,) = world.copy()
    assert (report.state, report.records, report.gaps) == ("caught up", 150, 1)
    assert world.assert_equal(topic) == 150


def test_a_target_that_is_short_for_a_while_behind_a_takeover(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = taken_over(world)
    fill(world.source, topic, [b"more"] * 5)
    remote = (world.remote(topic), 0)

    def short(ask: Any) -> Any:  # noqa: ANN401
        async def asked(self: ClusterClient, *what: Any, **how: Any) -> dict[Any, Offset]:  # noqa: ANN401
            found: dict[Any, Offset] = await ask(self, *what, **how)
            return {place: one._replace(offset=20) if place == remote else one for place, one in found.items()}

        return asked

    with monkeypatch.context() as patched:
        patched.setattr(ClusterClient, "offsets", short(ClusterClient.offsets))
        patched.setattr(ClusterClient, "log_ends", short(ClusterClient.log_ends))
        (report,) = world.copy()
    assert (report.state, report.records) == ("halted", 0)
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    (report,) = world.copy()
    assert (report.state, report.records, report.gaps) == ("caught up", 5, 0)
    assert len(read(world.target, world.remote(topic))[0]) == 45
