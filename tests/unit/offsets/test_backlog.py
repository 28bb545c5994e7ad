"""What is not copied is judged by both: the progress, and where the log of the target ends now."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.batches.record_counter import RecordCounter
from mirrorless.offsets import backlog, translation_service
from mirrorless.offsets.backlog import Backlog, backlogs
from mirrorless.offsets.offset_map import OffsetMap, Run, points
from mirrorless.offsets.translation_service import Translator
from mirrorless.progress.epoch_kind import EpochKind
from mirrorless.progress.records import Announcement, Known, Progress
from mirrorless.protocol import log_ends
from mirrorless.protocol.log_ends import short_logs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.log_walk import Walk

PLACE = ("t", 0)


class Walker:
    """Counts every offset of the source as a record."""

    def __init__(self, _cluster: object) -> None: ...

    def walk(self, walks: Iterable[Walk], *, deadline: float) -> None:  # noqa: ARG002
        for walk in walks:
            walk.counter.counts |= {end: end - walk.counter.offset for end in walk.counter.until}

    def close(self) -> None: ...


class Flow(Translator):
    """A translator of a target whose log ended at `seen` when it was read, and ends at `end` now."""

    def __init__(self, known: Known, *, seen: int, end: int | None, shares_target: bool = False) -> None:
        self.progress = {PLACE: known}
        self.target_ends = {PLACE: seen}
        self.end = end
        self.runs: list[Run] = []
        self.shares_target = shares_target
        self._flow = cast("Any", SimpleNamespace(source=None, target=None))
        self._target = cast("Any", self)  # whose end `short_logs` compares

    def remote(self, topic: str) -> str:
        return f"A.{topic}"

    def why_not(self, place: TopicPartition) -> str | None:  # noqa: ARG002
        return None

    def line(self, place: TopicPartition) -> OffsetMap:
        known = self.progress[place]
        return OffsetMap.of(self.runs, points(known.progress, known.announced))

    def counter(self, place: TopicPartition, start: int, until: Any) -> RecordCounter:  # noqa: ANN401, ARG002
        return RecordCounter(start, until)


@pytest.fixture(autouse=True)
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(
        _cluster: object, admin: Flow, expected: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
        if admin.end is None:
            return {}, dict.fromkeys(expected, "no leader")
        return {place: admin.end for place, end in expected.items() if admin.end < end}, {}

    monkeypatch.setattr(translation_service, "short_logs", answer)
    monkeypatch.setattr(backlog, "Walker", Walker)


def copied(to: int, *, begins: int = 0, **later: Announcement) -> Known:
    """Progress of an epoch whose records begin at source offset `begins` and target offset 0, up to source `to`."""
    first = Announcement(epoch=0, start=begins, downstream=0, reason="first copy")
    progress = Progress(last_offset=to - 1, sequence=to - begins, epoch=0, last_downstream=to - begins - 1)
    return Known(progress=progress, announced={0: first} | {one.epoch: one for one in later.values()})


def missing(flow: Translator, *, source_end: int = 100) -> tuple[Backlog | None, list[str]]:
    found, troubles = backlogs(
        cast("Any", flow._flow),
        flow,
        source=cast("Any", None),
        places=[PLACE],
        deadline=time.monotonic() + 1,
        up_to={PLACE: source_end},
    )
    return found.get(PLACE), troubles


@pytest.mark.parametrize(
    ("runs", "shares_target", "found"),
    [
        ([Run(0, 0, 100)], False, Backlog(20, exact=True, copied_to=80)),
        ([Run(0, 0, 100)], True, Backlog(20, exact=True, copied_to=80)),
        ([], False, Backlog(20, exact=False, copied_to=0)),  # the log may have other records than those
        ([], True, Backlog(100, exact=False, copied_to=0)),
    ],
)
def test_a_log_that_is_shorter_than_the_progress_lacks_records(
    runs: list[Run], shares_target: bool, found: Backlog
) -> None:
    flow = Flow(copied(100), seen=80, end=80, shares_target=shares_target)
    flow.runs = runs
    assert missing(flow)[0] == found
    (line,) = missing(flow)[1]
    assert line.startswith("A.t-0 ends at 80, before offset 100 up to which t-0 was copied: the target lost records")


def test_a_remote_topic_that_is_gone_or_was_created_again_lacks_everything() -> None:
    found, _ = missing(Flow(copied(100, begins=10), seen=0, end=0))
    assert found == Backlog(90, exact=True, copied_to=10)


def test_an_end_that_was_read_before_the_progress_is_read_again() -> None:
    assert missing(Flow(copied(100), seen=80, end=100)) == (Backlog(0, exact=True, copied_to=100), [])


@pytest.mark.parametrize("shares_target", [False, True])
def test_a_log_that_is_longer_has_everything(shares_target: bool) -> None:
    found, troubles = missing(Flow(copied(100), seen=130, end=130, shares_target=shares_target))
    assert found is not None
    assert (found.records, troubles) == (0, [])


def test_a_log_whose_end_is_not_known_is_not_counted() -> None:
    assert missing(Flow(copied(100), seen=0, end=None)) == (None, ["t-0: the end of its copy is not known: no leader"])


def test_an_epoch_that_begins_where_the_log_ends_lacks_nothing_before() -> None:
    again = Announcement(epoch=1, start=80, downstream=80, reason="the target lost records")
    assert missing(Flow(copied(100, again=again), seen=80, end=80)) == (Backlog(20, exact=True, copied_to=80), [])


def test_a_turn_with_identical_offsets_begins_where_the_target_has_nothing_yet() -> None:
    turn = Announcement(epoch=1, start=300, downstream=300, kind=EpochKind.TURN, reason="turn from 300")
    known = copied(100, turn=turn)
    known.progress = Progress(last_offset=299, sequence=0, epoch=1, last_downstream=299)
    assert known.target_end == 0
    begun = Announcement(epoch=2, start=100, downstream=100, reason="a turn begins at the end of the remote log")
    known.announced[2] = begun
    known.progress = Progress(last_offset=149, sequence=50, epoch=2, last_downstream=149)
    assert known.target_end == 150


def test_of_mirrormaker_2_only_a_log_without_any_record_shows_that_all_is_lost() -> None:
    known = Known(progress=Progress(last_offset=99))
    assert missing(Flow(known, seen=40, end=40))[0] == Backlog(0, exact=True, copied_to=100)
    found, troubles = missing(Flow(known, seen=0, end=0))
    assert (found, len(troubles)) == (Backlog(100, exact=False, copied_to=0), 1)


@pytest.mark.parametrize(
    ("high", "log_end", "short"),
    [
        (100, None, {}),
        (80, 80, {PLACE: 80}),
        (80, 100, {}),  # a new leader, whose high watermark lags
        (80, None, {PLACE: 80}),  # the broker does not report the end of its own log
    ],
)
def test_a_log_is_short_by_its_leaders_own_end(
    monkeypatch: pytest.MonkeyPatch, high: int, log_end: int | None, short: dict[TopicPartition, int]
) -> None:
    topic = SimpleNamespace(error=None, partitions={0: SimpleNamespace(leader=1)})
    admin = cast("Any", SimpleNamespace(metadata=lambda: SimpleNamespace(topics={"t": topic})))
    monkeypatch.setattr(log_ends, "high_watermarks", lambda _, places: (dict.fromkeys(places, high), {}))
    found = {} if log_end is None else {PLACE: log_end}
    monkeypatch.setattr(log_ends, "log_ends", lambda *_: found)
    assert short_logs(cast("Any", None), admin, {PLACE: 100}) == (short, {})
    assert short_logs(cast("Any", None), admin, {("gone", 3): 7}) == ({("gone", 3): 0}, {})
