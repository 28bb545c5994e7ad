"""The Spark session of a run: started when the first copy job needs it, shared by all flows.

Importing this module needs neither PySpark nor Java.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import threading
from typing import TYPE_CHECKING, Final

from mirrorless.errors import PrerequisiteError
from mirrorless.local.java import find_java, java_executable

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

SPARK_PACKAGES: Final = {"pyspark": "PySpark", "pyarrow": "PyArrow", "pandas": "pandas", "psutil": "psutil"}
"""What a local Spark imports: modules, and the names that people know."""

_UNUSED_S: Final = 10.0
"""How long the session is kept without a job: it has a gigabyte of memory and more."""


def spark_missing() -> str:
    """Return why Spark cannot be started, in one line; empty if it can.

    It is cheap: it imports no package and starts no process, so Java's version is not checked.
    """
    missing = [name for module, name in SPARK_PACKAGES.items() if importlib.util.find_spec(module) is None]
    if missing:
        return f"Spark needs {', '.join(missing)}: pip install 'mirrorless[spark]'"
    try:
        find_java(os.environ)
    except PrerequisiteError as error:
        return str(error)
    return ""


def check_spark() -> None:
    """Raise `PrerequisiteError` unless the packages of Spark are there, and a Java that it can use."""
    if reason := spark_missing():
        raise PrerequisiteError(reason)
    java_executable()


class SparkHost:
    """Starts the session at the first call of `start`; ends it with the context, or when no job has used it a while.

    The session is started and ended in a thread of its own: there Spark sets no signal handler, which would replace the
    caller's, and a second signal does not interrupt the end. A start that has begun cannot be interrupted either: the
    end waits for it, and the session is not ready for any job if `asked`, the run's stop request, was set before.
    """

    def __init__(self, *, master: str, folder: Path, asked: threading.Event) -> None:
        self._master = master
        self._folder = folder
        self._asked = asked
        self._changed = threading.Condition()
        self._ready = False
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._users = 0
        self.failure: Exception | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the session exists, and is not about to end."""
        return self._ready

    @property
    def is_starting(self) -> bool:
        """Whether the session is being started."""
        thread = self._thread
        return thread is not None and thread.is_alive() and not self._ready and not self._over.is_set()

    @property
    def log(self) -> Path | None:
        """Spark's log; None if it was not started."""
        log = self._folder / "spark.log"
        return log if log.exists() else None

    def start(self) -> None:
        """Start the session for one more job if it does not exist, and return at once; not if the context has ended."""
        with self._changed:
            self._users += 1
            self._start()
            self._changed.notify_all()

    def release(self) -> None:
        """Take back one call of `start`: the job has ended."""
        with self._changed:
            self._users -= 1
            self._changed.notify_all()

    def _start(self) -> None:
        if self._thread is None and not self._over.is_set():
            # A daemon: if the process ends in the middle of a start, Java ends with it.
            self._thread = threading.Thread(target=self._hold, name="spark", daemon=True)
            self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait for the session, and return whether it is ready; raises what made its start fail."""
        with self._changed:
            if self._users:
                self._start()  # the one before may just have ended
            self._changed.wait_for(lambda: self._ready or self.failure is not None, seconds)
        if self.failure is not None:
            raise self.failure
        return self._ready

    def __enter__(self) -> SparkHost:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the session; later calls to Spark find that it has ended."""
        with self._changed:
            self._ready = False
            self._over.set()
            self._changed.notify_all()
            thread = self._thread
        if thread is None:
            return
        try:
            thread.join()
        except BaseException:  # a second signal
            thread.join()
            raise

    def _hold(self) -> None:
        """Start the session, keep it until the context ends, and end it."""
        try:
            check_spark()
            from mirrorless.local.spark import spark_session  # noqa: PLC0415 -- a run without Spark has no PySpark

            importlib.import_module("mirrorless.copy.engines.spark.job")  # here, or all jobs import it at the same time
            with spark_session(master=self._master, folder=self._folder), self._changed:
                self._ready = not (self._over.is_set() or self._asked.is_set())
                self._changed.notify_all()
                self._wait_while_used()
                self._ready = False
            with self._changed:
                self._thread = self._thread if self._over.is_set() else None
        except Exception as error:  # noqa: BLE001 -- raised by `wait`, and by the run
            with self._changed:
                self.failure = error
                self._changed.notify_all()

    def _wait_while_used(self) -> None:
        """Wait for the end of the context, or until there was no job for a while."""
        over = self._over.is_set
        while not over():
            self._changed.wait_for(lambda: over() or not self._users)
            if over() or not self._changed.wait_for(lambda: over() or self._users > 0, _UNUSED_S):
                return
