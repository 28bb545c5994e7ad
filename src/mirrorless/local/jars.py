"""Downloads jars once; then no network is needed.

Those of Apache Kafka are listed with their digests and come directly from Maven Central. Sets whose dependencies have
to be resolved, or that Spark needs, are downloaded with PySpark's copy of Ivy.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import quoteattr

from mirrorless.errors import PrerequisiteError
from mirrorless.local.java import java_executable
from mirrorless.local.kafka_jars import KAFKA_SHA256

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_CENTRAL: Final = "https://repo1.maven.org/maven2"
_TIMEOUT_S: Final = 60
_AT_ONCE: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class JarSet:
    """Modules that share one class path.

    `name` is the name of their folder in the cache, and includes the version. `modules` are
    "organisation:module:revision". Ivy resolves them together, so no artifact comes in two versions. With `exact`,
    their dependencies are not included. With a `classifier`, that variant of each module's jar is used. With
    `sha256`, digests by module, exactly these files are accepted, with these digests; if every module has one, the
    download needs neither Ivy nor Java.
    """

    name: str
    title: str
    modules: tuple[str, ...]
    exact: bool = False
    classifier: str = ""
    sha256: Mapping[str, str] = field(default_factory=dict, hash=False)

    def file_names(self) -> dict[str, str]:
        """Return each module's jar, by module."""
        suffix = f"-{self.classifier}" if self.classifier else ""
        return {module: f"{'-'.join(module.split(':')[1:])}{suffix}.jar" for module in self.modules}


KAFKA = JarSet(
    name="kafka-4.3.0", title="Apache Kafka 4.3.0", modules=tuple(KAFKA_SHA256), exact=True, sha256=KAFKA_SHA256
)

# Exactly these: PySpark has the rest. The token provider is of another release, because not every mirror of Maven
# Central has its 4.1.1; it has not changed, and only delegation tokens need it.
SPARK_KAFKA = JarSet(
    name="spark-kafka-4.1.1",
    title="Spark's Kafka source",
    modules=(
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        "org.apache.kafka:kafka-clients:3.9.1",
        "org.apache.commons:commons-pool2:2.12.1",
    ),
    exact=True,
)

# The class in `sasl.jaas.config` for IAM logins to MSK; "all" includes its dependencies.
MSK_IAM = JarSet(
    name="aws-msk-iam-auth-2.3.5",
    title="MSK's IAM login",
    modules=("software.amazon.msk:aws-msk-iam-auth:2.3.5",),
    exact=True,
    classifier="all",
)


def class_path(jar_set: JarSet = KAFKA, *, say: Callable[[str], None] | None = None) -> str:
    """Return the class path of `jar_set`; the first call on a machine downloads it, which takes up to 40 s.

    `say` is called before a download. Raises PrerequisiteError if the download fails, or if Java or PySpark is missing
    for it.
    """
    folder = cache_folder(os.environ) / jar_set.name
    if not folder.is_dir():
        if say is not None:
            say(f"downloading {jar_set.title}, once")
        _download(jar_set, folder)
    return os.pathsep.join(str(jar) for jar in sorted(folder.glob("*.jar")))


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the cache folder: MIRRORLESS_CACHE, else "mirrorless" in XDG_CACHE_HOME, else in ~/.cache."""
    if chosen := environment.get("MIRRORLESS_CACHE"):
        return Path(chosen).expanduser().absolute()
    # The XDG specification requires to ignore a path that is not absolute.
    if (caches := environment.get("XDG_CACHE_HOME")) and Path(caches).is_absolute():
        return Path(caches) / "mirrorless"
    return Path.home() / ".cache" / "mirrorless"


def ivy_jar() -> Path:
    """Return the path of PySpark's copy of Ivy, without importing PySpark. Raises PrerequisiteError if missing."""
    spec = importlib.util.find_spec("pyspark")
    places = (spec.submodule_search_locations if spec else None) or []
    for place in places:
        for jar in Path(place, "jars").glob("ivy-*.jar"):
            return jar
    raise PrerequisiteError(
        "jars are downloaded with PySpark's copy of Ivy, which is not installed: pip install 'mirrorless[spark]'"
    )


def ivy_file(jar_set: JarSet) -> str:
    """Return the ivy.xml for `jar_set`."""
    return "\n".join(_ivy_lines(jar_set)) + "\n"


def _ivy_lines(jar_set: JarSet) -> Iterator[str]:
    yield '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
    yield f'  <info organisation="mirrorless" module={quoteattr(jar_set.name)}/>'
    yield '  <configurations><conf name="default"/></configurations>'
    yield "  <dependencies>"
    for module in jar_set.modules:
        org, name, rev = (quoteattr(part) for part in module.split(":"))
        # Maven's "default" is the jar and its runtime dependencies, without sources and javadoc.
        own = ' transitive="false"' if jar_set.exact else ""
        dependency = f'<dependency org={org} name={name} rev={rev} conf="default->default"{own}'
        if jar_set.classifier:
            which = f'<artifact name={name} type="jar" ext="jar" m:classifier={quoteattr(jar_set.classifier)}/>'
            yield f"    {dependency}>{which}</dependency>"
        else:
            yield f"    {dependency}/>"
    yield "  </dependencies>"
    yield "</ivy-module>"


