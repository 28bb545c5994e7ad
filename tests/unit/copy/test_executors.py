"""A job has as many slots as its workers have cores, whatever tasks.max is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mirrorless.copy.engines.spark.job import executor_cores


def session(master: str, *, executors: int, cores: str | None) -> Any:  # noqa: ANN401 -- stands for Spark's
    tracker = SimpleNamespace(getExecutorInfos=lambda: [None] * (executors + 1))
    context = SimpleNamespace(statusTracker=lambda: tracker)
    return SimpleNamespace(
        sparkContext=SimpleNamespace(
            master=master,
            getConf=lambda: {} if cores is None else {"spark.executor.cores": cores},
            _jsc=SimpleNamespace(sc=lambda: context),
        )
    )


@pytest.mark.parametrize(
    ("master", "executors", "cores", "expected"),
    [
        ("yarn", 3, "4", 12),
        ("yarn", 0, "4", 4),  # none has registered yet
        ("yarn", 3, None, None),
        ("local[8]", 0, "4", None),
    ],
)
def test_slots_have_room_on_executors(master: str, executors: int, cores: str | None, expected: int | None) -> None:
    assert executor_cores(session(master, executors=executors, cores=cores)) == expected
