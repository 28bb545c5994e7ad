"""What a role allows on MSK is the table of rights, no less and no more."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import pytest

from mirrorless.metadata.kinds import KINDS
from mirrorless.rights import CONNECT, Function, On, Row, Side, name_of, needed, of_the_way_back
from mirrorless.settings import load
from tests.packaging.test_aws_rights import actions, statements
from tests.support.template import cluster_arn, environment

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.settings import Flow
    from tests.support.cloudformation import Stack

MANY: Final = {On.TOPICS: "orders", On.GROUPS: "billing"}
BESIDE_THE_TABLE: Final = {
    ("heartbeat", "SourceCluster"): "heartbeats of the way back, where that has no function of its own",
    ("heartbeat", "SourceHeartbeats"): "heartbeats of the way back, where that has no function of its own",
    ("topic_discovery", "TargetProgress"): "reads and writes there with auto.offset.reset=latest",
    ("partition_copy", "SourceTopicPolicies"): "finds compacted topics, with client.rack",
    ("copy", "SourceTopicPolicies"): "finds compacted topics, with client.rack",
    ("partition_copy", "TargetLimits"): "tells a limit from a fence, with errors.tolerance=all",
    ("copy", "TargetLimits"): "tells a limit from a fence, with errors.tolerance=all",
    ("checkpoint", "SourceTopicPolicies"): "finds compacted topics, with mirrorless.both.directions=skip",
    ("checkpoint", "TargetRecordsOfAllOrigins"): "counts records, with mirrorless.both.directions=skip",
    ("copy", "TargetRecordsOfAllOrigins"): "counts records, with mirrorless.both.directions=skip",
    ("copy", "SourceHeartbeats"): "heartbeats of the way back, where that has no function of its own",
}
SETTINGS: Final = {
    "usual": "",
    "everything": (
        "sync.group.offsets.enabled=true\nmirrorless.acls.prune=true\noffset-syncs.topic.location=target\n"
        f"mirrorless.sync.kinds={','.join(kind.name for kind in KINDS if kind.writes and not kind.deletes)}\n"
        "mirrorless.sync.topic.deletes=true\n"
        "errors.tolerance=all\nerrors.deadletterqueue.topic.name=dead\noffset.storage.topic=connect-offsets\n"
        "primary.consumer.client.rack=a\nbackup.consumer.client.rack=a\n"
    ),
    "identical": "mirrorless.offsets=identical\n",
    "another separator": "replication.policy.separator=_\n",
}


def flows(folder: Path, lines: str) -> tuple[Flow, Flow]:
    """Return the flow of the template's two clusters, and the opposite one."""
    file = folder / "mm2.properties"
    file.write_text(
        "clusters=primary,backup\nprimary.bootstrap.servers=a:1\nbackup.bootstrap.servers=b:1\n"
        "primary->backup.enabled=true\nbackup->primary.enabled=true\n"
        # Its rights are granted in any case; it excludes identical offsets.
        + ("" if "identical" in lines else "mirrorless.both.directions=turns\nmirrorless.active.cluster=primary\n")
        + lines
    )
    settings = load(str(file))
    return settings.flow("primary->backup"), settings.flow("backup->primary")


def cluster(flow: Flow, side: Side) -> str:
    """Return the ARN of one end of a flow."""
    return cluster_arn(flow.source.alias if side is Side.SOURCE else flow.target.alias)


def resource(flow: Flow, row: Row) -> str:
    """Return the ARN of what a row is about; one of them, where there are many."""
    arn = cluster(flow, row.side)
    if row.on is On.CLUSTER:
        return arn
    name = MANY.get(row.on) or name_of(flow, row.on)
    if row.on is On.REMOTE_TOPICS:
        name = f"{flow.source.alias}{flow.replication_policy_separator}orders"
    return arn.replace(":cluster/", f":{row.on.kind}/") + f"/{name}"


@pytest.mark.parametrize("both_ways", [False, True], ids=["one way", "both ways"])
@pytest.mark.parametrize("settings", SETTINGS)
def test_every_right_of_the_table_is_granted_and_nothing_else(
    settings: str, both_ways: bool, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    lines, parameters = SETTINGS[settings], {}
    one_way, back = flows(tmp_path, lines)
    if both_ways:
        # So that topics of one flow are no remote topics of the other.
        parameters = {"BackwardEnabled": "true", "FirstTopics": "ord*", "SecondTopics": "ord*"}
    deployment = environment(lines, **parameters).nested["Forward"]
    for function in Function:
        with subtests.test(function.value):
            missing, superfluous = compared(deployment, function, one_way, back if both_ways else None)
            assert missing == set()
            # Read by flows that take turns, which excludes identical offsets.
            assert {one for one in superfluous if settings != "identical" or one[1] != "TargetState"} == set()


def compared(
    deployment: Stack, function: Function, one_way: Flow, back: Flow | None
) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Return the rights that a function lacks, and those that it has without need."""
    granted = {
        (action, pattern): statement["Sid"]
        for statement in statements(deployment, function.value)
        for action in actions(statement)
        if action.startswith("kafka-cluster:") and not statement["Sid"].startswith("Trigger")
        for pattern in ([statement["Resource"]] if isinstance(statement["Resource"], str) else statement["Resource"])
    }
    rows = needed(one_way, [function])
    asked = {(action, resource(one_way, row)) for row in rows for action in row.iam_actions}
    asked |= {(CONNECT, cluster(one_way, row.side)) for row in rows}
    if back is not None and function in (
        Function.CHECKPOINT,
        Function.COPY,
        Function.DRILL,
        Function.VERIFY_COPY,
        Function.PARTITION_COPY,
    ):
        asked |= {(action, resource(back, row)) for row in of_the_way_back(back) for action in row.iam_actions}
    missing = {
        (action, arn)
        for action, arn in asked
        if not any(action == one and fnmatchcase(arn, pattern) for one, pattern in granted)
    }
    superfluous = {
        (action, sid)
        for (action, pattern), sid in granted.items()
        if (function.value, sid) not in BESIDE_THE_TABLE
        # Heartbeats of other clusters are topics like any other.
        and not any(action == one and fnmatchcase(arn, pattern) for one, arn in asked)
        and not pattern.endswith("*heartbeats")
    }
    return missing, superfluous
