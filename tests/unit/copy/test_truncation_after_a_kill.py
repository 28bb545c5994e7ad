"""A run is killed before it has written its progress, and the source loses records that it had copied.

An unclean election does that. The copy continues where the source ends only if what is before that was copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.fake_flow import FakeFlow

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def flow(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeFlow]:
    flow = FakeFlow(monkeypatch)
    for number in range(5):
        flow.produce(b"%d" % number)
    flow.writer.broken = True
    flow.run()
    flow.writer.broken = False
    yield flow
    flow.loop.close()


def test_nothing_is_repeated_where_the_source_has_nothing_else(flow: FakeFlow) -> None:
    flow.source.log("t").truncate(3)
    (report,) = flow.run(pass_gaps=True)
    flow.produce(b"new")
    flow.run()
    assert flow.copied() == [b"0", b"1", b"2", b"3", b"4", b"new"]
    assert report.gaps == 1
    assert "the target holds 2 records from here on, but the source ends at 3: it lost them" in report.events


@pytest.mark.parametrize("written", [1, 2, 3])
def test_what_was_written_after_the_loss_is_copied(flow: FakeFlow, written: int) -> None:
    """Of the records that the copy had, two are left; those from the progress on are repeated."""
    flow.source.log("t").truncate(2)
    new = [b"new %d" % number for number in range(written)]
    for value in new:
        flow.produce(value)
    (report,) = flow.run(pass_gaps=True)
    assert flow.copied() == [b"0", b"1", b"2", b"3", b"4", b"0", b"1", *new]
    assert report.gaps == 1


def test_a_source_that_lost_all_of_it_is_copied_from_its_end(flow: FakeFlow) -> None:
    flow.source.log("t").truncate(0)
    flow.run(pass_gaps=True)
    flow.produce(b"new")
    flow.run()
    assert flow.copied() == [b"0", b"1", b"2", b"3", b"4", b"new"]


def test_it_halts_by_default_and_names_the_offset(flow: FakeFlow) -> None:
    flow.source.log("t").truncate(2)
    flow.produce(b"new")
    (report,) = flow.run()
    assert report.state == "halted"
    assert report.error is not None
    assert report.error.startswith(
        "t-0 at offset 0: the target holds 2 records from here on, but the source ends at 3, and may have others"
    )
