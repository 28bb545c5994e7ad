"""Deployments of the SAM templates, resolved by the package's own reader of them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mirrorless.functions.flow_attributes import FlowProperties, attributes
from mirrorless.settings import load
from tests.support.cloudformation import ACCOUNT, REGION, Stack, read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.cloudformation import CustomResource

__all__ = ["ACCOUNT", "IAM", "REGION", "ROOT", "TEMPLATE", "Stack", "cluster_arn", "custom", "environment", "read"]

ROOT: Final = Path(__file__).parents[2]
TEMPLATE: Final = ROOT / "infra" / "template.yaml"
IAM: Final = "{alias}.security.protocol=SASL_SSL\n{alias}.sasl.mechanism=AWS_MSK_IAM\n"


def cluster_arn(name: str, *, region: str = REGION, account: str = ACCOUNT) -> str:
    """Return the ARN of a cluster on MSK."""
    return f"arn:aws:kafka:{region}:{account}:cluster/{name}/0f1e2d3c-1111-2222-3333-444455556666-1"


def configuration(lines: str = "", *, both_ways: bool = False, first: str = IAM, second: str = IAM) -> str:
    """Return a configuration of `primary` and `backup`; `first` and `second` are how their clients log in."""
    return (
        "clusters=primary,backup\nprimary.bootstrap.servers=a1:9098,a2:9098\nbackup.bootstrap.servers=b1:9098\n"
        "primary->backup.enabled=true\n"
        + ("backup->primary.enabled=true\n" if both_ways else "")
        + first.format(alias="primary")
        + second.format(alias="backup")
        + lines
    )


def custom(text: str, *, since: str = "") -> Mapping[str, CustomResource]:
    """Return what the custom resource answers for a configuration, wherever the stack says that it is.

    `since` is from when its triggers poll.
    """

    def of(properties: Mapping[str, Any]) -> Mapping[str, str]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "mm2.properties"
            file.write_text(text)
            found = attributes(load(str(file)), FlowProperties.model_validate(properties))
        return found | {"AvailabilityZone": f"{REGION}a", "OffsetSyncsSince": since, "HeartbeatsSince": since}

    return {"Custom::MirrorlessFlow": of}


def environment(lines: str = "", *, first: str = IAM, second: str = IAM, **parameters: Any) -> Stack:  # noqa: ANN401
    """Return a deployment of `primary` and `backup`, on MSK with IAM, with the flow there only; changed as told."""
    usual = {
        "ConfigLocation": "s3://configuration/mm2.properties",
        "SubnetIds": "subnet-1,subnet-2",
        "SecurityGroupIds": "sg-1",
        "FirstClusterArn": cluster_arn("primary"),
        "SecondClusterArn": cluster_arn("backup"),
    }
    both_ways = parameters.get("BackwardEnabled") == "true"
    text = configuration(lines, both_ways=both_ways, first=first, second=second)
    answers = custom(text, since=parameters.pop("custom_since", ""))
    return Stack(TEMPLATE, usual | parameters, answers)
