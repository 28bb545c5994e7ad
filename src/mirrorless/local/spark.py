"""A Spark session that this process owns: quiet, on loopback, and removed completely when it is closed."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession, SQLContext

from mirrorless import client_logs
from mirrorless.local.java import java_executable

if TYPE_CHECKING:
    from collections.abc import Iterator


_JVM_EXIT_S = 5.0
_COMPUTING = {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "4", "spark.sql.session.timeZone": "UTC"}
_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
"""


@contextmanager
def spark_session(*, master: str, folder: Path, jars: str | None = None) -> Iterator[SparkSession]:
    """A session on a master, such as `local[4]`, with its files and its log (`spark.log`) in `folder`.

    With `jars`, a class path, the JVM does computations, and has these jars. In the main thread Spark takes SIGINT
    (`SparkContext._do_init`), on which it cancels its jobs and raises KeyboardInterrupt; a caller with a handler of its
    own must use another thread.

    On exit, Spark, its JVM and every Python worker are ended. Raises `PrerequisiteError` without a Java that Spark can
    use.
    """
    java_executable()
    for logger in (None, "py4j.java_gateway", "py4j.clientserver"):
        logging.getLogger(logger).addFilter(_by_others)
    log = folder / "spark.log"
    log4j = folder / "log4j2.properties"
    log4j.write_text(_LOG4J.format(log=log))
    # Workers must use this interpreter, otherwise they lack the package.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Executors in separate processes are started from here.
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["SPARK_WORKER_DIR"] = str(folder / "work")
    builder = SparkSession.builder.master(master).appName("mirrorless")
    for key, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": " ".join(
            # Otherwise the JVM only schedules leases: the first compiler is enough, and starts faster.
            [
                *(["-XX:TieredStopAtLevel=1"] if jars is None else []),
                "-XX:+UseSerialGC",
                f"-Djava.io.tmpdir={folder}",
                f"-Dlog4j2.configurationFile={log4j.as_uri()}",
            ]
        ),
        "spark.local.dir": str(folder),
        "spark.rpc.netty.dispatcher.numThreads": "4",  # default: as many as there may be slots, all started at once
        "spark.sql.adaptive.enabled": "false",  # has no effect on streams, and logs this every time
        "spark.sql.streaming.stopTimeout": "1s",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **({} if jars is None else {"spark.jars": jars.replace(os.pathsep, ","), **_COMPUTING}),
    }.items():
        builder = builder.config(key, value)
    # Workers that show the client libraries' logs do so on this process's standard error.
    with nullcontext() if client_logs.shown() else _stderr_to(log):
        session = builder.getOrCreate()
    try:
        yield session
    finally:
        _end(session, at_once=master.startswith("local"))


def _end(session: SparkSession, *, at_once: bool) -> None:
    """End Spark and its JVM; `at_once` if an orderly end is not needed: everything left is in a folder."""
    context = session.sparkContext
    gateway = context._gateway
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None or gateway is None:
        session.stop()
        return
    if at_once:
        # Spark is not asked to stop, and the server of accumulators, which checks only twice per second, is not
        # waited for: on a busy machine these take longer than the rest of the end.
        context._jsc = None  # type: ignore[assignment]
        server, context._accumulatorServer = context._accumulatorServer, None  # type: ignore[assignment]
        server.handle_error = lambda *_: None  # type: ignore[method-assign] # the JVM's connection ends, as intended
        threading.Thread(target=server.shutdown, daemon=True).start()
        _kill(process)
        context.stop()
        SparkSession._instantiatedSession = SparkSession._activeSession = None
        SQLContext._instantiatedContext = None
    else:
        session.stop()
    # The JVM ends when its standard input does.
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_JVM_EXIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    # Only after the JVM: py4j closes a connection's stream before its socket, and so waits for a thread that reads it,
    # such as that of a query that did not stop in time; endlessly, if Java does not answer that one.
    gateway.shutdown()  # type: ignore[no-untyped-call]
    # A later session of this process starts a new JVM.
    SparkContext._gateway = None
    SparkContext._jvm = None


def _kill(jvm: subprocess.Popen[bytes]) -> None:
    """Kill a JVM and the Python workers below it, which would only end once they notice that it is gone."""
    try:
        workers = psutil.Process(jvm.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        workers = []
    jvm.kill()
    for worker in workers:
        with suppress(psutil.NoSuchProcess):
            worker.kill()
    psutil.wait_procs(workers, timeout=_JVM_EXIT_S)


def _by_others(record: logging.LogRecord) -> bool:
    """Whether a record is not py4j's, which also raises what it logs, and logs errors that are normal at an end."""
    return record.module not in ("java_gateway", "clientserver")


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Redirect standard error of children that are started in this context to a file; this process keeps its own."""
    sys.stderr.flush()
    kept = os.dup(2)
    with path.open("ab") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
