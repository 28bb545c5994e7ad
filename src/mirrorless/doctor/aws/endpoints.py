"""Checks how functions and jobs reach AWS from their subnets, and triggers from those of the MSK clusters.

Functions and Glue's workers have no public addresses: a route to an internet gateway does not help. Services that are
needed without NAT: docs/deployment.md, "Endpoints". Lambda polls MSK from the subnets of the cluster with its security
groups, and calls Lambda, STS, Secrets Manager and the failure queue from there ("Configuring your Amazon MSK cluster
and Amazon VPC network for Lambda").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mirrorless.doctor.aws.api import Missing
from mirrorless.doctor.aws.network import lets_in, subnets_of
from mirrorless.doctor.aws.operation import mappings
from mirrorless.doctor.findings import Finding, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mirrorless.doctor.aws.api import Api
    from mirrorless.doctor.aws.deployment import Arn, ClusterParameters, Deployment

ENDPOINTS: Final = "access to AWS"
TRIGGER_ENDPOINTS: Final = "access of triggers to AWS"
BROKERS: Final = "access to brokers"
_PORTS: Final = (9098, 9096, 9094, 9092)
"""Of MSK's brokers, by login: IAM, SCRAM, mTLS or none, without TLS."""
_ANYWHERE: Final = "0.0.0.0/0"
_NOWHERE: Final = "127.0.0.1/32"
"""The address of a poller is any of its subnets: only rules by group count, and those for everyone."""
_HTTPS: Final = 443
# A route's target, and what it is; traffic through the last ones is decided elsewhere.
_TARGETS: Final = {
    "NatGatewayId": "NAT gateway",
    "TransitGatewayId": "transit gateway",
    "NetworkInterfaceId": "network interface",
    "InstanceId": "instance",
    "VpcPeeringConnectionId": "VPC peering",
    "LocalGatewayId": "local gateway",
    "CoreNetworkArn": "core network",
}


def needed_services(deployment: Deployment) -> list[str]:
    """Return the services of which subnets without NAT need an endpoint, as in the endpoints' names."""
    wanted = ["s3", "glue", "monitoring", "logs"] if deployment.has_jobs else ["s3"]
    if deployment.roles:  # a login by IAM is signed without a request; awsRoleArn is assumed
        wanted.append("sts")
    if any(deployment.polled(end) for end in deployment.clusters) or deployment.triggers == "all":
        wanted.append("sqs")
    if deployment.config_location.startswith("ssm:") or deployment.parameters:
        wanted.append("ssm")
    if deployment.secrets:
        wanted.append("secretsmanager")
    if deployment.starts_copies:
        wanted.append("lambda")
    return wanted


def check_endpoints(deployment: Deployment, api: Api) -> Iterator[Finding]:
    """Check each subnet of the functions and jobs."""
    for subnet in subnets_of(deployment, api).values():
        place = _Place(subnet, deployment.security_groups, deployment.region, api)
        yield _reaches(ENDPOINTS, place, needed_services(deployment))


def check_trigger_endpoints(deployment: Deployment, api: Api) -> Iterator[Finding]:
    """Check the subnets of each MSK cluster that a trigger polls; nothing for clusters without one."""
    polled = {one.get("EventSourceArn") for _, one in mappings(deployment, api)} if deployment.is_deployed else None
    for end in deployment.clusters:
        if end.cluster is None or deployment.polled(end) != end.cluster:
            continue
        if polled is None or end.cluster.text in polled:
            yield from _trigger(end, end.cluster, deployment, api)


