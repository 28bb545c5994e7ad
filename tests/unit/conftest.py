"""An event loop of its own for each test, and a limit of CPU seconds."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Final

import pytest

from mirrorless import known_topics
from mirrorless.kafka_python.event_loop import EventLoop

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

USUAL_S: Final = 0.1
LIMIT_S: Final = float(os.environ.get("MIRRORLESS_UNIT_CPU_S", "inf"))
"""CPU seconds of a unit test: usually, and at most. `make unit` sets a limit. Beside brokers and Spark there is none: a
first test imports, and what else the machine does multiplies its seconds."""

LONGER: Final = {
    "batches/test_intake.py": "thousands of batches",
    "clusters/test_outages.py": "real clients",
    "copy/test_appender.py": "megabytes in flight",
    "copy/test_dealing.py": "20,000 partitions",
    "copy/test_deals.py": "20,000 partitions",
    "copy/test_fetcher.py": "many turns of many partitions",
    "copy/test_parallel_reads.py": "100 MB in memory",
    "copy/test_read_replicas.py": "minutes of virtual time",
    "copy/test_state_has_one_owner.py": "reads every module",
    "functions/test_dealt_day.py": "days of virtual time",
    "functions/test_supervisor_day.py": "days of virtual time",
    "kafka_python/test_fence.py": "reads every module",
    "local/test_stop_request.py": "50 signals",
    "offsets/test_translation.py": "thousands of epochs",
    "operations/test_operation_log.py": "50 random logs",
    "operations/test_stored.py": "moto",
    "operations/test_switches.py": "moto",
    "settings/test_aws.py": "moto",
    "settings/test_converting.py": "every file of tests/unit/settings/files",
    "settings/test_explain.py": "reads every module of the settings",
    "settings/test_files.py": "every file of tests/unit/settings/files",
    "settings/test_strimzi.py": "a file that expands to its limit",
    "test_filters.py": "a thousand names",
    "test_layout.py": "reads every module",
    "test_modes.py": "reads every module",
    "test_words.py": "reads every module",
    "verify/test_report.py": "moto",
    "web/test_feed.py": "10,000 partitions",
    "web/test_flow_view.py": "10,000 partitions",
    "web/test_server.py": "imports the server",
}
"""Files with tests that take longer, and why. So do properties, which are tried with many examples."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Let a test fail that takes longer than a unit test may."""
    began = time.process_time()
    result = yield
    took = time.process_time() - began
    is_property = getattr(getattr(item, "function", None), "is_hypothesis_test", False)
    if took > LIMIT_S and not is_property and not any(item.nodeid.startswith(f"tests/unit/{file}") for file in LONGER):
        pytest.fail(f"took {took:.2f} s of CPU; a unit test takes {USUAL_S} s; exceptions are listed in {__file__}")
    return result


@pytest.fixture(autouse=True)
def nothing_known_of_topics() -> None:
    """A process knows of topics what it has seen; tests have the same addresses."""
    known_topics.forget()


@pytest.fixture
def loop() -> Iterator[Any]:
    found = EventLoop()
    yield found
    found.close()
