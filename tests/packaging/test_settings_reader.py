"""The custom resource answers with what the configuration says and with the zone of the jobs' subnet."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from mirrorless.functions.flow_resource import handler
from tests.packaging.test_publisher import Context, listening
from tests.support.aws import aws_server
from tests.support.aws_calls import SOURCE, reachable, rights
from tests.support.template import IAM, configuration, environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.packaging.test_publisher import CloudFormation


@pytest.fixture
def subnet(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A subnet in a zone, and a configuration in S3."""
    with aws_server() as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        ec2 = boto3.client("ec2")
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        made = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.1.0/24", AvailabilityZone="us-east-1c")["Subnet"]
        s3 = boto3.client("s3")
        s3.create_bucket(Bucket="conf")
        s3.put_object(Bucket="conf", Key="mm2.properties", Body=configuration(both_ways=True).encode())
        yield made["SubnetId"]


def answer(kind: str, cloudformation: CloudFormation, **properties: str) -> dict[str, Any]:
    event = cloudformation.event(kind) | {"LogicalResourceId": "Settings", "ResourceProperties": properties}
    handler(event, Context())
    return cloudformation.answers[-1]


def test_a_deployment_is_told_the_flow_and_the_zone(subnet: str) -> None:
    with listening() as cloudformation:
        given = {
            "ConfigLocation": "s3://conf/mm2.properties",
            "SubnetId": subnet,
            "ServiceToken": "arn",
            "Reverse": "true",
        }
        found = answer("Create", cloudformation, **given)
        assert found["Status"] == "SUCCESS"
        assert found["Data"]["Flow"] == "backup->primary"
        assert found["Data"]["AvailabilityZone"] == "us-east-1c"
        assert len(str(found)) < 4096  # CloudFormation's limit
        # Every attribute that the template takes is in the answer.
        pipeline = environment(BackwardEnabled="true").nested["Backward"]
        taken = set(re.findall(r"\bSettings\.([A-Z]\w+)", pipeline.path.read_text()))
        assert taken <= set(found["Data"])
        assert answer("Delete", cloudformation, **given)["Status"] == "SUCCESS"


