"""`mirrorless doctor --aws` against an AWS on loopback: what fits, what does not, and what may not be looked at."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner
from moto.core.models import DEFAULT_ACCOUNT_ID as ACCOUNT
from moto.kms.models import kms_backends

from mirrorless.cli.doctor import doctor
from mirrorless.doctor.aws.api import Api
from tests.support.aws import aws_server
from tests.support.aws_account import CONFIGURATION, ELSEWHERE, REGION, STACK, Account

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
DENIED = ["ec2:DescribeRouteTables", "secretsmanager:DescribeSecret"]
Lines = dict[str, list[dict[str, str]]]


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with aws_server() as found:
        for name, value in (found | {"AWS_DEFAULT_REGION": REGION, "AWS_REGION": REGION}).items():
            monkeypatch.setenv(name, value)
        yield found


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The concurrency of the account, which moto does not know."""
    found = {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 900}
    ask = Api.ask

    def answer(api: Api, action: str, **parameters: object) -> dict[str, Any]:
        return {"AccountLimit": found} if action == "lambda:GetAccountSettings" else ask(api, action, **parameters)

    monkeypatch.setattr(Api, "ask", answer)
    return found


@pytest.fixture
def account(variables: dict[str, str], limits: dict[str, int]) -> Account:
    return Account()


def examined(where: object, *, status: int | None = None) -> Lines:
    """The findings of the only deployment, by check."""
    ended = CliRunner().invoke(doctor, ["--aws", str(where), "--json"], catch_exceptions=False)
    document = json.loads(ended.stdout)
    assert document["flows"] == {}
    (findings,) = document["aws"].values()
    failed = any(one["status"] == "failed" for one in findings)
    assert ended.exit_code == (1 if failed else 0)
    assert status is None or ended.exit_code == status
    found: Lines = {}
    for one in findings:
        found.setdefault(one["check"], []).append(one)
        # What fails or warns says what to change.
        assert one["status"] not in ("failed", "warning") or one["fix"], one
    return found


def wrong(found: Lines) -> list[str]:
    """The checks that are not well, each with what it says."""
    return [f"{one['check']}: {one['text']}" for some in found.values() for one in some if one["status"] != "ok"]


def only(found: Lines, check: str, status: str = "failed") -> dict[str, str]:
    """The only finding of a check that is not well, and of all checks."""
    (one,) = [one for some in found.values() for one in some if one["status"] != "ok"]
    assert (one["check"], one["status"]) == (check, status), one
    return one


def test_a_deployment_that_fits(account: Account) -> None:
    key = account.key()
    secret = account.secret("AmazonMSK_backup", key)
    account.parameters |= {"SecretArns": secret, "SecondSecretArn": secret, "KmsKeyArns": key}
    account.deploy()
    account.run(account.jobs[0], "RUNNING")
    account.run(account.jobs[1], "SUCCEEDED")
    account.mapping("Checkpoint")
    account.mapping("HeartbeatMonitor")

    found = examined(STACK, status=0)

    assert wrong(found) == []
    assert list(found) == [
        "subnets",
        "zone",
        "security groups",
        "access to AWS",
        "access of triggers to AWS",
        "access to brokers",
        "regions",
        "configuration",
        "secrets",
        "concurrency",
        "functions that copy",
        "triggers",
        "job runs",
    ]
    assert [one["text"].split(" since ")[0] for one in found["job runs"]] == [
        f"{STACK}-forward-copy: RUNNING",
        f"{STACK}-forward-verify: SUCCEEDED",
    ]
    assert [one["text"].endswith(" is enabled; last result: OK") for one in found["triggers"]] == [True, True]


def test_a_stack_that_does_not_exist_and_one_of_something_else(account: Account) -> None:
    runner = CliRunner()
    missing = runner.invoke(doctor, ["--aws", "mirrorless-typo"])
    assert "mirrorless-typo is neither a file nor a stack in eu-west-1" in str(missing.exception)
    account.client("cloudformation").create_stack(
        StackName="queue", TemplateBody='{"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}}'
    )
    other = runner.invoke(doctor, ["--aws", "queue"])
    assert "stack queue has no parameter SubnetIds" in str(other.exception)
    assert runner.invoke(doctor, []).exit_code == 2


