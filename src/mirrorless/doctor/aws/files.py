"""Reads parameters of stacks that are not deployed yet from a file: samconfig.toml, a template, or AWS's JSON."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mirrorless.doctor.aws.api import Api
from mirrorless.doctor.aws.deployment import Deployment, from_parameters
from mirrorless.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NEEDED: Final = "SubnetIds"


def described(file: str) -> list[Deployment]:
    """Return the deployments that a file describes, those of samconfig.toml by environment.

    A template has the defaults of its parameters, or nests one of Mirrorless's templates with parameters. JSON is what
    `aws cloudformation create-stack --parameters file://...` takes. Raises `ConfigurationError`.
    """
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8")
        found = list(_samconfig(path, text) if path.suffix == ".toml" else _document(path, text))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise ConfigurationError(f"cannot be read: {' '.join(str(error).split())}", file=file) from None
    if not found:
        raise ConfigurationError(
            f"has no value for the parameter {_NEEDED}; give the file with a stack's parameters", file=file
        )
    return found


def _samconfig(path: Path, text: str) -> Iterator[Deployment]:
    document = tomllib.loads(text)
    for environment, commands in document.items():
        shared, given = (
            _mapping(_mapping(_mapping(commands).get(one)).get("parameters")) for one in ("global", "deploy")
        )
        given = shared | given
        values = _overrides(given.get("parameter_overrides", []))
        if _NEEDED in values:
            region = given.get("region") or Api().region
            yield from_parameters(values, name=f"{path.name}: {environment}", region=region)


def _overrides(given: str | list[str]) -> dict[str, str]:
    """Read `Key=Value`, or `ParameterKey=Key,ParameterValue=Value`, of a text or of a list."""
    values = {}
    for one in shlex.split(given) if isinstance(given, str) else given:
        old = re.fullmatch(r"ParameterKey=([^,]+),ParameterValue=(.*)", one)
        name, _, value = (old[1], "", old[2]) if old else one.partition("=")
        values[name] = value.strip("\"'")
    return values


def _document(path: Path, text: str) -> Iterator[Deployment]:
    document = json.loads(text) if text.lstrip().startswith(("{", "[")) else _yaml(text)
    region = Api().region
    if isinstance(document, list):
        given = [one for one in document if isinstance(one, dict) and "ParameterKey" in one]
        values = {str(one["ParameterKey"]): str(one.get("ParameterValue", "")) for one in given}
        if _NEEDED in values:
            yield from_parameters(values, name=path.name, region=region)
        return
    if not isinstance(document, dict):
        raise ValueError("is no template")
    declared = _mapping(document.get("Parameters"))
    defaults = {name: _text(one["Default"]) for name, one in declared.items() if "Default" in _mapping(one)}
    if defaults.get(_NEEDED):
        yield from_parameters(defaults, name=path.name, region=region)
    for name, resource in _mapping(document.get("Resources")).items():
        nested = _mapping(_mapping(_mapping(resource).get("Properties")).get("Parameters"))
        values = {key: _text(_resolved(value, defaults)) for key, value in nested.items()}
        if values.get(_NEEDED):
            yield from_parameters(values, name=f"{path.name}: {name}", region=region)


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _resolved(value: Any, defaults: Mapping[str, str]) -> Any:  # noqa: ANN401 -- whatever a template has
    """Return a value of a template; a reference to a parameter is its default, any other function is nothing."""
    match value:
        case {"Ref": str(name)}:
            return defaults.get(name, "")
        case {"Fn::Join": [str(separator), parts]}:
            parts = _resolved(parts, defaults)
            return parts if isinstance(parts, str) else separator.join(_text(_resolved(one, defaults)) for one in parts)
        case dict():
            return ""
        case list():
            return [_resolved(one, defaults) for one in value]
    return value


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _yaml(text: str) -> object:
    yaml = importlib.import_module("yaml")

    class Loader(yaml.SafeLoader):  # type: ignore[misc, name-defined]
        """Reads CloudFormation's tags: `!Ref X` as `{"Ref": "X"}`."""

    def tagged(loader: Any, suffix: str, node: Any) -> dict[str, object]:  # noqa: ANN401 -- PyYAML's
        name = suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}"
        if isinstance(node, yaml.ScalarNode):
            return {name: loader.construct_scalar(node)}
        construct = loader.construct_sequence if isinstance(node, yaml.SequenceNode) else loader.construct_mapping
        return {name: construct(node, deep=True)}

    Loader.add_multi_constructor("!", tagged)
    try:
        return yaml.load(text, Loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
