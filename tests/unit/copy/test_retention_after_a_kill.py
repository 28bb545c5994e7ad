"""A run is killed before it has written its progress, and retention deletes what it had copied: nothing is repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.fake_flow import FakeFlow

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def flow(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeFlow]:
    flow = FakeFlow(monkeypatch)
    yield flow
    flow.loop.close()


def killed_after_copying(flow: FakeFlow) -> None:
    for number in range(5):
        flow.produce(b"%d" % number)
    flow.writer.broken = True
    flow.run()
    flow.writer.broken = False


@pytest.mark.parametrize("pass_gaps", [False, True])
def test_the_copy_continues_after_the_last_record_of_the_target(flow: FakeFlow, *, pass_gaps: bool) -> None:
    killed_after_copying(flow)
    flow.source.log("t").delete_before(2)
    flow.produce(b"5")
    (report,) = flow.run(pass_gaps=pass_gaps)
    assert flow.copied() == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert report.state == "caught up"
    assert report.gaps == 0


def test_it_is_a_gap_if_the_source_lacks_that_record_too(flow: FakeFlow) -> None:
    killed_after_copying(flow)
    for number in range(5, 9):
        flow.produce(b"%d" % number)
    flow.source.log("t").delete_before(7)
    (report,) = flow.run(pass_gaps=True)
    assert flow.copied() == [b"0", b"1", b"2", b"3", b"4", b"7", b"8"]
    assert report.gaps == 1


def test_another_record_of_the_same_content_is_not_taken_for_the_last_one(flow: FakeFlow) -> None:
    """Only its timestamp tells it from the copied one, which is deleted: what is before it was never copied."""
    killed_after_copying(flow)
    for value in (b"5", b"6", b"4"):
        flow.produce(value, age_ms=-500)
    flow.source.log("t").delete_before(5)
    (report,) = flow.run(pass_gaps=True)
    assert flow.copied() == [b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"4"]
    assert report.gaps == 1