@pytest.mark.parametrize("zone", [f"{REGION}b", None])
def test_a_connection_in_another_zone_than_its_subnet(account: Account, zone: str | None) -> None:
    account.deploy()
    account.run(account.jobs[0], "RUNNING")
    account.mapping("Checkpoint")
    account.connection(zone)

    failed = only(examined(STACK), "zone")

    assert failed["text"] == (
        f"connection {STACK}-forward has {account.subnets[0]} and zone {zone or 'none'}, {account.subnets[0]} is in "
        f"{REGION}a"
    )


def test_subnets_of_two_networks_and_subnets_that_are_gone(account: Account, tmp_path: Path) -> None:
    other = str(account.ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"])
    away = account.subnet("10.1.1.0/24", account.zones[0], other)
    found = examined(account.samconfig(tmp_path, SubnetIds=f"{account.subnets[0]},{away}"))
    assert "are in 2 VPCs" in found["subnets"][0]["text"]
    gone = examined(account.samconfig(tmp_path, SubnetIds=f"{account.subnets[0]},subnet-0123456789abcdef0"))
    assert gone["subnets"][0]["text"] == "subnet-0123456789abcdef0 of SubnetIds do not exist in eu-west-1"
    empty = examined(account.samconfig(tmp_path, SubnetIds=""))
    assert empty["subnets"][0]["text"] == "SubnetIds is empty"


def test_a_security_group_without_a_rule_for_itself(account: Account, tmp_path: Path) -> None:
    group = account.security_group("closed")
    account.allow(group, "10.0.0.0/16")
    account.allow(group, group, first=443, last=443)
    account.allow(account.group, group, first=9098, last=9098)

    failed = only(examined(account.samconfig(tmp_path, SecurityGroupIds=group), status=1), "security groups")

    assert failed["text"].startswith(f"{group} does not allow all inbound TCP from itself; ")
    assert failed["fix"] == f"add an inbound rule to {group}: all TCP (ports 0-65535), source {group}"


def test_a_security_group_that_lets_nothing_out(account: Account, tmp_path: Path) -> None:
    rules = account.ec2.describe_security_groups(GroupIds=[account.group])["SecurityGroups"][0]["IpPermissionsEgress"]
    account.ec2.revoke_security_group_egress(GroupId=account.group, IpPermissions=rules)
    failed = only(examined(account.samconfig(tmp_path)), "security groups")
    assert failed["text"].startswith(f"{account.group} does not allow all outbound TCP to itself; ")


def test_a_security_group_of_another_network(account: Account, tmp_path: Path) -> None:
    other = str(account.ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"])
    group = account.security_group("away", other)
    failed = only(examined(account.samconfig(tmp_path, SecurityGroupIds=f"{account.group},{group}")), "security groups")
    assert failed["text"] == f"{group} of SecurityGroupIds are not in {account.vpc}, the VPC of the subnets"


def test_endpoints_instead_of_nat(account: Account, tmp_path: Path) -> None:
    account.without_nat()
    account.endpoints()
    found = examined(account.samconfig(tmp_path), status=0)
    assert wrong(found) == []
    assert found["access to AWS"][0]["text"] == (f"{account.subnets[0]}: endpoints for s3, glue, monitoring, logs, sqs")
    assert found["access of triggers to AWS"][1]["text"] == f"{account.subnets[1]}: endpoints for lambda, sts, sqs"


def test_a_deployment_without_jobs_needs_less(account: Account, tmp_path: Path) -> None:
    _write(account, "primary->backup.enabled = true\nmirrorless.engine = functions\n")
    account.without_nat()
    account.endpoints("glue", "monitoring", "logs")
    everything = {"IpProtocol": "tcp", "FromPort": 0, "ToPort": 65535}
    rule = everything | {"UserIdGroupPairs": [{"GroupId": account.group}]}
    account.ec2.revoke_security_group_ingress(GroupId=account.group, IpPermissions=[rule])
    account.allow(account.group, account.group, first=443, last=443)
    account.allow(account.group, account.group, first=9098, last=9098)
    account.parameters |= {"GlueJobs": "false"}
    found = examined(account.samconfig(tmp_path), status=0)
    assert wrong(found) == []
    assert "zone" not in found
    assert [one["text"].partition(" of vpc")[0] for one in found["security groups"]] == [account.group]


def _write(account: Account, lines: str) -> None:
    body = (CONFIGURATION + lines).encode()
    account.client("s3").put_object(Bucket="conf", Key="mm2.properties", Body=body)


def test_a_flow_that_spark_may_copy_is_refused_without_jobs(account: Account, tmp_path: Path) -> None:
    _write(account, "primary->backup.enabled = true\n")
    account.parameters |= {"GlueJobs": "false"}
    refused = only(examined(account.samconfig(tmp_path)), "configuration")
    assert refused["text"] == (
        "s3://conf/mm2.properties: mirrorless.engine is auto, and GlueJobs=false deploys no Glue job: "
        "the deployment is refused"
    )
    assert refused["fix"] == "set it to functions, or set GlueJobs=true"


def test_endpoints_that_are_missing(account: Account, tmp_path: Path) -> None:
    account.without_nat()
    account.endpoints("s3", "glue", "lambda")
    secret = account.secret("password")
    found = examined(account.samconfig(tmp_path, SecretArns=secret), status=1)
    for one, subnet in zip(found["access to AWS"], account.subnets, strict=True):
        assert one["text"] == f"{subnet} ({account.vpc}): no NAT, and no endpoint for s3, glue"
        assert one["fix"] == (
            f"route 0.0.0.0/0 of {account.main_table()} to a NAT gateway, or create VPC endpoints in {account.vpc} for "
            f"com.amazonaws.{REGION}.s3, com.amazonaws.{REGION}.glue (s3: a gateway, in {account.main_table()})"
        )
    assert "no endpoint for lambda" in found["access of triggers to AWS"][0]["text"]


@pytest.mark.parametrize(
    ("closed", "private_dns", "fault"),
    [(True, True, ") refuses port 443: allow it from sg-"), (False, False, ") has no private DNS: enable it")],
)
def test_endpoints_that_cannot_be_used(
    account: Account, tmp_path: Path, closed: bool, private_dns: bool, fault: str
) -> None:
    account.without_nat()
    account.endpoints(group=account.security_group("closed") if closed else None, private_dns=private_dns)
    found = examined(account.samconfig(tmp_path, Triggers="off"), status=1)
    assert ": no NAT; endpoint for glue (vpce-" in found["access to AWS"][0]["text"]
    assert fault in found["access to AWS"][0]["text"]
    assert "no endpoint for" not in found["access to AWS"][0]["text"]


def test_an_endpoint_of_s3_that_is_not_in_the_route_table(account: Account, tmp_path: Path) -> None:
    account.without_nat()
    account.endpoints()
    own = account.ec2.create_route_table(VpcId=account.vpc)["RouteTable"]["RouteTableId"]
    account.ec2.associate_route_table(RouteTableId=own, SubnetId=account.subnets[1])
    first, second = examined(account.samconfig(tmp_path, Triggers="off"), status=1)["access to AWS"]
    assert first["status"] == "ok"
    assert f") is not in route table {own}: add it there" in second["text"]
    assert ": no NAT; endpoint for s3 (vpce-" in second["text"]


def test_brokers_that_let_neither_functions_nor_the_poller_in(account: Account, tmp_path: Path) -> None:
    closed = account.security_group("brokers")
    account.cluster = account.msk("closed", group=closed)
    account.parameters["SecondClusterArn"] = account.cluster
    found = examined(account.samconfig(tmp_path), status=1)["access to brokers"]
    assert [one["text"].split(" refuses ")[1] for one in found] == [
        "functions and jobs on all of 9098, 9096, 9094, 9092",
        "Lambda's poller, which has the brokers' security groups, on all of 9098, 9096, 9094, 9092",
    ]
    assert found[0]["fix"] == f"add an inbound rule to {closed}: the brokers' port, source {account.group}"
    account.allow(closed, account.group, first=9098, last=9098)
    (poller,) = examined(account.samconfig(tmp_path), status=1)["access to brokers"]
    assert poller["fix"] == f"add an inbound rule to {closed}: the brokers' port, source {closed}"
    account.allow(closed, closed, first=9098, last=9098)
    (fine,) = examined(account.samconfig(tmp_path), status=0)["access to brokers"]
    assert fine["text"] == f"SecondClusterArn ({closed}) lets functions in, and the poller of its trigger"


def test_public_subnets_do_not_help(account: Account, tmp_path: Path) -> None:
    account.without_nat()
    gateway = account.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    account.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=account.vpc)
    account.ec2.create_route(RouteTableId=account.main_table(), DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    found = examined(account.samconfig(tmp_path, Triggers="off"), status=1)
    assert "its internet gateway does not help" in found["access to AWS"][0]["text"]


def test_clusters_in_other_regions_and_accounts(account: Account, tmp_path: Path) -> None:
    here, away = account.cluster, account.parameters["FirstClusterArn"]
    swapped = examined(account.samconfig(tmp_path, FirstClusterArn=here, SecondClusterArn=away), status=0)
    assert only(swapped, "regions", "warning")["fix"].startswith(f"deploy the stack in {ELSEWHERE}: ")
    stranger = here.replace(ACCOUNT, "999999999999")
    account.parameters |= {"SecondClusterArn": stranger}
    account.deploy()
    account.run(account.jobs[0], "RUNNING")
    texts = [one["text"] for one in examined(STACK)["regions"]]
    assert texts[1].startswith(f"SecondClusterArn: {REGION}, account 999999999999; no trigger, since it is in another ")


def test_a_trigger_in_another_region(account: Account, tmp_path: Path) -> None:
    arn = f"arn:aws:kafka:{ELSEWHERE}:{ACCOUNT}:vpc-connection/{ACCOUNT}/primary/1"
    failed = only(examined(account.samconfig(tmp_path, FirstTriggerArn=arn), status=1), "regions")
    assert failed["text"] == f"FirstTriggerArn is in {ELSEWHERE}, and Lambda polls only {REGION}"


def test_a_configuration_that_is_missing_or_names_other_clusters(account: Account, tmp_path: Path) -> None:
    failed = only(examined(account.samconfig(tmp_path, ConfigLocation="s3://conf/typo.properties")), "configuration")
    assert failed["text"] == "s3://conf/typo.properties does not exist"
    warned = only(examined(account.samconfig(tmp_path, FirstClusterArn=""), status=0), "configuration", "warning")
    assert f"names brokers on MSK in {ELSEWHERE}, and no parameter has the ARN" in warned["text"]
    account.client("ssm").put_parameter(Name="/mm2", Value="clusters = a, b", Type="String")
    assert wrong(examined(account.samconfig(tmp_path, ConfigLocation="ssm:/mm2"))) == []


def test_a_configuration_with_a_secret_that_no_role_may_read(account: Account, tmp_path: Path) -> None:
    secret = account.secret("kafka")
    login = (
        "primary->backup.enabled = true\nprimary.security.protocol = SASL_SSL\nprimary.sasl.mechanism = PLAIN\n"
        "primary.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="u" password="${secretsmanager:kafka:password}";\n'
    )
    account.client("s3").put_object(Bucket="conf", Key="mm2.properties", Body=(CONFIGURATION + login).encode())
    failed = only(examined(account.samconfig(tmp_path), status=1), "configuration")
    assert failed["text"] == (
        "s3://conf/mm2.properties: primary.sasl.jaas.config refers to secret kafka, which SecretArns does not have: "
        "the deployment is refused"
    )
    assert failed["fix"] == "add the secret's ARN to it"
    assert wrong(examined(account.samconfig(tmp_path, SecretArns=secret))) == []


def test_scram_secrets_under_keys_that_msk_refuses(account: Account, tmp_path: Path) -> None:
    default = account.secret("AmazonMSK_default")
    failed = only(examined(account.samconfig(tmp_path, SecretArns=default), status=1), "secrets")
    assert failed["text"] == (
        "AmazonMSK_default (SecretArns) is encrypted with alias/aws/secretsmanager, which MSK refuses"
    )
    assert failed["fix"] == "encrypt the secret with a customer managed key, and add the key to KmsKeyArns"
    key = account.key()
    named = account.secret("backup", key)
    again = only(examined(account.samconfig(tmp_path, SecondSecretArn=named, KmsKeyArns=key)), "secrets")
    assert again["text"] == "backup (SecondSecretArn): MSK accepts only secrets named AmazonMSK_..."
    other = account.secret("password")
    assert wrong(examined(account.samconfig(tmp_path, SecretArns=other))) == []


def test_secrets_that_the_roles_may_not_decrypt(account: Account, tmp_path: Path) -> None:
    key = account.key()
    secret = account.secret("AmazonMSK_backup", key)
    failed = only(examined(account.samconfig(tmp_path, SecondSecretArn=secret)), "secrets")
    assert failed["text"] == (
        f"the roles may not decrypt AmazonMSK_backup (SecondSecretArn): its key {key} is not in KmsKeyArns"
    )
    assert wrong(examined(account.samconfig(tmp_path, SecondSecretArn=secret, KmsKeyArns=key))) == []
    account.client("kms").disable_key(KeyId=key.rpartition("/")[2])
    disabled = only(examined(account.samconfig(tmp_path, SecondSecretArn=secret, KmsKeyArns=key)), "secrets")
    assert disabled["text"].endswith("is Disabled: nothing can be decrypted")
    kms_backends[ACCOUNT][REGION].keys[key.rpartition("/")[2]].key_manager = "AWS"
    managed = only(examined(account.samconfig(tmp_path, SecondSecretArn=secret, KmsKeyArns=key)), "secrets")
    assert "a key of AWS, which MSK refuses" in managed["text"]
    gone = secret.replace("AmazonMSK_backup", "AmazonMSK_gone")
    missing = only(examined(account.samconfig(tmp_path, SecretArns=gone)), "secrets")
    assert missing["text"] == f"{gone} (SecretArns) does not exist"


@pytest.mark.parametrize(("gigabytes", "status"), [(500, "ok"), (4_000, "warning")])
def test_a_comparison_that_twelve_hours_cannot_suffice_for(account: Account, gigabytes: int, status: str) -> None:
    account.parameters |= {"VerifySchedule": "cron(30 1 * * ? *)", "VerifySince": "26h"}
    account.deploy()
    account.run(account.jobs[0], "RUNNING")
    account.mapping("Checkpoint")
    assert examined(STACK)["comparison"][0]["text"].endswith("nothing was copied yet, so its duration is not known")
    flow = [{"Name": "source", "Value": "primary"}, {"Name": "target", "Value": "backup"}]
    this_hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    account.client("cloudwatch").put_metric_data(
        Namespace=f"Mirrorless/{STACK}",
        MetricData=[
            {
                "MetricName": "byte-count",
                "Dimensions": flow,
                "Timestamp": this_hour - timedelta(hours=4),
                "Value": gigabytes * 1e9,
            }
        ],
    )
    (found,) = examined(STACK)["comparison"]
    assert found["status"] == status
    hours = {500: "1.9", 4_000: "15.0"}[gigabytes]
    begins = f"primary->backup: {gigabytes}.0 GB copied in a day; comparing 26h takes about {hours} hours"
    ends = "" if status == "ok" else ", and the job G.1X x 2 is ended after 12"
    assert found["text"] == begins + ends


def test_concurrency_of_a_new_account(account: Account, limits: dict[str, int], tmp_path: Path) -> None:
    limits |= {"ConcurrentExecutions": 12, "UnreservedConcurrentExecutions": 12}
    assert wrong(examined(account.samconfig(tmp_path))) == []
    limits |= {"ConcurrentExecutions": 10, "UnreservedConcurrentExecutions": 10}
    warned = only(examined(account.samconfig(tmp_path, BackwardEnabled="true"), status=0), "concurrency", "warning")
    assert warned["text"] == (
        "10 of 10 concurrent executions of the account are unreserved; samconfig.toml: prod needs 24: functions are "
        "throttled, and run a minute later"
    )
    failed = only(examined(account.samconfig(tmp_path, ReservedConcurrency="true"), status=1), "concurrency")
    assert failed["text"].endswith("needs 12, and Lambda keeps 100 unreserved: the deployment will fail")


def test_each_function_that_copies_needs_two_invocations(
    account: Account, limits: dict[str, int], tmp_path: Path
) -> None:
    limits |= {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 41}
    many = account.samconfig(tmp_path, ForwardCopyFunctions="16")
    warned = only(examined(many, status=0), "concurrency", "warning")
    assert "samconfig.toml: prod needs 42: functions are throttled" in warned["text"]
    limits["UnreservedConcurrentExecutions"] = 31
    account.parameters |= {"ReservedConcurrency": "true", "ForwardCopyFunctions": "16"}
    account.deploy()
    account.mapping("Checkpoint")
    warned = only(examined(STACK, status=0), "concurrency", "warning")
    assert warned["text"] == (
        "10 are reserved; 31 of 1000 concurrent executions of the account are not; mirrorless-prod needs 32 of these: "
        "functions are throttled, and run a minute later"
    )


def test_several_functions_that_copy_start_each_other_through_an_endpoint(account: Account, tmp_path: Path) -> None:
    account.without_nat()
    account.endpoints("lambda")
    alone = examined(account.samconfig(tmp_path, Triggers="off"), status=0)
    assert wrong(alone) == []
    assert alone["functions that copy"][0]["text"] == (
        "ForwardCopyFunctions=1: 1 of 256 MB, at most 2 invocations at once"
    )
    found = examined(account.samconfig(tmp_path, Triggers="off", ForwardCopyFunctions="2"), status=1)
    assert {one["text"] for one in found["access to AWS"]} == {
        f"{subnet} ({account.vpc}): no NAT, and no endpoint for lambda" for subnet in account.subnets
    }


def test_functions_that_copy_with_another_number_than_the_stack(account: Account) -> None:
    account.parameters |= {"ForwardCopyFunctions": "3"}
    account.deploy(copy={"MIRRORLESS_COPY_FUNCTIONS": "2"})
    account.mapping("Checkpoint")
    failed = only(examined(STACK, status=1), "functions that copy")
    assert failed["text"].endswith(" has MIRRORLESS_COPY_FUNCTIONS=2, and the stack has ForwardCopyFunctions=3")
    assert failed["fix"] == "deploy the stack again; to change the number, change ForwardCopyFunctions"


def test_functions_that_copy_with_too_little_concurrency_or_memory(account: Account) -> None:
    account.parameters |= {"ForwardCopyFunctions": "3"}
    account.deploy(copy={"MemorySize": "128"})
    account.mapping("Checkpoint")
    warned = only(examined(STACK, status=0), "functions that copy", "warning")
    assert warned["text"].endswith(": 128 MB of memory may not be enough to copy")
    assert warned["fix"] == "set ForwardCopyMemory to 256 or more"
    (name,) = [
        one["FunctionName"]
        for one in account.client("lambda").list_functions()["Functions"]
        if "-Copy-" in one["FunctionName"]
    ]
    account.client("lambda").put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=4)
    failed = examined(STACK, status=1)["functions that copy"][0]
    assert failed["text"] == f"{name} may run 4 times at once; 3 that copy need 6, two each"


def test_a_stack_of_an_earlier_release_has_no_function_that_copies(account: Account) -> None:
    account.deploy(without_copy=True)
    account.mapping("Checkpoint")
    found = examined(STACK, status=0)
    assert wrong(found) == [
        f"functions that copy: {STACK} has no function copy: an earlier release deployed it",
        f"job runs: {STACK}-forward-copy has not run yet",
    ]


@pytest.mark.parametrize(
    ("described", "text", "fix"),
    [
        (
            {"State": "Disabled", "StateTransitionReason": "User action"},
            "is disabled (User action); last result: OK",
            "aws lambda update-event-source-mapping --uuid ",
        ),
        (
            {"LastProcessingResult": "PROBLEM: Connection error. Please check your event source connection."},
            ": PROBLEM: Connection error. Please check your event source connection.",
            "check the network of the cluster's subnets",
        ),
    ],
)
def test_a_trigger_that_does_not_work(account: Account, described: dict[str, str], text: str, fix: str) -> None:
    account.deploy()
    account.run(account.jobs[0], "RUNNING")
    account.mapping("Checkpoint", **described)

    failed = only(examined(STACK, status=1), "triggers")

    assert text in failed["text"]
    assert failed["fix"].startswith(fix)


def test_a_trigger_that_should_be_there(account: Account) -> None:
    account.deploy()
    account.run(account.jobs[0], "RUNNING")
    warned = only(examined(STACK, status=0), "triggers", "warning")
    assert warned["text"] == (
        "no event source mapping: schedules do the work every minute, though Lambda can poll SecondClusterArn"
    )


def test_runs_that_failed_and_jobs_that_never_ran(account: Account) -> None:
    account.deploy()
    account.mapping("Checkpoint")
    # Functions copy: nothing is wrong.
    assert examined(STACK)["job runs"][0]["text"] == (
        f"{STACK}-forward-copy has not run yet; job_supervisor starts it when the functions do not suffice"
    )
    reason = "JobRunRequest failed: CONNECTION_LIST_CONNECTION_WITH_AZ_NULL"
    account.run(account.jobs[0], "FAILED", reason)
    failed = only(examined(STACK, status=1), "job runs")
    assert failed["text"].endswith(f": {reason}")
    assert failed["fix"] == "the Glue connection needs the zone of its subnet: see the check zone"
    account.client("glue").delete_job(JobName=account.jobs[1])
    texts = [one["text"] for one in examined(STACK)["job runs"]]
    assert texts[1] == f"{STACK}-forward-verify does not exist"


def test_a_right_that_is_missing_leaves_the_other_checks(
    account: Account, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    iam = account.client("iam")
    iam.create_user(UserName="operator")
    rules = [{"Effect": "Allow", "Action": "*", "Resource": "*"}, {"Effect": "Deny", "Action": DENIED, "Resource": "*"}]
    policy = json.dumps({"Version": "2012-10-17", "Statement": rules})
    iam.put_user_policy(UserName="operator", PolicyName="most", PolicyDocument=policy)
    key = iam.create_access_key(UserName="operator")["AccessKey"]
    # Without triggers: moto reads the signature of a path with an escaped ARN, as of DescribeClusterV2, as a wrong one.
    file = account.samconfig(tmp_path, Triggers="off", SecretArns=account.secret("password"))
    authorize(variables["AWS_ENDPOINT_URL"], after="0")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
    try:
        found = examined(file, status=0)
    finally:
        authorize(variables["AWS_ENDPOINT_URL"], after="Infinity")

    found.pop("access to brokers")  # asks DescribeClusterV2 too
    assert wrong(found) == [f"access to AWS: grant {DENIED[0]}", f"secrets: grant {DENIED[1]}"]
    assert {one["status"] for one in (*found["access to AWS"], *found["secrets"])} == {"not checked"}


def authorize(server: str, *, after: str) -> None:
    """Have moto check rights, after so many requests."""
    url, headers = f"{server}/moto-api/reset-auth", {"Content-Type": "text/plain"}
    request = Request(url, data=after.encode(), headers=headers)  # noqa: S310 -- loopback
    urlopen(request, timeout=30).close()  # noqa: S310


def test_the_text_of_the_command(account: Account, tmp_path: Path) -> None:
    group = account.security_group("closed")
    account.allow(account.group, group, first=9098, last=9098)
    file = account.samconfig(tmp_path, SecurityGroupIds=group)
    ended = CliRunner().invoke(doctor, ["--aws", str(file)])
    lines = ended.stdout.splitlines()
    assert lines[0] == "samconfig.toml: prod"
    assert (
        f"  failed         security groups: {group} does not allow all inbound TCP from itself; Glue's" in ended.stdout
    )
    assert lines[-1].endswith(" 0 warnings, 1 failed, 0 not checked")
