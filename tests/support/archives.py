"""Classes that a broker and a Spark have loaded once, in archives that every JVM of the tests begins with (JEP 350).

Measured on two cores: until it is up a broker takes 2.2 s of CPU for 3.9, its formatter 0.9 for 1.3, a Spark that has
begun to stream 11 for 15. Archives of other jars or of another Java are other files, and a JVM leaves one aside that
is not of its class path.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyspark
from confluent_kafka.admin import AdminClient, NewTopic
from py4j.protocol import Py4JJavaError

from mirrorless.local.broker import TRIAL_JVM
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from mirrorless.local.jars import class_path
from mirrorless.local.java import java_executable
from mirrorless.local.spark import spark_session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

_RECORD: Final = "-XX:+RecordDynamicDumpInfo"
_BROKERS, _SPARK = "brokers", "spark"


def variables(folder: Path) -> dict[str, str]:
    """Return the environment by which JVMs find the archives in `folder`; those that are missing are made in 25 s.

    Nothing where Java has no `jcmd`, which makes them, nor for one that cannot be made: tests only take longer then.
    """
    if not _jcmd().exists():
        return {}
    files = {
        _BROKERS: folder / _name(_BROKERS, [Path(jar) for jar in class_path().split(os.pathsep)]),
        _SPARK: folder / _name(_SPARK, sorted(Path(pyspark.__file__).parent.glob("jars/*.jar"))),
    }
    missing = [(kind, file) for kind, file in files.items() if not file.exists()]
    makers = [
        subprocess.Popen(
            [sys.executable, "-m", __spec__.name, kind, file],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for kind, file in missing
    ]
    for (kind, _), maker in zip(missing, makers, strict=True):
        output, _ = maker.communicate()
        if maker.returncode:
            # Not a warning, which would be an error.
            sys.stderr.write(f"no archive of the classes of {kind}: JVMs start more slowly\n{output}\n")
    # The first is for all JVMs; of two archives the later one counts, and Spark's script puts its own behind. Where the
    # class path is another, as that of the program that puts Spark's command together, a warning must not be an output.
    options = {
        _BROKERS: (
            "JDK_JAVA_OPTIONS",
            f"-Xlog:disable -Xlog:all=warning:stderr -XX:SharedArchiveFile={files[_BROKERS]}",
        ),
        _SPARK: ("SPARK_SUBMIT_OPTS", f"-XX:SharedArchiveFile={files[_SPARK]}"),
    }
    return {variable: option for kind, (variable, option) in options.items() if files[kind].exists()}


def _jcmd() -> Path:
    return java_executable().resolve().with_name("jcmd")


def _name(kind: str, jars: Sequence[Path]) -> str:
    """What the archive of a class path is called; a JVM wants these very jars, by size and date."""
    java = java_executable().resolve()
    parts = [(str(one), one.stat().st_size, one.stat().st_mtime_ns) for one in (java, *jars)]
    return f"{kind}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}.jsa"


def _brokers(dump: Callable[[int | None], None]) -> None:
    with start_clusters([ClusterSpec(name="archived", jvm=(*TRIAL_JVM, _RECORD))]) as started:
        cluster = started["archived"]
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.create_topics([NewTopic("t", 2, 1)])["t"].result()
        dump(cluster.brokers[0].process_id)


def _spark(dump: Callable[[int | None], None]) -> None:
    os.environ["SPARK_SUBMIT_OPTS"] = _RECORD
    with tempfile.TemporaryDirectory() as name, spark_session(master="local[2]", folder=Path(name)) as spark:
        rows = (
            spark.readStream.format("rate")
            .load()
            .mapInArrow(lambda batches: batches, "timestamp timestamp, value long")
        )
        stream = rows.writeStream.option("checkpointLocation", f"{name}/checkpoint")
        query = stream.foreachBatch(_take).start()
        while len(query.recentProgress) < 2:
            time.sleep(0.1)
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        dump(gateway.proc.pid)
        with suppress(Py4JJavaError):  # on a busy machine it takes longer than it may
            query.stop()


def _take(frame: DataFrame, _number: int) -> None:
    frame.toArrow()


def _dump(file: Path, process_id: int | None) -> None:
    """Have a JVM write what it has loaded; the archive appears whole or not at all."""
    part = file.with_name(f"{file.name}.{process_id}")
    subprocess.run([_jcmd(), str(process_id), "VM.cds", "dynamic_dump", part], check=True)
    part.rename(file)


if __name__ == "__main__":
    {_BROKERS: _brokers, _SPARK: _spark}[sys.argv[1]](partial(_dump, Path(sys.argv[2])))
