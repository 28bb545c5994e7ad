"""Flows that keep topic names and lead back to where they begin: refused in one file, recognised across two."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient

from mirrorless.cli.apply import apply
from mirrorless.cli.offsets.reset import reset
from mirrorless.cli.plan import plan
from mirrorless.copy.planning.lease_planner import LeasePlanner
from mirrorless.doctor.checks import examine
from mirrorless.doctor.findings import Status
from mirrorless.errors import LoopError
from mirrorless.settings import load
from tests.support.metadata import discover_topics
from tests.support.world import World, fill, read, values

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.copy.partition.lease_rows import Report
    from mirrorless.local.embedded_kafka import EmbeddedCluster

IDENTITY = {"replication.policy.class": "IdentityReplicationPolicy"}


def topics_of(cluster: EmbeddedCluster) -> set[str]:
    return set(AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=60).topics)


def both_ways(world: World, **more: str) -> None:
    """Let the world's file have the flow back too, both under the policy that keeps names."""
    back = f"{world.target_alias}->{world.source_alias}"
    world.write_settings(**IDENTITY, **{f"{back}.enabled": "true", f"{back}.topics": world.topics[0]}, **more)


def test_a_loop_in_one_file_is_refused_before_anything_is_written(world: World) -> None:
    topic = world.topic()
    both_ways(world, **{f"{world.flow}.topics": f"{topic}.*"})
    fill(world.source, topic, [b"one"])
    there, back = load(world.file).flows
    before = topics_of(world.source), topics_of(world.target)

    for command in (plan, apply):
        result = CliRunner().invoke(command, [str(world.file)])
        assert result.exit_code == 2
        for one, other in ((there, back), (back, there)):
            assert (
                f"error: flow {one.name}: topic {topic} would be replicated in a loop by {one.name}, {other.name}, "
                in result.output
            )
    with pytest.raises(LoopError):
        discover_topics(back)
    with pytest.raises(LoopError):
        world.copy()
    failed = [one for one in examine(back) if one.status is Status.FAILED]
    assert [one.check for one in failed] == ["loops"]
    assert topic in failed[0].text
    assert (topics_of(world.source), topics_of(world.target)) == before


class TwoFiles:
    """The same topic both ways, each way by a file of its own that does not know the other."""

    def __init__(self, source: EmbeddedCluster, target: EmbeddedCluster, folder: Path) -> None:
        self.there = World(source, target, folder / "there")
        self.back = World(target, source, folder / "back")
        for world in (self.there, self.back):
            world.folder.mkdir()
            world.extra |= IDENTITY
        self.topic = self.there.topic()
        self.back.topics.append(self.topic)
        self.name_back(self.there.target_alias, self.there.source_alias)

    def name_back(self, source: str, target: str) -> None:
        """Give the clusters of the way back these aliases."""
        self.back.source_alias, self.back.target_alias, self.back.flow = source, target, f"{source}->{target}"
        self.back.write_settings()

    @property
    def sizes(self) -> tuple[int, int]:
        """Records on the source and on the target."""
        clusters = self.there.source, self.there.target
        source, target = (sum(map(len, read(one, self.topic).values())) for one in clusters)
        return source, target


@pytest.fixture
def two_files(source: EmbeddedCluster, target: EmbeddedCluster, tmp_path: Path) -> TwoFiles:
    return TwoFiles(source, target, tmp_path)


def halted(reports: list[Report], topic: str, offset: int) -> None:
    (report,) = reports
    assert report.state == "halted"
    assert report.error is not None
    assert report.error.startswith(
        f"{topic}-0 at offset {offset}: another flow copied this record here from {topic}-0 of the target after this "
        "flow began, so the two copy in a loop; stop the other flow"
    )


def test_a_loop_of_two_files_stops_where_it_is_seen_and_neither_side_grows(two_files: TwoFiles) -> None:
    topic = two_files.topic
    fill(two_files.there.source, topic, [b"one"])
    two_files.there.copy_to_the_end()
    copy_everything(two_files.back, topic)  # it may be a migration that has ended
    two_files.back.copy_to_the_end()
    assert two_files.sizes == (2, 1)

    fill(two_files.there.source, topic, [b"two"])
    for _ in range(3):
        halted(two_files.there.copy(), topic, 1)
        two_files.back.copy_to_the_end()

    assert two_files.sizes == (3, 1)


def test_a_way_back_in_a_file_of_its_own_writes_nothing_twice(two_files: TwoFiles) -> None:
    """Before anything is written, `plan`, `doctor` and the copy say what came from there, and the ways to go on."""
    there, back, topic = two_files.there, two_files.back, two_files.topic
    fill(there.source, topic, [b"%d" % number for number in range(1000)])
    there.copy_to_the_end()
    fill(there.target, topic, [b"new" for _ in range(50)])

    line = (
        f"1 partitions are not copied, among them {topic}-0: up to 1,000 records of {back.source_alias} came from "
        f"{back.target_alias} by a flow of another file and would be there twice; to move back, put both flows"
    )
    shown = CliRunner().invoke(plan, [str(back.file)])
    assert f"  warning: {line}" in shown.output
    flow = load(str(back.file)).flows[0]
    (found,) = [one for one in examine(flow) if one.check == "first copy" and "not copied" in one.text]
    assert found.status is Status.WARNING
    assert back.copy() == []
    with closing(LeasePlanner(flow, bounded=True)) as planner:
        planner.plan(flow)
        assert planner.waiting.startswith(line)
    assert two_files.sizes == (1000, 1050)

    copy_everything(back, topic)  # a migration that has ended
    back.copy_to_the_end()
    fill(there.target, topic, [b"newer"])
    back.copy_to_the_end()
    everything = values(read(there.target, topic)[0])
    assert len(everything) == 1051
    assert values(read(there.source, topic)[0])[1000:] == everything


def test_what_another_file_with_other_aliases_copied_halts_where_it_is_seen(two_files: TwoFiles) -> None:
    there, back, topic = two_files.there, two_files.back, two_files.topic
    there.discover()
    fill(there.target, topic, [b"theirs"])
    fill(there.source, topic, [b"ours"])
    there.copy_to_the_end()
    two_files.name_back("other-source", "other-target")
    for _ in range(2):
        (report,) = back.copy()
        assert report.state == "halted"
        assert report.error is not None
        assert "of the target before this flow began, and it would be there twice; to move back" in report.error
    assert values(read(there.source, topic)[0]) == [b"ours", b"theirs"]


def copy_everything(world: World, topic: str) -> None:
    """Decide that a first copy begins at the first record, whatever it came from."""
    world.discover()
    result = CliRunner().invoke(reset, [str(world.file), "--topic", topic, "--offset", "earliest", "--yes"])
    assert result.exit_code == 0, result.output


def test_a_reset_resumes_behind_what_came_back(two_files: TwoFiles) -> None:
    there, back, topic = two_files.there, two_files.back, two_files.topic
    fill(there.source, topic, [b"first"])
    there.copy_to_the_end()
    fill(there.target, topic, [b"theirs"])
    copy_everything(back, topic)
    back.copy_to_the_end()
    halted(there.copy(), topic, 1)

    result = CliRunner().invoke(reset, [str(there.file), "--topic", topic, "--offset", "latest", "--yes"])
    assert result.exit_code == 0, result.output
    fill(there.source, topic, [b"ours"])
    there.copy_to_the_end()

    assert values(read(there.target, topic)[0]) == [b"first", b"theirs", b"ours"]
