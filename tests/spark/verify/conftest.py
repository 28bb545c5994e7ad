"""One Spark session that all tests of the comparison share."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mirrorless.local.jars import SPARK_KAFKA, class_path
from mirrorless.local.spark import spark_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # PySpark leaves the sockets that results come by to the garbage collector.
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # Small data: the second compiler would cost more than it brings.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
        yield from session(tmp_path_factory)


def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(master="local[2]", folder=tmp_path_factory.mktemp("spark"), jars=class_path(SPARK_KAFKA)) as one:
        one.sparkContext.setLogLevel("ERROR")
        yield one
