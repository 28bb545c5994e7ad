"""Two Kafka clusters that every test of a session may share; they start when the first test asks for one."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters

# Before the first import of it, so that what its asserts compared is shown.
pytest.register_assert_rewrite("tests.support")

from tests import changed, times  # noqa: E402
from tests.support import archives  # noqa: E402
from tests.support.world import World  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdist.remote import Producer

# No test is a timed test: this machine may be busy with brokers. At night each property is tried with more examples.
settings.register_profile("few", deadline=None, max_examples=25)
settings.register_profile("many", deadline=None, max_examples=300)
settings.load_profile("few")


HERE = Path(__file__).parent
# What is made for all tests of a folder or of some files, clusters or a build, is made once: one worker has them. Of
# Spark there is one at a time, each of which takes all it can get, and says what it does within seconds.
FOLDERS = (
    "tests/kafka/doctor/",
    "tests/kafka/metadata/",
    "tests/kafka/releases/",
    "tests/kafka/security/",
    "tests/spark/",
)
OF_THE_BUILD = ("tests/packaging/test_build.py", "tests/packaging/test_package.py")


def _scope(nodeid: str) -> str:
    """The file, the files or the folder that one worker has as a whole."""
    file = nodeid.partition("::")[0]
    return OF_THE_BUILD[0] if file in OF_THE_BUILD else next((one for one in FOLDERS if file.startswith(one)), file)


class ByFileOrFolder(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return _scope(nodeid)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", type=Path, help="add the seconds of each file of tests to this file")


def pytest_configure(config: pytest.Config) -> None:
    """Have all JVMs of many tests start sooner; of a few it is not worth while, and unit tests start none."""
    if (file := config.getoption("--times")) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(times.Recorder(file))
    chosen = {Path(argument.partition("::")[0]).resolve() for argument in config.args}
    without = all(path.is_relative_to(HERE / "unit") or path.is_relative_to(HERE / "docs") for path in chosen)
    if config.getoption("numprocesses", None) and config.cache is not None and not without:
        # The workers, in which this is not so, inherit what is set here.
        os.environ.update(archives.variables(config.cache.mkdir("archives")))


@pytest.hookimpl(tryfirst=True)  # before those with the mark are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave what no change concerns to the night. Begin with what takes longest on one worker.

    So no worker works on while the others have nothing left.
    """
    seconds: dict[str, float] = defaultdict(float)
    for name, one in times.read(times.KEPT).items():
        seconds[_scope(name)] += one.seconds

    def order(item: pytest.Item) -> tuple[float, bool]:
        """What was never timed first, and of that what is more than a file."""
        scope = _scope(item.nodeid)
        unknown = 0.0 if times.is_short(scope) else math.inf
        return -seconds.get(scope, unknown), scope not in (*FOLDERS, OF_THE_BUILD[0])

    for item in items:
        if changed.is_for_the_night(item.nodeid):
            item.add_marker(pytest.mark.nightly)
    items.sort(key=order)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFileOrFolder | None:
    return ByFileOrFolder(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def clusters() -> Iterator[dict[str, EmbeddedCluster]]:
    # A cleaner that does not rest, so that compaction can be waited for.
    settings = {"log.cleaner.backoff.ms": "200"}
    specs = [ClusterSpec(name=name, settings=settings) for name in ("source", "target")]
    with start_clusters(specs) as started:
        yield started


@pytest.fixture(scope="session")
def source(clusters: dict[str, EmbeddedCluster]) -> EmbeddedCluster:
    return clusters["source"]


@pytest.fixture(scope="session")
def target(clusters: dict[str, EmbeddedCluster]) -> EmbeddedCluster:
    return clusters["target"]


@pytest.fixture
def world(source: EmbeddedCluster, target: EmbeddedCluster, tmp_path: Path) -> World:
    return World(source, target, tmp_path)