def test_a_trigger_is_replaced_with_its_topic_and_only_then(subnet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def deploy(lines: str, now_s: int) -> dict[str, Any]:
        monkeypatch.setattr("mirrorless.functions.flow_resource.time", SimpleNamespace(time=lambda: now_s))
        boto3.client("s3").put_object(Bucket="conf", Key="mm2.properties", Body=configuration(lines).encode())
        before = (
            {"PhysicalResourceId": cloudformation.answers[-1]["PhysicalResourceId"]} if cloudformation.answers else {}
        )
        event = cloudformation.event("Update" if before else "Create", **before)
        properties = {"ConfigLocation": "s3://conf/mm2.properties", "SubnetId": subnet}
        handler(event | {"LogicalResourceId": "Settings", "ResourceProperties": properties}, Context())
        found: dict[str, Any] = cloudformation.answers[-1]
        assert found["Status"] == "SUCCESS", found
        return found

    with listening() as cloudformation:
        first = deploy("", 1_000)
        assert (first["Data"]["OffsetSyncsSince"], first["Data"]["HeartbeatsSince"]) == ("1000", "1000")
        again = deploy("tasks.max=4\n", 2_000)
        assert again["Data"] == first["Data"]
        assert again["PhysicalResourceId"] == first["PhysicalResourceId"]
        other = deploy("offset-syncs.topic.location=target\n", 3_000)
        assert (other["Data"]["OffsetSyncsSince"], other["Data"]["HeartbeatsSince"]) == ("3000", "1000")
        assert other["Data"]["OffsetSyncsId"] != first["Data"]["OffsetSyncsId"]
        # CloudFormation deletes the old id then, which is nothing.
        assert other["PhysicalResourceId"] != first["PhysicalResourceId"]
        separated = deploy("replication.policy.separator=_\n", 4_000)
        assert (separated["Data"]["OffsetSyncsSince"], separated["Data"]["HeartbeatsSince"]) == ("4000", "4000")


def test_a_configuration_that_cannot_be_used_fails_the_deployment_with_its_line(subnet: str) -> None:
    with listening() as cloudformation:
        missing = answer("Create", cloudformation, ConfigLocation="s3://conf/none", SubnetId=subnet)
        assert missing["Status"] == "FAILED"
        assert missing["Reason"].startswith("s3://conf/none: cannot be read: s3 answered NoSuchKey")
        other = {"ConfigLocation": "s3://conf/mm2.properties", "SubnetId": subnet, "Flow": "primary->other"}
        unknown = answer("Update", cloudformation, **other)
        assert "flow=primary->other: no such flow; did you mean primary->backup?" in unknown["Reason"]
        assert unknown["PhysicalResourceId"] == "Settings"  # as before: nothing is deleted


SCRAM = (
    'primary.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="u" '
    'password="%s";\n'
)
ROLE = (
    "primary.sasl.jaas.config=software.amazon.msk.auth.iam.IAMLoginModule required "
    'awsRoleArn="arn:aws:iam::444455556666:role/msk-reader";\n'
)
SECRET = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:kafka/user-AbCdEf"  # noqa: S105 -- an ARN
PARAMETER = "arn:aws:ssm:eu-central-1:111122223333:parameter/kafka/password"


@pytest.mark.parametrize(
    ("lines", "granted", "reason"),
    [
        (
            SCRAM % "${secretsmanager:kafka/user:password}",
            {"SecretArns": SECRET},
            "refers to secret kafka/user, which SecretArns does not have; add the secret's ARN to it",
        ),
        (
            SCRAM % f"${{secretsmanager:{SECRET}:password}}",
            {"SecretArns": SECRET},
            f"refers to secret {SECRET}, which SecretArns does not have; add the secret's ARN to it",
        ),
        (
            SCRAM % "${ssm:/kafka/password}",
            {"ParameterArns": "arn:aws:ssm:eu-central-1:111122223333:parameter/kafka/*"},
            "refers to parameter /kafka/password, which ParameterArns does not have; add its ARN to it",
        ),
        (
            SCRAM % "${ssm:/kafka/password}",
            {"ParameterArns": f"arn:other, {PARAMETER}"},
            "refers to parameter /kafka/password, which ParameterArns does not have; add its ARN to it",
        ),
        (
            ROLE,
            {"ClientRoleArns": "arn:aws:iam::444455556666:role/msk-reader"},
            "has awsRoleArn arn:aws:iam::444455556666:role/msk-reader, which ClientRoleArns does not have; "
            "add the role's ARN to it",
        ),
    ],
)
def test_a_configuration_whose_secrets_no_role_may_read_is_refused(
    subnet: str, lines: str, granted: dict[str, str], reason: str
) -> None:
    login = "{alias}.security.protocol=SASL_SSL\n{alias}.sasl.mechanism=SCRAM-SHA-512\n"
    text = configuration(lines, first=login if "Scram" in lines else IAM)
    boto3.client("s3").put_object(Bucket="conf", Key="secret.properties", Body=text.encode())
    given = {"ConfigLocation": "s3://conf/secret.properties", "SubnetId": subnet}
    with listening() as cloudformation:
        refused = answer("Create", cloudformation, **given, SecretArns="", ParameterArns="", ClientRoleArns="")
        line = f"s3://conf/secret.properties: primary.sasl.jaas.config: {reason}; log group /mirrorless/test/publisher"
        assert (refused["Status"], refused["Reason"]) == ("FAILED", line)
        assert answer("Create", cloudformation, **given, **granted)["Status"] == "SUCCESS"


@pytest.mark.parametrize(
    ("lines", "given", "reason"),
    [
        (
            "",
            {},
            "mirrorless.engine: is auto, and GlueJobs=false deploys no Glue job; set it to functions, "
            "or set GlueJobs=true",
        ),
        (
            "mirrorless.engine=spark\n",
            {},
            "mirrorless.engine: is spark, and GlueJobs=false deploys no Glue job; set it to functions, "
            "or set GlueJobs=true",
        ),
        (
            "mirrorless.engine=functions\n",
            {"VerifySchedule": "cron(30 1 * * ? *)"},
            "VerifySchedule: is cron(30 1 * * ? *), and GlueJobs=false deploys no Glue job; leave it empty, "
            "or set GlueJobs=true",
        ),
    ],
)
def test_a_flow_that_needs_a_job_is_refused_without_jobs(
    subnet: str, lines: str, given: dict[str, str], reason: str
) -> None:
    boto3.client("s3").put_object(Bucket="conf", Key="jobs.properties", Body=configuration(lines).encode())
    usual = {"ConfigLocation": "s3://conf/jobs.properties", "SubnetId": subnet, "VerifySchedule": ""} | given
    with listening() as cloudformation:
        refused = answer("Update", cloudformation, **usual, GlueJobs="false")
        line = f"s3://conf/jobs.properties: {reason}; log group /mirrorless/test/publisher"
        assert (refused["Status"], refused["Reason"]) == ("FAILED", line)
        assert answer("Update", cloudformation, **usual, GlueJobs="true")["Status"] == "SUCCESS"
        functions = configuration("mirrorless.engine=functions\n").encode()
        boto3.client("s3").put_object(Bucket="conf", Key="jobs.properties", Body=functions)
        without = answer("Update", cloudformation, **(usual | {"VerifySchedule": ""}), GlueJobs="false")
        assert without["Status"] == "SUCCESS"


def test_the_reader_may_do_what_it_does_and_nothing_else() -> None:
    pipeline = environment(KmsKeyArns="arn:aws:kms:eu-central-1:111122223333:key/1").nested["Forward"]
    (policy,) = pipeline.of_type("AWS::IAM::Role")["SettingsReaderRole"]["Policies"]
    allowed = {one["Sid"]: one["Action"] for one in policy["PolicyDocument"]["Statement"]}
    assert allowed == {
        "Log": ["logs:CreateLogStream", "logs:PutLogEvents"],
        "Zone": "ec2:DescribeSubnets",
        "ConfigurationInS3": ["s3:GetObject", "s3:GetObjectVersion"],
        "Key": "kms:Decrypt",
    }
    entry = SOURCE / "mirrorless" / "functions" / "flow_resource.py"
    asked = {right for path in reachable(entry) for right in rights(path)}
    # Secrets are resolved when a client is made, which this function never does.
    assert asked - {"ssm:GetParameter", "secretsmanager:GetSecretValue"} == {
        "ec2:DescribeSubnets",
        "s3:GetObject",
        "s3:GetObjectVersion",
    }
    function = pipeline.of_type("AWS::Lambda::Function")["SettingsReader"]
    code = function["Code"]["ZipFile"]
    assert function["Handler"] == "index.handler"
    assert code == "from mirrorless.functions.flow_resource import handler\n"
