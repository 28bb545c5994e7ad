"""Deployments of the SAM templates, resolved by the package's own reader of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from mirrorless.local.cloudformation import ACCOUNT, REGION, Stack, read

__all__ = ["ACCOUNT", "REGION", "ROOT", "TEMPLATE", "Stack", "cluster_arn", "environment", "read"]

ROOT: Final = Path(__file__).parents[2]
TEMPLATE: Final = ROOT / "infra" / "template.yaml"


def cluster_arn(name: str) -> str:
    """Return the ARN of a cluster on MSK."""
    return f"arn:aws:kafka:{REGION}:{ACCOUNT}:cluster/{name}/0f1e2d3c-1111-2222-3333-444455556666-1"


def environment(**parameters: Any) -> Stack:  # noqa: ANN401
    """Return a deployment of `primary` and `backup`, on MSK with IAM, with the flow there only; changed as told."""
    usual = {
        "Environment": "test",
        "ConfigLocation": "s3://configuration/mm2.properties",
        "SubnetIds": "subnet-1,subnet-2",
        "SecurityGroupIds": "sg-1",
        "FirstAlias": "primary",
        "FirstClusterArn": cluster_arn("primary"),
        "SecondAlias": "backup",
        "SecondClusterArn": cluster_arn("backup"),
    }
    return Stack(TEMPLATE, usual | parameters)
