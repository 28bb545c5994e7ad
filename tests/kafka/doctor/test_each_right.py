"""Whoever lacks one right of the table hears from the doctor which; with all of them nothing is complained of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.doctor.findings import Status
from mirrorless.doctor.probes import Probes
from mirrorless.doctor.rights_check import Names, rights_there
from mirrorless.metadata.kinds import KINDS
from mirrorless.rights import ROWS, Function, Row, Side, When, needed, without_implied
from mirrorless.settings import Cluster
from tests.support.guarded import GuardedWorld

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.doctor.findings import Finding
    from mirrorless.settings import Flow
    from tests.support.guarded import Guarded

EVERYTHING = {
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": "left-out",
    "mirrorless.acls.prune": "true",
    "mirrorless.sync.kinds": ",".join(kind.name for kind in KINDS if kind.writes and not kind.deletes),
    "mirrorless.sync.topic.deletes": "true",
    "mirrorless.both.directions": "skip",
}
IDENTICAL = {"mirrorless.offsets": "identical"}
ON_TARGET = EVERYTHING | {"offset-syncs.topic.location": "target", "sync.group.offsets.enabled": "false"}
ON_TARGET |= {"mirrorless.both.directions": "turns"}
ONLY_THERE = (When.SYNCS_ON_TARGET, When.NO_GROUP_OFFSETS, When.IDENTICAL, When.TURNS)


def with_more_rights(world: GuardedWorld) -> GuardedWorld:
    """Have the flow of a world begin where a group is and read the closest replica, which need further rights."""
    consumer = f"{world.aliases[Side.SOURCE]}.consumer"
    world.extra = world.extra | {
        f"{consumer}.auto.offset.reset": "latest",
        f"{consumer}.client.rack": "a",
        "mirrorless.start.group": f"{world.mark}-mirror",
    }
    return world


def rows_of(flow: Flow, function: Function) -> list[Row]:
    return [row for row in without_implied(needed(flow, [function])) if row.when is not When.OLD_BROKERS]


class Asked:
    """The doctor's findings about rights, for one user and one function."""

    def __init__(self, guarded: Guarded, flow: Flow) -> None:
        self._guarded = guarded
        self._flow = flow

    def findings(self, user: str, function: Function) -> list[Finding]:
        found = []
        for side in Side:
            if any(row.side is side for row in rows_of(self._flow, function)):
                settings = self._guarded.login(side, user)
                servers = settings.pop("bootstrap.servers")
                end = self._flow.source if side is Side.SOURCE else self._flow.target
                with Probes(Cluster(alias=end.alias, bootstrap_servers=servers, client=settings)) as probes:
                    found += rights_there(self._flow, side, probes=probes, names=Names((), ()), functions=[function])
        return found


@pytest.mark.parametrize(
    "settings", [EVERYTHING, ON_TARGET, IDENTICAL], ids=["syncs on source", "syncs on target", "identical offsets"]
)
def test_one_right_less_and_the_doctor_names_it(guarded: Guarded, tmp_path: Path, settings: dict[str, str]) -> None:
    world = with_more_rights(GuardedWorld(guarded, tmp_path, extra=settings))
    for side in Side:
        world.clients[side] = guarded.login(side, "nobody")
    world.make_topic()
    flow = world.flow()
    lacking: dict[str, tuple[Function, Row | None]] = {}
    grants: dict[Side, list[object]] = {side: [] for side in Side}
    for function in Function:
        rows = rows_of(flow, function)
        relevant = rows if settings is EVERYTHING else [row for row in rows if row.when in ONLY_THERE]
        for number, lacked in enumerate([None, *relevant]):
            user = f"{world.mark}-{function}-{number}"
            lacking[user] = function, lacked
            for side, acls in world.acls([row for row in rows if row is not lacked], user).items():
                grants[side] += acls
    guarded.add_users(lacking)
    guarded.grant(grants)  # type: ignore[arg-type]
    asked = Asked(guarded, flow)

    for user, (function, lacked) in lacking.items():
        complaints = [one for one in asked.findings(user, function) if one.status is not Status.OK]
        if lacked is None:
            assert complaints == []
            continue
        (complaint,) = complaints
        assert complaint.status is (Status.FAILED if lacked.required else Status.WARNING)
        assert complaint.check == f"{lacked.operation} on {lacked.on}"
        assert complaint.fix is not None
        assert str(lacked.operation) in complaint.fix


def test_the_walk_goes_over_the_whole_table(guarded: Guarded, tmp_path: Path) -> None:
    walked = set()
    for settings in (EVERYTHING, ON_TARGET, IDENTICAL):
        world = with_more_rights(GuardedWorld(guarded, tmp_path, extra=settings))
        for side in Side:
            world.clients[side] = guarded.login(side, "nobody")
        for function in Function:
            walked |= set(needed(world.flow(), [function]))
    assert walked == set(ROWS)
