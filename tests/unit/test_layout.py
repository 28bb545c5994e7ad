"""Data flows one way: a module imports only from its own layer and from those above it."""

from __future__ import annotations

import ast
import graphlib
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import mirrorless

LAYERS = (
    "errors",
    "client_logs",
    "kafka_python",
    "settings",
    "known_topics",
    "service_topics",
    "name_filters",
    "renaming",
    "policy",
    "selection",
    "filters",
    "modes",
    "loops",
    "formats",
    "metrics",
    "clusters",
    "operation_log",
    "metadata",
    "rights",
    "batches",
    "protocol",
    "log_walk",
    "progress",
    "copy",
    "offsets",
    "group_sync",
    "heartbeats",
    "archive",
    "client",
    "doctor",
    "report_html",
    "publishing",
    "verify",
    "operations",
    "functions",
    "local",
    "web",
    "cli",
)
PACKAGE = Path(mirrorless.__file__).parent

# The same inside packages.
PACKAGES = {
    "copy": ("flow", "partition", "resume", "identical", "offset_syncs", "slot", "planning", "engines", "api"),
}

SPARK_JOB = "mirrorless.copy.engines.spark.job."
"""It needs PySpark, which functions do not have."""


@cache
def parsed(module: Path) -> ast.Module:
    """A module's syntax."""
    return ast.parse(module.read_text())


@cache
def imported(module: Path) -> set[str]:
    """The dotted names of this package that a module imports, those for type checking included."""
    found = set()
    for node in ast.walk(parsed(module)):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("mirrorless.")}


def layers(module: Path) -> set[str]:
    """The layers that a module imports."""
    return {name.split(".")[1] for name in imported(module)}


def names_in(folder: Path) -> set[str]:
    """The modules and packages of a folder; one that was moved away may have left compiled modules there."""
    modules = (path.relative_to(folder).parts[0].removesuffix(".py") for path in folder.rglob("*.py"))
    return {name for name in modules if not name.startswith("_")}


def test_every_module_has_a_layer() -> None:
    assert names_in(PACKAGE) == set(LAYERS)


def test_no_module_imports_from_a_layer_below_its_own() -> None:
    wrong = [
        f"{module.relative_to(PACKAGE)} imports {used}"
        for number, layer in enumerate(LAYERS)
        for module in [*(PACKAGE / layer).rglob("*.py"), PACKAGE / f"{layer}.py"]
        if module.exists()
        for used in layers(module)
        if used not in LAYERS[: number + 1]
    ]
    assert wrong == []


def test_other_packages_know_of_the_copier_what_its_api_has() -> None:
    root = PACKAGE.parents[1]
    modules = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] != "copy"]
    wrong = [
        f"{module.relative_to(root)} imports {used}"
        for module in [*modules, *root.glob("functions/*/app.py"), *root.glob("glue_jobs/*.py")]
        for used in imported(module)
        if used.startswith("mirrorless.copy.") and not used.startswith(("mirrorless.copy.api.", SPARK_JOB))
    ]
    assert wrong == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_package_imports_from_one_behind_it(package: str) -> None:
    order = PACKAGES[package]
    folder = PACKAGE / package
    assert names_in(folder) == set(order)
    wrong = [
        f"{module.relative_to(PACKAGE)} imports {used}"
        for number, name in enumerate(order)
        for module in [*(folder / name).rglob("*.py"), folder / f"{name}.py"]
        if module.exists()
        for used in imported(module)
        if used.startswith(f"mirrorless.{package}.") and used.split(".")[2] not in order[: number + 1]
    ]
    assert wrong == []


def test_modules_import_each_other_in_no_cycle() -> None:
    """Imports for type checking are not counted: they say what a module is given, not what it needs to load."""
    graph = {}
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(("mirrorless", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        graph[name] = loaded(path)
    graph = {
        name: {used if used in graph else used.rpartition(".")[0] for used in uses} - {name}
        for name, uses in graph.items()
    }
    graphlib.TopologicalSorter(graph).prepare()


def loaded(module: Path) -> set[str]:
    """What a module imports when it is loaded."""
    found = set()
    for node in parsed(module).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("mirrorless.")}


def test_a_class_name_is_one_class() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


COPIER_LINES = 11_950
COPIER_MODULES = 78


def test_the_copier_does_not_grow() -> None:
    """`find src/mirrorless/copy -name '*.py' | xargs wc -l`, and as many files without `__init__.py`."""
    files = list((PACKAGE / "copy").rglob("*.py"))
    assert sum(len(path.read_text().splitlines()) for path in files) <= COPIER_LINES
    assert sum(path.name != "__init__.py" for path in files) <= COPIER_MODULES


KINDS_OF_RECORDS = 8
PARSERS = {"progress/records.py", "progress/run_marks.py", "progress/source_notes.py"}
COMPARE_AND_APPEND = {"copy/resume/compare_and_append.py"}
"""What is appended to the progress topic with a producer id and a sequence of its own: one module does that."""


def test_kinds_of_records_in_the_progress_topic_do_not_grow() -> None:
    """Decision 0020 has a line for each; all keys but Connect's begin with this program's name."""
    page = (PACKAGE.parents[1] / "docs/decisions/0020-owners-and-kinds-of-records.md").read_text()
    table = page.partition("**Kinds of records in the progress topic**")[2].partition("**Decision**")[0]
    assert table.count("\n| ") - 1 == KINDS_OF_RECORDS
    sources = {str(path.relative_to(PACKAGE)): path.read_text() for path in PACKAGE.rglob("*.py")}
    in_progress = {name: text for name, text in sources.items() if name.startswith("progress/")}
    assert {name for name, text in in_progress.items() if "json.loads(key" in text} == PARSERS
    assert {name for name, text in sources.items() if name.startswith("copy/") and "murmur2" in text} == (
        COMPARE_AND_APPEND
    )


def test_scripts_of_functions_and_jobs_stay_thin() -> None:
    root = PACKAGE.parents[1]
    scripts = [*root.glob("functions/*/app.py"), *root.glob("glue_jobs/*.py")]
    assert scripts
    assert [str(path) for path in scripts if len(path.read_text().splitlines()) > 60] == []


def test_clients_of_both_libraries_are_made_in_one_module_each() -> None:
    """So that a simulation can replace them. The demo and its brokers have clients of their own."""
    made = {"AdminClient", "Consumer", "Producer", "KafkaAdminClient", "AdminRequests", "EventLoop", "ClusterClient"}
    places = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if path.parent.name not in ("demo", "local") and isinstance(node, ast.Call)
        if isinstance(node.func, ast.Name) and node.func.id in made
    }
    assert places == {"clusters/clients.py", "kafka_python/admin.py", "protocol/clients.py"}
