"""What a role allows at AWS is what the code behind it asks for, no less and no more."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest
from moto.iam.policy_validation import IAMPolicyDocumentValidator

from tests.support.aws_calls import ROOT, reachable, rights
from tests.support.template import Stack, cluster_arn, environment

FUNCTIONS: Final = (
    "topic_discovery",
    "config_sync",
    "acl_sync",
    "heartbeat",
    "checkpoint",
    "heartbeat_monitor",
    "job_supervisor",
    "copy",
    "drill",
)
ENTRIES: Final = {name: ROOT / "functions" / name / "app.py" for name in FUNCTIONS} | {
    name: ROOT / "glue_jobs" / f"{name}.py" for name in ("partition_copy", "verify_copy")
}
NOT_OURS: Final[dict[str, set[str] | None]] = {
    # Lambda and Glue write the logs.
    "Log": {"logs:CreateLogStream", "logs:PutLogEvents"},
    # Lambda sends there what a schedule's invocation or a trigger gives up on; two functions do by themselves too.
    "Failures": {"sqs:SendMessage"},
    # Lambda and Glue make network interfaces, and Glue marks its own.
    "Network": None,
    "NetworkTags": {"ec2:CreateTags", "ec2:DeleteTags"},
    # Glue looks up where to put workers, fetches script and environment, and may leave files in its --TempDir.
    "Connection": {"glue:GetConnection"},
    "Release": {"s3:GetObject"},
    "TemporaryFiles": {"s3:GetObject", "s3:PutObject", "s3:DeleteObject"},
    # S3, SSM and Secrets Manager decrypt in our name.
    "Key": {"kms:Decrypt"},
    # MSK's signer assumes the role of awsRoleArn.
    "ClientRoles": {"sts:AssumeRole"},
    # Lambda's poller.
    "TriggerFindsCluster": {
        "kafka:DescribeCluster",
        "kafka:DescribeClusterV2",
        "kafka:DescribeVpcConnection",
        "kafka:GetBootstrapBrokers",
        "kafka:ListScramSecrets",
    },
    "TriggerNetwork": {"ec2:DescribeVpcs", "ec2:DescribeSecurityGroups"},
    "TriggerSecret": {"secretsmanager:GetSecretValue"},
    "TriggerRootCa": {"secretsmanager:GetSecretValue"},
}
"""What the platform does in a role's name, by the statement that allows it; None is any action of EC2's."""
WITHOUT_RESOURCES: Final = {"Network", "TriggerNetwork", "Metrics"}


@pytest.fixture(scope="module")
def flow() -> Stack:
    """Everything that a configuration can refer to is referred to, and several functions copy."""
    return environment(
        SecretArns="arn:aws:secretsmanager:eu-central-1:111122223333:secret:kafka-AbCdEf",
        ParameterArns="arn:aws:ssm:eu-central-1:111122223333:parameter/kafka",
        ClientRoleArns="arn:aws:iam::444455556666:role/msk-reader",
        KmsKeyArns="arn:aws:kms:eu-central-1:111122223333:key/1,arn:aws:kms:eu-central-1:111122223333:key/2",
        first="{alias}.security.protocol=SASL_SSL\n{alias}.sasl.mechanism=SCRAM-SHA-512\n",
        FirstSecretArn="arn:aws:secretsmanager:eu-central-1:111122223333:secret:AmazonMSK_first-AbCdEf",
        ForwardCopyFunctions="2",
    ).nested["Forward"]


def statements(flow: Stack, function: str) -> list[dict[str, Any]]:
    """Return what a role allows: its own policies, those that it names, and those that name it."""
    roles = flow.nested["Roles"]
    name = f"{''.join(part.title() for part in function.split('_'))}Role"
    role, managed = roles.of_type("AWS::IAM::Role")[name], roles.of_type("AWS::IAM::ManagedPolicy")
    documents = [managed[one.strip("<>")]["PolicyDocument"] for one in role["ManagedPolicyArns"]]
    documents += [policy["PolicyDocument"] for policy in role["Policies"]]
    documents += [
        one["PolicyDocument"] for one in flow.of_type("AWS::IAM::ManagedPolicy").values() if f"<{name}>" in one["Roles"]
    ]
    return [one for document in documents for one in document["Statement"] if one["Effect"] == "Allow"]


def actions(statement: dict[str, Any]) -> set[str]:
    """Return the actions of a statement, which may be one or several."""
    allowed = statement["Action"]
    return {allowed} if isinstance(allowed, str) else set(allowed)


@pytest.mark.parametrize("function", ENTRIES)
def test_every_request_in_the_code_is_allowed_and_nothing_else(flow: Stack, function: str) -> None:
    asked = {right for path in reachable(ENTRIES[function]) for right in rights(path)}
    ours = [one for one in statements(flow, function) if not any(a.startswith("kafka-cluster:") for a in actions(one))]
    allowed = {action for one in ours for action in actions(one)}
    for one in ours:
        if one["Sid"] in NOT_OURS:
            expected = NOT_OURS[one["Sid"]]
            assert actions(one) | _where_there_is_a_secret(one) == expected or (
                expected is None and all(a.startswith("ec2:") for a in actions(one))
            )
    platform = {action for one in ours if one["Sid"] in NOT_OURS for action in actions(one)}
    in_ssm = {"ssm:GetParameter"}
    assert asked - in_ssm <= allowed
    assert allowed - platform <= asked


def _where_there_is_a_secret(statement: dict[str, Any]) -> set[str]:
    """The cluster that the monitor's trigger is on logs nobody in with one."""
    on_target = statement["Sid"] == "TriggerFindsCluster" and "backup" in str(statement["Resource"])
    return {"kafka:ListScramSecrets"} if on_target else set()


