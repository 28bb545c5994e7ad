"""Applications move to the other cluster and back: no record is lost, none is read twice."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AclBindingFilter, ResourceType

from mirrorless.cli import root
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.configs import Origin, topic_configs
from mirrorless.clusters.groups import GroupOffsets, list_groups
from mirrorless.copy.flow.status import status_of
from mirrorless.errors import OperationError
from mirrorless.offsets.checkpoint_pass import Checkpoints
from mirrorless.operation_log.records import OperationKind
from mirrorless.operations import run
from mirrorless.operations.kinds import steps_of
from mirrorless.operations.refusals import Terms
from mirrorless.operations.steps.context import OwnershipLost
from mirrorless.settings import load
from tests.support.applications import GroupReader
from tests.support.moving import GROUPS, PARTITIONS, Applications, plain
from tests.support.offsets import commit
from tests.support.processes import Mirrorless
from tests.support.secured import eventually
from tests.support.world import World, fill, read

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster

pytestmark = pytest.mark.timeout(300)


def dump(cluster: EmbeddedCluster, prefix: str) -> dict[str, Any]:
    """Topics, configs, ACLs and group offsets of a test; internal topics apart."""
    admin = Admin(plain(cluster))
    topics = {name: len(one.partitions) for name, one in admin.metadata().topics.items() if prefix in name}
    configs = {
        name: {key: one for key, one in some.items() if one.origin == 1}
        for name, some in topic_configs(admin, topics)[0].items()
    }
    groups = GroupOffsets(plain(cluster))
    anything = AclBindingFilter(ResourceType.ANY, None, "ANY", None, None, "ANY", "ANY")  # type: ignore[arg-type]
    return {
        "topics": topics,
        "configs": configs,
        "acls": sorted(str(one) for one in admin.client.describe_acls(anything).result(30) if prefix in one.name),
        "groups": dict(groups.committed(sorted(one for one in list_groups(admin)[0] if prefix in one))),
    }


@pytest.mark.nightly
def test_there_and_back_with_rights_of_their_own(world: World) -> None:
    """Fence `acl`: the user of applications has rights on the old cluster only, before they move."""
    applications = Applications(world, {"mirrorless.fence": "acl"}, log_in=True)
    with applications.running():
        report = applications.move(world.target_alias)
        assert applications.switch.read_text().strip() == world.target.bootstrap_servers
        assert report["writers_blocked_seconds"] < 15
        assert report["groups"]["moved"] == GROUPS, report
        assert set(report["groups"]["read_again"].values()) <= {0}
        before = sum(applications.writer.written)
        eventually(lambda: sum(applications.writer.written) > before + 300)
        applications.move(world.source_alias)
        before = sum(applications.writer.written)
        eventually(lambda: sum(applications.writer.written) > before + 300)
        applications.check()
    assert applications.writer.errors <= {"TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "_PURGE_QUEUE"}


@pytest.mark.parametrize("renames", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["", "renamed"])
def test_there_and_back_and_there_without_a_pause(world: World, *, renames: bool) -> None:
    """Fence `config`, filters that select the copies too: groups return from them, and go there again."""
    applications = Applications(world, renames=renames)
    with applications.running():
        for target in (world.target_alias, world.source_alias, world.target_alias):
            report = applications.move(target)
            assert report["groups"]["untranslated"] == []
            assert set(report["groups"]["read_again"].values()) <= {0}, report
        applications.write_more(300)
        applications.check()


def test_a_command_that_is_killed_is_continued_by_another(world: World) -> None:
    applications = Applications(world)
    chance = random.Random(world.flow)
    with applications.running():
        for target in (world.target_alias, world.source_alias):
            step = chance.choice(["fence", "drain", "groups", "verify fence", "open"])
            process = applications.start("switchover", "--to", target, "--yes")
            assert process.stderr is not None
            for line in process.stderr:
                if json.loads(line).get("step") == step:
                    break
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            status, _, said = applications.command("switchover", "--to", target, "--yes")
            assert (status, "is open" in said) == (2, True), f"killed at {step}\n{said}"
            done = CliRunner().invoke(root, ["switchover", str(world.file), "--to", target, "--dry-run"])
            assert (done.exit_code, "  refused: switchover " in done.output) == (1, True), done.output
            assert [one["to"] for one in applications.command("status")[1]["operations"]] == [target]
            status, report, said = applications.command("operation", "continue")
            assert status == 0, f"killed at {step}\n{said}{json.dumps(report, indent=1)}"
            assert report["warnings"] == applications.command("operation")[1]["operations"][-1]["warnings"]
            time.sleep(1)
        applications.check()


def test_an_owner_that_lives_is_not_replaced(world: World) -> None:
    """And a group that does not subscribe to the topic's other name is named."""
    applications = Applications(world)
    single = GroupReader(applications.switch, f"{applications.topic}-single", [applications.topic])
    single.start()
    with applications.running():
        process = applications.start("switchover", "--to", world.target_alias, "--yes")
        assert process.stderr is not None
        for line in process.stderr:
            if json.loads(line).get("step") == "fence":
                break
        status, _, said = applications.command("operation", "continue")
        assert status == 2
        assert f"is run by process {process.pid} on" in said or "no operation is open" in said
        process.communicate(timeout=60)
        assert process.returncode == 0
        goal = sum(applications.writer.written) + 300
        eventually(lambda: sum(applications.writer.written) > goal)
        warnings = applications.move(world.source_alias)["warnings"]
        single.stop()
        assert [one for one in warnings if one.startswith("subscriptions: ")] == [
            f"subscriptions: group {applications.topic}-single subscribes to {applications.topic} only, whose earlier "
            f"records are in {world.target_alias}.{applications.topic} on {world.source_alias}: subscribe to both names"
        ]
        applications.check()


