"""Checks that the installed kafka-python has the version and the names that this package relies on.

A name is written `module:path`, such as `kafka.net.selector:NetworkSelector._unschedule(task)`. Parameters in brackets
are those that are passed. `()` behind a class means an instance: its attribute is assigned in `__init__`.
"""

from __future__ import annotations

import importlib
import inspect
import re
from typing import TYPE_CHECKING, Any, Final

from mirrorless.errors import PrerequisiteError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import CodeType

_PARAMETERS: Final = re.compile(r"^(?P<path>.+)\((?P<names>[^()]*)\)$")
_VERSION: Final = re.compile(r"^(\d+)\.(\d+)(?:\.(\d+))?")
_INSTANCE: Final = "()"


def installed_version(*, advice: str) -> str:
    """Return the version of the library; raises `PrerequisiteError` for one that this Python cannot import."""
    try:
        library = importlib.import_module("kafka")
    except ImportError as error:
        if error.name == "kafka":
            raise
        raise PrerequisiteError(
            f"the kafka-python that is installed cannot be imported ({error}); run {advice}"
        ) from error
    return str(getattr(library, "__version__", "of an unknown version"))


def require_version(installed: str, *, least: tuple[int, int, int], below: tuple[int, int], advice: str) -> None:
    """Raise `PrerequisiteError` for a version before `least`, for `below` and what comes after it, or for another."""
    found = _VERSION.match(installed)
    numbers = tuple(int(number or 0) for number in found.groups()) if found else ()
    if not found or not least <= numbers or numbers[:2] >= below:
        wanted = f">={'.'.join(map(str, least))},<{'.'.join(map(str, below))}"
        raise PrerequisiteError(f"kafka-python {installed} is installed, mirrorless needs {wanted}; run {advice}")


def require_names(installed: str, names: Iterable[str], *, looked_up_by: Mapping[str, str], advice: str) -> None:
    """Raise `PrerequisiteError` that lists the names that are missing or have other parameters.

    `looked_up_by` names for what is replaced the function of the library that looks it up.
    """
    wrong = [problem for name in names if (problem := _problem(name)) is not None]
    wrong += [problem for name, user in looked_up_by.items() if (problem := _unused(name, user)) is not None]
    if wrong:
        raise PrerequisiteError(
            f"kafka-python {installed} is not what mirrorless was written for: {'; '.join(wrong)}; run {advice}"
        )


def _problem(name: str) -> str | None:
    """What is wrong with a name, None if nothing is."""
    path, parameters = name, None
    if (match := _PARAMETERS.match(name)) is not None:
        path, parameters = match["path"], [one.strip() for one in match["names"].split(",") if one.strip()]
    try:
        found = resolve(path)
    except (ImportError, AttributeError):
        return f"{path} is missing"
    return (
        None if parameters is None or _takes(found, parameters) else f"{path} does not take ({', '.join(parameters)})"
    )


def resolve(path: str) -> Any:  # noqa: ANN401 -- whatever the library has there
    """Return what a path without parameters names; raises ImportError or AttributeError.

    Of an instance's attribute only the name is known, so that it is what is returned.
    """
    module, _, names = path.partition(":")
    found: Any = importlib.import_module(module)
    owner, instance, attribute = names.partition(f"{_INSTANCE}.")
    for name in owner.split("."):
        found = inspect.getattr_static(found, name)
        found = getattr(found, "__func__", found)  # of a static method
    if not instance:
        return found
    if not any(attribute in names_in(base.__init__.__code__) for base in _initialized(found)):
        raise AttributeError(path)
    return attribute


def _initialized(cls: type) -> list[Any]:
    """The bases of a class, and itself, that have an `__init__` written in Python."""
    return [base for base in cls.__mro__ if hasattr(vars(base).get("__init__"), "__code__")]


def names_in(code: CodeType) -> set[str]:
    """The attributes and globals that a function, and what is defined within it, refers to."""
    inner = [one for one in code.co_consts if inspect.iscode(one)]
    return set(code.co_names).union(*map(names_in, inner))


def _takes(function: Any, parameters: list[str]) -> bool:  # noqa: ANN401
    """Whether a function has these parameters, the first one but `self` or `cls`."""
    there = list(inspect.signature(function).parameters.values())
    names = {one.name for one in there if one.kind is not inspect.Parameter.VAR_KEYWORD}
    required = {
        one.name
        for one in there
        if one.default is inspect.Parameter.empty
        and one.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    }
    return names >= set(parameters) and required - {"self", "cls"} <= set(parameters)


def _unused(name: str, user: str) -> str | None:
    """What is wrong with a replaced name if `user`, a function of the library, does not look it up any more."""
    try:
        code = resolve(user).__code__
    except (ImportError, AttributeError):
        return f"{user} is missing"
    last = name.replace(":", ".").rpartition(".")[2]
    return None if last in names_in(code) else f"{user} does not use {last}"
