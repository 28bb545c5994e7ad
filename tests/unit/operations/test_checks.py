"""Each check of a drill: what fails, what is a warning, and what each says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.clusters.acls import NoAcls
from mirrorless.clusters.groups import GroupListing
from mirrorless.clusters.target_state import TargetState
from mirrorless.doctor.findings import Status
from mirrorless.operations.drill import checks, group_checks
from mirrorless.operations.drill.checks import CHECKS, check_all
from mirrorless.operations.drill.facts import AclFacts, BacklogFacts, GroupFacts, NotCopied, RecordFacts
from mirrorless.operations.drill.positions import Outcome
from mirrorless.operations.results import CheckResult, MeasuredStep, UnreadPart
from mirrorless.settings import load
from mirrorless.verify.findings import Difference, DifferenceKind
from mirrorless.verify.metadata_diff import Metadata
from tests.support.drill_facts import acl, compared, facts, flow_with, forecast, plan_of, status_with

if TYPE_CHECKING:
    from pathlib import Path

GONE = UnreadPart("no answer from b:1")


def halt(offset: int) -> object:
    return SimpleNamespace(offset=offset, reason="records expired")


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    found = {one.check: one.status for one in check_all(facts(flow=flow_with(offset_syncs_topic_location="target")))}
    assert set(found.values()) == {Status.OK}
    assert len(found) == len(CHECKS)


@pytest.mark.parametrize("part", ["status", "heartbeat_ms", "backlog", "metadata", "acls", "groups", "records"])
def test_a_part_that_cannot_be_read_is_not_checked_and_hides_nothing_else(part: str) -> None:
    results = check_all(facts(**{part: GONE}))
    unchecked = [one for one in results if one.status is Status.NOT_CHECKED]
    assert unchecked
    assert {one.text for one in unchecked} == {GONE.reason}
    assert not any(one.status is Status.FAILED for one in results)


def test_a_halted_partition_fails() -> None:
    found = checks.replication(facts(status=status_with(halted={("orders", 1): halt(42)})))
    assert (found.status, found.text) == (Status.FAILED, "1 halted partition")
    assert found.lines == ("orders-1 is halted at offset 42: records expired",)


@pytest.mark.parametrize("field", ["created_again", "problems"])
def test_a_topic_that_is_not_copied_fails(field: str) -> None:
    found = checks.replication(facts(status=status_with(**{field: ("orders was recreated",)})))
    assert (found.status, found.lines) == (Status.FAILED, ("orders was recreated",))


def test_a_flow_that_does_not_run_is_a_warning() -> None:
    assert checks.replication(facts(status=status_with(state=TargetState.PAUSED))).status is Status.WARNING
    assert checks.replication(facts(status=status_with(runs=()))).status is Status.WARNING
    unknown = status_with(unknown={("orders", 0): "no leader"})
    assert checks.replication(facts(status=unknown)).status is Status.NOT_CHECKED


def backlog(records: int, oldest_ms: int | None, *, exact: bool = True) -> BacklogFacts:
    partitions = {("orders", 0): NotCopied(0, True, None), ("orders", 1): NotCopied(records, exact, oldest_ms)}
    return BacklogFacts(partitions=partitions, read_ms=10_000)


def test_lag_is_judged_by_the_age_of_the_oldest_record_that_is_not_copied() -> None:
    late = facts(flow=flow_with(rpo_seconds=5.0), backlog=backlog(7, 4_000))
    found = checks.lag(late)
    assert found.status is Status.FAILED
    assert found.text == (
        "7 records not copied, the oldest 6.0 s ago in orders-1; the limit is 5 s (mirrorless.rpo.seconds)"
    )
    assert found.lines == ("orders-1: 7 records not copied",)
    in_time = facts(flow=flow_with(rpo_seconds=6.0), backlog=backlog(7, 4_000))
    assert checks.lag(in_time).status is Status.OK
    without = checks.lag(facts(backlog=backlog(7, 4_000, exact=False)))
    assert (without.status, without.text[:5]) == (Status.OK, "up to")
    assert "mirrorless.rpo.seconds is not set" in without.text


def test_lag_of_unknown_age_is_not_within_a_limit() -> None:
    assert checks.lag(facts(flow=flow_with(rpo_seconds=5.0), backlog=backlog(7, None))).status is Status.NOT_CHECKED
    assert checks.lag(facts(backlog=backlog(7, None))).status is Status.OK


def test_heartbeats_have_the_same_limit() -> None:
    assert checks.heartbeats(facts(flow=flow_with(rpo_seconds=0.4))).status is Status.FAILED
    assert checks.heartbeats(facts(flow=flow_with(rpo_seconds=0.6))).status is Status.OK
    assert checks.heartbeats(facts(heartbeat_ms=None)).status is Status.WARNING
    without = flow_with(heartbeats_replication_enabled=False)
    assert checks.heartbeats(facts(flow=without, heartbeat_ms=None)).status is Status.OK


def test_the_recovery_time_is_what_a_failover_has_to_do() -> None:
    assert checks.recovery_time(facts(flow=flow_with(rto_seconds=1.0))).status is Status.FAILED
    assert checks.recovery_time(facts(flow=flow_with(rto_seconds=2.0))).status is Status.OK
    steps = (MeasuredStep("a", 1.0, True), MeasuredStep("b", 50.0, False), MeasuredStep("c", 2.0, True))
    assert "took 3.0 s" in checks.recovery_time(facts(steps=steps)).text


@pytest.mark.parametrize(
    ("there", "status", "line"),
    [
        (2, Status.OK, None),
        (1, Status.FAILED, "orders has 2 partitions, a.orders has 1"),
        (None, Status.FAILED, "orders: a.orders does not exist on b"),
        (3, Status.WARNING, "orders has 2 partitions, a.orders has 3: keys map to other partitions"),
    ],
)
def test_partitions_have_to_be_the_same(there: int | None, status: Status, line: str | None) -> None:
    found = checks.topics(facts(counts={"orders": (2, there)}))
    assert (found.status, found.lines) == (status, () if line is None else (line,))


def test_configs_and_acls_are_differences_of_verify() -> None:
    differences = [
        Difference(kind=kind, topic="orders", remote_topic="a.orders", what="x", source_has="1", target_has="2")
        for kind in (DifferenceKind.CONFIG, DifferenceKind.ACL)
    ]
    given = facts(metadata=Metadata({}, differences=differences))
    assert checks.configs(given).lines == ("orders: config x: source 1, target 2",)
    assert checks.acls(given).lines == ("orders: ACL x: source 1, target 2",)
    assert {checks.configs(given).status, checks.acls(given).status} == {Status.FAILED}
    off = flow_with(sync_topic_configs_enabled=False, sync_topic_acls_enabled=False)
    unsynced = facts(flow=off, metadata=Metadata({}, differences=differences))
    assert {checks.configs(unsynced).status, checks.acls(unsynced).status} == {Status.OK}
    refused = facts(metadata=Metadata({}, troubles=["orders: refused"]))
    assert checks.configs(refused).status is Status.NOT_CHECKED


def test_a_missing_right_fails_and_what_a_switchover_adds_does_not() -> None:
    here = frozenset({acl("orders"), acl("orders", "WRITE")})
    found = checks.principals(facts(acls=AclFacts(source=here, target=frozenset({acl("a.orders")}))))
    assert (found.status, found.lines) == (
        Status.OK,
        ("User:app lacks WRITE on a.orders: added by a switchover",),
    )
    without = checks.principals(facts(acls=AclFacts(source=here, target=frozenset())))
    assert without.status is Status.FAILED
    assert without.lines[0] == "User:app lacks READ on a.orders: not synced yet"
    groups = AclFacts(source=frozenset(), target=frozenset(), groups=(frozenset({acl("billing")}), frozenset()))
    assert checks.principals(facts(acls=groups)).lines == (
        "group: ALLOW READ on billing to User:app: added by a switchover",
    )


def test_clusters_without_acls() -> None:
    none, refused = NoAcls("cluster a has no authorizer"), NoAcls("grant DESCRIBE", lacks_right=True)
    some: frozenset[Any] = frozenset()
    assert checks.principals(facts(acls=AclFacts(source=none, target=none))).status is Status.OK
    assert checks.principals(facts(acls=AclFacts(source=none, target=some))).status is Status.WARNING
    assert checks.principals(facts(acls=AclFacts(source=some, target=none))).status is Status.OK
    assert checks.principals(facts(acls=AclFacts(source=some, target=refused))).status is Status.NOT_CHECKED


def records(*outcomes: Outcome, of: int | None = None) -> RecordFacts:
    some = tuple(map(compared, outcomes))
    number = len(some) if of is None else of
    return RecordFacts(positions=some, positions_of=number, windows=some, partitions=1, partitions_of=1)


@pytest.mark.parametrize("outcome", Outcome)
def test_what_each_comparison_means(outcome: Outcome) -> None:
    wrong = {Outcome.TOO_EARLY, Outcome.TOO_LATE, Outcome.DIFFERENT, Outcome.MISSING}
    expected = (
        Status.FAILED
        if outcome in wrong
        else {Outcome.UNREAD: Status.NOT_CHECKED, Outcome.SKIPPED_BY_POLICY: Status.WARNING}.get(outcome, Status.OK)
    )
    given = facts(records=records(Outcome.SAME, outcome))
    assert (checks.positions(given).status, checks.windows(given).status) == (expected, expected)


def test_records_of_shared_topics_are_not_said_to_be_the_same(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true\n"
        "b->a.enabled = true\nb->a.sync.topic.configs.enabled = false\n"
        "replication.policy.class = IdentityReplicationPolicy\nmirrorless.both.directions = skip\n"
    )
    flow = load(file).flows[0]
    given = facts(flow=flow, records=RecordFacts(is_own_order=True))
    for found in (checks.positions(given), checks.windows(given)):
        assert found.status is Status.OK
        assert found.text.startswith(
            "not compared: with mirrorless.both.directions=skip each cluster has an order of its own"
        )


def test_wrong_positions_come_first_and_name_the_group() -> None:
    found = checks.positions(facts(records=records(Outcome.EXPIRED, Outcome.TOO_LATE, of=900)))
    assert found.lines[0] == "group billing: orders-0 at 70 -> a.orders-0 at 60: it is too late"
    assert found.text.startswith("2 positions of 900, chosen at random compared: 1 wrong, 1 not comparable")
    assert len(found.lines) == 2


def test_a_group_without_a_translation_fails() -> None:
    lost = forecast(group="reports", target_offset=None, how="there is no offset sync yet", read_again=None)
    found = group_checks.translations(facts(plan=plan_of(forecast(), lost)))
    assert found.status is Status.FAILED
    assert found.lines == ("group reports, orders-0 at 70: there is no offset sync yet",)
    near = forecast(how="nearest", read_again=40)
    inexact = group_checks.translations(facts(plan=plan_of(near)))
    assert (inexact.status, "up to 40 records read again" in inexact.text) == (Status.WARNING, True)
    noted = group_checks.translations(facts(plan=plan_of(forecast(), troubles=("group x: refused",))))
    assert (noted.status, noted.lines) == (Status.WARNING, ("group x: refused",))


def test_an_offset_on_the_target_that_is_ahead_fails() -> None:
    def found(offset: int, **changes: object) -> CheckResult:
        return group_checks.committed(facts(plan=plan_of(forecast(committed=offset, **changes))))

    assert (found(60).status, found(55).status) == (Status.OK, Status.OK)
    assert found(61, continues_at=61, skipped=1).status is Status.FAILED
    assert found(61, continues_at=61, skipped=1, has_members=True).status is Status.OK
    assert found(900, continues_at=60).text == (
        "0 offsets equal the translation, 1 do not, of which 1 would be set back, since the group went back on a"
    )
    ahead = found(63, continues_at=63, skipped=3)
    assert ahead.lines == (
        "group billing skips up to 3 records on b, where it has consumed itself: a.orders-0 at 63 instead of 60; if it "
        "has not read them, stop its consumers on b, and set each offset: kafka-consumer-groups.sh --bootstrap-server "
        "b:1 --group billing --reset-offsets --topic a.orders:0 --to-offset 60 --execute",
    )


def test_offset_syncs_on_the_source_are_a_warning_and_without_checkpoints_a_failure() -> None:
    assert group_checks.without_the_source(facts()).status is Status.WARNING
    unwritten = facts(flow=flow_with(emit_checkpoints_enabled=False))
    assert group_checks.without_the_source(unwritten).status is Status.FAILED
    there = facts(flow=flow_with(emit_checkpoints_enabled=False, offset_syncs_topic_location="target"))
    assert group_checks.without_the_source(there).status is Status.OK
    lacking = group_checks.without_the_source(facts(plan=plan_of(forecast(checkpoint_offset=None))))
    assert lacking.lines == ("group billing, orders-0: no checkpoint",)
    assert group_checks.without_the_source(facts(plan=plan_of())).status is Status.OK


def test_what_cannot_be_moved_is_listed() -> None:
    listed = (
        GroupListing(name="billing", kind="classic", state="empty", has_protocol=False),
        GroupListing(name="jobs", kind="share", state="stable", has_protocol=True),
        GroupListing(name="other", kind="classic", state="empty", has_protocol=False),
    )
    groups = GroupFacts(listed=listed, active_on_target=frozenset({"billing", "far"}), unselected=("connect-x",))
    found = group_checks.not_movable(facts(groups=groups, remote={"orders": "a.orders", "logs": "a.logs"}))
    assert found.status is Status.WARNING
    assert found.text == "4 groups; 1 topic that no selected group reads"
    assert [line.partition(":")[0] for line in found.lines] == [
        "share group jobs",
        "group billing",
        "group billing has members on b",
        "group connect-x has offsets on replicated topics, but is not selected by groups",
    ]
    assert found.lines[1].endswith("so a does not show whether a consumer is running")
