"""Stacks of the templates are created, changed and deleted by a CloudFormation, moto's.

moto has no SAM transform: what it gets is what samtranslator and the resolver make of the templates, a stack for each
of them, without nesting. It cannot make the types in `NOT_MADE`: they are linted (test_expanded) and otherwise
untested. Custom resources would run in Docker, so their functions are tested by themselves (test_publisher,
test_settings_reader). It changes functions, and leaves log groups as they are. Whether AWS accepts a role, an event
source or a schedule is not known to moto either.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING, Any, Final

import boto3
import pytest
from moto.cloudformation import parsing
from moto.core.models import DEFAULT_ACCOUNT_ID

from tests.packaging.test_expanded import deployed
from tests.support.aws import aws_server
from tests.support.expanded import expand_all, resolved, stacks
from tests.support.template import ACCOUNT, REGION, ROOT, cluster_arn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.cloudformation import Stack

NOT_MADE: Final = frozenset(
    {
        "AWS::CloudWatch::Alarm",
        "AWS::CloudWatch::CompositeAlarm",
        "AWS::Glue::Connection",
        "AWS::Glue::Job",
        "AWS::Glue::Trigger",
        "AWS::Lambda::Alias",
        "AWS::Lambda::EventInvokeConfig",
        "AWS::Lambda::EventSourceMapping",  # it makes some, none of Kafka
        "AWS::S3::BucketPolicy",
        "AWS::SQS::QueuePolicy",
        # By other means, see above.
        "AWS::CloudFormation::Stack",
        "AWS::CloudFormation::WaitConditionHandle",
        "AWS::Serverless::Application",
        "Custom::MirrorlessFlow",
        "Custom::MirrorlessRelease",
    }
)
ORDER: Final = ("Shared", "Roles", "Forward", "KafkaTriggers", "Watch")
"""Nested stacks in the order in which they refer to each other."""
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def expanded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return expand_all(tmp_path_factory.mktemp("expanded"))


@pytest.fixture
def aws() -> Iterator[Callable[[str], Any]]:
    with aws_server() as variables:

        def client(service: str) -> Any:  # noqa: ANN401 -- boto3's
            return boto3.client(
                service,
                endpoint_url=variables["AWS_ENDPOINT_URL"],
                region_name=REGION,
                aws_access_key_id="test",
                aws_secret_access_key="test",  # noqa: S106 -- moto takes any
            )

        yield client


def environment(expanded: Path, **parameters: str) -> dict[str, Stack]:
    """Return every stack of a deployment by the path of its name."""
    usual = {
        "FirstClusterArn": cluster_arn("primary"),
        "SecondClusterArn": cluster_arn("backup"),
        "VerifySchedule": "cron(30 1 * * ? *)",
    }
    return dict(stacks(deployed(expanded, **(usual | parameters)), "environment"))


def test_stacks_are_created_changed_and_deleted(expanded: Path, aws: Callable[[str], Any]) -> None:
    _upload_code(aws, environment(expanded))
    cloudformation = aws("cloudformation")
    before, after = (
        environment(expanded),
        environment(expanded, LogLevel="DEBUG", ForwardCopyFunctions="2", GlueJobs="false"),
    )
    made = [name for name, stack in before.items() if resolved(stack, without=NOT_MADE)["Resources"]]
    made.sort(key=lambda name: next(at for at, part in enumerate(ORDER) if name.endswith(part)))
    names: dict[str, str] = {}
    for name in made:
        body = _body(before[name], names)
        cloudformation.create_stack(StackName=name, TemplateBody=body, Capabilities=["CAPABILITY_IAM"])
        names |= _expect(cloudformation, name, "CREATE_COMPLETE", before[name])
    functions = aws("lambda").list_functions()["Functions"]
    assert len(functions) == 9 + 2  # the reader of the settings and the publisher too
    assert len(aws("events").list_rules()["Rules"]) == 9 + 2
    assert {one["retentionInDays"] for one in aws("logs").describe_log_groups()["logGroups"]} == {30}
    assert aws("ssm").get_parameter(Name="/mirrorless/stack/artifacts")["Parameter"]["Value"]
    roles = [one for one in aws("iam").list_roles()["Roles"] if one["RoleName"].startswith("environment-")]
    assert len(roles) == 11 + 2

    for name in made:
        body = _body(after[name], names)
        cloudformation.update_stack(StackName=name, TemplateBody=body, Capabilities=["CAPABILITY_IAM"])
        _expect(cloudformation, name, "UPDATE_COMPLETE", after[name])
    changed = aws("lambda").list_functions()["Functions"]
    levels = [one["Environment"]["Variables"].get("LOG_LEVEL") for one in changed if "Environment" in one]
    assert levels.count("DEBUG") == 9
    # Without the jobs their roles and logs are gone.
    names_of_roles = [one["RoleName"] for one in aws("iam").list_roles()["Roles"]]
    assert len([one for one in names_of_roles if one.startswith("environment-")]) == 9 + 2
    logs = [one["logGroupName"] for one in aws("logs").describe_log_groups()["logGroups"]]
    assert sorted(logs) == ["/mirrorless/stack-forward/functions", "/mirrorless/stack/publisher"]
    # Several functions copy: each starts the others.
    (copy,) = [one["RoleName"] for one in aws("iam").list_roles()["Roles"] if "-CopyRole-" in one["RoleName"]]
    attached = aws("iam").list_attached_role_policies(RoleName=copy)["AttachedPolicies"]
    (others,) = [one["PolicyArn"] for one in attached if "CopyStartsOthers" in one["PolicyName"]]
    # CloudFormation detaches a policy from the roles that it names before it deletes it; moto does not.
    aws("iam").detach_role_policy(RoleName=copy, PolicyArn=others)

    for name in reversed(made):
        cloudformation.delete_stack(StackName=name)
    assert not aws("lambda").list_functions()["Functions"]
    assert not aws("logs").describe_log_groups()["logGroups"]
    assert not [one for one in aws("iam").list_roles()["Roles"] if one["RoleName"].startswith("environment-")]


def test_a_stack_with_reports_is_deleted_and_its_bucket_stays(expanded: Path, aws: Callable[[str], Any]) -> None:
    shared = next(stack for name, stack in environment(expanded).items() if name.endswith("Shared"))
    kept = {name for name, one in shared.resources.items() if one.get("DeletionPolicy") == "RetainExceptOnCreate"}
    assert kept == {"Artifacts", "ArtifactsOnlyByTls"}
    assert all(shared.resources[name]["UpdateReplacePolicy"] == "Retain" for name in kept)
    _upload_code(aws, environment(expanded))
    cloudformation, s3 = aws("cloudformation"), aws("s3")
    # moto knows the older policy only.
    body = _body(shared, {}).replace("RetainExceptOnCreate", "Retain")
    cloudformation.create_stack(StackName="shared", TemplateBody=body, Capabilities=["CAPABILITY_IAM"])
    bucket = _expect(cloudformation, "shared", "CREATE_COMPLETE", shared)["Artifacts"]
    assert shared.resources["Artifacts"]["Properties"]["VersioningConfiguration"] == {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})  # moto leaves it out
    for content in (b"one", b"two"):
        s3.put_object(Bucket=bucket, Key="verify/report.json", Body=content)
    cloudformation.delete_stack(StackName="shared")
    assert not [
        one for one in cloudformation.list_stacks()["StackSummaries"] if one["StackStatus"] != "DELETE_COMPLETE"
    ]
    assert s3.get_object(Bucket=bucket, Key="verify/report.json")["Body"].read() == b"two"

    # The line of docs/deployment.md that deletes the reports.
    (line,) = re.findall(r"python -c '(import boto3[^']+)' <bucket>", (ROOT / "docs" / "deployment.md").read_text())
    made = subprocess.run(
        [sys.executable, "-c", line, bucket],
        env=os.environ
        | {
            "AWS_ENDPOINT_URL": s3.meta.endpoint_url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": REGION,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    assert bucket not in {one["Name"] for one in s3.list_buckets()["Buckets"]}


def test_what_is_not_made_is_what_moto_cannot_make(expanded: Path) -> None:
    used = {resource["Type"] for stack in environment(expanded).values() for resource in stack.resources.values()}
    unknown = {kind for kind in used if parsing.resource_class_from_type(kind) is None}
    assert unknown - NOT_MADE == set()
    others = {kind for kind in NOT_MADE - unknown if not kind.startswith(("Custom::", "AWS::CloudFormation::"))}
    assert others == {"AWS::Lambda::EventSourceMapping"}


def _body(stack: Stack, names: dict[str, str]) -> str:
    """Return a stack's template; `names` are those of resources of the stacks before it."""
    template = resolved(stack, without=NOT_MADE)
    # moto wants a resource; on AWS the trigger's stack has a handle that is nothing.
    template["Resources"] = template["Resources"] or {"Empty": {"Type": "AWS::SQS::Queue", "Properties": {}}}
    text = json.dumps(template).replace(ACCOUNT, DEFAULT_ACCOUNT_ID)
    for logical, name in names.items():
        text = text.replace(f'role/{logical}"', f'role/{name}"')
        text = text.replace(f'"Roles": ["{logical}"]', f'"Roles": ["{name}"]')
        text = text.replace(f'"FunctionName": "{logical}"', f'"FunctionName": "{name}"')
    return text