def _trigger(end: ClusterParameters, cluster: Arn, deployment: Deployment, api: Api) -> Iterator[Finding]:
    try:
        subnets, groups = _network(cluster, api)
    except Missing:
        text, fix = f"{cluster.text} does not exist", f"correct {end.prefix}ClusterArn"
        yield Finding(check=TRIGGER_ENDPOINTS, status=Status.FAILED, text=text, fix=fix)
        return
    services = ["lambda", "sts", "sqs", *(["secretsmanager"] if end.secret is not None else [])]
    wanted = [{"Name": "subnet-id", "Values": list(subnets)}]
    for subnet in api.every("ec2:DescribeSubnets", "Subnets", Filters=wanted):
        yield _reaches(TRIGGER_ENDPOINTS, _Place(subnet, groups, deployment.region, api), services)


def _network(cluster: Arn, api: Api) -> tuple[list[str], list[str]]:
    """Return the subnets and security groups of a cluster on MSK; raises `Missing`."""
    found = api.ask("kafka:DescribeClusterV2", ClusterArn=cluster.text)["ClusterInfo"]
    brokers = found.get("Provisioned", {}).get("BrokerNodeGroupInfo", {})
    networks = found.get("Serverless", {}).get("VpcConfigs", [])
    subnets = brokers.get("ClientSubnets") or [one for part in networks for one in part.get("SubnetIds", [])]
    groups = brokers.get("SecurityGroups") or [one for part in networks for one in part.get("SecurityGroupIds", [])]
    return list(subnets), list(groups)


def check_brokers(deployment: Deployment, api: Api) -> Iterator[Finding]:
    """Check that the security groups of each cluster in this region and account let functions and a trigger in."""
    for end in deployment.clusters:
        arn = end.cluster
        if arn is None or arn.region != deployment.region or deployment.account not in (None, arn.account):
            continue
        try:
            _, names = _network(arn, api)
        except Missing:
            continue  # reported with its trigger, or by the configuration
        wanted = [{"Name": "group-id", "Values": names}]
        groups = list(api.every("ec2:DescribeSecurityGroups", "SecurityGroups", Filters=wanted))
        clients = {"functions and jobs": [(deployment.security_groups, one) for one in _blocks(deployment, api)]}
        if deployment.polled(end) == arn:
            clients["Lambda's poller, which has the brokers' security groups,"] = [(tuple(names), _NOWHERE)]
        refused = [who for who, places in clients.items() if not all(_is_let_in(groups, *place) for place in places)]
        name = f"{end.prefix}ClusterArn ({', '.join(names)})"
        if not refused:
            text = f"{name} lets functions in" + (", and the poller of its trigger" if len(clients) > 1 else "")
            yield Finding(check=BROKERS, status=Status.OK, text=text)
        for who in refused:
            text = f"{name} refuses {who} on all of {', '.join(map(str, _PORTS))}"
            source = ", ".join(deployment.security_groups) if who.startswith("functions") else names[0]
            fix = f"add an inbound rule to {names[0]}: the brokers' port, source {source}"
            yield Finding(check=BROKERS, status=Status.FAILED, text=text, fix=fix)


def _blocks(deployment: Deployment, api: Api) -> list[str]:
    return [str(one["CidrBlock"]) for one in subnets_of(deployment, api).values()]


def _is_let_in(groups: Sequence[Mapping[str, Any]], clients: Sequence[str], block: str) -> bool:
    return any(lets_in(one, clients, block, port) for one in groups for port in _PORTS)


