"""Applications move between clusters whose records have the same offsets, under the same names."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from mirrorless.cli import root
from mirrorless.operation_log.records import OperationKind
from mirrorless.operations import run, turns
from mirrorless.operations.close import close_fence
from mirrorless.operations.refusals import Terms
from mirrorless.operations.reserve import reserve
from mirrorless.operations.steps import clients, stranded_tail
from mirrorless.operations.steps.preflight import PreflightStep
from mirrorless.settings import load
from tests.support.identical import ends, records_at
from tests.support.moving import PARTITIONS, Applications, checkpoint, stop_here
from tests.support.offsets import commit, committed
from tests.support.secured import eventually
from tests.support.world import delete, fill, producer, read

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from tests.support.world import World

pytestmark = pytest.mark.timeout(300)

IDENTICAL = {"mirrorless.offsets": "identical"}


def is_identical(world: World, topic: str) -> bool:
    """Whether both sides have the same committed records at the same offsets."""
    return records_at(world.source, topic) == records_at(world.target, topic)


def abort(cluster: EmbeddedCluster, topic: str, times: int) -> None:
    """Have aborted records and markers at the end of every partition, or markers only where records are refused."""
    client = producer(cluster, **{"transactional.id": f"{topic}-aborts"})
    client.init_transactions(60)
    for _ in range(times):
        client.begin_transaction()
        for partition in range(PARTITIONS):
            client.produce(topic, key=b"%d" % partition, value=b"never" * 20, partition=partition)
        client.flush(30)
        client.abort_transaction(60)


@pytest.mark.parametrize("fence", [pytest.param("acl", marks=pytest.mark.nightly), "config"])
def test_there_and_back_and_there_again(world: World, fence: str) -> None:
    extra = IDENTICAL | {"mirrorless.fence": fence}
    applications = Applications(world, extra, takes_turns=True, log_in=fence == "acl")
    topic = applications.topic
    abort(world.source, topic, 20)
    old = {world.target_alias: world.source, world.source_alias: world.target}
    with applications.running():
        for target in (world.target_alias, world.source_alias, world.target_alias):
            report = applications.move(target)
            assert set(report["groups"]["read_again"].values()) <= {0}, report
            abort(old[target], topic, 5)  # a producer that is late
            applications.close()
            applications.write_more(300)
        status, report, said = applications.command("drill", "--to", world.source_alias)
        assert status == 0, (report, said)
        applications.check()
        eventually(
            lambda: all(ends(world.source, topic, one) == ends(world.target, topic, one) for one in range(PARTITIONS))
        )
        assert is_identical(world, topic)


@pytest.mark.parametrize("how", ["topic", "reset"])
def test_after_a_failover_the_tail_makes_room(world: World, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The live cluster has other records at its offsets, so it cannot stay. The first attempt is aborted."""
    extra = IDENTICAL | {"mirrorless.fence.quiet.seconds": "0.2"}
    applications = Applications(world, extra, takes_turns=True)
    topic = applications.topic
    fill(world.source, topic, numbered(0, 300), partitions=PARTITIONS)
    settings = load(str(world.file))
    world.copy_to_the_end()
    commit(world.source, f"{topic}-0", {(topic, 0): 40})
    checkpoint(settings.flow(world.flow))
    fill(world.source, topic, numbered(300, 330), partitions=PARTITIONS)
    assert run.begin(settings, OperationKind.FAILOVER, world.target_alias, Terms()).error is None
    fill(world.target, topic, numbered(1000, 1060), partitions=PARTITIONS)
    commit(world.target, f"{topic}-1", {(topic, 1): 310})
    monkeypatch.setattr(stranded_tail, "_ACTIVE_S", 0.0)  # the writer of the tail has just ended
    refused = run.begin(settings, OperationKind.FAILBACK, world.source_alias, Terms(stranded="leave"))
    assert refused.error == "with identical offsets no tail can stay: use --stranded topic or reset"
    with monkeypatch.context() as patched:
        patched.setattr(PreflightStep, "act", stop_here)
        assert run.begin(settings, OperationKind.FAILBACK, world.source_alias, Terms(stranded=how)).is_restored
    ended = run.begin(settings, OperationKind.FAILBACK, world.source_alias, Terms(stranded=how))
    assert ended.error is None, ended
    assert is_identical(world, topic)
    found = records_at(world.source, topic)
    assert [[one.offset for one in found[number]] for number in range(PARTITIONS)] == [
        [*range(100), *range(300, 320)] for _ in range(PARTITIONS)
    ]
    stranded = read(world.target, f"{topic}.stranded") if how == "topic" else {}
    assert sorted(int(one.value or b"") for some in stranded.values() for one in some) == (
        list(range(300, 330)) if how == "topic" else []
    )
    assert committed(world.source, f"{topic}-0")[topic, 0] == 40
    assert committed(world.source, f"{topic}-1")[topic, 1] == 310
    close_fence(settings)
    fill(world.source, topic, numbered(2000, 2030), partitions=PARTITIONS)
    world.copy_to_the_end()
    assert is_identical(world, topic)