def _expect(cloudformation: Any, name: str, status: str, stack: Stack) -> dict[str, str]:  # noqa: ANN401 -- boto3's
    """Check that a stack is there with all its resources; return their names."""
    (found,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    assert found["StackStatus"] == status, found.get("StackStatusReason")
    listed = cloudformation.describe_stack_resources(StackName=name)["StackResources"]
    # Of some resources that it updated moto lists no name.
    there = {
        one["LogicalResourceId"]: one.get("PhysicalResourceId", "") for one in listed if "LogicalResourceId" in one
    }
    if status == "CREATE_COMPLETE":
        assert set(resolved(stack, without=NOT_MADE)["Resources"]) <= there.keys(), name
    return there


def _upload_code(aws: Callable[[str], Any], found: dict[str, Stack]) -> None:
    """What `sam package` uploads, here archives with nothing in them that would run, and the layer of functions."""
    s3 = aws("s3")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("app.py", "")
    aws("lambda").publish_layer_version(LayerName="library", Content={"ZipFile": archive.getvalue()})
    s3.create_bucket(Bucket="uploads", CreateBucketConfiguration={"LocationConstraint": REGION})
    for stack in found.values():
        for one in stack.resources.values():
            code = one.get("Properties", {}).get("Code", one.get("Properties", {}).get("Content", {}))
            if "S3Key" in code:
                s3.put_object(Bucket="uploads", Key=code["S3Key"], Body=archive.getvalue())
