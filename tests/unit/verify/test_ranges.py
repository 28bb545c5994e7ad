"""A partition is cut into pieces only where both sides' offsets are certain."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mirrorless.offsets.offset_map import OffsetMap, Run
from mirrorless.verify.ranges import PIECE_RECORDS, OffsetRange, pieces, upstream_of


def stretch(line: OffsetMap) -> OffsetRange:
    first, last = line.runs[0], line.runs[-1]
    return OffsetRange(
        topic="t",
        partition=0,
        remote_topic="s.t",
        first_upstream=first.first_upstream,
        end_upstream=last.end_upstream,
        first_downstream=first.first_downstream,
        end_downstream=last.end_downstream,
        closed=True,
    )


def test_one_run_is_cut_evenly() -> None:
    line = OffsetMap((Run(100, 0, 10 * PIECE_RECORDS),))
    found = list(pieces(stretch(line), line))
    assert len(found) == 10
    assert {one.end_upstream - one.first_upstream for one in found} == {PIECE_RECORDS}
    assert all(one.closed for one in found)


def test_between_runs_nothing_is_cut() -> None:
    line = OffsetMap((Run(0, 0, 10), Run(3 * PIECE_RECORDS + 7, 2 * PIECE_RECORDS, 10)))
    assert [(one.first_upstream, one.end_upstream) for one in pieces(stretch(line), line)] == [
        (0, 3 * PIECE_RECORDS + 7),
        (3 * PIECE_RECORDS + 7, 3 * PIECE_RECORDS + 17),
    ]


def test_a_sample_is_spread_evenly() -> None:
    line = OffsetMap((Run(0, 0, 1_000_000),))
    found = list(pieces(stretch(line), line, share=0.1))
    kept = sum(one.end_upstream - one.first_upstream for one in found)
    assert 0.09 < kept / 1_000_000 < 0.11
    assert found[0].first_upstream == 0
    assert found[-1].end_upstream > 850_000


@given(
    st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 5_000), st.integers(0, 400_000)), min_size=1, max_size=30),
    st.sampled_from([1.0, 0.3]),
)
def test_pieces_follow_each_other_and_are_exact(parts: list[tuple[int, int, int]], share: float) -> None:
    runs: list[Run] = []
    upstream = downstream = 0
    for lost, uncounted, records in parts:
        upstream, downstream = upstream + lost + uncounted, downstream + uncounted
        runs.append(Run(upstream, downstream, records))
        upstream, downstream = upstream + records, downstream + records
    line = OffsetMap.of(runs, [])
    whole = stretch(line)
    found = list(pieces(whole, line, share=share, least_records=1_000))
    for one, following in pairwise(found):
        assert one.end_upstream <= following.first_upstream
        assert one.end_downstream <= following.first_downstream
        assert share < 1 or (one.end_upstream, one.end_downstream) == following.begin
    for one in found:
        starts = {(run.first_upstream, run.first_downstream) for run in line.runs}
        exact = upstream_of(line, one.first_downstream)
        assert exact == one.first_upstream or (one.first_upstream, one.first_downstream) in starts
    if found and share == 1:
        assert (found[0].first_upstream, found[-1].end_upstream) == (whole.first_upstream, whole.end_upstream)
