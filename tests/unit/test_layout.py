"""Data flows one way: a module imports only from its own layer and from those above it."""

from __future__ import annotations

import ast
from pathlib import Path

import mirrorless

LAYERS = (
    "errors",
    "settings",
    "policy",
    "filters",
    "loops",
    "formats",
    "metrics",
    "clusters",
    "metadata",
    "rights",
    "batches",
    "protocol",
    "copy",
    "offsets",
    "heartbeats",
    "client",
    "doctor",
    "publishing",
    "functions",
    "verify",
    "local",
    "cli",
)
PACKAGE = Path(mirrorless.__file__).parent


def imports(module: Path) -> set[str]:
    """The layers that a module imports, those for type checking included."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("mirrorless.")}
    return found


def test_every_module_has_a_layer() -> None:
    names = {path.stem for path in PACKAGE.iterdir() if not path.name.startswith("_") and path.suffix != ".typed"}
    assert names == set(LAYERS)


def test_no_module_imports_from_a_layer_below_its_own() -> None:
    wrong = [
        f"{module.relative_to(PACKAGE)} imports {imported}"
        for number, layer in enumerate(LAYERS)
        for module in [*(PACKAGE / layer).rglob("*.py"), PACKAGE / f"{layer}.py"]
        if module.exists()
        for imported in imports(module)
        if imported not in LAYERS[: number + 1]
    ]
    assert wrong == []


def test_files_stay_small() -> None:
    long = [
        str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if len(path.read_text().splitlines()) > 400
    ]
    assert long == []


def test_scripts_of_functions_and_jobs_stay_thin() -> None:
    root = PACKAGE.parents[1]
    scripts = [*root.glob("functions/*/app.py"), *root.glob("glue_jobs/*.py")]
    assert scripts
    assert [str(path) for path in scripts if len(path.read_text().splitlines()) > 60] == []
