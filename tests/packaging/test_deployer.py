"""The deployer's policy has what CloudFormation's handlers need for every type of resource in the templates."""

from __future__ import annotations

import json
import subprocess
from fnmatch import fnmatchcase
from typing import Any, Final

from moto.iam.policy_validation import IAMPolicyDocumentValidator

from tests.packaging.conftest import TOOLS
from tests.support.template import ROOT, read

POLICY: Final = ROOT / "infra" / "deployer.json"
SCRIPT: Final = ROOT / "tests" / "support" / "handler_permissions.py"
OF_SAM: Final[dict[str, tuple[str, ...]]] = {
    "AWS::Serverless::Application": ("AWS::CloudFormation::Stack",),
    "AWS::Serverless::Function": (
        "AWS::Lambda::Function",
        "AWS::Lambda::Alias",
        "AWS::Lambda::Version",
        "AWS::Lambda::EventInvokeConfig",
        "AWS::Lambda::Permission",
        "AWS::Events::Rule",
    ),
    "AWS::Serverless::LayerVersion": ("AWS::Lambda::LayerVersion",),
}
"""What SAM makes of its types."""
NOT_USED: Final = {
    "codedeploy": "traffic is not shifted to a new version",
    "elasticfilesystem": "functions have no file system",
    "s3files": "functions have no file system",
    "firehose": "no alarm or log group goes to a stream",
    "s3tables": "the bucket has no metadata tables",
    "kms": "with LogKmsKeyArn or a key of the bucket: the key's policy",
    "iam:CreateServiceLinkedRole": "that of ECS is in every account that has used it",
    "iam:AttachGroupPolicy": "policies are attached to roles only",
    "iam:AttachUserPolicy": "policies are attached to roles only",
    "iam:DetachGroupPolicy": "policies are attached to roles only",
    "iam:DetachUserPolicy": "policies are attached to roles only",
    "s3:REST.PUT.OBJECT": "not an action of IAM",
}


def statements() -> list[dict[str, Any]]:
    """Return the statements of the policy."""
    found: list[dict[str, Any]] = json.loads(POLICY.read_text())["Statement"]
    return found


def actions(statement: dict[str, Any]) -> list[str]:
    """Return the actions of a statement, which may be one or several."""
    found = statement["Action"]
    return [found] if isinstance(found, str) else list(found)


def used() -> set[str]:
    """Return the types of resources in all templates."""
    types = {
        one["Type"] for file in (ROOT / "infra").glob("*.yaml") for one in read(file).get("Resources", {}).values()
    }
    made = {kind for one in types for kind in OF_SAM.get(one, (one,))}
    return {one for one in made if not one.startswith("Custom::")}


def test_the_policy_allows_what_the_handlers_of_every_type_need() -> None:
    ended = subprocess.run(
        [TOOLS / "python", SCRIPT, *sorted(used())], capture_output=True, text=True, check=False, timeout=600
    )
    assert ended.returncode == 0, ended.stderr
    needed: dict[str, list[str]] = json.loads(ended.stdout)
    assert len(needed) > 20
    assert sum(bool(rights) for rights in needed.values()) == len(needed) - 1  # a handle that is nothing has none
    allowed = [action for one in statements() for action in actions(one)]
    missing = {
        right
        for rights in needed.values()
        for right in rights
        if right not in NOT_USED and right.split(":")[0] not in NOT_USED
        if not any(fnmatchcase(right, pattern) for pattern in allowed)
    }
    assert missing == set()


def test_the_policy_is_one_that_iam_takes() -> None:
    text = json.dumps(json.loads(POLICY.read_text()), separators=(",", ":"))
    IAMPolicyDocumentValidator(text).validate()
    assert len(text) < 6_144
    for one in statements():
        resources = one["Resource"] if isinstance(one["Resource"], list) else [one["Resource"]]
        # Everything of a service only on resources of the stacks, of sam, or on Glue's catalog.
        named = ("mirrorless", "aws-sam-cli-managed-default", "transform/Serverless", ":catalog")
        if any(action.endswith(":*") for action in actions(one)):
            assert all(any(part in resource for part in named) for resource in resources), one["Sid"]


def test_roles_are_passed_to_lambda_glue_and_ecs_only() -> None:
    (passed,) = [one for one in statements() if "iam:PassRole" in actions(one)]
    services = passed["Condition"]["StringEquals"]["iam:PassedToService"]
    assert services == ["lambda.amazonaws.com", "glue.amazonaws.com", "ecs-tasks.amazonaws.com"]
    assert not any("iam:*" in actions(one) or "*" in actions(one) for one in statements())
