"""Who lacks a right hears it twice: from the doctor beforehand, and from what could not be done, in one line each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AclBinding, NewPartitions, ResourceType

from mirrorless.clusters.configs import ConfigChange, alter_topic_configs, topic_configs
from mirrorless.copy.engines import lease_run
from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.lease_run import run_lease
from mirrorless.copy.flow.reference import FlowRef
from mirrorless.copy.planning.lease_planner import LeasePlanner
from mirrorless.doctor.checks import examine
from mirrorless.doctor.findings import Status
from mirrorless.errors import ClusterError
from mirrorless.heartbeats import Heartbeats, last_heartbeat
from mirrorless.metadata.recreated_topics import UNCHECKED
from mirrorless.offsets.checkpoint_pass import Checkpoints
from mirrorless.rights import On, Operation, Side, needed
from tests.support.guarded import GuardedWorld, connected
from tests.support.metadata import discover_topics, sync_acls, sync_configs
from tests.support.secured import eventually

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.metadata.sync_pass import SyncPass
    from mirrorless.settings import Flow
    from tests.support.guarded import Guarded


class Lacking(NamedTuple):
    """A right that is missing."""

    side: Side
    on: On
    operation: Operation


def copied(world: GuardedWorld) -> list[str]:
    """What one lease says."""
    place = FlowRef(location=str(world.file), flow=world.name, bounded=True)
    planner = LeasePlanner(place.load(), bounded=True)
    try:
        rows = [row for pile in planner.plan(place.load()) for row in pile]
        reports = run_lease(place, rows, control=Control(), lease=1, slot=0)
    except ClusterError as error:
        return [str(error)]
    finally:
        planner.close()
        if (open_slot := lease_run._slots.pop(place.flow, None)) is not None:
            open_slot.close()
    return [report.error for report in reports if report.error is not None]


def passed(one_pass: Callable[[Flow], SyncPass]) -> Callable[[GuardedWorld], list[str]]:
    """What a pass over the metadata says."""

    def lines(world: GuardedWorld) -> list[str]:
        found = one_pass(world.flow())
        return [
            *(f"{one.action.topic}: {one.error}" for one in found.failures),
            *(f"{one.topic}: {one.reason}" for one in found.problems),
            *found.notes,
        ]

    return lines


def beaten(world: GuardedWorld) -> list[str]:
    """What a heartbeat says."""
    try:
        Heartbeats(world.flow()).beat([world.flow()], timestamp_ms=1)
    except ClusterError as error:
        return [str(error)]
    return []


def watched(world: GuardedWorld) -> list[str]:
    """What looking for the last heartbeat says."""
    try:
        last_heartbeat(world.flow())
    except ClusterError as error:
        return [str(error)]
    return []


def checkpointed(world: GuardedWorld) -> list[str]:
    """What a pass of the checkpoints and group offsets says."""
    try:
        checkpoints = Checkpoints(world.flow())
    except ClusterError as error:
        return [str(error)]
    try:
        return [*checkpoints.emit().troubles, *checkpoints.sync_groups().troubles]
    except ClusterError as error:
        return [str(error)]
    finally:
        checkpoints.close()


def grow(world: GuardedWorld) -> None:
    admin = world.guarded.admin(Side.SOURCE)
    admin.client.create_partitions([NewPartitions(world.topic, 2)])[world.topic].result(30)
    eventually(lambda: len(admin.metadata().topics[world.topic].partitions) == 2)


def change_config(world: GuardedWorld) -> None:
    admin = world.guarded.admin(Side.SOURCE)
    assert alter_topic_configs(admin, {world.topic: [ConfigChange("retention.ms", "123000")]}) == {world.topic: None}
    eventually(lambda: topic_configs(admin, [world.topic])[0][world.topic]["retention.ms"].value == "123000")


def add_reader(world: GuardedWorld) -> None:
    acl = AclBinding(ResourceType.TOPIC, world.topic, "LITERAL", "User:reader", "*", "READ", "ALLOW")
    world.guarded.grant({Side.SOURCE: [acl]})


def nothing(_: GuardedWorld) -> None:
    pass


def discovered(world: GuardedWorld) -> None:
    assert not discover_topics(world.flow()).failures


def all_copied(world: GuardedWorld) -> None:
    discovered(world)
    assert copied(world) == []


Does = tuple[Callable[[GuardedWorld], None], ...]
Says = Callable[[GuardedWorld], list[str]]
REFUSED = "Broker: Topic authorization failed"
NAMED = f"{REFUSED} (TOPIC_AUTHORIZATION_FAILED)"
ERROR = "[Error 29] TopicAuthorizationFailedError"
discovers, syncs_configs, syncs_acls = passed(discover_topics), passed(sync_configs), passed(sync_acls)
CASES: Mapping[Lacking, tuple[Does, Says, str]] = {
    Lacking(Side.SOURCE, On.TOPICS, Operation.READ): (
        (discovered,),
        copied,
        "{topic}-0 at offset 0: the source refuses to be read: TOPIC_AUTHORIZATION_FAILED (29); "
        "grant READ on the topic",
    ),
    Lacking(Side.TARGET, On.REMOTE_TOPICS, Operation.WRITE): (
        (discovered,),
        copied,
        "{topic}-0 at offset 0: {remote} refuses the batch of 73 bytes: TOPIC_AUTHORIZATION_FAILED (29); "
        "grant WRITE on {remote}",
    ),
    Lacking(Side.TARGET, On.REMOTE_TOPICS, Operation.READ): (
        (discovered,),
        copied,
        "{topic}-0: " + ERROR + ": grant READ on topic {remote}",
    ),
    Lacking(Side.TARGET, On.PROGRESS, Operation.WRITE): (
        (discovered,),
        copied,
        "cluster {t}: mm2-offsets.{s}.internal: writing this run's mark failed: " + REFUSED + "; grant WRITE on it",
    ),
    Lacking(Side.TARGET, On.PROGRESS, Operation.READ): (
        (discovered,),
        copied,
        "cluster {t}: mm2-offsets.{s}.internal: Fetch from broker 1 failed: " + REFUSED + "; grant READ on it",
    ),
    Lacking(Side.SOURCE, On.OFFSET_SYNCS, Operation.WRITE): (
        (discovered,),
        copied,
        "cluster {s}: writing an offset sync to mm2-offset-syncs.{t}.internal failed: "
        + REFUSED
        + "; grant WRITE on it",
    ),
    Lacking(Side.TARGET, On.REMOTE_TOPICS, Operation.CREATE): (
        (),
        discovers,
        "{remote}: " + NAMED + "; grant CREATE on topic {remote}, or on cluster {t}",
    ),
    Lacking(Side.TARGET, On.PROGRESS, Operation.CREATE): (
        (),
        discovers,
        "mm2-offsets.{s}.internal: " + NAMED + "; grant CREATE on topic mm2-offsets.{s}.internal, or on cluster {t}",
    ),
    Lacking(Side.TARGET, On.REMOTE_TOPICS, Operation.ALTER): (
        (discovered, grow),
        discovers,
        "{remote}: " + NAMED + "; grant ALTER on the topic",
    ),
    Lacking(Side.SOURCE, On.TOPICS, Operation.DESCRIBE_CONFIGS): (
        (),
        discovers,
        "{topic}: not created, because reading its configs failed on {s}: "
        + NAMED
        + "; grant DESCRIBE_CONFIGS on the topic",
    ),
    Lacking(Side.TARGET, On.REMOTE_TOPICS, Operation.ALTER_CONFIGS): (
        (discovered, change_config),
        syncs_configs,
        "{remote}: " + NAMED + "; grant ALTER_CONFIGS on the topic",
    ),
    Lacking(Side.SOURCE, On.CLUSTER, Operation.DESCRIBE): (
        (),
        syncs_acls,
        "*: ACLs are not synced: no right to see the ACLs of cluster {s}; grant DESCRIBE on the cluster",
    ),
    Lacking(Side.TARGET, On.CLUSTER, Operation.ALTER): (
        (discovered, add_reader),
        syncs_acls,
        "{remote}: Broker: Cluster authorization failed (CLUSTER_AUTHORIZATION_FAILED); grant ALTER on the cluster",
    ),
    Lacking(Side.TARGET, On.HEARTBEATS, Operation.WRITE): (
        (),
        beaten,
        "cluster {t}: heartbeats: " + REFUSED + "; grant WRITE on it",
    ),
    Lacking(Side.TARGET, On.REMOTE_HEARTBEATS, Operation.READ): (
        (),
        watched,
        "cluster {t}: {s}.heartbeats: " + REFUSED + "; grant READ on it",
    ),
    Lacking(Side.TARGET, On.CHECKPOINTS, Operation.CREATE): (
        (),
        checkpointed,
        "cluster {t}: cannot create topic {s}.checkpoints.internal: " + NAMED + "; grant CREATE on it",
    ),
    Lacking(Side.SOURCE, On.OFFSET_SYNCS, Operation.READ): (
        (all_copied,),
        checkpointed,
        "cluster {s}: mm2-offset-syncs.{t}.internal: Fetch from broker 1 failed: " + REFUSED + "; grant READ on it",
    ),
    Lacking(Side.SOURCE, On.GROUPS, Operation.DESCRIBE): (
        (all_copied,),
        checkpointed,
        "group {group}: [Error 30] GroupAuthorizationFailedError: FindCoordinatorResponse error for GROUP/{group}; "
        "grant DESCRIBE on the group",
    ),
    Lacking(Side.TARGET, On.CHECKPOINTS, Operation.WRITE): (
        (all_copied,),
        checkpointed,
        "writing Checkpoint{{consumerGroupId={group}, topicPartition={remote}-0, upstreamOffset=1, downstreamOffset=1, "
        "metadata=}} failed: " + REFUSED + "; grant WRITE on it",
    ),
    Lacking(Side.TARGET, On.GROUPS, Operation.READ): (
        (all_copied,),
        checkpointed,
        "group {group}, {remote}-0: GROUP_AUTHORIZATION_FAILED; grant READ on the group and its topics",
    ),
}


@pytest.fixture(scope="module")
def worlds(guarded: Guarded, tmp_path_factory: pytest.TempPathFactory) -> dict[Lacking, GuardedWorld]:
    """For each case a world with records and a group, a user with all rights, and one with all but that one."""
    folder = tmp_path_factory.mktemp("worlds")
    found = {lacking: GuardedWorld(guarded, folder) for lacking in CASES}
    guarded.add_users(user for world in found.values() for user in (world.mark, f"{world.mark}-less"))
    grants: dict[Side, list[AclBinding]] = {side: [] for side in Side}
    source = guarded.by_admin(Side.SOURCE)
    producer = Producer(connected(source))
    for lacking, world in found.items():
        log_in(world, world.mark)
        rows = [row for row in needed(world.flow()) if row.required]
        left = [row for row in rows if (row.side, row.on, row.operation) != lacking]
        for user, some in ((world.mark, rows), (f"{world.mark}-less", left)):
            for side, acls in world.acls(some, user).items():
                grants[side] += acls
        world.make_topic(retention_ms="123456789000")
        producer.produce(world.topic, b"value")
    assert producer.flush(30) == 0
    for world in found.values():
        member = Consumer(connected(source, group_id=world.group, enable_auto_commit=False))
        member.commit(offsets=[TopicPartition(world.topic, 0, 1)], asynchronous=False)
        member.close()
    guarded.grant(grants)
    return found


def log_in(world: GuardedWorld, user: str) -> None:
    for side in Side:
        world.clients[side] = world.guarded.login(side, user)
    world.write()


@pytest.mark.parametrize("lacking", CASES, ids="-".join)
def test_the_line_of_a_missing_right(worlds: dict[Lacking, GuardedWorld], lacking: Lacking) -> None:
    prepare, says, line = CASES[lacking]
    world = worlds[lacking]
    for one in prepare:
        one(world)
    log_in(world, f"{world.mark}-less")
    source, target = world.aliases.values()
    where = world.aliases[lacking.side]

    (complaint,) = [one for one in examine(world.flow()) if one.status is Status.FAILED]
    said = says(world)

    assert complaint.cluster == where
    assert complaint.check == f"{lacking.operation} on {lacking.on}"
    assert complaint.text.startswith(f"no {lacking.operation} on ")
    assert complaint.fix is not None
    assert complaint.fix.startswith(f"on {where}, allow the flow's user {lacking.operation} on ")
    assert line.format(topic=world.topic, remote=world.remote, group=world.group, s=source, t=target) in said


def test_where_the_progress_topic_may_not_be_read_changes_are_made_with_a_note(
    worlds: dict[Lacking, GuardedWorld],
) -> None:
    world = worlds[Lacking(Side.TARGET, On.PROGRESS, Operation.READ)]
    log_in(world, world.mark)
    all_copied(world)
    grow(world)
    log_in(world, f"{world.mark}-less")
    (note,) = [one for one in discovers(world) if one.startswith(UNCHECKED)]
    assert note.startswith(f"{UNCHECKED}: cluster {world.aliases[Side.TARGET]}: mm2-offsets.")
    assert note.endswith("grant READ on it")
    assert len(world.guarded.admin(Side.TARGET).metadata().topics[world.remote].partitions) == 2
