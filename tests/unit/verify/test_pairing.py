"""From where on and up to where a partition is compared, by what is known of its copy."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.errors import ClusterError
from mirrorless.formats import OffsetSync
from mirrorless.offsets.offset_map import OffsetMap, Run
from mirrorless.offsets.translation import How, Translated
from mirrorless.progress.epoch_kind import EpochKind, kind_named
from mirrorless.progress.records import Announcement, Known
from mirrorless.settings import Cluster, Flow
from mirrorless.verify import pairing
from mirrorless.verify.latest_limits import LatestLimits, cut_of, limits_of
from mirrorless.verify.pairing import Paired, Pairing
from mirrorless.verify.ranges import Pair
from mirrorless.verify.results import unread_result

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition

PLACE, REMOTE = ("t", 0), ("a.t", 0)
FLOW = Flow(source=Cluster(alias="a", bootstrap_servers="a:1"), target=Cluster(alias="b", bootstrap_servers="b:1"))


class Clusters:
    """What both clusters and the offset syncs say of the topic `t`; `since` is the answer for a time, by partition."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.partitions = 1
        self.source, self.target = (0, 1_000), (0, 1_000)
        self.runs: tuple[Run, ...] = ()
        self.mm2: list[OffsetSync] = []
        self.since: dict[int, int | ClusterError] = {}
        self.answer: Translated | None = None
        self.progress: dict[TopicPartition, Known] = {}
        self.held_back: dict[TopicPartition, int] = {}
        self.syncs = SimpleNamespace(slots=SimpleNamespace(slots=lambda _: self.mm2))
        self.client = self
        monkeypatch.setattr(pairing, "progress_translator", lambda *_, **__: self)
        monkeypatch.setattr(pairing, "Walker", lambda _: self)
        monkeypatch.setattr(pairing, "partition_counts", lambda _: dict.fromkeys(("t", "a.t"), self.partitions))
        monkeypatch.setattr(pairing, "last_stable_offsets", lambda _, places: (self._of(places, 1), {}))
        monkeypatch.setattr(pairing, "high_watermarks", lambda _, places: (self._of(places, 1), {}))
        monkeypatch.setattr(pairing, "held_back", lambda *_: self.held_back)
        monkeypatch.setattr(pairing, "_first_offsets", lambda _, places: self._of(places, 0))

    def _of(self, places: Iterable[TopicPartition], at: int) -> dict[TopicPartition, int]:
        return {place: (self.source if place[0] == "t" else self.target)[at] for place in places}

    def metadata(self) -> None:
        return None

    def keeps_offsets(self, topic: str) -> bool:  # noqa: ARG002
        return False

    def refresh(self, places: object) -> None:
        pass

    def line(self, place: TopicPartition) -> OffsetMap:  # noqa: ARG002
        return OffsetMap(self.runs)

    def translate(self, wanted: Mapping[TopicPartition, Sequence[int]], *, deadline: float) -> object:  # noqa: ARG002
        return {place: dict.fromkeys(offsets, self.answer) for place, offsets in wanted.items()}

    def walk(self, walks: object, *, deadline: float) -> None:
        pass

    def list_offsets(self, wanted: Mapping[Any, object]) -> dict[Any, Future[object]]:
        answers: dict[Any, Future[object]] = {}
        for place in wanted:
            future: Future[object] = Future()
            answers[place] = future
            answer = self.since[place.partition]
            if isinstance(answer, ClusterError):
                future.set_exception(answer)
            else:
                future.set_result(SimpleNamespace(offset=answer))
        return answers

    def result(self, future: Future[object]) -> object:
        return future.result()

    def close(self) -> None:
        pass

    def pair(self, *, since_ms: int | None = None) -> list[Paired]:
        both = cast("Any", self)
        return Pairing(FLOW, source=both, target=both, remote={"t": "a.t"}).pair(since_ms=since_ms)


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Clusters:
    return Clusters(monkeypatch)


def stretches(one: Paired) -> list[tuple[int, int, int, int]]:
    return [
        (some.first_upstream, some.end_upstream, some.first_downstream, some.end_downstream) for some in one.stretches
    ]


def test_since_a_record_that_is_copied(clusters: Clusters) -> None:
    clusters.runs, clusters.since, clusters.answer = (Run(0, 0, 1_000),), {0: 600}, Translated(600, How.RUN)
    (one,) = clusters.pair(since_ms=1)
    assert stretches(one) == [(600, 1_000, 600, 1_000)]


@pytest.mark.parametrize("answer", [Translated(700, How.BEYOND), Translated(0, How.EMPTY)])
def test_since_a_record_that_is_not_copied_yet(clusters: Clusters, answer: Translated) -> None:
    # The translation asked for the target's end before 100 more records got there.
    clusters.runs = (Run(0, 0, 700),) if answer.downstream else ()
    clusters.target, clusters.since, clusters.answer = (0, 800), {0: 900}, answer
    (one,) = clusters.pair(since_ms=1)
    assert (one.trouble, stretches(one), one.not_copied) == (None, [], 100)


def test_a_partition_that_does_not_answer_for_a_time_leaves_the_others(clusters: Clusters) -> None:
    clusters.partitions, clusters.runs = 2, (Run(0, 0, 1_000),)
    clusters.since = {0: ClusterError("no leader", cluster="a"), 1: 600}
    clusters.answer = Translated(600, How.RUN)
    without, whole = clusters.pair(since_ms=1)
    assert (without.trouble, without.stretches) == ("its leader did not return the first offset of --since", [])
    assert (whole.trouble, stretches(whole)) == (None, [(600, 1_000, 600, 1_000)])


