"""Checks of subnets and security groups: what Glue's connection and its workers need.

A Glue connection needs the Availability Zone of its subnet, otherwise each run fails with
CONNECTION_LIST_CONNECTION_WITH_AZ_NULL; workers talk to each other on any port ("Setting up Amazon VPC for JDBC
connections to Amazon RDS data stores from AWS Glue": a self-referencing rule for all TCP).
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final

from mirrorless.doctor.aws.api import Missing
from mirrorless.doctor.findings import Finding, Status, some_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mirrorless.doctor.aws.api import Api
    from mirrorless.doctor.aws.deployment import Deployment

SUBNETS: Final = "subnets"
ZONE: Final = "zone"
GROUPS: Final = "security groups"
_ANY: Final = "-1"
_TCP: Final = (_ANY, "tcp", "6")
_ALL_PORTS: Final = (0, 65535)
_EVERYWHERE: Final = "0.0.0.0/0"


def subnets_of(deployment: Deployment, api: Api) -> dict[str, Mapping[str, Any]]:
    """Return EC2's description of the subnets that exist, in the order of the parameter."""
    if not deployment.subnets:
        return {}
    wanted = [{"Name": "subnet-id", "Values": list(deployment.subnets)}]
    found = {one["SubnetId"]: one for one in api.every("ec2:DescribeSubnets", "Subnets", Filters=wanted)}
    return {name: found[name] for name in deployment.subnets if name in found}


def check_subnets(deployment: Deployment, api: Api) -> Iterator[Finding]:
    """Check that all subnets exist in one VPC."""
    found = subnets_of(deployment, api)
    if not deployment.subnets:
        yield Finding(check=SUBNETS, status=Status.FAILED, text="SubnetIds is empty", fix="set SubnetIds")
        return
    if missing := [name for name in deployment.subnets if name not in found]:
        text = f"{some_of(missing)} of SubnetIds do not exist in {deployment.region}"
        yield Finding(
            check=SUBNETS, status=Status.FAILED, text=text, fix="set SubnetIds to subnets of this region and account"
        )
        return
    networks = {str(one["VpcId"]) for one in found.values()}
    if len(networks) != 1:
        text = f"{', '.join(found)} are in {len(networks)} VPCs: {', '.join(sorted(networks))}"
        fix = "set SubnetIds to subnets of one VPC, which reaches both clusters"
        yield Finding(check=SUBNETS, status=Status.FAILED, text=text, fix=fix)
        return
    zones = ", ".join(f"{name} ({one['AvailabilityZone']})" for name, one in found.items())
    yield Finding(check=SUBNETS, status=Status.OK, text=f"{zones} of {networks.pop()}")


def check_zone(deployment: Deployment, api: Api) -> Iterator[Finding]:
    """Compare each job's connection with the first subnet, where jobs run; nothing without jobs."""
    if not deployment.has_jobs:
        return
    first = next(iter(subnets_of(deployment, api).values()), None)
    if first is None or first["SubnetId"] != deployment.subnets[0]:
        yield Finding(check=ZONE, status=Status.NOT_CHECKED, text="the first subnet of SubnetIds does not exist")
        return
    subnet, zone = deployment.subnets[0], str(first["AvailabilityZone"])
    if not deployment.jobs:
        text = f"jobs will run in {zone}, the zone of {subnet}"
        yield Finding(check=ZONE, status=Status.OK, text=text)
    names: dict[str, None] = {}
    for job in deployment.jobs:
        try:
            description = api.ask("glue:GetJob", JobName=job)["Job"]
        except Missing:
            continue  # reported with its runs
        names |= dict.fromkeys(description.get("Connections", {}).get("Connections", []))
    for name in names:
        yield _connection(name, subnet, zone, api)


def _connection(name: str, subnet: str, zone: str, api: Api) -> Finding:
    try:
        connection = api.ask("glue:GetConnection", Name=name, HidePassword=True)["Connection"]
    except Missing:
        text, fix = f"connection {name} does not exist; runs of its jobs fail", "deploy the stack again"
        return Finding(check=ZONE, status=Status.FAILED, text=text, fix=fix)
    place = connection.get("PhysicalConnectionRequirements", {})
    own_subnet, own_zone = place.get("SubnetId"), place.get("AvailabilityZone")
    if own_subnet == subnet and own_zone == zone:
        return Finding(check=ZONE, status=Status.OK, text=f"connection {name}: {zone}, as {subnet}")
    text = f"connection {name} has {own_subnet or 'no subnet'} and zone {own_zone or 'none'}, {subnet} is in {zone}"
    fix = f"deploy the stack again, or set the connection's subnet to {subnet} and its zone to {zone}"
    return Finding(check=ZONE, status=Status.FAILED, text=text, fix=fix)


