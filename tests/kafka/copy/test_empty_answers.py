"""Partitions of which answers say nothing, among others that fill the answers: most wait, one has a hole at its end."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from mirrorless.copy.slot import fetcher
from mirrorless.protocol.cluster_client import ClusterClient
from tests.support.world import fill

if TYPE_CHECKING:
    import pytest

    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.slot.read_replicas import ServingBroker
    from mirrorless.protocol.fetch_session import FetchSession
    from mirrorless.protocol.requests import Fetched
    from tests.support.world import World

PARTITIONS = 100
EACH = 6


def backlog(world: World) -> str:
    """60 MB, of which an answer holds eight: some fourteen partitions."""
    topic = world.topic(partitions=PARTITIONS)
    some = random.randbytes(100_000)
    fill(world.source, topic, (b"%d" % n + some for n in range(EACH * PARTITIONS)), partitions=PARTITIONS)
    return topic


def test_no_more_are_asked_for_than_may_fill_an_answer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    some: list[int] = []
    fetch = fetcher.Fetcher._fetch

    async def noted(
        self: fetcher.Fetcher,
        broker: ServingBroker,
        wanted: list[PartitionCopy],
        session: FetchSession | None,
        **how: bool,
    ) -> list[Fetched]:
        if session is None and len(wanted) > 1:  # else it is all, or one that is asked for alone
            some.append(len(wanted))
        return await fetch(self, broker, wanted, session, **how)

    monkeypatch.setattr(fetcher.Fetcher, "_fetch", noted)
    backlog(world)
    assert sum(report.records for report in world.copy()) == EACH * PARTITIONS
    assert some
    assert max(some) <= PARTITIONS // 2


def test_who_waits_for_its_turn_is_seldom_asked_for_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    alone: list[tuple[str, int]] = []
    look_closer = fetcher.Fetcher._look_closer

    async def noted(self: fetcher.Fetcher, broker: ServingBroker, copy: PartitionCopy) -> None:
        alone.append(copy.place)
        await look_closer(self, broker, copy)

    monkeypatch.setattr(fetcher.Fetcher, "_look_closer", noted)
    monkeypatch.setattr(fetcher, "_LOOK_EVERY_S", 600)
    backlog(world)
    assert sum(report.records for report in world.copy()) == EACH * PARTITIONS
    assert len(alone) <= 1


def test_a_hole_at_the_end_is_passed_over_among_them(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = backlog(world)
    fetch = ClusterClient.fetch

    async def with_a_hole(self: ClusterClient, *what: Any, **how: Any) -> list[Fetched]:  # noqa: ANN401
        answer: list[Fetched] = await fetch(self, *what, **how)
        return [part._replace(records=b"") if part.place == (topic, 7) else part for part in answer]

    monkeypatch.setattr(ClusterClient, "fetch", with_a_hole)
    reports = world.copy()
    assert {report.state for report in reports} == {"caught up"}
    assert {report.partition: report.records for report in reports} == {
        partition: 0 if partition == 7 else EACH for partition in range(PARTITIONS)
    }
