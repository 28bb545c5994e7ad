"""Reads the SAM templates as CloudFormation does: follows nested stacks, resolves conditions and references."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import yaml

from mirrorless.errors import PrerequisiteError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    CustomResource = Callable[[Mapping[str, Any]], Mapping[str, str]]

ACCOUNT: Final = "111122223333"
REGION: Final = "eu-central-1"
"""Value of pseudo parameters; nothing that runs on this machine depends on it."""
_PSEUDO: Final = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Region": REGION,
    "AWS::Partition": "aws",
    "AWS::StackName": "stack",
}
_NESTED: Final = "AWS::Serverless::Application"
_NOTHING: Final = object()


# The C library's loader if the wheel has it: in pure Python these templates take half a second.
_Safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Safe):  # type: ignore[misc]
    pass


def _tagged(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
        if suffix == "GetAtt":
            value = value.split(".", 1)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
    return {name: value}


_Loader.add_multi_constructor("!", _tagged)


@functools.cache
def read(path: Path) -> dict[str, Any]:
    """Return a template as written, `!Ref X` as `{"Ref": "X"}`; do not modify it, it is cached."""
    document = yaml.load(path.read_text(), _Loader)  # noqa: S506 -- a safe loader with CloudFormation's tags
    assert isinstance(document, dict)
    return document


@dataclass
class Stack:
    """A template with values for its parameters; `resources` are those whose condition is true, resolved.

    `custom` computes the attributes of custom resources from their properties, by type.
    """

    path: Path
    parameters: dict[str, Any]
    custom: Mapping[str, CustomResource] = field(default_factory=dict)
    resources: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._document = read(self.path)
        declared = self._document.get("Parameters", {})
        if unknown := set(self.parameters) - set(declared):
            raise PrerequisiteError(f"{self.path.name} has no parameters {', '.join(sorted(unknown))}")
        given = {name: about["Default"] for name, about in declared.items() if "Default" in about} | self.parameters
        if missing := set(declared) - set(given):
            raise PrerequisiteError(f"{self.path.name} needs the parameters {', '.join(sorted(missing))}")
        self._nested: dict[str, Stack] = {}
        self._attributes: dict[str, Mapping[str, str]] = {}
        self._values = {name: self._typed(declared[name]["Type"], value) for name, value in given.items()}
        for name, resource in self._document["Resources"].items():
            if "Condition" in resource and not self.holds(resource["Condition"]):
                continue
            self.resources[name] = self.resolve(resource)

    @functools.cached_property
    def nested(self) -> dict[str, Stack]:
        """The stacks in this one, by name."""
        return {name: self._stack(name) for name in self.of_type(_NESTED)}

    @functools.cached_property
    def outputs(self) -> dict[str, Any]:
        """The outputs whose condition holds, resolved."""
        return {
            name: self.resolve(one["Value"])
            for name, one in self._document.get("Outputs", {}).items()
            if "Condition" not in one or self.holds(one["Condition"])
        }

    def holds(self, condition: str) -> bool:
        """Whether a condition of the template is true."""
        return bool(self.resolve(self._document["Conditions"][condition]))

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the properties of all resources of a type."""
        return {name: one["Properties"] for name, one in self.resources.items() if one["Type"] == kind}

    @property
    def globals(self) -> dict[str, Any]:
        """The properties of all functions."""
        found = self.resolve(self._document["Globals"]["Function"])
        assert isinstance(found, dict)
        return found

    def resolve(self, value: Any) -> Any:  # noqa: ANN401 -- JSON
        """Return a value without intrinsic functions; attributes of resources become `<Resource.Attribute>`."""
        if isinstance(value, list):
            return [one for one in map(self.resolve, value) if one is not _NOTHING]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            (name, argument), *_ = value.items()
            if name == "Ref":
                return self._ref(argument)
            if name == "Condition" and isinstance(argument, str):
                return self.holds(argument)
            if name.startswith("Fn::"):
                return self._call(name.removeprefix("Fn::"), argument)
        return {key: one for key, inner in value.items() if (one := self.resolve(inner)) is not _NOTHING}

    def _ref(self, name: str) -> Any:  # noqa: ANN401
        if name in self._values:
            return self._values[name]
        return _NOTHING if name == "AWS::NoValue" else _PSEUDO.get(name, f"<{name}>")

    def _call(self, function: str, argument: Any) -> Any:  # noqa: ANN401 -- one case a function
        match function:
            case "If":
                name, yes, no = argument
                return self.resolve(yes if self.holds(name) else no)
            case "GetAtt":
                return self._attribute(*argument)
            case "Sub":
                return self._sub(argument)
            case "Equals":
                one, other = map(self.resolve, argument)
                return one == other
            case "Not":
                return not self.resolve(argument[0])
            case "And":
                return all(self.resolve(one) for one in argument)
            case "Or":
                return any(self.resolve(one) for one in argument)
            case "Join":
                return argument[0].join(str(one) for one in self.resolve(argument[1]))
            case "Split":
                return self.resolve(argument[1]).split(argument[0])
            case "Select":
                return self.resolve(argument[1])[int(argument[0])]
        raise PrerequisiteError(f"{self.path.name}: Fn::{function} is not supported here")

    def _attribute(self, resource: str, attribute: str) -> Any:  # noqa: ANN401
        written = self._document["Resources"][resource]
        if written["Type"] == _NESTED and attribute.startswith("Outputs."):
            return self._stack(resource).outputs[attribute.removeprefix("Outputs.")]
        if written["Type"] in self.custom:
            if resource not in self._attributes:
                self._attributes[resource] = self.custom[written["Type"]](self.resolve(written["Properties"]))
            return self._attributes[resource][attribute]
        return f"<{resource}.{attribute}>"

    def _stack(self, resource: str) -> Stack:
        if resource not in self._nested:
            properties = self.resolve(self._document["Resources"][resource]["Properties"])
            path = self.path.parent / properties["Location"]
            self._nested[resource] = Stack(path, properties["Parameters"], self.custom)
        return self._nested[resource]

    def _sub(self, argument: Any) -> str:  # noqa: ANN401
        text, own = argument if isinstance(argument, list) else (argument, {})
        known = {name: self.resolve(value) for name, value in own.items()}

        def one(match: re.Match[str]) -> str:
            resource, _, attribute = match[1].partition(".")
            if match[1] in known:
                return str(known[match[1]])
            return str(self._attribute(resource, attribute) if attribute else self._ref(match[1]))

        return re.sub(r"\$\{([^!}]+)\}", one, text)

    @staticmethod
    def _typed(kind: str, value: Any) -> Any:  # noqa: ANN401
        if kind.startswith(("List<", "CommaDelimitedList")) and isinstance(value, str):
            return [one.strip() for one in value.split(",")]
        return value
