"""The custom resource `Custom::MirrorlessFlow`: reads the configuration when a stack is deployed.

It refuses a configuration whose clients refer to a secret, a parameter or a role that the stack's roles may not use,
and one that needs a Glue job which the stack does not have.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from mirrorless.errors import ConfigurationError
from mirrorless.functions.custom_resource import respond
from mirrorless.functions.flow_attributes import FlowProperties, attributes, select_flow
from mirrorless.rights.granted import Granted, needs_jobs
from mirrorless.settings import load
from mirrorless.settings.aws import client

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.settings import Flow

_TRIGGERS: Final = ("OffsetSyncs", "Heartbeats")


def handler(event: Mapping[str, Any], context: Any) -> None:  # noqa: ANN401 -- Lambda's context
    """Answer with what the configuration says, and the Availability Zone of the jobs' subnet."""

    def work() -> dict[str, str]:
        if event["RequestType"] == "Delete":
            return {}
        given = event["ResourceProperties"]
        properties = FlowProperties.model_validate(given)
        settings = load(properties.config_location)
        found = attributes(settings, properties)
        flow = select_flow(settings, properties)
        refuse_missing_rights(flow, given, file=settings.file)
        refuse_missing_jobs(flow, given, file=settings.file)
        since = _since(found, str(event.get("PhysicalResourceId", "")), now_s=int(time.time()))
        return found | since | {"AvailabilityZone": availability_zone(given["SubnetId"])}

    def identify(found: Mapping[str, str]) -> str:
        triggers = (f"{name}={found[f'{name}Id']}@{found[f'{name}Since']}" for name in _TRIGGERS)
        return " ".join((str(event["LogicalResourceId"]), *triggers))

    respond(event, context, work, identify=identify)


def _since(found: Mapping[str, str], before: str, *, now_s: int) -> dict[str, str]:
    """Return since when each trigger polls what it does: the time in the resource's id, or now if that has changed.

    CloudFormation replaces an event source mapping for another StartingPositionTimestamp. Another topic it ignores
    (aws-cloudformation/cloudformation-coverage-roadmap 2140).
    """
    known = {part.partition("@")[0]: part.partition("@")[2] for part in before.split()}
    return {f"{name}Since": known.get(f"{name}={found[f'{name}Id']}") or str(now_s) for name in _TRIGGERS}


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


def refuse_missing_jobs(flow: Flow, given: Mapping[str, Any], *, file: str) -> None:
    """Raise `ConfigurationError` if the parameters leave out the Glue jobs, and the flow needs one."""
    if given.get("GlueJobs", "true") == "true":
        return
    if (found := needs_jobs(flow, verify_schedule=str(given.get("VerifySchedule", "")))) is not None:
        key, reason = found
        raise ConfigurationError(reason, file=file, key=key)


def _list(given: Mapping[str, Any], name: str) -> list[str]:
    return [one.strip() for one in str(given.get(name, "")).split(",") if one.strip()]


def availability_zone(subnet: str) -> str:
    """Return a subnet's zone: a Glue connection that does not name it is accepted, but no run of it starts."""
    with client("ec2", region=None) as ec2:
        return str(ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["AvailabilityZone"])