def _reaches(check: str, place: _Place, services: Sequence[str]) -> Finding:
    default = place.default_route
    way = next((f"{what} {default[key]}" for key, what in _TARGETS.items() if default.get(key)), None)
    if way is not None:
        return Finding(check=check, status=Status.OK, text=f"{place.name}: {way}")
    missing: list[str] = []
    unusable: dict[str, list[str]] = {}
    for service in services:
        found = place.endpoints(service)
        reasons = [place.fault(one) for one in found]
        if not found:
            missing.append(service)
        elif None not in reasons:
            unusable.setdefault(str(reasons[0]), []).append(f"{service} ({found[0]['VpcEndpointId']})")
    if not missing and not unusable:
        return Finding(check=check, status=Status.OK, text=f"{place.name}: endpoints for {', '.join(services)}")
    parts = [f"no NAT, and no endpoint for {', '.join(missing)}"] if missing else ["no NAT"]
    parts += [f"endpoint for {', '.join(those)} {reason}" for reason, those in unusable.items()]
    if str(default.get("GatewayId", "")).startswith("igw-"):
        parts.append("its internet gateway does not help, because functions and jobs have no public addresses")
    fixes = [f"route {_ANYWHERE} of {place.table_id} to a NAT gateway"]
    if missing:
        named = [f"com.amazonaws.{place.region}.{one}" for one in missing]
        gateway = f" (s3: a gateway, in {place.table_id})" if "s3" in missing else ""
        fixes.append(f"create VPC endpoints in {place.network} for {', '.join(named)}{gateway}")
    text = f"{place.name} ({place.network}): {'; '.join(parts)}"
    return Finding(check=check, status=Status.FAILED, text=text, fix=", or ".join(fixes))


class _Place:
    """A subnet, and the security groups of what is in it: its routes, and the endpoints of its VPC."""

    def __init__(self, subnet: Mapping[str, Any], groups: Sequence[str], region: str, api: Api) -> None:
        self.name, self.network = str(subnet["SubnetId"]), str(subnet["VpcId"])
        self.region = region
        self._block = str(subnet["CidrBlock"])
        self._groups = groups
        self._api = api
        self._inside = [{"Name": "vpc-id", "Values": [self.network]}]
        self._table = self._route_table()

    @property
    def table_id(self) -> str:
        """The subnet's route table."""
        return str(self._table.get("RouteTableId", "its route table"))

    @property
    def default_route(self) -> Mapping[str, Any]:
        """The route to everywhere, empty if there is none that works."""
        nothing: Mapping[str, Any] = {}
        routes = (one for one in self._table.get("Routes", []) if one.get("State") != "blackhole")
        return next((one for one in routes if one.get("DestinationCidrBlock") == _ANYWHERE), nothing)

    def endpoints(self, service: str) -> list[Mapping[str, Any]]:
        """The VPC's endpoints of a service."""
        found = self._api.every("ec2:DescribeVpcEndpoints", "VpcEndpoints", Filters=self._inside)
        return [one for one in found if str(one["ServiceName"]).endswith(f".{self.region}.{service}")]

    def fault(self, endpoint: Mapping[str, Any]) -> str | None:
        """Return why the subnet cannot use an endpoint and what to change, None if it can."""
        state = str(endpoint.get("State", "available")).lower()
        if state != "available":
            return f"is {state}: wait, or create it again"
        if endpoint.get("VpcEndpointType") == "Gateway":
            there = self.table_id in endpoint.get("RouteTableIds", [])
            return None if there else f"is not in route table {self.table_id}: add it there"
        if not endpoint.get("PrivateDnsEnabled"):
            return "has no private DNS: enable it"
        return None if self._opens(endpoint) else f"refuses port {_HTTPS}: allow it from {', '.join(self._groups)}"

    def _opens(self, endpoint: Mapping[str, Any]) -> bool:
        wanted = [{"Name": "group-id", "Values": [str(one["GroupId"]) for one in endpoint.get("Groups", [])]}]
        groups = list(self._api.every("ec2:DescribeSecurityGroups", "SecurityGroups", Filters=wanted))
        return not endpoint.get("Groups") or any(lets_in(one, self._groups, self._block, _HTTPS) for one in groups)

    def _route_table(self) -> Mapping[str, Any]:
        """Return the subnet's own route table, or the VPC's main one."""
        main: Mapping[str, Any] = {}
        for table in self._api.every("ec2:DescribeRouteTables", "RouteTables", Filters=self._inside):
            links = table.get("Associations", [])
            if any(one.get("SubnetId") == self.name for one in links):
                return table
            if any(one.get("Main") for one in links):
                main = table
        return main
