"""The Spark session of a run: started once and on demand, ended completely, and what is missing is one line."""

from __future__ import annotations

import re
import threading
import time
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

import pytest

from mirrorless.errors import PrerequisiteError
from mirrorless.local import spark, spark_host
from mirrorless.local.spark_host import SparkHost, check_spark, spark_missing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MISSING = "Spark needs PySpark, pandas: pip install 'mirrorless[spark]'"


class Sessions:
    """Sessions in place of Spark's: a start takes until `may_start`."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.starting = threading.Event()
        self.may_start = threading.Event()
        self.may_start.set()
        self.failure: Exception | None = None

    @contextmanager
    def session(self, *, master: str, folder: Path) -> Iterator[None]:
        assert threading.current_thread() is not threading.main_thread()
        assert folder.is_dir()
        self.events.append(f"starts on {master}")
        self.starting.set()
        assert self.may_start.wait(10)
        if self.failure is not None:
            raise self.failure
        yield
        self.events.append("ended")


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Sessions:
    found = Sessions()
    monkeypatch.setattr(spark, "spark_session", found.session)
    monkeypatch.setattr(spark_host, "check_spark", lambda: None)
    return found


def a_host(folder: Path, asked: threading.Event | None = None) -> SparkHost:
    return SparkHost(master="local[2]", folder=folder, asked=asked or threading.Event())


def without(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    def find_spec(name: str) -> ModuleSpec | None:
        return None if name in modules else ModuleSpec(name, None)

    monkeypatch.setattr("importlib.util.find_spec", find_spec)


def test_a_run_whose_jobs_never_start_has_no_session(sessions: Sessions, tmp_path: Path) -> None:
    with a_host(tmp_path) as host:
        assert not host.is_ready
        assert not host.is_starting
        assert not host.wait(0)
    assert sessions.events == []
    assert host.log is None


def test_all_flows_share_one_session_which_ends_with_the_run(sessions: Sessions, tmp_path: Path) -> None:
    with a_host(tmp_path) as host:
        for _ in range(3):
            host.start()
        assert host.wait(10)
        assert host.is_ready
        assert not host.is_starting
    assert sessions.events == ["starts on local[2]", "ended"]
    assert host.failure is None
    assert not host.wait(0)


def test_a_session_without_jobs_ends_and_the_next_job_gets_another(
    sessions: Sessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_host, "_UNUSED_S", 0.01)
    with a_host(tmp_path) as host:
        host.start()
        host.start()
        assert host.wait(10)
        host.release()
        assert host.is_ready
        host.release()
        until = time.monotonic() + 10
        while sessions.events[-1] != "ended":
            assert time.monotonic() < until
            time.sleep(0.01)
        host.start()
        while not host.wait(0.1):
            assert time.monotonic() < until
        assert sessions.events == ["starts on local[2]", "ended", "starts on local[2]"]
    assert sessions.events[-1] == "ended"


def test_a_run_that_ends_while_spark_starts_ends_it_too(sessions: Sessions, tmp_path: Path) -> None:
    sessions.may_start.clear()
    with a_host(tmp_path) as host:
        host.start()
        assert sessions.starting.wait(10)
        assert host.is_starting
        threading.Timer(0.1, sessions.may_start.set).start()
    assert sessions.events == ["starts on local[2]", "ended"]
    assert not host.is_ready


def test_a_stop_request_while_spark_starts_keeps_jobs_from_it(sessions: Sessions, tmp_path: Path) -> None:
    sessions.may_start.clear()
    asked = threading.Event()
    with a_host(tmp_path, asked) as host:
        host.start()
        assert sessions.starting.wait(10)
        asked.set()
        sessions.may_start.set()
        assert not host.wait(0.2)
    assert sessions.events == ["starts on local[2]", "ended"]


def test_nothing_is_started_once_the_run_has_ended(sessions: Sessions, tmp_path: Path) -> None:
    with a_host(tmp_path) as host:
        pass
    host.start()
    assert not host.wait(0)
    assert sessions.events == []


def test_a_start_that_fails_is_raised_by_every_wait(sessions: Sessions, tmp_path: Path) -> None:
    sessions.failure = OSError("no space left")
    with a_host(tmp_path) as host:
        host.start()
        for _ in range(2):
            with pytest.raises(OSError, match="no space left"):
                host.wait(10)
    assert host.failure is sessions.failure


def test_an_interrupted_wait_for_the_end_still_ends_the_session(
    sessions: Sessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined: list[threading.Thread] = []
    join = threading.Thread.join

    def interrupted(thread: threading.Thread, timeout: float | None = None) -> None:
        if thread.name == "spark" and thread not in joined:
            joined.append(thread)
            raise KeyboardInterrupt
        join(thread, timeout)

    host = a_host(tmp_path)
    host.start()
    assert host.wait(10)
    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt), host:
        pass
    assert sessions.events == ["starts on local[2]", "ended"]


def test_missing_packages_are_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without(monkeypatch, "pyspark", "pandas")
    assert spark_missing() == MISSING
    with pytest.raises(PrerequisiteError, match=f"^{re.escape(MISSING)}$"):
        check_spark()
    with a_host(tmp_path) as host:
        host.start()
        with pytest.raises(PrerequisiteError, match=f"^{re.escape(MISSING)}$"):
            host.wait(10)


def test_missing_java_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without(monkeypatch)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert spark_missing().startswith("Java 17 is needed and none was found on PATH or in JAVA_HOME: install a JDK 17")
    assert "\n" not in spark_missing()


def test_where_spark_can_start_nothing_is_missing() -> None:
    assert spark_missing() == ""
