"""The custom resource `Custom::MirrorlessFlow`: reads the configuration when a stack is deployed.

It refuses a configuration whose clients refer to a secret, a parameter or a role that the stack's roles may not use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mirrorless.errors import ConfigurationError
from mirrorless.functions.custom_resource import respond
from mirrorless.functions.flow_attributes import FlowProperties, attributes, select_flow
from mirrorless.rights.granted import Granted
from mirrorless.settings import load
from mirrorless.settings.aws import client

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.settings import Flow


def handler(event: Mapping[str, Any], context: Any) -> None:  # noqa: ANN401 -- Lambda's context
    """Answer with what the configuration says, and the Availability Zone of the jobs' subnet."""

    def work() -> dict[str, str]:
        if event["RequestType"] == "Delete":
            return {}
        given = event["ResourceProperties"]
        properties = FlowProperties.model_validate(given)
        settings = load(properties.config_location)
        found = attributes(settings, properties)
        refuse_missing_rights(select_flow(settings, properties), given, file=settings.file)
        return found | {"AvailabilityZone": availability_zone(given["SubnetId"])}

    respond(event, context, work)


def refuse_missing_rights(flow: Flow, given: Mapping[str, Any], *, file: str) -> None:
    """Raise `ConfigurationError` for what the clients of both clusters refer to and the parameters do not grant."""
    granted = Granted(
        secrets=_list(given, "SecretArns"),
        parameters=_list(given, "ParameterArns"),
        roles=_list(given, "ClientRoleArns"),
    )
    for cluster in (flow.source, flow.target):
        for key, reason in granted.missing(cluster):
            raise ConfigurationError(reason, file=file, key=f"{cluster.alias}.{key}")


def _list(given: Mapping[str, Any], name: str) -> list[str]:
    return [one.strip() for one in str(given.get(name, "")).split(",") if one.strip()]


def availability_zone(subnet: str) -> str:
    """Return a subnet's zone: a Glue connection that does not name it is accepted, but no run of it starts."""
    with client("ec2", region=None) as ec2:
        return str(ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["AvailabilityZone"])
