"""The source dies under load: groups read no more again than the report says, and the stranded tail is exact."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from typing import TYPE_CHECKING

import pytest

from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from tests.support.applications import GroupReader, running
from tests.support.moving import GROUPS, PARTITIONS, Applications
from tests.support.processes import Mirrorless
from tests.support.secured import eventually
from tests.support.world import World, read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def own_world(tmp_path: Path) -> Iterator[World]:
    """Two clusters of which one may be killed."""
    with start_clusters([ClusterSpec(name=name) for name in ("source", "target")]) as clusters:
        yield World(clusters["source"], clusters["target"], tmp_path)


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
