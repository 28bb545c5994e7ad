"""An account on moto's server with what a deployment needs: a VPC, subnets, endpoints, a stack, jobs, secrets."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

import boto3
from moto.awslambda.models import lambda_backends
from moto.core.models import DEFAULT_ACCOUNT_ID as ACCOUNT
from moto.glue.models import glue_backends

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

REGION: Final = "eu-west-1"
STACK: Final = "mirrorless-prod"
ELSEWHERE: Final = "eu-central-1"
CONFIGURATION: Final = (
    "clusters = primary, backup\n"
    f"primary.bootstrap.servers = b-1.primary.a1.c1.kafka.{ELSEWHERE}.amazonaws.com:9098\n"
    f"backup.bootstrap.servers = b-1.backup.a1.c1.kafka.{REGION}.amazonaws.com:9098\n"
)
_SERVICES: Final = ("glue", "monitoring", "logs", "sts", "sqs", "secretsmanager", "lambda")


@dataclass
class Account:
    """Makes what a test needs, and changes it; `parameters` are those of the deployment, as they should be."""

    parameters: dict[str, str] = field(default_factory=dict)
    jobs: tuple[str, ...] = (f"{STACK}-forward-copy", f"{STACK}-forward-verify")

    def __post_init__(self) -> None:
        self.ec2 = self.client("ec2")
        self.vpc = str(self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"])
        self.zones = (f"{REGION}a", f"{REGION}b")
        self.subnets = [self.subnet(f"10.0.{number}.0/24", zone) for number, zone in enumerate(self.zones, start=1)]
        self.group = self.security_group("jobs")
        self.allow(self.group, self.group)
        self.nat()
        self.cluster = self.msk("backup")
        self.client("s3").create_bucket(Bucket="conf", CreateBucketConfiguration={"LocationConstraint": REGION})
        self.client("s3").put_object(Bucket="conf", Key="mm2.properties", Body=CONFIGURATION.encode())
        self.parameters |= {
            "ConfigLocation": "s3://conf/mm2.properties",
            "SubnetIds": ",".join(self.subnets),
            "SecurityGroupIds": self.group,
            "FirstClusterArn": f"arn:aws:kafka:{ELSEWHERE}:{ACCOUNT}:cluster/primary/11111111-1",
            "SecondClusterArn": self.cluster,
        }

    def client(self, service: str) -> Any:  # noqa: ANN401 -- boto3's
        """boto3's client of a service, in the region of the deployment."""
        return boto3.client(service, region_name=REGION)

    def subnet(self, block: str, zone: str, vpc: str | None = None) -> str:
        """A subnet without a route table of its own."""
        made = self.ec2.create_subnet(VpcId=vpc or self.vpc, CidrBlock=block, AvailabilityZone=zone)
        return str(made["Subnet"]["SubnetId"])

    def security_group(self, name: str, vpc: str | None = None) -> str:
        """A security group that lets nothing in."""
        made = self.ec2.create_security_group(GroupName=name, Description=name, VpcId=vpc or self.vpc)
        return str(made["GroupId"])

    def allow(self, group: str, source: str, *, first: int = 0, last: int = 65535) -> None:
        """Let TCP in from a security group, or from addresses."""
        rule: dict[str, Any] = {"IpProtocol": "tcp", "FromPort": first, "ToPort": last}
        rule |= {"IpRanges": [{"CidrIp": source}]} if "/" in source else {"UserIdGroupPairs": [{"GroupId": source}]}
        self.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])

    def main_table(self) -> str:
        """The VPC's main route table."""
        wanted = [{"Name": "vpc-id", "Values": [self.vpc]}]
        return str(self.ec2.describe_route_tables(Filters=wanted)["RouteTables"][0]["RouteTableId"])

    def nat(self) -> None:
        """Route everything through a NAT gateway."""
        made = self.ec2.create_nat_gateway(SubnetId=self.subnets[0], ConnectivityType="private")
        self.ec2.create_route(
            RouteTableId=self.main_table(),
            DestinationCidrBlock="0.0.0.0/0",
            NatGatewayId=made["NatGateway"]["NatGatewayId"],
        )

    def without_nat(self) -> None:
        """Remove the route to the NAT gateway."""
        self.ec2.delete_route(RouteTableId=self.main_table(), DestinationCidrBlock="0.0.0.0/0")

    def endpoints(self, *left_out: str, group: str | None = None, private_dns: bool = True) -> None:
        """Create the endpoints of docs/deployment.md, but some."""
        if "s3" not in left_out:
            self.ec2.create_vpc_endpoint(
                VpcId=self.vpc,
                ServiceName=f"com.amazonaws.{REGION}.s3",
                VpcEndpointType="Gateway",
                RouteTableIds=[self.main_table()],
            )
        for service in (one for one in _SERVICES if one not in left_out):
            self.ec2.create_vpc_endpoint(
                VpcId=self.vpc,
                ServiceName=f"com.amazonaws.{REGION}.{service}",
                VpcEndpointType="Interface",
                SubnetIds=self.subnets,
                SecurityGroupIds=[group or self.group],
                PrivateDnsEnabled=private_dns,
            )

    def msk(self, name: str, *, group: str | None = None) -> str:
        """A cluster on MSK in the subnets; its ARN."""
        groups = [group or self.group]
        nodes = {"InstanceType": "kafka.m7g.large", "ClientSubnets": self.subnets, "SecurityGroups": groups}
        provisioned = {"BrokerNodeGroupInfo": nodes, "KafkaVersion": "3.8.x", "NumberOfBrokerNodes": 2}
        return str(self.client("kafka").create_cluster_v2(ClusterName=name, Provisioned=provisioned)["ClusterArn"])

    def key(self) -> str:
        """A customer managed key; its ARN."""
        return str(self.client("kms").create_key()["KeyMetadata"]["Arn"])

    def secret(self, name: str, key: str | None = None) -> str:
        """A secret; its ARN."""
        given = {} if key is None else {"KmsKeyId": key}
        made = self.client("secretsmanager").create_secret(Name=name, SecretString="{}", **given)
        return str(made["ARN"])

    def deploy(self, *, copy: dict[str, str] | None = None, without_copy: bool = False) -> str:
        """Create the stack with these parameters: functions in a nested stack, jobs, their connection; its name.

        `copy` are environment variables of the function that copies, `MemorySize` its memory.
        """
        function: dict[str, Any] = {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Runtime": "python3.13",
                "Handler": "app.handler",
                "Role": {"Fn::GetAtt": ["Role", "Arn"]},
                "Code": {"S3Bucket": "conf", "S3Key": "code.zip"},
            },
        }
        trust = {"Version": "2012-10-17", "Statement": []}
        role = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": trust}}
        nested: dict[str, Any] = {"Resources": {"Role": role, "Checkpoint": function, "HeartbeatMonitor": function}}
        if not without_copy:
            number = {"MIRRORLESS_COPY_FUNCTIONS": self.parameters.get("ForwardCopyFunctions", "1")}
            variables = number | (copy or {})
            own = {
                "MemorySize": int(variables.pop("MemorySize", "256")),
                "Environment": {"Variables": variables},
            }
            nested["Resources"]["Copy"] = function | {"Properties": function["Properties"] | own}
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("app.py", "def handler(event, context): ...\n")
        s3 = self.client("s3")
        s3.put_object(Bucket="conf", Key="code.zip", Body=packed.getvalue())
        s3.put_object(Bucket="conf", Key="nested.json", Body=json.dumps(nested).encode())
        url = f"https://conf.s3.{REGION}.amazonaws.com/nested.json"
        outputs = dict(zip(("ForwardJob", "ForwardVerify"), self.jobs, strict=True))
        root = {
            "Parameters": {name: {"Type": "String"} for name in self.parameters},
            "Resources": {"Forward": {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": url}}},
            "Outputs": {name: {"Value": value} for name, value in outputs.items()},
        }
        given = [{"ParameterKey": name, "ParameterValue": value} for name, value in self.parameters.items()]
        self.client("cloudformation").create_stack(StackName=STACK, TemplateBody=json.dumps(root), Parameters=given)
        self.connection(self.zones[0])
        for job in self.jobs:
            self.client("glue").create_job(
                Name=job,
                Role="glue",
                Command={"Name": "glueetl", "ScriptLocation": "s3://conf/job.py"},
                Connections={"Connections": [f"{STACK}-forward"]},
            )
        return STACK

    def connection(self, zone: str | None) -> None:
        """Create the connection of the jobs, or change its zone."""
        place: dict[str, Any] = {"SubnetId": self.subnets[0], "SecurityGroupIdList": [self.group]}
        place |= {} if zone is None else {"AvailabilityZone": zone}
        glue_backends[ACCOUNT][REGION].connections.pop(f"{STACK}-forward", None)
        given = {"Name": f"{STACK}-forward", "ConnectionType": "NETWORK", "ConnectionProperties": {}}
        self.client("glue").create_connection(ConnectionInput=given | {"PhysicalConnectionRequirements": place})

    def run(self, job: str, state: str, reason: str | None = None) -> None:
        """Add a run of a job that is in this state; moto does not fail any by itself."""
        run = self.client("glue").start_job_run(JobName=job)["JobRunId"]
        runs = cast("list[Any]", glue_backends[ACCOUNT][REGION].jobs[job].job_runs)
        made = next(one for one in runs if one.job_run_id == run)
        described = made.as_dict
        made.as_dict = lambda: described() | {"JobRunState": state} | ({"ErrorMessage": reason} if reason else {})

    def mapping(self, logical: str, **described: str) -> None:
        """Add an event source mapping of the MSK cluster; moto makes those of queues only."""
        queue = self.client("sqs").create_queue(QueueName=logical)["QueueUrl"]
        arn = self.client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
        name = next(
            one["FunctionName"]
            for one in self.client("lambda").list_functions()["Functions"]
            if f"-{logical}-" in one["FunctionName"]
        )
        made = self.client("lambda").create_event_source_mapping(
            FunctionName=name, EventSourceArn=arn["Attributes"]["QueueArn"]
        )
        one = cast("Any", lambda_backends[ACCOUNT][REGION]._event_source_mappings[made["UUID"]])
        usual = one.get_configuration()
        own: Mapping[str, object] = {
            "EventSourceArn": self.cluster,
            "Topics": ["mm2-offset-syncs"],
            "LastProcessingResult": "OK",
            **described,
        }
        one.get_configuration = lambda: usual | own

    def samconfig(self, folder: Path, **parameters: str) -> Path:
        """Write a samconfig.toml with these parameters, changed."""
        given = ", ".join(json.dumps(f"{name}={value}") for name, value in (self.parameters | parameters).items())
        file = folder / "samconfig.toml"
        file.write_text(
            "version = 0.1\n[default.build.parameters]\nparallel = true\n"
            f'[prod.deploy.parameters]\nregion = "{REGION}"\nparameter_overrides = [{given}]\n'
        )
        return file