def test_the_configuration_may_be_in_s3_or_in_ssm() -> None:
    def resource(location: str) -> object:
        roles = environment(ConfigLocation=location).nested["Forward"].nested["Roles"]
        (one,) = roles.of_type("AWS::IAM::ManagedPolicy")["Configuration"]["PolicyDocument"]["Statement"]
        return one["Action"], one["Resource"]

    in_s3 = (["s3:GetObject", "s3:GetObjectVersion"], "arn:aws:s3:::bucket/a/mm2.properties")
    in_ssm = ("ssm:GetParameter", "arn:aws:ssm:eu-central-1:111122223333:parameter/kafka/mm2")
    for location in ("s3://bucket/a/mm2.properties", "s3://bucket/a/mm2.properties?versionId=3sL4kqtJlcpXroDTDmJ"):
        assert resource(location) == in_s3
    for location in ("ssm:/kafka/mm2", "ssm:/kafka/mm2:3"):
        assert resource(location) == in_ssm


@pytest.mark.parametrize("function", ENTRIES)
def test_a_star_stands_only_where_aws_knows_no_resource(flow: Stack, function: str) -> None:
    for one in statements(flow, function):
        resources = [one["Resource"]] if isinstance(one["Resource"], str) else one["Resource"]
        assert ("*" in resources) == (one["Sid"] in WITHOUT_RESOURCES), one
        assert not any("*" in action for action in actions(one)), one


def test_the_publisher_may_do_what_it_does_and_nothing_else() -> None:
    (policy,) = environment().nested["Shared"].of_type("AWS::IAM::Role")["PublisherRole"]["Policies"]
    publish, find, used, layers, log = policy["PolicyDocument"]["Statement"]
    assert actions(find) == {"s3:ListBucket"}
    asked = rights(ROOT / "infra" / "publisher" / "app.py")
    assert actions(publish) | actions(layers) == asked
    # By paginators, which are no calls of their names.
    assert (actions(used), used["Resource"]) == (
        {"glue:GetJobs", "lambda:ListFunctions", "lambda:ListLayerVersions"},
        "*",
    )
    assert layers["Resource"] == "arn:aws:lambda:eu-central-1:111122223333:layer:stack-library:*"
    assert actions(log) == {"logs:CreateLogStream", "logs:PutLogEvents"}


@pytest.mark.parametrize("iam", ["first", "second", "none"])
def test_no_role_is_empty_where_a_cluster_does_not_log_in_by_iam(iam: str) -> None:
    how = {"first": {"second": ""}, "second": {"first": ""}}.get(iam, {"first": "", "second": ""})
    flow = environment(**how, BackwardEnabled="true").nested["Forward"]
    for function in ENTRIES:
        found = statements(flow, function)
        kafka = [one for one in found if any(action.startswith("kafka-cluster:") for action in actions(one))]
        assert found
        assert not kafka or iam != "none"
    roles = flow.nested["Roles"]
    for role in roles.of_type("AWS::IAM::Role").values():
        assert all(policy["PolicyDocument"]["Statement"] for policy in role["Policies"])
    assert all(one["PolicyDocument"]["Statement"] for one in roles.of_type("AWS::IAM::ManagedPolicy").values())


