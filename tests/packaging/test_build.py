"""What `sam build` makes runs where it is meant to, with nothing else on the path, and nothing is uploaded by hand."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from typing import TYPE_CHECKING, Final

import pytest
from infra.environment import pack
from infra.jars import SETS, SHA256, gather

from mirrorless.local.jars import SPARK_KAFKA, cache_folder
from tests.support.aws_calls import reachable, third_party
from tests.support.template import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FUNCTIONS: Final = (
    "TopicDiscovery",
    "ConfigSync",
    "AclSync",
    "Heartbeat",
    "Checkpoint",
    "HeartbeatMonitor",
    "JobSupervisor",
    "Copy",
    "Drill",
)
LARGEST_BYTES: Final = 250 << 20
"""Lambda's limit for a function and its layers, unzipped."""
MACHINES: Final = {0x3E: "x86_64", 0xB7: "aarch64"}
SPARKS: Final = {"pyspark", "py4j"}
"""What Glue has on its path whatever the environment is."""
pytestmark = pytest.mark.timeout(600)  # a whole build may stand before the first of them


def machine(head: bytes) -> str:
    """Return what a shared library was built for."""
    assert head[:4] == b"\x7fELF"
    return MACHINES[int.from_bytes(head[18:20], "little")]


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_templates_have_no_fault(tool: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    linted = tool("cfn-lint", *sorted((ROOT / "infra").glob("*.yaml")))
    assert linted.returncode == 0, linted.stdout
    for template in ("template.yaml", "shared.yaml", "flow.yaml"):
        validated = tool("sam", "validate", "--lint", "--template-file", ROOT / "infra" / template)
        assert validated.returncode == 0, validated.stdout + validated.stderr


def test_a_flow_is_built_alone(tool: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    ended = tool("sam", "build", "--config-env", "orders", "--build-dir", tmp_path, PYTHON=sys.executable)
    assert ended.returncode == 0, ended.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"template.yaml", "Pipeline"}
    for name in FUNCTIONS:
        assert (tmp_path / "Pipeline" / name / "app.py").exists()


@pytest.mark.parametrize("flow", ["Forward", "Backward"])
def test_a_function_is_its_file_and_the_layer_fits_beside_it(built: Path, flow: str) -> None:
    for name in FUNCTIONS:
        assert [path.name for path in (built / flow / name).rglob("*")] == ["app.py"]
    assert size(built / "Shared" / "Library") < LARGEST_BYTES


def test_the_layer_is_for_lambdas_processor_and_python(built: Path) -> None:
    packages = built / "Shared" / "Library" / "python"
    libraries = [path for path in packages.rglob("*.so*") if path.is_file()]
    assert libraries
    assert {machine(path.read_bytes()[:20]) for path in libraries} == {"aarch64"}
    assert not [path for path in libraries if ".cpython-" in path.name and ".cpython-313-" not in path.name]
    assert (packages / "mirrorless" / "errors.py").exists()
    assert not (packages / "pyspark").exists()


@pytest.mark.parametrize("name", [*(f"Forward/{name}" for name in FUNCTIONS), "Shared/Publisher"])
def test_a_built_function_is_imported_with_nothing_else_on_the_path(
    built: Path, native_library: Path, name: str
) -> None:
    code = (
        "import sys, sysconfig\n"
        "standard = [sysconfig.get_path('stdlib'), sysconfig.get_path('platstdlib') + '/lib-dynload']\n"
        f"sys.path[:] = [{str(built / name)!r}, {str(native_library)!r}, *standard]\n"
        "import app\n"
        "assert callable(app.handler)\n"
        "import mirrorless.functions.flow_resource\n"  # the code of SettingsReader, which is in the template
        "import mirrorless\n"
        f"assert mirrorless.__file__.startswith({str(native_library)!r}), mirrorless.__file__\n"
        "assert not any(name.startswith(('pyspark', 'pandas', 'tests')) for name in sys.modules)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 0, ended.stderr


def test_the_environment_of_the_jobs_is_for_glue_and_complete(built: Path) -> None:
    archive = built / "Shared" / "Publisher" / "release" / "environment.tar.gz"
    publisher = built / "Shared" / "Publisher"
    assert {path.name for path in publisher.iterdir()} == {"app.py", "release"}
    scripts = {path.name for path in (ROOT / "glue_jobs").glob("*.py")}
    assert {path.name for path in (publisher / "release").iterdir()} == {"environment.tar.gz", *scripts, *SHA256}
    assert size(publisher) + size(built / "Shared" / "Library") < LARGEST_BYTES
    top = set()
    with tarfile.open(archive) as tar:
        for entry in tar:
            parts = entry.name.split("/")
            if parts[:3] == ["lib", "python3.13", "site-packages"]:
                top.add(parts[3].removesuffix(".py").split(".")[0])
            if entry.isfile() and (entry.name.endswith(".so") or ".so." in entry.name):
                content = tar.extractfile(entry)
                assert content is not None
                assert machine(content.read(20)) == "x86_64", entry.name
        assert tar.getmember("bin/python").linkname == "/usr/bin/python3.13"
    jobs = frozenset(path for job in (ROOT / "glue_jobs").glob("*.py") for path in reachable(job))
    missing = third_party(jobs) - top - SPARKS - set(sys.stdlib_module_names)
    assert not missing
    # mapInArrow imports them by itself.
    assert {"pyarrow", "pandas", "mirrorless"} <= top


def test_the_same_packages_make_the_same_environment(tmp_path: Path) -> None:
    for name in ("one", "other"):
        folder = tmp_path / name
        (folder / "package" / "tests").mkdir(parents=True)
        (folder / "numpy" / "tests").mkdir(parents=True)
        (folder / "bin").mkdir()
        for file in ("package/a.py", "package/tests/b.py", "numpy/c.py", "numpy/tests/d.py", "bin/script"):
            (folder / file).write_text(file)
        pack(folder, tmp_path / f"{name}.tar.gz")
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "other.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "one.tar.gz") as tar:
        tar.extractall(tmp_path / "out", filter="fully_trusted")  # noqa: S202 -- made above
    packages = tmp_path / "out" / "lib64" / "python3.13" / "site-packages"
    assert (packages / "package" / "tests" / "b.py").read_text() == "package/tests/b.py"
    found = {path.relative_to(packages).as_posix() for path in packages.rglob("*.py")}
    assert found == {"package/a.py", "package/tests/b.py", "numpy/c.py"}
    assert (tmp_path / "out" / "bin" / "python3").readlink().as_posix() == "/usr/bin/python3.13"
    activated = subprocess.run(
        ["/bin/bash", "-c", '. bin/activate && echo "$VIRTUAL_ENV" && command -v python3'],
        cwd=tmp_path / "out",
        env={"PATH": "/usr/bin:/bin", "PYTHONHOME": "/elsewhere"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert activated.stdout.splitlines()[0] == str(tmp_path / "out")


def test_jars_are_those_of_ones_own_machine_and_no_others(built: Path) -> None:
    assert SPARK_KAFKA in SETS
    assert {name for jars in SETS for name in jars.file_names().values()} == set(SHA256)
    for name, digest in SHA256.items():
        assert hashlib.sha256((built / "Shared" / "Publisher" / "release" / name).read_bytes()).hexdigest() == digest
    with zipfile.ZipFile(built / "Shared" / "Publisher" / "release" / "aws-msk-iam-auth-2.3.5-all.jar") as jar:
        assert "software/amazon/msk/auth/iam/IAMClientCallbackHandler.class" in jar.namelist()


def test_jars_that_are_not_there_come_from_the_repository_and_only_if_they_are_right(tmp_path: Path) -> None:
    cache, repository, folder = cache_folder(os.environ), tmp_path / "repository", tmp_path / "out"
    folder.mkdir()
    for jars in SETS:
        for module, name in jars.file_names().items():
            organisation, artifact, revision = module.split(":")
            place = repository / organisation.replace(".", "/") / artifact / revision
            place.mkdir(parents=True)
            shutil.copyfile(cache / jars.name / name, place / name)
    elsewhere = {"MIRRORLESS_CACHE": str(tmp_path / "none"), "MIRRORLESS_MAVEN": f"{repository.as_uri()}/"}
    gather(folder, elsewhere)
    assert {path.name for path in folder.iterdir()} == set(SHA256)
    wrong = next(repository.rglob("kafka-clients-*.jar"))
    wrong.write_bytes(b"another")
    with pytest.raises(SystemExit, match=r"kafka-clients-.*\.jar is not the jar"):
        gather(folder, elsewhere)
    wrong.unlink()
    with pytest.raises(SystemExit, match="MIRRORLESS_MAVEN"):
        gather(folder, elsewhere)
