"""What the records of the operations topic add up to, from any writer, and after compaction."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from mirrorless.operation_log import records
from mirrorless.operation_log.records import (
    Entry,
    OperationKind,
    OperationOutcome,
    Operations,
    Request,
    StepRecord,
    StepState,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

REQUEST = Request(kind=OperationKind.SWITCHOVER, source="a", target="b", fence="config", switches=("file:/x",))
BACK = Request(kind=OperationKind.SWITCHOVER, source="b", target="a")


def fold(entries: Iterable[Entry]) -> Operations:
    operations = Operations()
    for entry in entries:
        operations.take(entry.key, entry.value)
    return operations


def compacted(entries: list[Entry]) -> list[Entry]:
    last = {entry.key: number for number, entry in enumerate(entries)}
    return [entry for number, entry in enumerate(entries) if last[entry.key] == number]


def claim(operation: str, owner: str, term: int) -> Entry:
    return records.claim(operation, owner=owner, term=term, text=f"process of {owner}", ms=1)


def step(owner: str, term: int, name: str = "fence", state: StepState = StepState.DONE, **data: object) -> Entry:
    return records.step("1", name, StepRecord(state=state, began_ms=5, ended_ms=9, data=data), owner=owner, term=term)


def end(owner: str, term: int, operation: str = "1") -> Entry:
    return records.end(operation, OperationOutcome.COMPLETED, owner=owner, term=term, ms=9)


BEGIN = records.begin("1", REQUEST, number=1, ms=1)


def test_a_request_is_read_as_it_was_written() -> None:
    assert fold([BEGIN]).by_id["1"].request == REQUEST


def test_of_two_operations_of_a_pair_the_first_is_open() -> None:
    found = fold([BEGIN, records.begin("2", BACK, number=2, ms=2)])
    assert list(found.by_id) == ["1"]


def test_another_one_begins_after_the_end() -> None:
    found = fold([BEGIN, claim("1", "x", 1), end("x", 1), records.begin("2", BACK, number=2, ms=2)])
    assert list(found.by_id) == ["1", "2"]
    open_one = found.open(frozenset("ab"))
    assert open_one is not None
    assert open_one.id == "2"


def test_another_pair_has_its_own() -> None:
    other = Request(kind=OperationKind.FAILOVER, source="a", target="c")
    assert list(fold([BEGIN, records.begin("2", other, number=2, ms=2)]).by_id) == ["1", "2"]


def test_an_operation_begins_with_a_higher_number_than_those_before() -> None:
    """Whatever the clocks of the machines say: one that was suspended since it read the log is late."""
    ended = [BEGIN, claim("1", "x", 1), end("x", 1)]
    found = fold([*ended, records.begin("late", BACK, number=1, ms=999), records.begin("2", BACK, number=2, ms=0)])
    assert [(one.id, one.number) for one in found.of(REQUEST.pair)] == [("1", 1), ("2", 2)]
    assert found.highest == 2


def test_the_last_operation_is_the_one_with_the_highest_number() -> None:
    ends = [claim("2", "x", 1), end("x", 1, "2")]
    found = fold([BEGIN, claim("1", "x", 1), end("x", 1), records.begin("2", BACK, number=2, ms=0), *ends])
    last = found.last_completed(REQUEST.pair)
    assert last is not None
    assert last.id == "2"
    # Each on one cluster while the other one was down: which one applies is not known.
    apart = fold([records.begin("3", BACK, number=1, ms=5), claim("3", "x", 1), end("x", 1, "3")])
    both = records.merged({"a": apart, "b": fold([BEGIN, claim("1", "x", 1), end("x", 1)])})
    assert both.last_completed(REQUEST.pair) is None


def test_operations_of_a_release_without_numbers_are_in_the_order_of_the_longer_log() -> None:
    def old(operation: str, request: Request) -> list[Entry]:
        entry = records.begin(operation, request, number=0, ms=1)
        began = Entry(entry.key, entry.value.replace(b'"number":0,', b""))
        return [began, claim(operation, "x", 1), end("x", 1, operation)]

    failover, failback = old("f", REQUEST), old("g", BACK)
    both = records.merged({"a": fold(failback), "b": fold([*failover, *failback])})
    assert [(one.id, one.number) for one in both.of(REQUEST.pair)] == [("f", 1), ("g", 2)]


def test_an_owner_that_said_that_it_stopped_is_not_waited_for() -> None:
    released = records.released("1", owner="x", term=1)
    found = fold([BEGIN, claim("1", "x", 1), released, step("x", 1)]).by_id["1"]
    assert (found.owner, found.steps) == (None, {})
    assert fold([BEGIN, claim("1", "x", 1), released, claim("1", "y", 2)]).by_id["1"].owner == "y"


def test_a_fence_that_is_being_removed_since_applications_return_does_not_count() -> None:
    fence = step("x", 1, topics={"t": 1, "u": 2}, planned={"denied": ["t", "u"]})
    back = records.begin("2", BACK, number=2, ms=1)
    lifting = StepRecord(state=StepState.BEGUN, began_ms=1, data={"lift": {"1": {"topics": ["t"]}}})
    opens = records.step("2", "open", lifting, owner="y", term=1)
    entries = [BEGIN, claim("1", "x", 1), fence, end("x", 1), back, claim("2", "y", 1)]
    assert fold(entries).fenced_on("a") == {"t", "u"}
    assert fold([*entries, opens]).fenced_on("a") == {"u"}
    assert fold([*entries, opens]).fenced_on("a", besides="1") == set()


def test_the_first_claim_of_a_term_wins() -> None:
    found = fold([BEGIN, claim("1", "x", 1), claim("1", "y", 1), step("y", 1), step("x", 1, topics=1)]).by_id["1"]
    assert found.owner == "x"
    assert found.data("fence") == {"topics": 1}


def test_an_owner_of_before_changes_nothing() -> None:
    found = fold([BEGIN, claim("1", "x", 1), claim("1", "y", 2), step("x", 1), end("x", 1)]).by_id["1"]
    assert found.owner == "y"
    assert not found.steps
    assert found.is_open


def test_a_term_is_not_skipped() -> None:
    assert fold([BEGIN, claim("1", "x", 2)]).by_id["1"].owner is None


def test_a_step_that_was_undone_has_no_data() -> None:
    entries = [BEGIN, claim("1", "x", 1), step("x", 1, topics=1), step("x", 1, state=StepState.UNDONE, topics=1)]
    found = fold(entries).by_id["1"]
    assert found.data("fence") == {}
    assert not found.standing_fence


def test_a_fence_is_there_until_it_is_lifted() -> None:
    fence = step("x", 1, topics={"t": 1, "u": 2}, planned={"denied": ["t"], "before": {"u": None}})
    entries = [BEGIN, claim("1", "x", 1), fence, end("x", 1)]
    assert [one.id for one in fold(entries).fences_on("a")] == ["1"]
    assert fold(entries).fences_on("b") == []
    some = [*entries, records.lifted("1", ["t"], by="2", ms=1)]
    (left,) = fold(some).fences_on("a")
    assert left.standing_fence == {"topics": {"u": 2}, "planned": {"denied": [], "before": {"u": None}}}
    assert fold([*some, records.lifted("1", ["u"], by="3", ms=1)]).fences_on("a") == []


def test_an_operation_whose_end_a_log_has_missed_can_be_closed_there() -> None:
    entries = [BEGIN, records.closed("1", OperationOutcome.COMPLETED, ms=1), records.begin("2", BACK, number=2, ms=2)]
    found = fold(entries)
    assert [one.is_open for one in found.by_id.values()] == [False, True]


def test_large_data_is_compressed() -> None:
    data = {"wanted": {f"group-{number}": {"topic": {"0": number}} for number in range(10_000)}}
    entry = step("x", 1, wanted=data["wanted"])
    assert len(entry.value) < 100_000
    assert fold([BEGIN, claim("1", "x", 1), entry]).by_id["1"].data("fence") == data


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"x", b"{}"),
        (b'["mirrorless",{"operation":"1","record":"begin"}]', None),
        (b'["mirrorless",{"operation":"1","record":"begin"}]', b'{"ms":1,"request":{"kind":"other"}}'),
        (b'["mirrorless",{"operation":"1","record":"claim"}]', b"{}"),
        (b'["other",{"operation":"1","record":"claim"}]', b"{}"),
    ],
)
def test_what_makes_no_sense_is_ignored(key: bytes | None, value: bytes | None) -> None:
    operations = fold([BEGIN])
    operations.take(key, value)
    assert list(operations.by_id) == ["1"]
    assert operations.by_id["1"].owner is None


def test_compaction_changes_nothing() -> None:
    """Whatever writers did, and wherever the cleaner had come to, each reader sees the same."""
    assert [seed for seed in range(50) if not _reads_the_same_compacted(seed)] == []


def _reads_the_same_compacted(seed: int) -> bool:
    chance = random.Random(seed)
    entries: list[Entry] = []
    for _ in range(80):
        operation, owner, term = chance.choice("123"), chance.choice("xyz"), chance.randint(1, 4)
        entries.append(
            chance.choice(
                [
                    records.begin(operation, chance.choice([REQUEST, BACK]), number=chance.randint(1, 5), ms=1),
                    claim(operation, owner, term),
                    records.renewal(operation, owner=owner, term=term, ms=1),
                    records.released(operation, owner=owner, term=term),
                    records.step(
                        operation,
                        chance.choice(["fence", "drain"]),
                        StepRecord(state=chance.choice(list(StepState)), began_ms=1, ended_ms=2),
                        owner=owner,
                        term=term,
                    ),
                    end(owner, term, operation),
                ]
            )
        )
    # Only renewals are written again under their key.
    once = {entry.key if b"renewal" not in entry.key else number: entry for number, entry in enumerate(entries)}
    entries = list(once.values())

    def seen(some: list[Entry]) -> object:
        return {number: (one.owner, one.term, one.steps, one.outcome) for number, one in fold(some).by_id.items()}

    cut = chance.randrange(len(entries))
    return seen([*compacted(entries[:cut]), *entries[cut:]]) == seen(entries)
