"""Finds the class that a setting names: a built-in one by its Java name, or a custom one by import path."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, cast

from mirrorless.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mirrorless.settings.model import Flow

JAVA_PACKAGE: Final = "org.apache.kafka.connect.mirror."

_NAME: Final = r"[^\W\d]\w*"
_PATH: Final = re.compile(rf"({_NAME}(?:\.{_NAME})*)[.:]({_NAME})")

_Made_co = TypeVar("_Made_co", covariant=True)


class _Kind(Protocol[_Made_co]):
    def of(self, flow: Flow) -> _Made_co: ...


def build(
    flow: Flow, *, key: str, text: str, built_in: Mapping[str, _Kind[_Made_co]], methods: Sequence[str]
) -> _Made_co:
    """Make what the setting `key` of a flow names: `Class.of(flow)`.

    `built_in` has the classes with a Java name, with or without the package; anything else is
    `package.module:Class` or `package.module.Class` and must have `methods`. Raises ConfigurationError, in one line.
    """
    name = text.strip()
    kind = built_in.get(name.removeprefix(JAVA_PACKAGE))
    return (kind or _own(flow, key=key, text=name, built_in=built_in, methods=methods)).of(flow)


def _own(
    flow: Flow, *, key: str, text: str, built_in: Mapping[str, _Kind[_Made_co]], methods: Sequence[str]
) -> _Kind[_Made_co]:
    def refuse(reason: str) -> ConfigurationError:
        return ConfigurationError(f"flow {flow.name}: {reason}", key=key, value=text)

    advice = f"use {', '.join(built_in)}, or a Python class as package.module:Class; Java classes are not loaded"
    found = _PATH.fullmatch(text)
    if found is None:
        raise refuse(f"this is not the name of a class; {advice}")
    module, name = found.groups()
    try:
        kind = getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError as error:
        if error.name is None or not (f"{module}.").startswith(f"{error.name}."):
            raise refuse(f"module {module} needs {error.name}, which is not installed") from error
        raise refuse(f"module {error.name} is not on Python's path; {advice}") from error
    except Exception as error:
        raise refuse(f"importing {module} failed: {type(error).__name__}: {error}") from error
    if not isinstance(kind, type):
        raise refuse(f"module {module} has no class {name}")
    if lacking := [method for method in ("of", *methods) if not callable(getattr(kind, method, None))]:
        raise refuse(f"class {name} has no method {', '.join(lacking)}; it may derive from {next(iter(built_in))}")
    return cast("_Kind[_Made_co]", kind)
