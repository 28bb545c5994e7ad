"""The source dies under load: groups read no more again than the report says, and the stranded tail is exact."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from typing import TYPE_CHECKING

import pytest

from mirrorless.clusters.target_state import TargetState, TargetStates
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from mirrorless.operation_log.records import OperationKind
from mirrorless.operations import run
from mirrorless.operations.close import close_fence
from mirrorless.operations.refusals import Terms
from mirrorless.operations.steps import stranded_tail
from mirrorless.operations.steps.preflight import PreflightStep
from mirrorless.settings import load
from tests.support.applications import GroupReader, running
from tests.support.moving import GROUPS, PARTITIONS, Applications, checkpoint, stop_here
from tests.support.offsets import commit, committed
from tests.support.processes import Mirrorless
from tests.support.secured import eventually
from tests.support.world import World, fill, read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster


pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def mortal_clusters() -> Iterator[dict[str, EmbeddedCluster]]:
    """Two clusters of which one may be killed."""
    with start_clusters([ClusterSpec(name=name) for name in ("source", "target")]) as clusters:
        yield clusters


@pytest.fixture
def own_world(mortal_clusters: dict[str, EmbeddedCluster], tmp_path: Path) -> Iterator[World]:
    yield World(mortal_clusters["source"], mortal_clusters["target"], tmp_path)
    mortal_clusters["source"].start_broker(1)  # also after a test that failed before it did


def numbers(world: World, topic: str, *, on_target: bool) -> list[list[int]]:
    """What a topic has, by partition."""
    found = read(world.target if on_target else world.source, topic, isolation="read_committed")
    return [[int(one.value or b"") for one in found.get(partition, ())] for partition in range(PARTITIONS)]


def has_checkpoints(applications: Applications) -> bool:
    """Whether every group has one in every partition."""
    _, plan, _ = applications.command("failover-plan", "--to", applications.world.target_alias)
    groups = plan["flows"][applications.world.flow]["groups"]
    return len(groups) == GROUPS * PARTITIONS and all(one["checkpoint_offset"] is not None for one in groups)


def has_all(reader: GroupReader, replicated: list[list[int]]) -> bool:
    return all(set(replicated[one]) <= set(reader.read[one]) for one in range(PARTITIONS))


def test_a_source_that_dies_under_load_and_comes_back(own_world: World) -> None:
    world = own_world
    applications = Applications(world)
    topic, remote = applications.topic, world.remote(applications.topic)
    with running(applications.writer, applications.readers):
        with Mirrorless(world.file, "--engine", "functions"):
            eventually(lambda: all(sum(map(len, one.read.values())) > 1_000 for one in applications.readers))
            eventually(partial(has_checkpoints, applications))
            status, _, said = applications.command("pause", "--flow", world.flow)
            assert status == 0, said
            written = sum(applications.writer.written)
            eventually(lambda: sum(applications.writer.written) > written + 3_000)
            # A switchover is under way, and its process dies too, with the fence up.
            process = applications.start("switchover", "--to", world.target_alias, "--yes")
            assert process.stderr is not None
            for line in process.stderr:
                if json.loads(line).get("step") == "drain":
                    break
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            world.source.kill_broker(1)
            before = [{partition: list(some) for partition, some in one.read.items()} for one in applications.readers]
            status, report, said = applications.command("failover", "--to", world.target_alias, "--yes")
            assert status == 0, said + json.dumps(report, indent=1)
            assert "is ended by this failover; its fence may be up" in said
            replicated = numbers(world, remote, on_target=True)
            written = sum(applications.writer.written)
            eventually(lambda: sum(applications.writer.written) > written + 300)
        # What was replicated is read by every group, and no more of it again than was said.
        for number, reader in enumerate(applications.readers):
            eventually(partial(has_all, reader, replicated))
            again = sum(len(some) - len(set(some)) for some in reader.read.values())
            at_most = report["groups"]["read_again"].get(f"{topic}-{number}", 0)
            assert again <= at_most, (again, at_most, before[number])

        world.source.start_broker(1)
        stranded = [
            len(ours) - len(theirs)
            for ours, theirs in zip(numbers(world, topic, on_target=False), replicated, strict=True)
        ]
        assert sum(stranded) > 100
        with Mirrorless(world.file, "--engine", "functions"):
            back = f"{world.target_alias}.{topic}"
            local = numbers(world, topic, on_target=True)
            eventually(lambda: all(map(len, numbers(world, back, on_target=False))) and bool(local))
            status, report, said = applications.command("failback", "--to", world.source_alias, "--yes")
            assert status == 0, said + json.dumps(report, indent=1)
            found = {partition: records for _, partition, records, _ in report["stranded"]}
            assert [found.get(partition, 0) for partition in range(PARTITIONS)] == stranded
            written = sum(applications.writer.written)
            eventually(lambda: sum(applications.writer.written) > written + 300)
            total = applications.writer.stop()
            for reader in applications.readers:
                reader.wait_for_all(total)


def test_flows_that_take_turns_leave_a_tail_on_the_old_cluster(own_world: World) -> None:
    """With kept names what was not replicated stays behind the copies: it is reported, then kept in its own topic."""
    world = own_world
    applications = Applications(world, takes_turns=True)
    topic, writer = applications.topic, applications.writer
    with running(writer, applications.readers):
        with Mirrorless(world.file, "--engine", "functions"):
            eventually(lambda: all(sum(map(len, one.read.values())) > 1_000 for one in applications.readers))
            eventually(partial(has_checkpoints, applications))
            assert applications.command("pause", "--flow", world.flow)[0] == 0
            goal = sum(writer.written) + 3_000
            eventually(lambda: sum(writer.written) > goal)
            world.source.kill_broker(1)
            status, report, said = applications.command("failover", "--to", world.target_alias, "--yes")
            assert status == 0, said + json.dumps(report, indent=1)
            assert any("copies after `mirrorless failback` only" in one for one in report["warnings"])
            replicated = numbers(world, topic, on_target=True)
            goal = sum(writer.written) + 300
            eventually(lambda: sum(writer.written) > goal)

        world.source.start_broker(1)
        theirs = numbers(world, topic, on_target=True)
        tail = [
            sorted(set(ours) - set(some))
            for ours, some in zip(numbers(world, topic, on_target=False), theirs, strict=True)
        ]
        assert sum(map(len, tail)) > 1_000
        status, _, said = applications.command("switchover", "--to", world.source_alias, "--yes")
        assert (status, "mirrorless failback" in said) == (2, True), said
        with Mirrorless(world.file, "--engine", "functions"):
            eventually(lambda: applications.command("failback", "--to", world.source_alias, "--yes")[0] != 2)
            status, report, said = applications.command("failback", "--to", world.source_alias, "--yes")
            assert (status, "choose --stranded topic, leave or reset" in (report["error"] or "")) == (1, True), said
            assert {one[1]: one[2] for one in report["stranded"]} == dict(enumerate(map(len, tail)))
            arguments = ("failback", "--to", world.source_alias, "--stranded", "topic", "--yes")
            status, report, said = applications.command(*arguments)
            assert status == 0, said + json.dumps(report, indent=1)
            assert set(report["groups"]["read_again"].values()) <= {0}, report
            assert numbers(world, f"{topic}.stranded", on_target=True) == tail
            applications.close()
            written = writer.stop()
            for reader in applications.readers:
                expected = [set(range(number)) - set(some) for number, some in zip(written, tail, strict=True)]
                eventually(partial(has_all, reader, [sorted(some) for some in expected]))
            eventually(lambda: numbers(world, topic, on_target=True) == [sorted(one) for one in expected])
    assert all(len(some) == len(set(some)) for some in numbers(world, topic, on_target=False))
    assert replicated


@pytest.mark.parametrize("renames", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["", "renamed"])
@pytest.mark.parametrize("how", [pytest.param("leave", marks=pytest.mark.nightly), "reset"])
def test_a_stranded_tail_is_left_or_the_old_topic_is_emptied(
    world: World, how: str, monkeypatch: pytest.MonkeyPatch, *, renames: bool
) -> None:
    """The first attempt is aborted: what it began is not done twice."""
    applications = Applications(world, {"mirrorless.fence.quiet.seconds": "0.2"}, takes_turns=True, renames=renames)
    topic, there = applications.topic, applications.there
    fill(world.source, topic, [b"%d" % number for number in range(300)], partitions=PARTITIONS)
    settings = load(str(world.file))
    world.copy_to_the_end()
    commit(world.source, f"{topic}-0", {(topic, 0): 40})
    checkpoint(settings.flow(world.flow))
    fill(world.source, topic, [b"%d" % number for number in range(300, 330)], partitions=PARTITIONS)
    assert run.begin(settings, OperationKind.FAILOVER, world.target_alias, Terms()).error is None
    fill(world.target, there, [b"%d" % number for number in range(1000, 1060)], partitions=PARTITIONS)
    commit(world.target, f"{topic}-1", {(there, 1): 110})
    monkeypatch.setattr(stranded_tail, "_ACTIVE_S", 0.0)  # the writer of the tail has just ended
    terms = Terms(stranded=how)
    with monkeypatch.context() as patched:
        patched.setattr(PreflightStep, "act", stop_here)
        aborted = run.begin(settings, OperationKind.FAILBACK, world.source_alias, terms)
    assert aborted.is_restored
    assert (f"{topic} stays emptied on {world.source_alias}" in aborted.warnings) is (how == "reset")
    ended = run.begin(settings, OperationKind.FAILBACK, world.source_alias, terms)
    assert ended.error is None, ended
    ours, theirs = (
        [[int(one.value or b"") for one in read(cluster, name).get(number, ())] for number in range(PARTITIONS)]
        for cluster, name in ((world.source, topic), (world.target, there))
    )
    tail = [list(range(300 + number, 330, PARTITIONS)) for number in range(PARTITIONS)]
    first, later = ([some[:100] for some in theirs], [some[100:] for some in theirs])
    middle = tail if how == "leave" else [[] for _ in tail]
    assert ours == [[*one, *two, *three] for one, two, three in zip(first, middle, later, strict=True)]
    assert committed(world.source, f"{topic}-0")[topic, 0] == 40
    assert committed(world.source, f"{topic}-1")[topic, 1] == (110 if how == "reset" else 120)
    assert TargetStates(settings.flow(world.flow)).read() is TargetState.STOPPED
    started, copies = close_fence(settings)[-2:]
    assert started.endswith(f"{world.flow} is started")
    assert copies == f"{world.flow} copies from now on"
    assert TargetStates(settings.flow(world.flow)).read() is TargetState.STARTED