def groups_of(deployment: Deployment, api: Api) -> dict[str, Mapping[str, Any]]:
    """Return EC2's description of the security groups that exist, in the order of the parameter."""
    if not deployment.security_groups:
        return {}
    wanted = [{"Name": "group-id", "Values": list(deployment.security_groups)}]
    found = {one["GroupId"]: one for one in api.every("ec2:DescribeSecurityGroups", "SecurityGroups", Filters=wanted)}
    return {name: found[name] for name in deployment.security_groups if name in found}


def check_groups(deployment: Deployment, api: Api) -> Iterator[Finding]:
    """Check that all are in the VPC, and if there are jobs that the first one allows all TCP from and to itself."""
    found = groups_of(deployment, api)
    if missing := [name for name in deployment.security_groups if name not in found]:
        text = f"{some_of(missing)} of SecurityGroupIds do not exist in {deployment.region}"
        yield Finding(
            check=GROUPS, status=Status.FAILED, text=text, fix="set SecurityGroupIds to existing groups of the VPC"
        )
    networks = {str(one["VpcId"]) for one in subnets_of(deployment, api).values()}
    if strangers := [name for name, one in found.items() if networks and one.get("VpcId") not in networks]:
        text = (
            f"{some_of(strangers)} of SecurityGroupIds are not in {', '.join(sorted(networks))}, the VPC of the subnets"
        )
        yield Finding(check=GROUPS, status=Status.FAILED, text=text, fix="set SecurityGroupIds to groups of the VPC")
    if not deployment.security_groups:
        fix = "set SecurityGroupIds"
        yield Finding(check=GROUPS, status=Status.FAILED, text="SecurityGroupIds is empty", fix=fix)
        return
    name = deployment.security_groups[0]
    if name not in found:
        return
    if not deployment.has_jobs:
        text = f"{some_of(list(found))} of {', '.join(sorted(networks))}; without Glue jobs no rule is needed"
        yield Finding(check=GROUPS, status=Status.OK, text=text)
        return
    inbound, outbound = found[name].get("IpPermissions", []), found[name].get("IpPermissionsEgress", [])
    if not any(_allows(rule, {name}, _ALL_PORTS) for rule in inbound):
        text = (
            f"{name} does not allow all inbound TCP from itself; Glue's workers cannot reach each other, and runs fail"
        )
        fix = f"add an inbound rule to {name}: all TCP (ports 0-65535), source {name}"
        yield Finding(check=GROUPS, status=Status.FAILED, text=text, fix=fix)
    elif not any(_allows(rule, {name}, _ALL_PORTS, block=_EVERYWHERE) for rule in outbound):
        text = (
            f"{name} does not allow all outbound TCP to itself; Glue's workers cannot reach each other, and runs fail"
        )
        fix = f"add an outbound rule to {name}: all TCP (ports 0-65535), destination {name}"
        yield Finding(check=GROUPS, status=Status.FAILED, text=text, fix=fix)
    else:
        yield Finding(check=GROUPS, status=Status.OK, text=f"{name} allows all TCP from and to itself")


def lets_in(group: Mapping[str, Any], clients: Iterable[str], block: str, port: int) -> bool:
    """Whether a security group allows a TCP port from one of the groups `clients`, or from a subnet's addresses."""
    return any(_allows(rule, set(clients), (port, port), block=block) for rule in group.get("IpPermissions", []))


def _allows(rule: Mapping[str, Any], groups: set[str], ports: tuple[int, int], *, block: str | None = None) -> bool:
    """Whether a rule allows TCP ports from (or to) one of these groups, or the addresses `block`."""
    protocol = str(rule.get("IpProtocol"))
    if protocol not in _TCP:
        return False
    if protocol != _ANY and not (rule.get("FromPort", 1) <= ports[0] and rule.get("ToPort", 0) >= ports[1]):
        return False
    if groups & {one.get("GroupId") for one in rule.get("UserIdGroupPairs", [])}:
        return True
    allowed = [ipaddress.IPv4Network(one["CidrIp"]) for one in rule.get("IpRanges", []) if "CidrIp" in one]
    return block is not None and any(ipaddress.IPv4Network(block).subnet_of(one) for one in allowed)
