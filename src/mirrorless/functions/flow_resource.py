"""The custom resource `Custom::MirrorlessFlow`: reads the configuration when a stack is deployed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mirrorless.functions.custom_resource import respond
from mirrorless.functions.flow_attributes import FlowProperties, attributes
from mirrorless.settings import load
from mirrorless.settings.aws import client

if TYPE_CHECKING:
    from collections.abc import Mapping


def handler(event: Mapping[str, Any], context: Any) -> None:  # noqa: ANN401 -- Lambda's context
    """Answer with what the configuration says, and the Availability Zone of the jobs' subnet."""

    def work() -> dict[str, str]:
        if event["RequestType"] == "Delete":
            return {}
        given = event["ResourceProperties"]
        properties = FlowProperties.model_validate(given)
        found = attributes(load(properties.config_location), properties)
        return found | {"AvailabilityZone": availability_zone(given["SubnetId"])}

    respond(event, context, work)


def availability_zone(subnet: str) -> str:
    """Return a subnet's zone: a Glue connection that does not name it is accepted, but no run of it starts."""
    with client("ec2", region=None) as ec2:
        return str(ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["AvailabilityZone"])
