"""Reads a deployed stack: its parameters, and the functions and jobs of the stacks that are nested in it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from mirrorless.doctor.aws.api import Api, Missing
from mirrorless.doctor.aws.deployment import Deployment, from_parameters, parse_arn
from mirrorless.errors import AwsError

if TYPE_CHECKING:
    from collections.abc import Iterator

_STACK: Final = "AWS::CloudFormation::Stack"
_FUNCTION: Final = "AWS::Lambda::Function"
_COPY: Final = "Copy"
_ONE_FLOW: Final = "Pipeline"
"""The nested stack of infra/flow.yaml; those of infra/template.yaml begin the names of their flow's parameters."""
_JOB: Final = "AWS::Glue::Job"
_JOB_OUTPUTS: Final = ("Job", "Verify", "ForwardJob", "ForwardVerify", "BackwardJob", "BackwardVerify")


def deployed(stack: str) -> Deployment:
    """Read a stack by its name or ARN; raises `AwsError` if there is none, or a right to read it is missing."""
    arn = parse_arn(stack)
    api = Api(arn.region if arn is not None else None)
    try:
        (found,) = api.ask("cloudformation:DescribeStacks", StackName=stack)["Stacks"]
    except Missing:
        raise AwsError(
            f"{stack} is neither a file nor a stack in {api.region}; set AWS_REGION to the stack's region"
        ) from None
    values = {one["ParameterKey"]: _value(one) for one in found.get("Parameters", [])}
    if "SubnetIds" not in values:
        raise AwsError(
            f"stack {found['StackName']} has no parameter SubnetIds; give a stack of template.yaml or flow.yaml"
        )
    outputs = {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", [])}
    functions: dict[str, list[str]] = defaultdict(list)
    copies: dict[str, str] = {}
    jobs = [outputs[name] for name in _JOB_OUTPUTS if name in outputs]
    for kind, nested, logical, physical in _resources(api, found["StackId"]):
        if kind == _FUNCTION:
            functions[logical].append(physical)
            if logical == _COPY:
                copies["" if nested == _ONE_FLOW else nested] = physical
        elif kind == _JOB and physical not in jobs:
            jobs.append(physical)
    own = parse_arn(found["StackId"])
    return from_parameters(
        values,
        name=found["StackName"],
        region=own.region if own is not None else api.region,
        account=None if own is None else own.account,
        functions={name: tuple(some) for name, some in functions.items()},
        copy_names=copies,
        jobs=tuple(jobs),
        is_deployed=True,
    )


def _resources(api: Api, stack: str, nested: str = "") -> Iterator[tuple[str, str, str, str]]:
    """Yield all resources, those of nested stacks too: type, the nested stack, logical and physical name."""
    for one in api.every("cloudformation:ListStackResources", "StackResourceSummaries", StackName=stack):
        physical = one.get("PhysicalResourceId")
        if physical is None:
            continue
        if one["ResourceType"] == _STACK:
            yield from _resources(api, physical, one["LogicalResourceId"])
        else:
            yield one["ResourceType"], nested, one["LogicalResourceId"], physical


def _value(parameter: dict[str, Any]) -> str:
    # Of a parameter of type SSM, ParameterValue is the name.
    return str(parameter.get("ResolvedValue", parameter.get("ParameterValue", "")))
