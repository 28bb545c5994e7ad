"""The 64 slots hold what MirrorMaker 2's hold (golden vectors of the reference, section 3.1)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from mirrorless.formats import OffsetSync
from mirrorless.offsets.mm2_sync_store import NOT_COVERED, SyncStore

if TYPE_CHECKING:
    from collections.abc import Iterable

PLACE = ("t", 0)


def feed(store: SyncStore, offsets: Iterable[int]) -> SyncStore:
    for offset in offsets:
        store.add(OffsetSync(topic="t", partition=0, last_upstream=offset, last_downstream=offset))
    return store


def layout(store: SyncStore) -> list[tuple[int, int]]:
    """The first slot of each sync, and the sync's offset."""
    slots = store.slots(PLACE)
    firsts = [
        (0, slots[0]),
        *((at + 1, right) for at, (left, right) in enumerate(pairwise(slots)) if right is not left),
    ]
    return [(slot, sync.last_upstream) for slot, sync in firsts]


def test_after_checkpoints_could_not_be_read() -> None:
    store = feed(SyncStore(must_read_to_end=True), range(0, 1001, 10))
    assert layout(store) == [(0, 1000)]
    store.initialized()
    feed(store, range(1010, 10_001, 10))
    wanted = [10000, 9990, 9970, 9940, 9880, 9640, 9160, 8680, 6760, 4840, 1000]
    assert layout(store) == list(zip([0, *range(5, 15)], wanted, strict=True))


def test_after_everything_was_read() -> None:
    store = feed(SyncStore(), range(0, 1001, 10))
    assert layout(store) == list(zip([0, *range(5, 12)], [1000, 990, 960, 900, 840, 720, 480, 0], strict=True))
    store.initialized()
    feed(store, range(1000, 10_001, 10))
    wanted = [10000, 9990, 9960, 9900, 9840, 9600, 9120, 8640, 7680, 3840, 0]
    assert layout(store) == list(zip([0, *range(5, 15)], wanted, strict=True))


def test_short_ones() -> None:
    assert layout(feed(SyncStore(), [100, 200, 300])) == [(0, 300), (8, 200), (9, 100)]
    assert layout(feed(SyncStore(), [175, 275, 375, 475])) == [(0, 475), (8, 375), (9, 175)]
    live = SyncStore(must_read_to_end=True)
    live.initialized()
    assert layout(feed(live, range(11, 18))) == [(0, 17), (1, 16), (2, 15), (3, 11)]


def test_a_translation_is_exact_at_a_sync_and_one_past_it_elsewhere() -> None:
    store = SyncStore()
    store.add(OffsetSync(topic="t", partition=0, last_upstream=100, last_downstream=40))
    assert store.translate(PLACE, 100) is None  # not read to its end yet
    store.initialized()
    assert store.translate(("t", 1), 100) is None
    assert [store.translate(PLACE, offset) for offset in (99, 100, 101, 5000)] == [NOT_COVERED, 40, 41, 41]


def test_an_upstream_rewind_clears_and_a_downstream_one_does_not() -> None:
    store = feed(SyncStore(), [100, 200])
    store.initialized()
    store.add(OffsetSync(topic="t", partition=0, last_upstream=300, last_downstream=10))
    assert store.translate(PLACE, 150) == 101
    feed(store, [50])
    assert store.translate(PLACE, 150) == 51
    assert layout(store) == [(0, 50)]


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=60, unique=True).map(sorted))
def test_distances_are_kept_whatever_comes(offsets: list[int]) -> None:
    slots = feed(SyncStore(), offsets).slots(PLACE)
    upstream = [sync.last_upstream for sync in slots]
    assert upstream[0] == offsets[-1]
    assert upstream[-1] == offsets[0]
    assert upstream == sorted(upstream, reverse=True)
    for i, j in pairwise(range(64)):
        if slots[i] is not slots[j]:
            assert upstream[i] <= upstream[j] + 2**j - 2**i or upstream[j] == offsets[0]
            assert upstream[i] >= upstream[j] + 2 ** max(i - 2, 0)


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(1, 3)), min_size=1, max_size=50), st.integers(0, 20_000))
def test_never_ahead_of_true_pairs(steps: list[tuple[int, int]], offset: int) -> None:
    store, upstream, downstream, pairs = SyncStore(), -1, -1, []
    for up, down in steps:
        upstream, downstream = upstream + max(up, down), downstream + down
        pairs.append((upstream, downstream))
        store.add(OffsetSync(topic="t", partition=0, last_upstream=upstream, last_downstream=downstream))
    store.initialized()
    translated = store.translate(PLACE, offset)
    assert translated is not None
    assert all(translated <= down for up, down in pairs if up >= offset)


def test_of_a_topic_that_was_made_again_only_the_new_syncs_count() -> None:
    store = feed(SyncStore(), range(0, 1001, 10))
    store.initialized()
    store.forget()
    assert store.translate(PLACE, 500) is None
    feed(store, [2000])
    store.initialized()
    assert (store.translate(PLACE, 500), store.translate(PLACE, 2000)) == (NOT_COVERED, 2000)
