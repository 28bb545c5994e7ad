"""Templates as CloudFormation carries them out: expanded by samtranslator, conditions and parameters resolved.

What is left of intrinsic functions are references to resources of the same template, which only AWS can resolve.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.support.template import ROOT

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from tests.support.cloudformation import Stack

_PYTHON: Final = ROOT / ".venv-sam" / "bin" / "python"
_SCRIPT: Final = Path(__file__).with_name("sam_expand.py")
_NESTED: Final = "AWS::CloudFormation::Stack"


def expand_all(folder: Path) -> Path:
    """Expand every template of `infra/` into `folder`, under its name; return the folder."""
    for template in (ROOT / "infra").glob("*.yaml"):
        ended = subprocess.run(
            [_PYTHON, _SCRIPT, template],
            capture_output=True,
            text=True,
            check=False,
            env={"AWS_DEFAULT_REGION": "eu-central-1", "PATH": "/usr/bin:/bin", "SAM_CLI_TELEMETRY": "0"},
        )
        assert ended.returncode == 0, ended.stderr
        document = json.loads(ended.stdout)
        for resource in document["Resources"].values():
            if resource["Type"] == _NESTED:
                # Back to what the reader of templates follows.
                address = resource["Properties"].pop("TemplateURL")
                resource["Type"] = "AWS::Serverless::Application"
                resource["Properties"]["Location"] = address.rpartition("/")[2]
        (folder / template.name).write_text(json.dumps(document))
    return folder


def stacks(stack: Stack, name: str) -> Iterator[tuple[str, Stack]]:
    """Yield a stack and everything nested in it, with the path of its name."""
    yield name, stack
    for part, nested in stack.nested.items():
        yield from stacks(nested, f"{name}-{part}")


def resolved(stack: Stack, *, without: Container[str] = ()) -> dict[str, Any]:
    """Return the template that CloudFormation would carry out for this stack, without resources of some types."""
    resources: dict[str, Any] = {}
    there = {name: one for name, one in stack.resources.items() if one["Type"] not in without}
    for name, resource in there.items():
        left = {key: value for key, value in resource.items() if key not in ("Condition", "DependsOn")}
        kind = left["Type"]
        if kind == "AWS::Serverless::Application":
            properties = left["Properties"]
            parameters = {key: str(value) for key, value in properties["Parameters"].items() if value != ""}
            url = f"https://uploads.s3.amazonaws.com/{properties['Location']}"
            left = {"Type": _NESTED, "Properties": {"TemplateURL": url, "Parameters": parameters}}
        resources[name] = _restored(left, there)
    return {"AWSTemplateFormatVersion": "2010-09-09", "Resources": resources}


def _restored(value: Any, resources: dict[str, Any]) -> Any:  # noqa: ANN401 -- JSON
    """Turn `<Resource>` and `<Resource.Attribute>` back into references, those of other stacks into plain names."""
    if isinstance(value, dict):
        return {key: _restored(one, resources) for key, one in value.items()}
    if isinstance(value, list):
        return [_restored(one, resources) for one in value]
    if not isinstance(value, str) or "<" not in value:
        return value
    whole = re.fullmatch(r"<(\w+)((?:\.\w+)*)>", value)
    if whole is not None and whole[1] in resources:
        return {"Fn::GetAtt": [whole[1], whole[2][1:]]} if whole[2] else {"Ref": whole[1]}

    def one(match: re.Match[str]) -> str:
        return "${" + match[1] + "}" if match[1].partition(".")[0] in resources else _elsewhere(match[1])

    text = re.sub(r"<(\w+(?:\.\w+)*)>", one, value)
    return {"Fn::Sub": text} if "${" in text else text


def _elsewhere(reference: str) -> str:
    """Return a value such as a parameter would bring from another stack."""
    name, _, attribute = reference.partition(".")
    if name.startswith("Library"):
        return "arn:aws:lambda:eu-central-1:111122223333:layer:library:1"
    if name.endswith("Role"):
        return f"arn:aws:iam::111122223333:role/{name}" if attribute == "Arn" else name
    if name == "Failures" and attribute == "Arn":
        return "arn:aws:sqs:eu-central-1:111122223333:failures"
    if attribute == "Arn":
        return f"arn:aws:logs:eu-central-1:111122223333:log-group:{name}:*"
    if name == "Artifacts":
        return "artifacts"
    return {"Release": "0123456789abcdef", "KafkaJars": "s3://artifacts/releases/0/one.jar"}.get(attribute, name)
