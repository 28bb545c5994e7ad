"""A kind is one module: plan, apply, verify, drill, rights and doctor find it by itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from mirrorless.clusters.cluster_requests import NotThere
from mirrorless.doctor.findings import Status
from mirrorless.errors import ClusterError, ConfigurationError
from mirrorless.metadata import kind_results, kinds
from mirrorless.metadata.actions import ClusterDifference
from mirrorless.metadata.kind import BothEnds, Kind
from mirrorless.metadata.kind_results import apply_differences, compare_kinds, plan_kinds
from mirrorless.metadata.kinds import KINDS
from mirrorless.metadata.plan_text import lines, not_moved
from mirrorless.operations.drill.checks import CHECKS
from mirrorless.rights import ROWS, Operation
from tests.support.drill_facts import facts, flow_with

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.clusters.admin import Admin
    from mirrorless.metadata.kind import Found

NOBODY = cast("Admin", None)


def difference(on: str, *, kind: str = "hats") -> ClusterDifference:
    return ClusterDifference(
        kind=kind,
        on=on,
        what="colour",
        source_has="red",
        target_has="none",
        text=f"paint {on} red (now none)",
        reason="a has it",
        change={"on": on},
    )


def ends(**settings: object) -> BothEnds:
    return BothEnds(flow=flow_with(**settings), source=NOBODY, target=NOBODY, remote={})


class Hats:
    """A kind with these differences, which refuses to paint what is called `old`."""

    def __init__(self, found: Found | ClusterError) -> None:
        self.found = found
        self.painted: list[str] = []
        self.kind = Kind(
            name="hats", about="hats", left="", compare=self.compare, apply=self.apply, reads="DESCRIBE", writes="ALTER"
        )

    def compare(self, _: BothEnds) -> Found:
        if isinstance(self.found, ClusterError):
            raise self.found
        return self.found

    def apply(self, _: BothEnds, some: Sequence[ClusterDifference]) -> list[str | None]:
        self.painted += [one.on for one in some]
        return ["no" if one.on == "old" else None for one in some]


@pytest.fixture
def hats(monkeypatch: pytest.MonkeyPatch) -> Hats:
    found = Hats([difference("x"), difference("old")])
    monkeypatch.setattr(kind_results, "KINDS", (found.kind,))
    return found


def test_every_module_of_the_package_is_a_kind_with_a_name_of_its_own() -> None:
    modules = {path.stem for path in Path(kinds.__file__).parent.glob("*.py")} - {"__init__"}
    assert len(KINDS) == len(modules) == len({one.name for one in KINDS})
    assert {one.name.replace("-", "_") for one in KINDS} == modules
    assert all((one.apply is None) == (one.writes is None) for one in KINDS)


def test_a_drill_checks_every_kind_and_the_table_of_rights_has_its_rights() -> None:
    checked = {check(facts()).check for check in CHECKS}
    for kind in KINDS:
        assert kind.name in checked
        why = {row.why for row in ROWS if row.operation == Operation(kind.reads)}
        assert any(kind.name in one for one in why)
        assert kind.writes is None or kind.deletes or f"set {kind.name}" in {row.why for row in ROWS}


def test_what_is_not_synced_is_reported_and_not_changed(hats: Hats) -> None:
    assert compare_kinds(ends(), every=False) == []
    plan = plan_kinds(compare_kinds(ends(), every=True))
    assert (plan.actions, plan.problems, plan.notes) == ((), (), ())
    assert not_moved(plan) == [
        "hats: paint x red (now none) (hats is not among mirrorless.sync.kinds)",
        "hats: paint old red (now none) (hats is not among mirrorless.sync.kinds)",
    ]
    assert hats.painted == []


@pytest.mark.usefixtures("hats")
def test_what_is_synced_is_an_action_with_its_reason() -> None:
    results = compare_kinds(ends(sync_kinds=("hats",)), every=False)
    plan = plan_kinds(results)
    assert [line for one in plan.actions for line in lines(one)] == [
        "paint x red (now none) (a has it)",
        "paint old red (now none) (a has it)",
    ]
    assert plan.not_moved == ()


def test_each_kind_changes_its_own_and_says_what_failed(hats: Hats) -> None:
    assert apply_differences(ends(), [difference("x"), difference("old"), difference("y")]) == [None, "no", None]
    assert hats.painted == ["x", "old", "y"]


@pytest.mark.usefixtures("hats")
def test_a_name_of_no_kind_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigurationError, match=r"mirrorless\.sync\.kinds.*must be a list of hats"):
        compare_kinds(ends(sync_kinds=("caps",)), every=False)


@pytest.mark.parametrize(
    ("found", "synced", "problems", "notes"),
    [
        (NotThere("b has no hats"), False, 0, 0),
        (NotThere("b has no hats"), True, 0, 1),
        (NotThere("no right to see hats", lacks_right=True), False, 0, 0),
        (NotThere("no right to see hats", lacks_right=True), True, 1, 0),
        (ClusterError("gone", cluster="b"), False, 0, 1),
        (ClusterError("gone", cluster="b"), True, 1, 0),
    ],
)
def test_what_cannot_be_compared_is_a_problem_only_of_a_kind_that_is_synced(
    monkeypatch: pytest.MonkeyPatch, found: NotThere | ClusterError, synced: bool, problems: int, notes: int
) -> None:
    monkeypatch.setattr(kind_results, "KINDS", (Hats(found).kind,))
    plan = plan_kinds(compare_kinds(ends(sync_kinds=("hats",) if synced else ()), every=True))
    assert (len(plan.problems), len(plan.notes), plan.actions, plan.not_moved) == (problems, notes, (), ())


def test_msk_serverless_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    hats = Hats(ClusterError("asked", cluster="b"))
    monkeypatch.setattr(kind_results, "KINDS", (hats.kind,))
    both = ends()
    servers = "boot-x.c1.kafka-serverless.eu-central-1.amazonaws.com:9098"
    target = both.flow.target.model_copy(update={"bootstrap_servers": servers})
    both = BothEnds(flow=both.flow.model_copy(update={"target": target}), source=NOBODY, target=NOBODY, remote={})
    (result,) = compare_kinds(both, every=True)
    assert result.absent == NotThere("cluster b is MSK Serverless, which has no hats")


@pytest.mark.parametrize(
    ("found", "synced", "status"),
    [
        ([], False, Status.OK),
        ([difference("x")], False, Status.WARNING),
        ([difference("x")], True, Status.FAILED),
        (NotThere("b has no quotas"), True, Status.OK),
        (NotThere("no right", lacks_right=True), False, Status.WARNING),
        (NotThere("no right", lacks_right=True), True, Status.NOT_CHECKED),
    ],
)
def test_the_check_of_a_drill(found: Found, synced: bool, status: Status) -> None:
    kind = next(one for one in KINDS if one.apply is not None)
    known = facts()
    known.metadata.kinds[kind.name] = kind_results.KindResult(kind=kind, is_synced=synced, found=found)  # type: ignore[union-attr]
    results = {one.check: one for one in (check(known) for check in CHECKS)}
    assert results[kind.name].status is status
