"""The image as one ECS service: linted, healthy by the page's answer, with the rights of all functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from click.testing import CliRunner

from mirrorless.cli.run import run
from mirrorless.rights import CONNECT, Function, On, needed
from mirrorless.settings import load
from mirrorless.settings.load import ENGINE_VARIABLE
from tests.support.cloudformation import Stack
from tests.support.template import ROOT

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

TEMPLATE: Final = ROOT / "infra" / "fargate.yaml"
CLUSTER: Final = "arn:aws:kafka:eu-central-1:111122223333:cluster/primary/1"
LINES: Final = (
    "clusters=primary,backup\nprimary.bootstrap.servers=a:1\nbackup.bootstrap.servers=b:1\n"
    "primary->backup.enabled=true\nsync.group.offsets.enabled=true\nmirrorless.acls.prune=true\n"
    "errors.tolerance=all\nerrors.deadletterqueue.topic.name=dead\nprimary.consumer.client.rack=a\n"
)


def deployed(**parameters: str) -> Stack:
    usual = {
        "Image": "mirrorless:1",
        "ConfigLocation": "s3://conf/mm2.properties",
        "ConfigArn": "arn:aws:s3:::conf/mm2.properties",
        "SubnetIds": "subnet-1,subnet-2",
        "SecurityGroupIds": "sg-1",
    }
    return Stack(TEMPLATE, usual | parameters, {})


def test_the_template_has_no_fault(tool: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    linted = tool("cfn-lint", TEMPLATE)
    assert linted.returncode == 0, linted.stdout


def test_one_task_in_two_zones_is_healthy_by_the_page_and_followed_by_the_next_one() -> None:
    stack = deployed()
    (service,) = stack.of_type("AWS::ECS::Service").values()
    network = service["NetworkConfiguration"]["AwsvpcConfiguration"]
    assert (network["Subnets"], network["AssignPublicIp"]) == (["subnet-1", "subnet-2"], "DISABLED")
    assert service["DesiredCount"] == 1
    # The next task plans while this one copies.
    assert service["DeploymentConfiguration"]["MaximumPercent"] == 200
    (task,) = stack.of_type("AWS::ECS::TaskDefinition").values()
    (container,) = task["ContainerDefinitions"]
    assert container["Command"][:2] == ["run", "s3://conf/mm2.properties"]
    assert "http://localhost:8480/readyz" in container["HealthCheck"]["Command"][-1]
    # Options of the command: an unknown one is refused before the file is read.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ENGINE_VARIABLE, "functions")  # the command sets it, for this process
        ended = CliRunner().invoke(run, ["none.properties", *container["Command"][2:]])
    assert "No such option" not in ended.output


def test_its_log_is_encrypted_with_the_key_that_is_given() -> None:
    (log,) = deployed(LogKmsKeyArn="arn:key").of_type("AWS::Logs::LogGroup").values()
    assert log["KmsKeyId"] == "arn:key"
    assert "KmsKeyId" not in deployed().of_type("AWS::Logs::LogGroup")["Log"]


def test_its_role_has_the_rights_of_every_function(tmp_path: Path) -> None:
    given = {"ClusterArns": CLUSTER, "TopicArns": f"{CLUSTER}/t", "GroupArns": f"{CLUSTER}/g"}
    role = deployed(**given).of_type("AWS::IAM::Role")["TaskRole"]
    statements: dict[str, Any] = {one["Sid"]: one for one in role["Policies"][0]["PolicyDocument"]["Statement"]}
    file = tmp_path / "mm2.properties"
    for lines in (LINES, f"{LINES}mirrorless.offsets=identical\n"):
        file.write_text(lines)
        rows = needed(load(str(file)).flow("primary->backup"), list(Function))
        for row in rows:
            sid = "Clusters" if row.on is On.CLUSTER else "Groups" if row.on.kind == "group" else "Topics"
            assert set(row.iam_actions) <= set(statements[sid]["Action"]), row
    assert CONNECT in statements["Clusters"]["Action"]
    none = deployed().of_type("AWS::IAM::Role")["TaskRole"]["Policies"][0]["PolicyDocument"]["Statement"]
    assert [one["Sid"] for one in none] == ["Configuration"]