def test_acls_are_altered_only_if_they_are_synchronized() -> None:
    flow = environment("sync.topic.acls.enabled=false\nmirrorless.acls.prune=true\n").nested["Forward"]
    allowed = {action for one in statements(flow, "acl_sync") for action in actions(one)}
    assert not allowed & {"kafka-cluster:AlterCluster", "kafka-cluster:DescribeCluster", "kafka-cluster:WriteData"}
    on = {action for one in statements(environment().nested["Forward"], "acl_sync") for action in actions(one)}
    assert "kafka-cluster:AlterCluster" in on


@pytest.mark.parametrize(
    ("topics", "given", "pattern"),
    [
        (".*", "*", "*"),
        ("orders", "*", "orders"),
        ("orders, orders-dlq", "*", "orders*"),
        ("orders, payments", "*", "*"),
        ("orders.*", "*", "orders*"),
        ("orders?", "*", "order*"),
        (r"orders\\.v1", "*", "orders*"),
        ("orders|payments", "*", "*"),
        ("shop-orders, shop-pay.*", "*", "shop-*"),
        ("orders", "shop*", "shop*"),
    ],
)
def test_rights_are_on_the_topics_and_groups_that_the_settings_name(topics: str, given: str, pattern: str) -> None:
    flow = environment(f"topics={topics}\ngroups={topics}\n", FirstTopics=given, FirstGroups=given).nested["Forward"]
    roles = flow.nested["Roles"].parameters
    assert (roles["Topics"], roles["RemoteTopics"], roles["Groups"]) == (pattern, f"primary.{pattern}", pattern)


def test_a_function_that_copies_alone_starts_no_other(flow: Stack) -> None:
    (others,) = [one for one in statements(flow, "copy") if one["Sid"] == "Others"]
    assert (others["Action"], others["Resource"]) == ("lambda:InvokeFunction", "<Copy.Arn>")
    alone = environment().nested["Forward"]
    assert not alone.of_type("AWS::IAM::ManagedPolicy")
    assert not [one for one in statements(alone, "copy") if one["Sid"] == "Others"]


def test_a_role_has_no_more_policies_than_iam_takes() -> None:
    flow = environment(BackwardEnabled="true", ForwardCopyFunctions="2").nested["Forward"]
    most = max(len(one["ManagedPolicyArns"]) for one in flow.nested["Roles"].of_type("AWS::IAM::Role").values())
    assert most + len(flow.of_type("AWS::IAM::ManagedPolicy")) <= 10


def names(kind: str, length: int) -> dict[str, str]:
    """Return clusters whose names are as long as MSK takes them."""
    return {f"{one}ClusterArn": cluster_arn(kind * length) for one in ("First", "Second")}


@pytest.mark.parametrize("clusters", [{}, names("n", 64)], ids=["usual names", "long names"])
@pytest.mark.parametrize("location", ["source", "target"])
@pytest.mark.parametrize("both_ways", ["false", "true"])
def test_policies_are_well_formed_and_no_larger_than_iam_takes(
    both_ways: str, location: str, clusters: dict[str, str]
) -> None:
    lines = (
        f"offset-syncs.topic.location={location}\nsync.group.offsets.enabled=true\nmirrorless.acls.prune=true\n"
        "errors.tolerance=all\nerrors.deadletterqueue.topic.name=dead\nmirrorless.start.group=before\n"
    )
    flow = environment(lines, BackwardEnabled=both_ways, ForwardCopyFunctions="2", **clusters).nested["Forward"]
    roles = flow.nested["Roles"]
    policies = [*roles.of_type("AWS::IAM::ManagedPolicy").values(), *flow.of_type("AWS::IAM::ManagedPolicy").values()]
    documents = [one["PolicyDocument"] for one in policies]
    documents += [
        policy["PolicyDocument"] for role in roles.of_type("AWS::IAM::Role").values() for policy in role["Policies"]
    ]
    assert len(documents) == (19 if both_ways == "false" else 20)
    for document in documents:
        # Attributes of resources are ARNs that only AWS knows.
        text = re.sub(r"<[^>]+>", "arn:aws:any:::thing", json.dumps(document))
        IAMPolicyDocumentValidator(text).validate()
        # 6,144 for a managed policy, 10,240 for all that are in a role; every role has one.
        assert len(text) < 6_144
