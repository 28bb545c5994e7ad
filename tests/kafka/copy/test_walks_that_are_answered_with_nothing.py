"""A walk of the source is answered with nothing: the log ends there, or storage is slow, or its leader is a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mirrorless.protocol.cluster_client import EARLIEST_LOCAL, ClusterClient
from tests.kafka.copy.test_resume_at_target import write_progress
from tests.support.world import World, fill

if TYPE_CHECKING:
    import pytest

    from mirrorless.protocol.requests import Fetched, Offset

_WALKS_WAIT_MS = 500


def test_slow_tiered_storage_is_no_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = world.topic()
    for batch in range(4):
        fill(world.source, topic, (b"%d %d" % (batch, n) for n in range(25)), linger_ms=300)
    world.copy()
    fill(world.source, topic, [b"backlog"] * 50)
    write_progress(world, topic, b'{"offset":24,"sequence":25,"epoch":0,"downstream":24}')
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    fetch_one, offsets = ClusterClient.fetch_one, ClusterClient.offsets

    async def slow(self: ClusterClient, *what: Any, **how: Any) -> Fetched:  # noqa: ANN401
        answer: Fetched = await fetch_one(self, *what, **how)
        return answer._replace(records=b"") if how.get("max_wait_ms") == _WALKS_WAIT_MS else answer

    async def tiered(self: ClusterClient, *what: Any, **how: Any) -> dict[Any, Offset]:  # noqa: ANN401
        found: dict[Any, Offset] = await offsets(self, *what, **how)
        if how.get("at") == EARLIEST_LOCAL:
            return {place: one._replace(offset=140) for place, one in found.items()}
        return found

    with monkeypatch.context() as patched:
        patched.setattr(ClusterClient, "fetch_one", slow)
        patched.setattr(ClusterClient, "offsets", tiered)
        (report,) = world.copy_unbounded(seconds=8)
    assert (report.state, report.records, report.gaps) == ("resuming", 0, 0)
    assert "its tiered storage is slow" in (report.error or "")
    (report,) = world.copy()
    assert (report.state, report.records, report.gaps) == ("caught up", 50, 0)
    assert world.assert_equal(topic) == 150


def test_a_leader_that_knows_of_less_for_a_moment_is_asked_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the target lost is counted on the source, to go back by as much: counted short, records were repeated."""
    topic = world.topic()
    for batch in range(4):
        fill(world.source, topic, (b"%d %d" % (batch, n) for n in range(25)), linger_ms=300)
    world.copy()
    write_progress(world, topic, b'{"offset":99,"sequence":110,"epoch":0,"downstream":109}')
    fill(world.source, topic, [b"more"] * 10)
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    fetch_one = ClusterClient.fetch_one
    answered: list[int] = []

    async def behind(self: ClusterClient, *what: Any, **how: Any) -> Fetched:  # noqa: ANN401
        answer: Fetched = await fetch_one(self, *what, **how)
        if how.get("max_wait_ms") != _WALKS_WAIT_MS or len(answered) >= 2:
            return answer
        answered.append(answer.last_stable_offset)
        return answer._replace(records=b"", last_stable_offset=50)

    monkeypatch.setattr(ClusterClient, "fetch_one", behind)
    (report,) = world.copy()
    assert len(answered) == 2
    assert (report.state, report.gaps, report.first_offset) == ("caught up", 1, 90)
