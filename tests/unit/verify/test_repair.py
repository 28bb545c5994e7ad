"""What is advised repairs the difference that it stands for, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from mirrorless.verify.findings import Difference, DifferenceKind, Method, PartitionResult, VerificationResult
from mirrorless.verify.repair import repair_plan


def short(partition: int, upstream: int | None, *, downstream: int = 60) -> Difference:
    return Difference(
        kind=DifferenceKind.SHORT,
        topic="orders",
        remote_topic="a.orders",
        partition=partition,
        upstream=upstream,
        downstream=downstream,
        records=5,
    )


def missing(partition: int) -> Difference:
    return Difference(
        kind=DifferenceKind.MISSING,
        topic="orders",
        remote_topic="a.orders",
        partition=partition,
        upstream=7,
        downstream=7,
    )


def advised(*differences: Difference, method: Method = Method.WINDOWS) -> dict[str, str]:
    partitions = tuple(
        PartitionResult(topic="orders", partition=number, remote_topic="a.orders", method=method) for number in range(3)
    )
    verdict = VerificationResult(flow="a->b", began_ms=0, ended_ms=0, partitions=partitions, differences=differences)
    return {f"{step.place} {step.repairs}": step.action for step in repair_plan(verdict, file="mm2.properties")}


def test_a_lost_end_is_copied_again_in_its_own_partition_only() -> None:
    reset = "mirrorless offsets reset mm2.properties --flow 'a->b' --topic orders"
    assert advised(short(0, 64), short(2, 90)) == {
        "orders-0 short": f"copy again from source offset 64 on: {reset} --partition 0 --offset 64",
        "orders-2 short": f"copy again from source offset 90 on: {reset} --partition 2 --offset 90",
    }


def test_where_the_offset_is_not_known_there_is_no_command() -> None:
    found = advised(short(1, None), short(2, None, downstream=0))
    assert found["orders-1 short"].startswith(
        "find out which record of orders-1 comes after the last record of a.orders-1, at 59,"
    )
    assert found["orders-2 short"].startswith("find out which record of orders-2 comes first,")
    assert not any("mirrorless" in action for action in found.values())


def test_a_fresh_topic_has_the_lost_ends_too() -> None:
    found = advised(short(0, 64), missing(1))
    assert set(found) == {"orders-0 short", "orders-1 missing"}
    for action in found.values():
        assert "into a new topic" in action
        assert action.endswith("--topic orders --offset earliest")


def test_a_compacted_partition_is_copied_again_where_its_end_is_lost() -> None:
    found = advised(short(0, 64), missing(0), method=Method.LATEST)
    assert found["orders-0 short"].endswith("--partition 0 --offset 64")
    assert found["orders-0 missing at source offset 7"].startswith("produce the source record at 7")


def test_a_group_is_moved_to_its_exact_offset() -> None:
    moved = replace(missing(2), kind=DifferenceKind.GROUP_OFFSET, what="billing", translated=41, source_has="50")
    assert advised(moved)["orders-2 group billing"].endswith(
        "--group billing --topic a.orders:2 --to-offset 41 --execute"
    )


def test_retention_that_deleted_records_on_the_target_is_raised() -> None:
    expired = PartitionResult(
        topic="orders", partition=0, remote_topic="a.orders", method=Method.WINDOWS, expired_on_target=True
    )
    verdict = VerificationResult(
        flow="a->b",
        began_ms=0,
        ended_ms=0,
        partitions=(expired, replace(expired, partition=1, expired_on_target=False)),
        differences=(),
    )
    (step,) = repair_plan(verdict, file="mm2.properties")
    assert (step.place, step.action[:16]) == ("orders-0", "raise retention.")
