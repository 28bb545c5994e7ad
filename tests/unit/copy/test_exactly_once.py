"""Whatever fails in whatever order: in the end the target has every record of the source once, in order."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.fake_cluster import Fault, Follower
from tests.support.fake_flow import FakeFlow

if TYPE_CHECKING:
    from collections.abc import Callable

PARTITIONS = 2
DAY_MS = 86_400_000
LEASES = 25
NEAR = 3

partitions = st.integers(0, PARTITIONS - 1)
TRANSIENT = st.sampled_from([3, 5, 6, 7, 9, 19, 20, 45, 59])

Event = tuple[str, "tuple[object, ...]"]
EVENTS = st.one_of(
    st.tuples(st.just("produce"), st.tuples(partitions, st.integers(1, 6), st.booleans())),
    st.tuples(st.just("hole"), st.tuples(partitions, st.integers(1, 5))),
    st.tuples(st.just("faults"), st.tuples(st.lists(st.sampled_from([None, *Fault]), min_size=1, max_size=8))),
    st.tuples(st.just("refuse"), st.tuples(partitions, st.lists(TRANSIENT, min_size=1, max_size=4))),
    st.tuples(st.just("refuse fetches"), st.tuples(partitions, st.lists(st.sampled_from([3, 6, 9]), max_size=3))),
    st.tuples(st.just("lose fetches"), st.tuples(st.integers(1, 4))),
    st.tuples(st.just("move leaders"), st.tuples(partitions, st.sampled_from([1, 2]), st.sampled_from([1, 2]))),
    st.tuples(
        st.just("follower"),
        st.tuples(
            partitions,
            st.integers(0, 15),
            st.sampled_from([0, 0, 5, 1_000]),
            st.lists(st.sampled_from([1, 6, 9, 75, 78]), max_size=2),
            st.sampled_from(["", "named", "named", "truncated"]),
        ),
    ),
    st.tuples(st.just("lease"), st.tuples(st.floats(0.002, 0.5), st.booleans())),
)


class Chaos:
    """A flow whose records are all old or all young: a target forgets the producer of old ones at once."""

    def __init__(self, flow: FakeFlow, *, old: bool) -> None:
        self.flow = flow
        self.age_ms = 3 * DAY_MS if old else 0
        flow.source.rack = "here"
        for partition in range(PARTITIONS):
            flow.target.log("A.t", partition).forgets = old
            flow.source.followers[("t", partition), NEAR] = Follower()
        self.produced: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
        self._actions: dict[str, Callable[..., None]] = {
            "produce": self.produce,
            "hole": lambda partition, offsets: flow.source.log("t", partition).skip(offsets),
            "faults": flow.target.faults.extend,
            "refuse": lambda partition, codes: flow.target.append_errors["A.t", partition].extend(codes),
            "refuse fetches": lambda partition, codes: flow.source.fetch_errors["t", partition].extend(codes),
            "lose fetches": lambda fetches: setattr(flow.source, "lost_fetches", fetches),
            "move leaders": self.move,
            "follower": self.follower,
            "lease": self.lease,
        }

    def do(self, name: str, what: tuple[object, ...]) -> None:
        self._actions[name](*what)

    def produce(self, partition: int, batches: int, large: bool) -> None:
        """Produce batches of ten records: large ones are copied as they are, small ones put together."""
        for _ in range(batches):
            first = len(self.produced[partition])
            values = [b"%0*d" % (2_000 if large else 20, number) for number in range(first, first + 10)]
            self.flow.produce(*values, partition=partition, age_ms=self.age_ms)
            self.produced[partition] += values

    def move(self, partition: int, source: int, target: int) -> None:
        self.flow.source.leaders["t", partition] = source
        self.flow.target.leaders["A.t", partition] = target

    def follower(self, partition: int, behind: int, start: int, codes: list[int], kind: str) -> None:
        """Have the leader name a follower that lags, begins later, answers with errors, or calls the log truncated."""
        place = "t", partition
        behind = min(behind, self.flow.source.log(*place).end)
        self.flow.source.followers[place, NEAR] = Follower(behind, start, deque(codes), diverges=kind == "truncated")
        if kind:
            self.flow.source.nearest[place] = NEAR
        else:
            self.flow.source.nearest.pop(place, None)

    def lease(self, seconds: float, written: bool) -> None:
        """One lease; what it does not write, the next one has to find at the target."""
        self.flow.writer.broken = not written
        self.flow.run(seconds=seconds, bounded=False)
        self.flow.writer.broken = False

    def finish(self) -> None:
        """Copy what is left; nothing fails any more."""
        self.flow.target.faults.clear()
        self.flow.target.append_errors.clear()
        for _ in range(LEASES):
            if all(report.state == "caught up" for report in self.flow.run()):
                break


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENTS, min_size=5, max_size=25), st.booleans())
def test_every_record_once_in_order(events: list[Event], old: bool) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        chaos = Chaos(FakeFlow(monkeypatch, partitions=PARTITIONS), old=old)
        for name, what in events:
            chaos.do(name, what)
            if name in ("faults", "refuse"):
                chaos.do("produce", (0, 3, True))
                chaos.do("lease", (0.05, True))
        chaos.finish()
        assert {partition: chaos.flow.copied(partition) for partition in range(PARTITIONS)} == chaos.produced
        chaos.flow.loop.close()
