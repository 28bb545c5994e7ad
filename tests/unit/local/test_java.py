from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mirrorless.errors import PrerequisiteError
from mirrorless.local.java import check_java, feature_version, find_java

if TYPE_CHECKING:
    from pathlib import Path


def fake_java(folder: Path, *, version: str = "17.0.15", modules: str = "java.base jdk.incubator.vector") -> Path:
    """A script that answers as Java does; the version goes to stderr, after a line of JAVA_TOOL_OPTIONS."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    listed = " ".join(f"{module}@{version}" for module in modules.split())
    java.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        f"""-version) echo 'Picked up JAVA_TOOL_OPTIONS: -Dx=1' >&2; echo 'openjdk version "{version}"' >&2 ;;\n"""
        f"--list-modules) printf '%s\\n' {listed} ;;\n"
        "esac\n"
    )
    java.chmod(0o755)
    return java


def test_the_feature_version_is_read_from_every_form() -> None:
    cases: list[tuple[str, int]] = [("17.0.15", 17), ("1.8.0_392", 8), ("21", 21), ("22-ea", 22), ("11.0.2", 11)]
    assert [
        (version, feature_version(f'openjdk version "{version}" 2025-04-15\nOpenJDK Runtime Environment'))
        for version, _ in cases
    ] == cases


def test_java_home_goes_before_path(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home")
    on_path = fake_java(tmp_path / "path")
    assert find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}) == home
    assert find_java({"PATH": str(on_path.parent)}) == on_path
    assert find_java({"JAVA_HOME": "", "PATH": str(on_path.parent)}) == on_path


def test_no_java_is_one_line_that_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match=r"^Java 17 is needed and none was found .* openjdk-17-jdk.*$"):
        find_java({"PATH": str(tmp_path)})


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    on_path = fake_java(tmp_path / "path")
    with pytest.raises(PrerequisiteError, match=r"JAVA_HOME is .*gone, which has no bin/java"):
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(on_path.parent)})


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_a_whole_java_passes(tmp_path: Path, version: str) -> None:
    check_java(fake_java(tmp_path, version=version))


@pytest.mark.parametrize(("version", "named"), [("11.0.2", "Java 11"), ("1.8.0_392", "Java 8")])
def test_an_old_java_is_named_with_its_place(tmp_path: Path, version: str, named: str) -> None:
    java = fake_java(tmp_path, version=version)
    with pytest.raises(PrerequisiteError, match=rf"found {named} at {java}, too old"):
        check_java(java)


def test_a_trimmed_java_is_told_which_module_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match=r"trimmed runtime without jdk\.incubator\.vector"):
        check_java(fake_java(tmp_path, modules="java.base java.xml"))


def test_what_does_not_run_is_no_java(tmp_path: Path) -> None:
    java = fake_java(tmp_path)
    java.write_text("#!/no/such/interpreter\n")
    with pytest.raises(PrerequisiteError, match="does not run"):
        check_java(java)


def test_an_answer_without_a_version_is_quoted(tmp_path: Path) -> None:
    java = fake_java(tmp_path)
    java.write_text("#!/bin/sh\necho hello\n")
    with pytest.raises(PrerequisiteError, match="prints no version but 'hello'"):
        check_java(java)


def run_module(home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mirrorless.local.java"],
        env={**os.environ, "JAVA_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_module_is_silent_when_all_is_well(tmp_path: Path) -> None:
    fake_java(tmp_path)
    done = run_module(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_module_says_one_line_when_it_is_not(tmp_path: Path) -> None:
    fake_java(tmp_path, version="11.0.2")
    done = run_module(tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "too old" in done.stderr
