"""Which requests to AWS the code can make, found in its source: what `client("glue")` opens, what is called on it."""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import Final

import botocore.session
from botocore import xform_name

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "src"
# Where the right is not called as the request is; boto3 makes some calls out of several requests.
_RIGHTS: Final = {
    "lambda:Invoke": ("lambda:InvokeFunction",),
    "sqs:SendMessageBatch": ("sqs:SendMessage",),
    "s3:GetObject": ("s3:GetObject", "s3:GetObjectVersion"),
    "s3:upload_file": ("s3:PutObject", "s3:AbortMultipartUpload"),
    "s3:download_file": ("s3:GetObject",),
}
_MANAGED: Final = {"s3": ("upload_file", "download_file")}


def reachable(entry: Path) -> frozenset[Path]:
    """Return `entry` and every module of the package that is imported when it is, at any depth."""
    found: set[Path] = set()
    waiting = [entry]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _imported(path)
    return frozenset(found)


def rights(path: Path) -> frozenset[str]:
    """Return the IAM actions of the requests in one module."""
    tree = ast.parse(path.read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    services = {
        str(call.args[0].value)
        for call in calls
        if _name(call.func) == "client" and call.args and isinstance(call.args[0], ast.Constant)
    }
    methods = {call.func.attr for call in calls if isinstance(call.func, ast.Attribute)}
    return frozenset(
        right
        for service in services
        for method, operation in _operations(service).items()
        if method in methods
        for right in _RIGHTS.get(f"{service}:{operation}", (f"{service}:{operation}",))
    )


def third_party(paths: frozenset[Path]) -> frozenset[str]:
    """Return the top-level names that these modules import and that are not the package's."""
    return frozenset(name.split(".")[0] for path in paths for name in _names(path) if not name.startswith("mirrorless"))


@functools.cache
def _operations(service: str) -> dict[str, str]:
    model = botocore.session.get_session().get_service_model(service)
    found = {xform_name(name): str(name) for name in model.operation_names}
    return found | {name: name for name in _MANAGED.get(service, ())}


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _imported(path: Path) -> list[Path]:
    files = []
    for name in _names(path):
        parts = name.split(".")
        # A package is executed on the way to its module; the last part may be a name in a module.
        for depth in range(1, len(parts) + 1):
            place = SOURCE.joinpath(*parts[:depth])
            files += [file for file in (place.with_suffix(".py"), place / "__init__.py") if file.exists()]
    return files


def _names(path: Path) -> list[str]:
    """Everything that is imported, `from a import b` as `a.b`, but not what only type checkers see."""
    tree = ast.parse(path.read_text())
    skipped = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and _name(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    names = []
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif (
            isinstance(node, ast.Call)
            and _name(node.func) == "import_module"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            names.append(str(node.args[0].value))
    return names
