"""Objects of one partition: in order, with branches and floors, and every way in which one cannot be believed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mirrorless.archive.chain import read_chain
from mirrorless.archive.object_store import ArchiveError, open_store
from mirrorless.archive.segment import read_footer
from mirrorless.archive.state import documents_of, identify, last_document, state_objects
from mirrorless.archive.upkeep import Proof, faults, prune
from mirrorless.archive.view import ArchiveView
from tests.support.archived import LOG, plain, put, remember, transaction

if TYPE_CHECKING:
    from mirrorless.archive.object_store import ObjectStore

PLACE = ("orders", 0)


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(f"file://{tmp_path}")


def three(store: ObjectStore) -> None:
    """Objects from 0, 10 and 20 on, up to 30."""
    for first in (0, 10, 20):
        assert put(store, first, [plain(first)]) == first + 10
    remember(store, {PLACE: 30})


def firsts(store: ObjectStore) -> list[tuple[int, int]]:
    return [(one.first, one.branch) for one in read_chain(store, LOG).links]


def path(store: ObjectStore, first: int) -> Path:
    return Path(store.location.removeprefix("file://")) / LOG.object(first, 0)


def test_an_object_is_created_once(store: ObjectStore) -> None:
    assert put(store, 0, [plain(0)]) == 10
    assert put(store, 0, [plain(0), plain(10)]) == -1
    assert read_footer(store, LOG.object(0, 0)).end == 10


def test_a_branch_replaces_what_the_one_before_has_from_there_on(store: ObjectStore) -> None:
    three(store)
    put(store, 15, [plain(15)], branch=1)
    put(store, 30, [plain(30)])  # of a writer that does not know
    chain = read_chain(store, LOG)
    assert firsts(store) == [(0, 0), (10, 0), (15, 1)]
    assert chain.replaced == (LOG.object(20, 0), LOG.object(30, 0))
    remember(store, {PLACE: 25}, at_ms=2_000)
    view = ArchiveView(store)
    assert view.lacking == {}
    assert [(one.first, one.end) for one in view.logs[PLACE].pieces] == [(0, 10), (10, 15), (15, 25)]


def test_pruning_writes_a_floor_that_a_late_writer_cannot_undo(store: ObjectStore) -> None:
    three(store)
    remember(store, {PLACE: 30}, at_ms=5_000)
    objects, size = prune(store, before_ms=3_000)
    assert objects == 3  # two of batches, one of state
    assert size > 0
    assert firsts(store) == [(20, 0)]
    assert [one.first_ms for one in state_objects(store)] == [5_000]
    assert put(store, 10, [plain(10)]) == 20  # its name is free again
    assert firsts(store) == [(20, 0)]
    assert ArchiveView(store).logs[PLACE].start == 20
    with pytest.raises(ArchiveError, match="nothing would be left"):
        prune(store, before_ms=9_000)


def test_what_is_wrong_is_named_and_nothing_behind_it_is_read(store: ObjectStore) -> None:
    three(store)
    assert list(faults(store, Proof())) == []
    path(store, 10).unlink()
    assert list(faults(store, Proof())) == [
        f"{LOG.object(20, 0)}: it begins at offset 20, and its predecessor ends at 10"
    ]
    view = ArchiveView(store)
    assert (view.logs[PLACE].end, "begins at offset 20" in view.lacking[PLACE]) == (10, True)


def test_a_damaged_object_is_named(store: ObjectStore) -> None:
    three(store)
    whole = path(store, 10).read_bytes()
    path(store, 10).write_bytes(whole[:70] + b"x" + whole[71:])
    assert list(faults(store, Proof())) == [
        f"{LOG.object(10, 0)}: its batches are not those that were written (SHA-256)"
    ]
    path(store, 10).write_bytes(whole[:-1])
    (line, *_) = faults(store, Proof())
    assert "is damaged: its last bytes are not those of this format" in line
    assert "is damaged" in ArchiveView(store).lacking[PLACE]


def test_an_object_of_another_partition_is_named(store: ObjectStore) -> None:
    three(store)
    path(store, 30).write_bytes(path(store, 10).read_bytes())
    assert next(faults(store, Proof())) == f"{LOG.object(30, 0)}: its footer begins at offset 10"


def test_an_archive_that_ends_before_its_state_says_so(store: ObjectStore) -> None:
    three(store)
    path(store, 20).unlink()
    assert ArchiveView(store).lacking == {PLACE: "its objects end at offset 20, before 30"}
    assert list(faults(store, Proof())) == [f"{LOG.prefix}: ends at offset 20, before 30: an object is missing"]


def test_a_gap_of_the_source_is_no_fault(store: ObjectStore) -> None:
    put(store, 0, [plain(0)])
    put(store, 50, [plain(50)], gap_from=10)
    remember(store, {PLACE: 60})
    assert list(faults(store, Proof())) == []
    view = ArchiveView(store)
    assert view.lacking == {}
    assert [(one.first, one.end) for one in view.logs[PLACE].pieces] == [(0, 10), (50, 60)]


def test_a_time_is_the_last_document_before_it(store: ObjectStore) -> None:
    three(store)
    remember(store, {PLACE: 20}, at_ms=500)
    assert last_document(store, 999).logs[PLACE].last_stable_offset == 20
    assert last_document(store, 1_000).logs[PLACE].last_stable_offset == 30
    assert ArchiveView(store, 700).logs[PLACE].end == 20
    with pytest.raises(ArchiveError, match="begins 400 ms after that time"):
        last_document(store, 100)


def test_an_aborted_transaction_that_spans_objects_is_told_in_both(store: ObjectStore) -> None:
    records, marker = transaction(0, 7, commit=False)
    put(store, 0, [records], aborted=[(7, 0)])
    put(store, 10, [marker, plain(11)], aborted=[(7, 0)])
    remember(store, {PLACE: 21})
    view = ArchiveView(store)
    assert read_footer(store, LOG.object(0, 0)).aborted == [(7, 0, -1)]
    assert read_footer(store, LOG.object(10, 0)).aborted == [(7, 0, 10)]
    assert [view.records(PLACE, offset, 1 << 20)[1] for offset in (0, 10, 11)] == [[(7, 0)], [(7, 0)], []]


def test_an_archive_is_of_one_cluster(store: ObjectStore) -> None:
    first = identify(store, source_id="one", source_alias="a")
    assert identify(store, source_id="one", source_alias="b") == first
    with pytest.raises(ArchiveError, match="is of cluster one"):
        identify(store, source_id="two", source_alias="a")


def test_other_locations_are_refused() -> None:
    for location in ("vault", "http://x/y", "file://relative", "s3:///prefix"):
        with pytest.raises(ArchiveError, match="an archive is s3://bucket/prefix or file:///folder"):
            open_store(location)


def test_damaged_state_is_named(store: ObjectStore) -> None:
    three(store)
    (one,) = state_objects(store)
    (path(store, 0).parents[4] / one.name).write_bytes(b"not gzip")
    with pytest.raises(ArchiveError, match="is damaged"):
        list(documents_of(store, one.name))
