"""Finds the Java for Kafka and Spark, or explains in one line why there is none.

`python -m mirrorless.local.java` does this on the command line: silent with exit status 0, or the line and status 1.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from mirrorless.errors import PrerequisiteError

if TYPE_CHECKING:
    from collections.abc import Mapping

OLDEST_JAVA = 17
# Spark sets it on its command line, so a Java without this module ends before Spark's first line runs.
SPARK_MODULE = "jdk.incubator.vector"
ADVICE = f"install a JDK {OLDEST_JAVA}, for example openjdk-{OLDEST_JAVA}-jdk, and try again"
_ANSWER_LIMIT_S = 60


@cache
def java_executable() -> Path:
    """Return the path of a Java that Kafka and Spark can both use: from JAVA_HOME, else from PATH.

    Raises PrerequisiteError if there is none, if it is too old, or if it lacks a module.
    """
    java = find_java(os.environ)
    check_java(java)
    return java


def find_java(environment: Mapping[str, str]) -> Path:
    """Return the path of Java in `environment`, not checked yet.

    Raises PrerequisiteError if neither JAVA_HOME nor PATH has one. A JAVA_HOME without Java is an error
    too, because Spark's scripts would use it.
    """
    if home := environment.get("JAVA_HOME"):
        if found := shutil.which(str(Path(home) / "bin" / "java")):
            return Path(found)
        raise PrerequisiteError(f"JAVA_HOME is {home}, which has no bin/java: correct it or unset it, or {ADVICE}")
    if found := shutil.which("java", path=environment.get("PATH", os.defpath)):
        return Path(found)
    raise PrerequisiteError(f"Java {OLDEST_JAVA} is needed and none was found on PATH or in JAVA_HOME: {ADVICE}")


def check_java(java: Path) -> None:
    """Raise PrerequisiteError unless `java` is new enough and has the module that Spark requires."""
    text = _ask(java, "-version")
    try:
        feature = feature_version(text)
    except ValueError:
        first = next((line for line in text.splitlines() if line.strip()), "nothing")
        raise PrerequisiteError(f"{java} -version prints no version but {first!r}: {ADVICE}") from None
    if feature < OLDEST_JAVA:
        raise PrerequisiteError(f"Java {OLDEST_JAVA} is needed, found Java {feature} at {java}, too old: {ADVICE}")
    modules = {line.partition("@")[0].strip() for line in _ask(java, "--list-modules").splitlines()}
    if SPARK_MODULE not in modules:
        raise PrerequisiteError(
            f"Java {feature} at {java} is a trimmed runtime without {SPARK_MODULE}, a module that Spark needs: {ADVICE}"
        )


def feature_version(text: str) -> int:
    """Return the feature release, such as 17, in the output of `java -version`; 8 for "1.8.0_392".

    Raises ValueError if there is none.
    """
    # Search the line, because JAVA_TOOL_OPTIONS prints one before it.
    named = re.search(r'version "(?:1\.)?(\d+)', text)
    if named is None:
        raise ValueError(text)
    return int(named[1])


def _ask(java: Path, option: str) -> str:
    try:
        answer = subprocess.run(
            [java, option],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_ANSWER_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PrerequisiteError(f"{java} {option} does not run ({error}): {ADVICE}") from error
    return answer.stdout.decode(errors="replace")


if __name__ == "__main__":
    try:
        java_executable()
    except PrerequisiteError as error:
        sys.exit(str(error))
