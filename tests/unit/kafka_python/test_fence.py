"""kafka-python is imported in one package, and every private name of it that is used there is listed and checked."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from functools import cache
from pathlib import Path

import kafka

import mirrorless
from mirrorless import kafka_python
from mirrorless.kafka_python.compatibility import resolve

PACKAGE = Path(mirrorless.__file__).parent
FENCE = Path(kafka_python.__file__).parent
LISTED = (*kafka_python.REPLACED, *kafka_python.OVERRIDDEN, *kafka_python.USED)
OURS = [importlib.import_module(f"mirrorless.kafka_python.{one.name}") for one in pkgutil.iter_modules([str(FENCE)])]


@cache
def outside() -> list[tuple[Path, ast.AST]]:
    """Every node of every module outside of the fence, scripts of functions and jobs included."""
    root = PACKAGE.parents[1]
    paths = (*PACKAGE.rglob("*.py"), *root.glob("functions/**/*.py"), *root.glob("glue_jobs/*.py"))
    return [
        (path, node)
        for path in paths
        if not path.is_relative_to(FENCE)
        for node in ast.walk(ast.parse(path.read_text()))
    ]


def path_of(name: str) -> str:
    """A listed name without its parameters: `kafka.net.selector:NetworkSelector._unschedule`."""
    return re.sub(r"\([^()]+\)$|\(\)$", "", name)


def private_part(name: str) -> str:
    return re.split(r"[.:]", path_of(name))[-1]


LIBRARY = re.compile(rf"kafka\.({'|'.join(one.name for one in pkgutil.iter_modules(kafka.__path__))})(\.\w+)*")


def test_no_other_module_imports_it() -> None:
    wrong = []
    for path, node in outside():
        if isinstance(node, ast.ImportFrom) and not node.level:
            imported = [node.module or ""]
        elif isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and LIBRARY.fullmatch(node.value):
            imported = [node.value]  # of `import_module`
        else:
            continue
        wrong += [f"{path}: {name}" for name in imported if name.partition(".")[0] == "kafka"]
    assert wrong == []


def test_no_other_module_uses_a_private_name_of_it() -> None:
    private = {private_part(name) for name in LISTED if re.match("_[a-z]", private_part(name))}
    wrong = [
        f"{path}:{node.lineno} {node.attr}"
        for path, node in outside()
        if isinstance(node, ast.Attribute)
        and node.attr in private
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    ]
    assert wrong == []


def test_every_private_name_that_is_used_is_listed_and_every_one_that_is_listed_is_used() -> None:
    used: set[str] = set()
    own: set[str] = set()
    for path in FENCE.glob("*.py"):
        if path.name in ("__init__.py", "compatibility.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and re.fullmatch(r"_[a-z].*", node.attr):
                used.add(node.attr)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                used.add(node.name)
    for module in OURS:
        for cls in vars(module).values():
            if inspect.isclass(cls) and cls.__module__ == module.__name__:
                inherited = {name for base in cls.__mro__ if base.__module__.startswith("kafka") for name in vars(base)}
                own |= vars(cls).keys() - inherited
                own |= set(re.findall(r"\bself\.(_\w+)(?:: [^=]+)? = ", inspect.getsource(cls)))
    listed = {private_part(name) for name in LISTED if private_part(name).startswith("_")} - {"__init__"}
    assert {name for name in used - own if name.startswith("_") and not name.startswith("__")} - functions() <= listed
    assert listed <= used


def functions() -> set[str]:
    """Private functions of the fence's own modules."""
    return {name for module in OURS for name in vars(module)}


def test_every_method_that_is_overridden_is_listed() -> None:
    overridden = set()
    for module in OURS:
        for cls in vars(module).values():
            if not inspect.isclass(cls) or cls.__module__ != module.__name__:
                continue
            for name, method in vars(cls).items():
                if name.startswith("__") or not inspect.isfunction(method):
                    continue
                overridden |= {name for base in derived_from(cls) if name in dir(base)}
    listed = {private_part(name) for name in kafka_python.OVERRIDDEN}
    assert listed == overridden


def derived_from(cls: type) -> set[type]:
    """The library's classes that a class, or one that it is mixed into, is derived from."""
    users = [
        one
        for module in (
            *OURS,
            *map(importlib.import_module, ("mirrorless.protocol.fetch", "mirrorless.protocol.produce")),
        )
        for one in vars(module).values()
        if inspect.isclass(one) and issubclass(one, cls)
    ]
    return {base for user in users for base in user.__mro__ if base.__module__.startswith("kafka.")}


def test_what_is_replaced_is_ours() -> None:
    for name in kafka_python.REPLACED:
        assert resolve(path_of(name)).__module__.startswith("mirrorless.kafka_python."), name


def test_every_replacement_names_where_the_library_looks_it_up() -> None:
    assert kafka_python.LOOKED_UP_BY.keys() == {path_of(name) for name in kafka_python.REPLACED}


def test_the_requirement_of_the_package_is_what_is_checked() -> None:
    text = (PACKAGE.parents[1] / "pyproject.toml").read_text()
    least, below = (".".join(map(str, numbers)) for numbers in (kafka_python.LEAST, kafka_python.BELOW))
    assert set(re.findall(r'"kafka-python([^"]*)"', text)) == {f">={least},<{below}"}