def test_keys_are_compared_from_where_the_copy_began(clusters: Clusters) -> None:
    clusters.runs, clusters.target = (Run(400, 50, 600),), (0, 650)
    (one,) = clusters.pair()
    assert (one.beginning, cut_of(one)) == (Pair(400, 50), Pair(1_000, 650))
    assert limits_of(one) == LatestLimits(400, 50, 0, 0)


def test_keys_that_mirrormaker_2_copied_before_are_compared_too(clusters: Clusters) -> None:
    clusters.runs = (Run(400, 400, 600),)
    began = Announcement(epoch=0, start=400, downstream=400, kind=EpochKind.AFTER_MIRRORMAKER2, reason="taken over")
    clusters.progress = {PLACE: Known(announced={0: began})}
    (one,) = clusters.pair()
    assert one.beginning is None
    assert limits_of(one) == LatestLimits(0, 0, 0, 0)
    # Who compares by number has to count, and nobody did.
    assert one.uncounted == "records that MirrorMaker 2 copied before 400 could not be counted: no answer"


def test_a_target_that_lacks_what_mirrormaker_2_copied_is_short(clusters: Clusters) -> None:
    clusters.mm2 = [OffsetSync(topic="t", partition=0, last_upstream=999, last_downstream=999)]
    clusters.target = (0, 500)
    (one,) = clusters.pair()
    assert (one.lost, one.owed) == ((None, 500), 500)


def test_what_an_open_transaction_holds_back_is_noted(clusters: Clusters) -> None:
    clusters.runs, clusters.held_back = (Run(0, 0, 1_000),), {PLACE: 7}
    (one,) = clusters.pair()
    assert one.notes == ["a transaction is open at 1000: the next 7 offsets are not compared"]


def test_keys_of_a_topic_that_only_mirrormaker_2_copies_are_cut_at_its_last_pair(clusters: Clusters) -> None:
    clusters.mm2 = [
        OffsetSync(topic="t", partition=0, last_upstream=last, last_downstream=last - 5) for last in (800, 60)
    ]
    (one,) = clusters.pair()
    assert (one.beginning, one.certain_end) == (None, Pair(801, 796))


def test_keys_of_a_topic_of_which_nothing_is_copied(clusters: Clusters) -> None:
    clusters.target = (0, 0)
    (one,) = clusters.pair()
    assert one.certain_end is None
    found = unread_result(one)
    assert (found.records, found.not_copied, found.trouble) == (0, 1_000, None)


def test_keys_of_a_topic_whose_copy_says_nothing(clusters: Clusters) -> None:
    (one,) = clusters.pair()
    assert unread_result(one).trouble == "it is not known how far the copy is"


@pytest.mark.parametrize(
    ("first", "remote_first", "kept"),
    [
        (0, 0, (0, 0)),
        (0, 120, (120, 0)),  # within the first run
        (0, 250, (350, 0)),  # between two: nobody knows, up to the second one
        (0, 260, (360, 0)),
        (330, 0, (0, 250)),
        (900, 950, (900, 800)),  # behind all that is certain
    ],
)
def test_what_retention_may_have_taken(first: int, remote_first: int, kept: tuple[int, int]) -> None:
    one = Paired(
        place=PLACE,
        remote_topic="a.t",
        source=(first, 1_000),
        target=(remote_first, 1_000),
        line=OffsetMap((Run(0, 0, 200), Run(350, 250, 550))),
    )
    assert limits_of(one) == LatestLimits(0, 0, *kept)


def announced(*epochs: tuple[int, int, str]) -> dict[int, Announcement]:
    return {
        epoch: Announcement(
            epoch=epoch, start=start, downstream=downstream, kind=kind_named(None, reason), reason=reason
        )
        for epoch, (start, downstream, reason) in enumerate(epochs)
    }


def test_what_was_left_out_at_the_beginning_is_compared_as_what_was_left_out_later(clusters: Clusters) -> None:
    clusters.runs, clusters.target = (Run(3, 0, 997),), (0, 997)
    epochs = announced((0, 0, "first copy"), (1, 0, "left out offset 0: why"), (3, 0, "left out offset 1 to 2: why"))
    clusters.progress = {PLACE: Known(announced=epochs)}
    (one,) = clusters.pair()
    assert one.notes == ["left out offset 0: why", "left out offset 1 to 2: why"]
    assert (stretches(one), one.beginning) == ([(0, 1_000, 0, 997)], Pair(0, 0))

    clusters.runs = (Run(0, 0, 10), Run(11, 10, 989))
    clusters.target = (0, 999)
    clusters.progress = {PLACE: Known(announced=announced((0, 0, "first copy"), (11, 10, "left out offset 10: why")))}
    (one,) = clusters.pair()
    assert (one.notes, stretches(one)) == (["left out offset 10: why"], [(0, 1_000, 0, 999)])


def test_a_copy_that_began_later_for_another_reason_still_does(clusters: Clusters) -> None:
    clusters.runs, clusters.target = (Run(3, 0, 997),), (0, 997)
    clusters.progress = {PLACE: Known(announced=announced((0, 0, "first copy"), (3, 0, "reset to 3")))}
    (one,) = clusters.pair()
    assert (one.notes, stretches(one)) == (["the copy began at 3, the source at 0"], [(3, 1_000, 0, 997)])
