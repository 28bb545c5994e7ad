"""Verifies flows in this process or on a local Spark, and shows the progress."""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from mirrorless.verify.comparison import verify_flow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark import SparkContext

    from mirrorless.settings import Flow
    from mirrorless.verify.comparison import ComparedWindow, ComparisonTerms
    from mirrorless.verify.findings import VerificationResult

_LOOK_EVERY_S: Final = 0.3


class Shown(Protocol):
    """Shows the progress; called from several threads."""

    def step(self, flow: str, text: str) -> None:
        """Show the current step."""

    def tasks(self, done: int, total: int) -> None:
        """Show how many of the known tasks are done."""


def verify_flows(
    flows: Sequence[Flow], terms: ComparisonTerms, *, shown: Shown, master: str | None, with_spark: bool
) -> list[tuple[VerificationResult, list[ComparedWindow]]]:
    """Verify flows one after the other, in this process or `with_spark`.

    Raises `PrerequisiteError` without Java or Spark's Kafka source, if they are needed.
    """
    if not with_spark:
        return [verify_flow(None, flow, terms, say=partial(shown.step, flow.name)) for flow in flows]
    from mirrorless.local.jars import SPARK_KAFKA, class_path  # noqa: PLC0415 -- Spark may not be installed
    from mirrorless.local.spark import spark_session  # noqa: PLC0415

    threads = os.cpu_count() or 1
    jars = class_path(SPARK_KAFKA, say=lambda text: shown.step("", text))
    with (
        tempfile.TemporaryDirectory(prefix="mirrorless-verify-") as folder,
        spark_session(master=master or f"local[{threads}]", folder=Path(folder), jars=jars) as spark,
        _watched(spark.sparkContext, shown),
    ):
        return [verify_flow(spark, flow, terms, say=partial(shown.step, flow.name)) for flow in flows]


@contextmanager
def _watched(context: SparkContext, shown: Shown) -> Iterator[None]:
    """Check at intervals how many tasks of the running stages are done."""
    over = threading.Event()

    def look() -> None:
        tracker = context.statusTracker()
        while not over.wait(_LOOK_EVERY_S):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            known = [stage for stage in stages if stage is not None]
            if known:
                shown.tasks(sum(one.numCompletedTasks for one in known), sum(one.numTasks for one in known))

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
