"""Where the copies of a stopped flow end: at the end of the leader's own log, once that is replicated."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.operations import turns
from mirrorless.operations.steps.context import StepFailed
from mirrorless.settings import Cluster, Flow

if TYPE_CHECKING:
    from mirrorless.operations.steps.context import OperationContext

PLACE = ("t", 0)
FLOW = Flow(source=Cluster(alias="A", bootstrap_servers="a:1"), target=Cluster(alias="B", bootstrap_servers="b:1"))


class Target:
    """A partition by its log end and its high watermark, one pair for each look; the last one stays."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *looks: tuple[int | None, int]) -> None:
        self.looks = list(looks)
        self.waited = 0
        monkeypatch.setattr(turns, "log_ends", lambda *_: {} if self.looks[0][0] is None else {PLACE: self.looks[0][0]})
        monkeypatch.setattr(turns, "high_watermarks", lambda *_: ({PLACE: self.looks[0][1]}, {}))

    def ends(self) -> list[int]:
        """Where the copies end, by an operation that may look ten times."""
        metadata = SimpleNamespace(metadata=lambda: None)
        context = cast(
            "OperationContext",
            SimpleNamespace(
                forward=FLOW,
                target=cast("Any", metadata),
                recorded_counts=lambda: {"t": 1},
                wait=self.wait,
            ),
        )
        return turns.copied_ends(context, drained=False)["t"]

    def wait(self, _until: float) -> bool:
        self.waited += 1
        self.looks = self.looks[1:] or self.looks
        return self.waited < 10


@pytest.mark.parametrize(
    ("looks", "end"),
    [
        ([(8, 8)], 8),
        ([(8, 5), (8, 7), (8, 8)], 8),  # a slow follower
        ([(8, 5), (6, 6)], 6),  # the leader died, and the next one does not have the rest
        ([(8, 9)], 8),  # another producer has appended in between
        ([(None, 5)], 5),  # a broker that does not report the end of its own log
    ],
)
def test_what_is_not_replicated_yet_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, looks: list[tuple[int | None, int]], end: int
) -> None:
    assert Target(monkeypatch, *looks).ends() == [end]


def test_a_follower_that_never_fetches_fails_the_step_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StepFailed, match=r"^t-0 on B: offsets 5 to 7 are not replicated after 60 s; try again when"):
        Target(monkeypatch, (8, 5)).ends()
