"""Who is asked for next: few at a time where many are behind, and everybody in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from mirrorless.copy.partition.lease_rows import LeaseRow
from mirrorless.copy.partition.state import PartitionCopy
from mirrorless.copy.slot.fetch_queue import FetchQueue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.clusters.topic_partition import TopicPartition


class Leader:
    """Serves what it is asked for until an answer is full: in order, or those of its session that waited longest.

    As a broker does, it gives nothing of a batch for which there is no room left, unless the answer is still empty.
    """

    def __init__(self, behind: Sequence[int], *, room: int, seconds: float = 0.01) -> None:
        self.copies = [
            PartitionCopy(
                LeaseRow(topic="t", partition=number, remote_topic="A.t", source_end=0), 1 << 61, {}, source_end=records
            )
            for number, records in enumerate(behind)
        ]
        self.line = FetchQueue()
        for copy in self.copies:
            self.line.join(copy)
        self.room, self.seconds = room, seconds
        self.batches: dict[PartitionCopy, int] = {}
        self.holes: set[PartitionCopy] = set()
        self.now = 0.0
        self.asked: list[int] = []
        self.served_at: dict[TopicPartition, int] = {}
        self._session = list(self.copies)

    def fetch(self) -> set[TopicPartition]:
        """One fetch of everybody in the line, as the fetcher makes it; returns who was served."""
        wanted = list(self.line)
        asked = self.line.front(wanted, now=self.now)
        some = len(asked) < len(wanted)
        served: set[TopicPartition] = set()
        room = self.room
        for copy in asked if some else list(self._session):
            batch = self.batches.get(copy, 1)
            if not copy.is_behind or copy in self.holes or (batch > room and served):
                continue
            brought = min(max(batch, room // batch * batch), copy.source_end - copy.fetch_from)
            copy.advance(copy.fetch_from + brought, -1)
            room -= brought
            served.add(copy.place)
            if not some:
                self._session.remove(copy)
                self._session.append(copy)
        self.line.answered(asked, served, in_order=some)
        self.served_at |= dict.fromkeys(served, len(self.asked))
        self.asked.append(len(asked))
        self.now += self.seconds
        return served


def produce(copy: PartitionCopy, records: int) -> None:
    """Have a response show that the source has more records."""
    end = copy.source_end + records
    copy.note_response(stable=end, high=end, empty=False, bounded=False)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=60), st.integers(1, 50))
def test_everything_is_fetched_without_an_answer_of_nothing(behind: list[int], room: int) -> None:
    leader = Leader(behind, room=room)
    while any(copy.is_behind for copy in leader.copies):
        assert leader.fetch()
    assert leader.fetch() == set()
    assert leader.asked[-1] == len(behind)  # who waits for something new waits for it everywhere


def test_of_a_thousand_that_are_behind_twice_as_many_are_asked_for_as_fill_an_answer() -> None:
    leader = Leader([200] * 1_000, room=8_000)
    for _ in range(20):
        assert len(leader.fetch()) == 40
    assert leader.asked == [1_000] + [80] * 19
    assert sum(copy.fetch_from for copy in leader.copies) == 20 * 8_000


def test_twice_a_second_everybody_is_asked_for() -> None:
    leader = Leader([200] * 1_000, room=8_000, seconds=0.125)
    for _ in range(12):
        leader.fetch()
    assert leader.asked == [1_000, 80, 80, 80] * 3


def test_an_answer_with_room_has_more_asked_for_next_time() -> None:
    leader = Leader([200] * 40 + [1] * 2_000, room=8_000)
    for _ in range(8):
        leader.fetch()
    assert leader.asked == [2_040, 80, 160, 320, 640, 2_040, 2_040, 2_040]


def test_nobody_waits_for_longer_than_a_turn_of_the_line() -> None:
    """Busy ones get a record for each answer, among some that are far behind and many that have nothing."""
    kinds = ["quiet", "busy", "far behind", "quiet"] * 100
    leader = Leader([100_000 if kind == "far behind" else 0 for kind in kinds], room=1_000, seconds=0.0001)
    busy = [copy for copy, kind in zip(leader.copies, kinds, strict=True) if kind == "busy"]
    longest = 0
    for answer in range(400):
        for copy in busy:
            produce(copy, 1)
        leader.fetch()
        if answer > 100:
            longest = max(longest, *(answer - leader.served_at[copy.place] for copy in busy))
    assert longest <= 101


def test_those_that_are_behind_and_have_nothing_do_not_stay_in_the_way() -> None:
    leader = Leader([200] * 1_000, room=8_000)
    leader.fetch()
    leader.holes.update(list(leader.line)[:300])
    assert sum(len(leader.fetch()) for _ in range(12)) >= 300


def test_a_batch_for_which_there_is_seldom_room_has_its_turn() -> None:
    leader = Leader([100_000] * 200, room=500)
    large = leader.copies[77]
    leader.batches = dict.fromkeys(leader.copies, 10) | {large: 1_000}
    for copy in leader.copies:
        produce(copy, (10 if copy is not large else 100_000) - copy.source_end)
    for _ in range(40):
        for copy in leader.copies:
            produce(copy, 10 if copy is not large else 0)
        leader.fetch()
    assert leader.served_at[large.place] > 0


def test_who_left_does_not_come_back_by_an_answer() -> None:
    leader = Leader([10] * 10, room=20)
    leader.fetch()
    asked = leader.line.front(list(leader.line), now=0.1)
    assert len(asked) == 4
    leader.line.leave(asked[0])
    leader.line.answered(asked, {copy.place for copy in asked[:2]}, in_order=True)
    assert asked[0] not in list(leader.line)
    assert list(leader.line)[-1] is asked[1]
