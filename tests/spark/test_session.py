"""A Spark session: a stop while it starts, and its end, whatever Java is at."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_QUERY_THAT_DOES_NOT_STOP = """
import sys, threading, time
from pathlib import Path
from mirrorless.local.spark import spark_session

called = threading.Event()

def call(rows, batch):
    park = jvm.java.util.concurrent.locks.LockSupport.parkNanos
    called.set()
    park(10**12)

with spark_session(master="local[1]", folder=Path(sys.argv[1])) as spark:
    jvm = spark._jvm
    spark.readStream.format("rate").load().writeStream.foreachBatch(call).start()
    assert called.wait(60)
    time.sleep(1)
print("ended")
"""


def test_it_ends_although_a_query_is_in_the_middle_of_a_call(tmp_path: Path) -> None:
    """Python waits for an answer from Java then, in a thread of Java's, and holds the connection for so long."""
    ended = subprocess.run(
        [sys.executable, "-c", _QUERY_THAT_DOES_NOT_STOP, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ended\n", "")


_STOPPED_WHILE_IT_STARTS = """
import os, signal, sys, threading
from pathlib import Path
from pyspark.sql import SparkSession
from mirrorless.local.runner import StopRequest
from mirrorless.local.spark_host import SparkHost

stop = StopRequest()
over = threading.Event()

def ask():
    while not over.wait(0.05):
        handler = signal.getsignal(signal.SIGINT)
        assert handler == stop._ask, handler

with stop.on_signals():
    watcher = threading.Thread(target=ask)
    watcher.start()
    with SparkHost(master="local[1]", folder=Path(sys.argv[1]), asked=stop.event) as host:
        host.start()
        assert host.wait(60)
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.event.wait(10)
        assert SparkSession.builder.getOrCreate().range(3).count() == 3
    assert host.failure is None
    over.set()
    watcher.join()
print("ended")
"""


def test_a_stop_while_it_starts_is_heard_and_disturbs_no_call(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _STOPPED_WHILE_IT_STARTS, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ended\n", "")