def test_a_failover_without_a_tail_continues_where_it_ended(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    applications = Applications(world, IDENTICAL | {"mirrorless.fence.quiet.seconds": "0.2"}, takes_turns=True)
    topic = applications.topic
    fill(world.source, topic, numbered(0, 300), partitions=PARTITIONS)
    settings = load(str(world.file))
    world.copy_to_the_end()
    abort(world.source, topic, 10)  # nothing that anybody reads
    planned = CliRunner().invoke(root, ["plan", str(world.file)])
    assert "problem" not in planned.output, planned.output
    assert run.begin(settings, OperationKind.FAILOVER, world.target_alias, Terms()).error is None
    fill(world.target, topic, numbered(1000, 1060), partitions=PARTITIONS)
    monkeypatch.setattr(stranded_tail, "_ACTIVE_S", 0.0)
    ended = run.begin(settings, OperationKind.FAILBACK, world.source_alias, Terms())
    assert ended.error is None, ended
    assert is_identical(world, topic)
    found = records_at(world.source, topic)
    assert [one.offset for one in found[0]] == [*range(100), *range(300, 320)]


def numbered(first: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, end)]


def test_producers_that_took_more_than_was_reserved_halt_the_way_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is appended at a wrong offset, and a reset into an empty topic continues."""
    monkeypatch.setattr(turns, "RESERVED_OFFSETS", 20)
    applications = Applications(world, IDENTICAL | {"mirrorless.fence.quiet.seconds": "0.2"}, takes_turns=True)
    topic = applications.topic
    fill(world.source, topic, numbered(0, 300), partitions=PARTITIONS)
    settings = load(str(world.file))
    world.copy_to_the_end()
    assert run.begin(settings, OperationKind.SWITCHOVER, world.target_alias, Terms()).error is None
    abort(world.source, topic, 21)
    fill(world.target, topic, numbered(1000, 1060), partitions=PARTITIONS)
    close_fence(settings)
    back = turned(world)
    halted = back.copy()
    assert {one.state for one in halted} == {"halted"}
    assert "the source has 101 records from offset 0 to 121, where" in (halted[0].error or "")
    assert {len(some) for some in records_at(world.source, topic).values()} == {100}

    delete(world.source, topic)
    back.discover()
    done = CliRunner().invoke(
        root, ["offsets", "reset", str(world.file), "--flow", back.flow, "--topic", topic, "--yes"]
    )
    assert done.exit_code == 0, done.output
    back.copy_to_the_end()
    assert is_identical(world, topic)
    assert {len(some) for some in records_at(world.source, topic).values()} == {120}


def test_a_turn_begins_with_records_in_what_is_reserved_and_with_offsets_without_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer was faster than the reservation; then nothing is committed for some leases."""
    applications = Applications(world, IDENTICAL | {"mirrorless.fence.quiet.seconds": "0.2"}, takes_turns=True)
    topic = applications.topic
    fill(world.source, topic, numbered(0, 300), partitions=PARTITIONS)
    settings = load(str(world.file))
    world.copy_to_the_end()

    def written_before(*arguments: Any) -> None:  # noqa: ANN401 -- those of the function
        fill(world.target, topic, numbered(1000, 1001))
        reserve(*arguments)

    monkeypatch.setattr(clients, "reserve", written_before)
    assert run.begin(settings, OperationKind.SWITCHOVER, world.target_alias, Terms()).error is None
    abort(world.target, topic, 2)
    close_fence(settings)
    back = turned(world)
    for _ in range(2):
        back.copy_to_the_end()
        assert [len(some) for some in records_at(world.source, topic).values()] == [101, 100, 100]
    fill(world.target, topic, numbered(1001, 1061), partitions=PARTITIONS)
    back.copy_to_the_end()
    assert is_identical(world, topic)


def turned(world: World) -> World:
    """The flow back of the same file."""
    back = copy.copy(world)
    back.source, back.target = world.target, world.source
    back.flow = f"{world.target_alias}->{world.source_alias}"
    back.source_alias, back.target_alias = world.target_alias, world.source_alias
    return back
