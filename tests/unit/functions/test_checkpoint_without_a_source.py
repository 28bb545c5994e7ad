"""What a checkpoint function does where the source is gone: what is known is committed before the error is raised."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.functions.checkpoint import _pass_of
from mirrorless.offsets.checkpoint_pass import GroupSyncReport
from mirrorless.settings import Cluster, Flow

A, B = Cluster(alias="A", bootstrap_servers="a:1"), Cluster(alias="B", bootstrap_servers="b:1")


class Checkpoints:
    """Cannot emit, and remembers whether it was asked to commit."""

    def __init__(self, away: str, *, refused: bool = False) -> None:
        self.away, self.refused, self.committed = away, refused, 0

    def emit(self, **_: object) -> None:
        raise ClusterUnavailable("no answer", cluster=self.away)

    def sync_groups(self, **_: object) -> GroupSyncReport:
        self.committed += 1
        if self.refused:
            raise ClusterError("no right", cluster="B")
        return GroupSyncReport(written=3, troubles=["group g: no coordinator"])


class Invocation:
    """An invocation with time enough; `told` and `measured` are what came of it."""

    def __init__(self, *, syncs: bool) -> None:
        self.flow = Flow(source=A, target=B, sync_group_offsets_enabled=syncs)
        self.budget = SimpleNamespace(left_s=100.0, is_used_up=lambda: False)
        self.sink = self
        self.told: list[str] = []
        self.measured: dict[str, float] = {}

    def tell(self, _level: str, text: str) -> None:
        self.told.append(text)

    def measure(self, name: str, value: float) -> None:
        self.measured[name] = value


@pytest.mark.parametrize(("away", "syncs", "committed"), [("A", True, 1), ("A", False, 0), ("B", True, 0)])
def test_what_is_known_is_committed_first(away: str, *, syncs: bool, committed: int) -> None:
    checkpoints, invocation = Checkpoints(away), Invocation(syncs=syncs)
    with pytest.raises(ClusterUnavailable, match=f"cluster {away}: no answer"):
        _pass_of(cast("Any", checkpoints), cast("Any", invocation))
    assert checkpoints.committed == committed
    assert invocation.measured == ({"group-offset-count": 3} if committed else {})
    assert invocation.told == (["group g: no coordinator"] if committed else [])


def test_the_sources_error_is_the_one_that_is_raised() -> None:
    checkpoints = Checkpoints("A", refused=True)
    with pytest.raises(ClusterUnavailable, match="cluster A"):
        _pass_of(cast("Any", checkpoints), cast("Any", Invocation(syncs=True)))
    assert checkpoints.committed == 1