def _download(jar_set: JarSet, folder: Path) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # In the same parent folder, so that the rename stays within one file system.
        with tempfile.TemporaryDirectory(prefix=f"{jar_set.name}-", dir=folder.parent) as scratch:
            jars = Path(scratch) / "jars"
            if jar_set.sha256.keys() == set(jar_set.modules):
                _fetch(jar_set, jars)
            else:
                _retrieve(jar_set, jars, log=folder.with_name(f"{jar_set.name}-download.log"))
            _check(jars, jar_set)
            _publish(jars, folder)
    except OSError as error:
        raise PrerequisiteError(
            f"{jar_set.title} cannot be written to {folder.parent} ({error.strerror}): "
            "make room or grant access, or set another folder in MIRRORLESS_CACHE"
        ) from error


def _fetch(jar_set: JarSet, jars: Path) -> None:
    """Download the jars of the modules, and nothing else, to a new folder."""
    jars.mkdir()
    try:
        download(jar_set.file_names(), jars)
    except NotDownloaded as error:
        raise PrerequisiteError(
            f"{jar_set.title} could not be downloaded from {error}; "
            "check the network, or set a mirror of Maven Central in MIRRORLESS_MAVEN, and try again"
        ) from error


def _retrieve(jar_set: JarSet, jars: Path, *, log: Path) -> None:
    """Download the jars with Ivy to a new folder; `log` remains if that fails."""
    java, ivy, scratch = java_executable(), ivy_jar(), jars.parent
    description = scratch / "ivy.xml"
    description.write_text(ivy_file(jar_set), encoding="utf-8")
    # Ivy's own cache is deleted with the scratch folder: it has no lock, so two processes must not share it.
    # No `-types jar`: snappy-java is a "bundle".
    command: list[str | Path] = [
        *(java, "-Djava.awt.headless=true"),
        f"-Divy.default.ivy.user.dir={scratch}",
        *("-jar", ivy),
        *("-cache", scratch / "ivy"),
        *("-ivy", description),
        *("-retrieve", f"{jars}/[artifact]-[revision](-[classifier]).[ext]"),
    ]
    with log.open("wb") as output:
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False
        ).returncode
    if ended != 0 or not any(jars.glob("*.jar")):
        raise PrerequisiteError(
            f"{jar_set.title} could not be downloaded from Maven Central; "
            f"check the network and try again; Ivy's output is in {log}"
        )
    log.unlink(missing_ok=True)


def _check(jars: Path, jar_set: JarSet) -> None:
    """Raise PrerequisiteError unless the files match the digests of `jar_set`, if it has any."""
    if not jar_set.sha256:
        return
    names = jar_set.file_names()
    wanted = {names[module]: digest for module, digest in jar_set.sha256.items()}
    found = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in jars.iterdir()}
    if wrong := sorted(name for name in wanted | found if found.get(name) != wanted.get(name)):
        name = wrong[0]
        raise PrerequisiteError(
            f"{jar_set.title} was not downloaded: {name} has SHA-256 {found.get(name)}, expected {wanted.get(name)}; "
            "check the mirror or proxy of Maven Central and try again"
        )


def _publish(jars: Path, folder: Path) -> None:
    """Rename `jars` to the folder in one step: it is never incomplete, and the first of two processes wins."""
    try:
        jars.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        shutil.rmtree(jars)


class NotDownloaded(Exception):
    """A jar could not be downloaded; the text has its address and the reason."""


def download(jars: Mapping[str, str], folder: Path) -> None:
    """Write jars of Maven Central, or of the repository in MIRRORLESS_MAVEN, to `folder`: file names by module.

    Raises `NotDownloaded`, or OSError if a file cannot be written.
    """
    repository = os.environ.get("MIRRORLESS_MAVEN", _CENTRAL).rstrip("/")
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        list(threads.map(lambda one: _write(f"{repository}/{_path(*one)}", folder / one[1]), jars.items()))


def _path(module: str, file_name: str) -> str:
    organisation, name, revision = module.split(":")
    return f"{organisation.replace('.', '/')}/{name}/{revision}/{file_name}"


def _write(address: str, file: Path) -> None:
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as response:  # noqa: S310 -- Maven's, or the user's own
            jar = response.read()
    except (OSError, HTTPException, ValueError) as error:
        raise NotDownloaded(f"{address}: {' '.join(str(error).split())}") from error
    file.write_bytes(jar)
