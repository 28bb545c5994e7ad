"""The templates as AWS carries them out, in the cases that differ: expanded, resolved and linted."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.support.cloudformation import Stack
from tests.support.expanded import expand_all, resolved, stacks
from tests.support.template import ACCOUNT, cluster_arn, configuration, custom

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

BOTH_WAYS: Final = {"BackwardEnabled": "true"}
ELSEWHERE: Final = cluster_arn("primary", account="444455556666")
CONNECTION: Final = f"arn:aws:kafka:eu-central-1:444455556666:vpc-connection/{ACCOUNT}/primary/0f1e2d3c-1111-2222-3333"
CASES: Final[dict[str, dict[str, str]]] = {
    "same region": {**BOTH_WAYS, "VerifySchedule": "cron(30 1 * * ? *)"},
    "two regions": {**BOTH_WAYS, "FirstClusterArn": cluster_arn("primary", region="us-east-1")},
    "two accounts": {**BOTH_WAYS, "FirstClusterArn": ELSEWHERE, "FirstTriggerArn": CONNECTION},
    "no MSK": {**BOTH_WAYS, "FirstClusterArn": "", "SecondClusterArn": "", "Triggers": "all"},
    "one way": {},
    "no Glue": {**BOTH_WAYS, "GlueJobs": "false"},
    "no triggers": {
        **BOTH_WAYS,
        "Triggers": "off",
        "ReservedConcurrency": "true",
        "ForwardCopyFunctions": "3",
        "ForwardCopyMemory": "1769",
        "VerifySchedule": "",
        "CustomResourcesInVpc": "true",
        "DrillSchedule": "",
        "AlarmTopicArn": f"arn:aws:sns:eu-central-1:{ACCOUNT}:alarms",
        "LogKmsKeyArn": f"arn:aws:kms:eu-central-1:{ACCOUNT}:key/0f1e2d3c-1111-2222-3333-444455556666",
        "PermissionsBoundary": f"arn:aws:iam::{ACCOUNT}:policy/boundary",
        "RolePath": "/mirrorless/",
    },
}
TRIGGERS: Final = {
    "same region": ["Heartbeats", "Heartbeats", "OffsetSyncs", "OffsetSyncs"],
    "two regions": ["Heartbeats", "OffsetSyncs"],
    "two accounts": ["Heartbeats", "Heartbeats", "OffsetSyncs", "OffsetSyncs"],
    "no MSK": ["Heartbeats", "Heartbeats", "OffsetSyncs", "OffsetSyncs"],
    "one way": ["Heartbeats", "OffsetSyncs"],
    "no Glue": ["Heartbeats", "Heartbeats", "OffsetSyncs", "OffsetSyncs"],
    "no triggers": [],
}


@pytest.fixture(scope="module")
def expanded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return expand_all(tmp_path_factory.mktemp("expanded"))


def deployed(expanded: Path, template: str = "template.yaml", **parameters: Any) -> Stack:  # noqa: ANN401
    """Return a deployment of the expanded templates, with as few parameters as can be."""
    usual = {
        "ConfigLocation": "s3://configuration/mm2.properties",
        "SubnetIds": "subnet-0a1b2c3d4e5f60001",
        "SecurityGroupIds": "sg-0a1b2c3d4e5f60001",
    }
    return Stack(expanded / template, usual | parameters, custom(configuration(both_ways=True), since="1764000000"))


def environment(expanded: Path, case: str) -> Stack:
    """Return the deployment of a case."""
    arns = {"FirstClusterArn": cluster_arn("primary"), "SecondClusterArn": cluster_arn("backup")}
    return deployed(expanded, **(arns | CASES[case]))


def test_no_deployment_has_a_fault(
    expanded: Path, tmp_path: Path, tool: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    files: dict[str, Path] = {}  # by content: cases differ in part of their templates
    for case in CASES:
        for name, one in stacks(environment(expanded, case), case.replace(" ", "-")):
            files.setdefault(json.dumps(resolved(one)), tmp_path / f"{name}.json")
    for text, file in files.items():
        file.write_text(text)
    assert len(files) > 30
    linted = tool("cfn-lint", "--ignore-checks", "W", "--", *files.values())
    assert linted.returncode == 0, linted.stdout


def test_functions_are_in_every_zone_and_jobs_in_the_one_of_their_connection(expanded: Path) -> None:
    flow = deployed(expanded, SubnetIds="subnet-1,subnet-2").nested["Forward"]
    functions = flow.of_type("AWS::Lambda::Function")
    networks = {name: one["VpcConfig"] for name, one in functions.items() if "VpcConfig" in one}
    assert {tuple(one["SecurityGroupIds"]) for one in networks.values()} == {("sg-0a1b2c3d4e5f60001",)}
    assert {tuple(one["SubnetIds"]) for one in networks.values()} == {("subnet-1", "subnet-2")}
    assert "Copy" in networks
    (connection,) = flow.of_type("AWS::Glue::Connection").values()
    assert connection["ConnectionInput"]["PhysicalConnectionRequirements"]["SubnetId"] == "subnet-1"
    # The switch of docs/deployment.md, "The loss of a zone": another order of the subnets.
    other = deployed(expanded, SubnetIds="subnet-2,subnet-1").nested["Forward"]
    (connection,) = other.of_type("AWS::Glue::Connection").values()
    assert connection["ConnectionInput"]["PhysicalConnectionRequirements"]["SubnetId"] == "subnet-2"
    assert other.resources["Settings"]["Properties"]["SubnetId"] == "subnet-2"


def test_without_jobs_nothing_of_glue_is_left(expanded: Path) -> None:
    """Resources, rights, environment, alarms and outputs: of one stack with the jobs, and of one without."""
    with_jobs, without = environment(expanded, "same region"), environment(expanded, "no Glue")
    found = [one for _, stack in stacks(with_jobs, "") for one in stack.resources.values()]
    assert {one["Type"] for one in found if "::Glue::" in one["Type"]} == {
        "AWS::Glue::Connection",
        "AWS::Glue::Job",
        "AWS::Glue::Trigger",
    }
    for _, stack in stacks(without, ""):
        for name, one in stack.resources.items():
            if name != "PublisherRole":  # keeps what jobs of other stacks use
                assert not re.search(r"AWS::Glue|glue:|glue\.amazonaws", json.dumps(one)), name
    flow = without.nested["Forward"]
    assert "MIRRORLESS_JOB" not in flow.of_type("AWS::Lambda::Function")["JobSupervisor"]["Environment"]["Variables"]
    assert set(flow.of_type("AWS::Logs::LogGroup")) == {"FunctionsLog"}
    alarms = set(with_jobs.nested["Forward"].nested["Watch"].of_type("AWS::CloudWatch::Alarm"))
    watch = flow.nested["Watch"]
    assert alarms - set(watch.of_type("AWS::CloudWatch::Alarm")) == {"Differences", "VerifyNotDone"}
    shown = json.loads(watch.resources["Dashboard"]["Properties"]["DashboardBody"])["widgets"][0]["properties"][
        "alarms"
    ]
    assert shown == [f"<{name}.Arn>" for name in watch.of_type("AWS::CloudWatch::Alarm")]
    assert set(with_jobs.outputs) - set(without.outputs) == {
        f"{flow}{job}" for flow in ("Forward", "Backward") for job in ("Job", "Verify")
    }


@pytest.mark.parametrize("case", CASES)
def test_a_trigger_is_where_lambda_can_poll(case: str, expanded: Path) -> None:
    found = stacks(environment(expanded, case), "")
    names = [name for _, one in found for name in one.of_type("AWS::Lambda::EventSourceMapping")]
    assert sorted(names) == TRIGGERS[case]


def test_a_flow_is_deployable_alone_beside_the_shared_stack(
    expanded: Path, tmp_path: Path, tool: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    shared = Stack(expanded / "shared.yaml", {"Name": "mirrorless-shared"})
    values = {
        "Library": "arn:aws:lambda:eu-central-1:111122223333:layer:library:1",
        "Artifacts": "artifacts",
        "Release": "0123456789abcdef",
        "KafkaJars": "s3://artifacts/releases/0123456789abcdef/one.jar",
    }
    flow = deployed(expanded, "flow.yaml", SourceClusterArn=cluster_arn("primary"), **values)
    # What the flow looks up is what the shared stack leaves there.
    published = {one["Name"]: one["Value"] for one in shared.of_type("AWS::SSM::Parameter").values()}
    declared = json.loads((expanded / "flow.yaml").read_text())["Parameters"]
    looked_up = {name: one["Default"] for name, one in declared.items() if one["Type"].startswith("AWS::SSM::")}
    assert set(looked_up.values()) == set(published)
    assert {name: published[key] for name, key in looked_up.items()} == {
        "Library": shared.outputs["Library"],
        "Artifacts": "<Artifacts>",
        "Release": "<Release.Release>",
        "KafkaJars": "<Release.KafkaJars>",
    }
    # Nothing of a pipeline is left to its default but what decides its direction.
    pipeline = json.loads((expanded / "pipeline.yaml").read_text())["Parameters"]
    assert set(pipeline) - set(flow.nested["Pipeline"].parameters) == {"Reverse"}
    forward = deployed(expanded).nested["Forward"].parameters
    assert set(pipeline) == set(forward)
    files = []
    for name, one in (*stacks(flow, "flow"), ("shared", shared)):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(resolved(one)))
        files.append(file)
    linted = tool("cfn-lint", "--ignore-checks", "W", "--", *files)
    assert linted.returncode == 0, linted.stdout


def test_three_parameters_are_required(expanded: Path) -> None:
    for template in ("template.yaml", "flow.yaml", "shared.yaml"):
        declared = json.loads((expanded / template).read_text())["Parameters"]
        required = {name for name, one in declared.items() if "Default" not in one}
        assert required == (set() if template == "shared.yaml" else {"ConfigLocation", "SubnetIds", "SecurityGroupIds"})


def test_every_select_finds_its_part_whatever_branch_is_taken(expanded: Path) -> None:
    """CloudFormation may resolve both branches of an Fn::If: none may select what is not there."""
    for arns in ({}, {"FirstClusterArn": cluster_arn("primary"), "SecondClusterArn": cluster_arn("backup")}):
        for location in ("s3://bucket/key", "ssm:/name"):
            stack = deployed(expanded, **arns, ConfigLocation=location)
            for _, one in stacks(stack, ""):
                for branch in _branches(json.loads(one.path.read_text())["Resources"]):
                    one.resolve(branch)


def _branches(value: object) -> list[Any]:
    """Return both branches of every Fn::If."""
    if isinstance(value, dict):
        inner = [branch for one in value.values() for branch in _branches(one)]
        return inner + (value["Fn::If"][1:] if "Fn::If" in value else [])
    return [branch for one in value for branch in _branches(one)] if isinstance(value, list) else []