def test_writers_that_the_fence_does_not_bind_are_found(world: World) -> None:
    """The user without a login is a super user here: ACLs do not bind it."""
    applications = Applications(world, {"mirrorless.fence": "acl"})
    applications.grant()
    granted = dump(world.source, applications.topic)["acls"]
    with applications.running():
        status, report, said = applications.command("switchover", "--to", world.target_alias, "--yes")
        assert status == 1, said
        assert f"arrived on {world.source_alias} after the fence" in report["error"]
        assert any("producer" in line for line in report["lines"])
        assert applications.switch.read_text().strip() == world.source.bootstrap_servers
        applications.check()
    assert dump(world.source, applications.topic)["acls"] == granted


@pytest.mark.nightly
def test_topics_with_records_of_both_sides(world: World) -> None:
    """Flows that skip copies: both copy before and after; a fence that blocks one stays until it is closed."""
    applications = Applications(world, shares_topics=True)
    with applications.running():
        assert applications.move(world.target_alias)["groups"]["moved"] == GROUPS
        applications.close()
        world.write_settings(**applications.settings | {"mirrorless.fence": "none"})
        applications.writer.pause()
        assert applications.move(world.source_alias)["groups"]["moved"] == GROUPS
        applications.writer.resume()
        goal = sum(applications.writer.written) + 300
        eventually(lambda: sum(applications.writer.written) > goal)
        applications.check()


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.nightly), "after"])
def test_an_abort_leaves_both_clusters_as_they_were(world: World, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """Interrupted at every step before applications move, before it acts and after it."""
    applications = Applications(world, {"mirrorless.fence.quiet.seconds": "0.2", "sync.group.offsets.enabled": "true"})
    fill(world.source, applications.topic, [b"%d" % number for number in range(300)], partitions=PARTITIONS)
    world.copy_to_the_end()
    # Committed on the target by the flow, and set back on the source since.
    commit(world.source, f"{applications.topic}-2", {(applications.topic, 1): 90})
    with closing(Checkpoints(load(str(world.file)).flow(world.flow))) as passes:
        passes.emit()
        passes.sync_groups()
    commit(world.source, f"{applications.topic}-2", {(applications.topic, 1): 20})
    commit(world.source, f"{applications.topic}-0", {(applications.topic, 0): 50, (applications.topic, 1): 100})
    commit(world.source, f"{applications.topic}-1", {(applications.topic, 2): 7})
    remote = world.remote(applications.topic)
    commit(world.target, f"{applications.topic}-1", {(remote, 2): 3})
    settings = load(str(world.file))
    clusters = (world.source, world.target)
    before = [dump(one, applications.topic) for one in clusters]
    for name in ("preflight", "fence", "drain", "groups", "verify fence"):
        with monkeypatch.context() as patched:
            interrupt(patched, name, after=when == "after")
            ended = run.begin(settings, OperationKind.SWITCHOVER, world.target_alias, Terms())
        assert ended.error == f"interrupted at {name}", ended
        assert not ended.is_restored
        ended = run.abort(settings, take_over=True)
        assert ended.is_restored, ended
        assert [dump(one, applications.topic) for one in clusters] == before, name
    with pytest.raises(OperationError, match="no operation is open"):
        run.abort(settings)
    ended = run.begin(settings, OperationKind.SWITCHOVER, world.target_alias, Terms())
    assert ended.error is None, ended
    moved = dump(world.target, applications.topic)["groups"]
    assert {place: one.offset for place, one in moved[f"{applications.topic}-0"].items()} == {
        (remote, 0): 50,
        (remote, 1): 100,
    }
    assert moved[f"{applications.topic}-1"][remote, 2].offset == 7
    assert moved[f"{applications.topic}-2"][remote, 1].offset == 20


def test_a_flow_that_keeps_names_moves_as_a_whole(world: World) -> None:
    applications = Applications(world, keeps_names=True)
    with applications.running():
        status, _, said = applications.command(
            "switchover", "--to", world.target_alias, "--yes", "--topics", applications.topic
        )
        assert (status, "its topics move together: remove --topics" in said) == (2, True), said
        report = applications.move(world.target_alias)
        assert report["writers_blocked_seconds"] < 20
        assert any("no way back" in line or "there is no opposite flow" in line for line in report["warnings"])
        assert "mirrorless operation FILE close" in report["next"]
        before = sum(applications.writer.written)
        eventually(lambda: sum(applications.writer.written) > before + 300)
        applications.check()
        status, shown, said = applications.command("status")
        assert shown["flows"][world.flow]["state"] == "stopped", shown
        (place,) = shown["applications"]
        assert (place["on"], place["fenced"], place["fenced_topics"]) == (world.target_alias, world.source_alias, 1)
        status, _, said = applications.command("switchover", "--to", world.target_alias, "--yes")
        assert (status, f"applications are on {world.target_alias} since " in said) == (2, True), said
        done = CliRunner().invoke(root, ["switchover", str(world.file), "--to", world.target_alias, "--dry-run"])
        assert (done.exit_code, f"refused: applications are on {world.target_alias}" in done.output) == (1, True)
    config = topic_configs(Admin(plain(world.target)), [applications.topic])[0][applications.topic]
    assert config["max.message.bytes"].origin != Origin.TOPIC


def test_topics_that_move_alone_have_a_file_with_other_aliases(world: World, tmp_path_factory: Any) -> None:  # noqa: ANN401
    """The stop belongs to the aliases: a second file with the same ones would be stopped too; the move is refused."""
    applications = Applications(world, {"mirrorless.fence.quiet.seconds": "0.2"}, keeps_names=True)
    other = World(world.source, world.target, tmp_path_factory.mktemp("other"))
    alone = Applications(other, {"mirrorless.fence.quiet.seconds": "0.2"}, keeps_names=True)
    for one in (applications, alone):
        fill(world.source, one.topic, [b"%d" % number for number in range(300)], partitions=PARTITIONS)
    other.copy_to_the_end()
    same = World(world.source, world.target, tmp_path_factory.mktemp("same"))
    same.source_alias, same.target_alias, same.flow = world.source_alias, world.target_alias, world.flow
    beside = Applications(same, keeps_names=True)
    fill(world.source, beside.topic, [b"%d" % number for number in range(300)], partitions=PARTITIONS)
    with Mirrorless(same.file, "--engine", "functions"):
        eventually(lambda: bool(status_of(load(str(same.file)).flow(world.flow)).begun))
        status, _, said = applications.command("switchover", "--to", world.target_alias, "--yes")
        assert (status, "another file copies other topics" in said) == (2, True), said
    world.copy_to_the_end()
    for one in (applications, alone):  # without closing the first
        fill(world.source, one.topic, [b"%d" % number for number in range(300, 330)], partitions=PARTITIONS)
        one.move(one.world.target_alias)
        assert [len(some) for some in read(world.target, one.topic).values()] == [110] * PARTITIONS


@pytest.mark.parametrize("renames", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["", "renamed"])
def test_flows_that_take_turns_move_there_and_back(world: World, *, renames: bool) -> None:
    """Kept names in both directions: one log on both clusters; each group continues where it was, both times."""
    applications = Applications(world, {"mirrorless.fence": "acl"}, takes_turns=True, log_in=True, renames=renames)
    back = f"{world.target_alias}->{world.source_alias}"
    with applications.running():
        status, _, said = applications.command("switchover", "--to", world.source_alias, "--yes")
        assert (status, "is stopped. Either applications are on" in said) == (2, True), said
        for command in ("pause", "resume"):
            status, shown, said = applications.command(command, "--flow", back)
            assert (status, shown["flows"][back]["state"], "waits for its turn" in said) == (0, "STOPPED", True), said
        for target in (world.target_alias, world.source_alias, world.target_alias):
            report = applications.move(target)
            assert report["groups"]["untranslated"] == []
            assert set(report["groups"]["read_again"].values()) <= {0}, report
            assert any("operation FILE close" in line for line in report["warnings"]), report
            applications.close()
            goal = sum(applications.writer.written) + 300
            eventually(lambda goal=goal: sum(applications.writer.written) > goal)  # type: ignore[misc]
        _, shown, _ = applications.command("status")
        assert [shown["flows"][flow]["state"] for flow in (world.flow, back)] == ["stopped", "running"], shown
        applications.check()
        eventually(lambda: plain_records(world.source, applications.topic) == applications.writer.written)
    assert plain_records(world.target, applications.there) == applications.writer.written


def plain_records(cluster: EmbeddedCluster, topic: str) -> list[int]:
    """How many records each partition has, if they are 0, 1, 2 …; -1 if not."""
    found = read(cluster, topic, isolation="read_committed")
    numbers = [[int(one.value or b"") for one in found.get(partition, ())] for partition in range(PARTITIONS)]
    return [len(some) if some == list(range(len(some))) else -1 for some in numbers]


def test_a_dry_run_writes_nothing(world: World) -> None:
    applications = Applications(world)
    fill(world.source, applications.topic, [b"%d" % number for number in range(30)], partitions=PARTITIONS)
    world.copy_to_the_end()
    before = [dump(one, applications.topic) for one in (world.source, world.target)]
    for command in ("switchover", "failover", "failback"):
        target = world.source_alias if command == "failback" else world.target_alias
        done = CliRunner().invoke(root, [command, str(world.file), "--to", target, "--dry-run"])
        assert done.exit_code == 0, done.output
        assert "nothing was written" in done.output
        assert "way back: " in done.output
        assert ("preflight: " in done.output) is (command != "failover")
    assert [dump(one, applications.topic) for one in (world.source, world.target)] == before
    world.write_settings(**{"mirrorless.switch": "command:/no/such/command"})
    done = CliRunner().invoke(root, ["switchover", str(world.file), "--to", world.target_alias, "--dry-run"])
    assert done.exit_code == 1, done.output
    assert "preflight: failed: " in done.output
    assert "/no/such/command" in done.output


def test_a_move_without_a_way_back_has_to_be_asked_for(world: World) -> None:
    applications = Applications(world, keeps_names=True)
    fill(world.source, applications.topic, [b"%d" % number for number in range(30)], partitions=PARTITIONS)
    done = CliRunner().invoke(root, ["switchover", str(world.file), "--to", world.target_alias, "--yes"])
    assert done.exit_code != 0
    assert "has no way back: " in str(done.exception)


def interrupt(patched: pytest.MonkeyPatch, name: str, *, after: bool) -> None:
    """Let a step fail as if another process had taken over: everything else is undone at once."""
    step = next(one for one in steps_of(OperationKind.SWITCHOVER) if one.name == name)
    act = type(step).act

    def interrupted(self: Any, *arguments: Any) -> NoReturn:  # noqa: ANN401 -- of any step
        if after:
            act(self, *arguments)
        raise OwnershipLost(f"interrupted at {name}")

    patched.setattr(type(step), "act", interrupted)
