"""Which process writes markers: only the one whose claim was confirmed lately, and not while it waits for another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.copy.identical import claims as module
from mirrorless.copy.identical.claims import CERTAIN_FOR_S, CONFIRM_EVERY_S, WAIT_S, Claims
from mirrorless.copy.partition.exact_state import ExactState
from mirrorless.copy.resume.compare_and_append import CompareAndAppend
from mirrorless.progress.producer_ids import claim_id, marker_id
from mirrorless.progress.records import Claim, Known, SourcePartition, parse
from mirrorless.protocol.leaders import NotNow
from tests.support.fake_flow import PROGRESS_TOPIC, FakeFlow

if TYPE_CHECKING:
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.state import PartitionCopy

PLACE = ("t", 0)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Stored(Claims):
    """Claims whose progress topic is a variable: a claim is appended after the one before it."""

    last: Claim | None = None
    sequence: int | None = None

    def forget(self) -> None:
        self.last = None

    def confirmed(self, now: float) -> None:
        for held in self._held.values():
            held.confirmed = now

    async def _append(self, place: TopicPartition, claim: Claim) -> Claim | None:
        assert place == PLACE
        if self.last is None or claim.number == self.last.number + 1:
            self.last = claim
        return self.last if claim.number == (-1 if self.last is None else self.last.number) else None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(module, "_now", found)
    return found


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> Stored:
    async def answers(self: Claims, copy: PartitionCopy) -> None:
        return None

    monkeypatch.setattr(Claims, "_check_that_producers_are_remembered", answers)
    return Stored(
        net=cast("Any", None),
        target=cast("Any", None),
        source_alias="A",
        source_id=lambda: "source",
        progress_topic="p",
        reread=dict,
    )


@pytest.fixture
def flow(monkeypatch: pytest.MonkeyPatch) -> FakeFlow:
    return FakeFlow(monkeypatch)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch, claims: Stored) -> Stored:
    """The same claims, whose broker remembers `sequence`, and whose records can be read."""

    async def sequences(*_: object) -> dict[tuple[TopicPartition, int], int]:
        return {} if claims.sequence is None else {(("p", 0), claim_id("source", *PLACE)): claims.sequence}

    target = SimpleNamespace(partition_count=lambda _: 1, leader=lambda _: 1, refresh_leaders=lambda: None)
    claims._target = cast("Any", target)
    claims._records = CompareAndAppend(net=cast("Any", None), target=claims._target, topic="p")
    claims._reread = lambda: {} if claims.last is None else {PLACE: Known(claim=claims.last)}
    monkeypatch.setattr(module, "last_sequences", sequences)
    return claims


def copy_of(flow: FakeFlow, claim: Claim | None) -> PartitionCopy:
    copy = flow.copy_of()
    copy.exact = ExactState("source", claim)
    return copy


def run(flow: FakeFlow, work: Any) -> Any:  # noqa: ANN401 -- a coroutine and its result
    return flow.loop.run(work)


def test_a_free_partition_is_held_once_its_log_end_is_read_again(flow: FakeFlow, clock: Clock, claims: Stored) -> None:
    for claim in (None, Claim(7, "another", released=True)):
        claims.last = claim
        copy = copy_of(flow, claim)
        assert "read again" in str(run(flow, claims.hold(copy, 5)))
        assert run(flow, claims.hold(copy, 5)) is None
        number = 0 if claim is None else 8
        assert claims.markers_of(copy.place) == marker_id("source", *copy.place, claim=number)
        claims.lose(copy.place)


def test_a_claim_that_was_not_released_is_waited_for(flow: FakeFlow, clock: Clock, claims: Stored) -> None:
    copy = copy_of(flow, Claim(3, "another"))
    claims.last = Claim(3, "another")
    run(flow, claims.hold(copy, 5))
    clock.now += WAIT_S - 1
    assert "waited for: 1 s" in str(run(flow, claims.hold(copy, 5)))
    with pytest.raises(NotNow, match="not claimed"):
        claims.markers_of(copy.place)
    clock.now += 0.5
    assert "another process appends" in str(run(flow, claims.hold(copy, 6)))  # so the wait begins from scratch
    clock.now += WAIT_S - 1
    assert run(flow, claims.hold(copy, 6)) is not None
    clock.now += 1
    assert run(flow, claims.hold(copy, 6)) is None
    claims.confirmed(clock.now)
    assert claims.markers_of(copy.place)[1] == 4


def test_a_request_without_an_answer_is_waited_for_too(flow: FakeFlow, clock: Clock, claims: Stored) -> None:
    copy = copy_of(flow, None)
    run(flow, claims.hold(copy, 5))
    run(flow, claims.hold(copy, 5))
    claims.doubt(copy.place)
    run(flow, claims.hold(copy, 5))
    assert "waited for" in str(run(flow, claims.hold(copy, 5)))
    clock.now += WAIT_S
    assert run(flow, claims.hold(copy, 5)) is None
    claims.confirmed(clock.now)
    assert claims.markers_of(copy.place)[1] == 1  # late markers of the claim before have a lower epoch


def test_another_process_was_faster(flow: FakeFlow, clock: Clock, claims: Stored) -> None:
    copy = copy_of(flow, None)
    claims.last = Claim(0, "another")
    assert "another process has claimed" in str(run(flow, claims.hold(copy, 5)))
    with pytest.raises(NotNow):
        claims.markers_of(copy.place)


def test_without_a_confirmation_nothing_is_written(flow: FakeFlow, clock: Clock, claims: Stored) -> None:
    copy = copy_of(flow, None)
    run(flow, claims.hold(copy, 5))
    run(flow, claims.hold(copy, 5))
    clock.now += CERTAIN_FOR_S + 0.1  # also of a process that was frozen
    with pytest.raises(NotNow, match="was not confirmed for 15 s"):
        claims.markers_of(copy.place)


def test_a_claim_that_the_progress_topic_lost_is_written_again(flow: FakeFlow, clock: Clock, broker: Stored) -> None:
    broker.last = Claim(6, "another", released=True)
    copy = copy_of(flow, broker.last)
    run(flow, broker.hold(copy, 5))
    own = broker.last
    assert own == Claim(7, broker.owner)
    broker.forget()  # the topic was deleted, and created again
    copy.learn(None)
    clock.now += CONFIRM_EVERY_S
    assert run(flow, broker.confirm()) == []
    assert broker.last == own
    # Whatever follows in this process follows that number, also before the claim is there again.
    broker.forget()
    broker.lose(copy.place)
    run(flow, broker.hold(copy, 5))
    assert broker.last == Claim(8, broker.owner)


@pytest.mark.parametrize("sequence", [None, 8])
def test_a_claim_that_was_followed_by_another_is_not_written_again(
    flow: FakeFlow, clock: Clock, broker: Stored, sequence: int | None
) -> None:
    """Also where the broker has forgotten who wrote the claims: the records show it."""
    broker.last = Claim(6, "another", released=True)
    copy = copy_of(flow, broker.last)
    run(flow, broker.hold(copy, 5))
    broker.last, broker.sequence = Claim(8, "another"), sequence
    clock.now += CONFIRM_EVERY_S
    assert run(flow, broker.confirm()) == [PLACE]
    assert broker.last == Claim(8, "another")
    with pytest.raises(NotNow):
        broker.markers_of(copy.place)


def test_a_claim_is_stored_and_each_32_768_of_them_have_an_id_of_their_own() -> None:
    claim = Claim(40_000, "me", released=True)
    key = SourcePartition("A", "t", 0).claim_key()
    assert parse(key, claim.to_bytes()) == (SourcePartition("A", "t", 0), claim)
    known = Known()
    known.take(claim)
    assert Known.from_json(known.to_json()).claim == claim
    first, epoch = marker_id("c", "t", 0, claim=32_767)
    second, following = marker_id("c", "t", 0, claim=32_768)
    assert (epoch, following, first != second) == (32_767, 0, True)


def test_of_claims_with_one_number_the_first_is_stored(flow: FakeFlow) -> None:
    records = CompareAndAppend(net=cast("Any", flow.loop), target=flow.target.client, topic=PROGRESS_TOPIC)
    key = SourcePartition("A", "t", 0).claim_key()

    def append(number: int, owner: str) -> Any:  # noqa: ANN401
        value = Claim(number, owner).to_bytes()
        return run(flow, records.append(key, value, producer=7, sequence=number))

    assert append(0, "one") == append(0, "two") == Claim(0, "one")
    for number in range(1, 8):
        assert append(number, "one") == Claim(number, "one")
    assert append(0, "two") is None  # later ones were appended since
    flow.target.log(PROGRESS_TOPIC).batches.clear()
    assert append(7, "two") is None  # compaction keeps the last one only
