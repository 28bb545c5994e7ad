"""Clusters of earlier Kafka releases in ZooKeeper mode: one broker and its ZooKeeper, each a JVM of its own."""

from __future__ import annotations

import re
import subprocess
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from mirrorless.errors import ClusterUnavailable
from mirrorless.local.broker import HOST, STOP_GRACE_S, Broker, free_ports
from mirrorless.local.embedded_kafka import START_LIMIT_S, ClusterSpec, EmbeddedCluster, start_clusters
from mirrorless.local.jars import KAFKA, JarSet, class_path
from mirrorless.local.java import java_executable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

OLD: Final = ("2.8.2", "3.9.1")
"""The last release that most old clusters run, and the last one with ZooKeeper."""
CURRENT: Final = KAFKA.name.removeprefix("kafka-")
# Compaction is waited for, so the cleaner does not rest.
_SETTINGS: Final = {"log.cleaner.backoff.ms": "200"}
_JVM: Final = ("-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


def jar_set(release: str) -> JarSet:
    """The jars of a release; all of them are pinned, with their SHA-256, in tests/support/jars."""
    lines = (Path(__file__).parent / "jars" / f"kafka-{release}.txt").read_text().splitlines()
    pinned = {module: digest for digest, module in map(str.split, lines)}
    return JarSet(
        name=f"kafka-{release}-zookeeper",
        title=f"Apache Kafka {release}",
        modules=tuple(pinned),
        exact=True,
        sha256=pinned,
    )


class ZooKeeperCluster(EmbeddedCluster):
    """A broker in ZooKeeper mode; can be stopped and started as a broker in KRaft mode, its ZooKeeper runs on."""

    _zookeeper: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Start ZooKeeper; there is nothing to format."""
        super()._halt()
        port, zookeeper_port = free_ports(2)
        settings = {**zookeeper_settings(port=port, zookeeper_port=zookeeper_port), **self._spec.settings}
        self.brokers = (Broker(cluster=self.name, node_id=1, port=port, folder=self.directory, settings=settings),)
        file = self.directory / "zookeeper.properties"
        lines = {
            "dataDir": self.directory / "zookeeper",
            "clientPort": zookeeper_port,
            "clientPortAddress": HOST,
            "admin.enableServer": "false",
        }
        file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        program = "org.apache.zookeeper.server.ZooKeeperServerMain"
        with (self.directory / "zookeeper.log").open("wb") as log:
            self._zookeeper = subprocess.Popen(
                [self._java, *_JVM, "-cp", self._class_path, program, str(file)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def launch(self) -> None:
        """Start the broker, which waits for ZooKeeper."""
        self._deadline = time.monotonic() + START_LIMIT_S
        self.brokers[0].launch(self._java, self._class_path, jvm=self._spec.jvm)

    def _wait(self, brokers: Sequence[Broker]) -> None:
        """As in KRaft mode, with the cluster's id, which the first start chooses."""
        file = self.directory / "broker-1" / "meta.properties"
        while not (found := re.search(r"^cluster\.id=(.+)$", file.read_text() if file.exists() else "", re.MULTILINE)):
            with self._log_kept_on_failure(brokers[0]):
                brokers[0].check_running()
                if time.monotonic() > self._deadline:
                    raise ClusterUnavailable(f"no {file}; log: {brokers[0].log}", cluster=self.name)
            time.sleep(0.1)
        self.cluster_id = found[1]
        super()._wait(brokers)

    def _halt(self) -> None:
        super()._halt()
        if self._zookeeper is not None:
            self._zookeeper.kill()
            self._zookeeper.wait(STOP_GRACE_S)


def zookeeper_settings(*, port: int, zookeeper_port: int) -> dict[str, str]:
    """What server.properties says of a cluster of one broker, but for `log.dirs`."""
    return {
        "broker.id": "1",
        "zookeeper.connect": f"{HOST}:{zookeeper_port}",
        "listeners": f"PLAINTEXT://{HOST}:{port}",
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "5",
        "group.initial.rebalance.delay.ms": "0",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "log.cleaner.dedupe.buffer.size": "4194304",
    }


@contextmanager
def start_release(release: str, **more: str) -> Iterator[EmbeddedCluster]:
    """Start a cluster of one broker of a release, with `more` settings, and stop it at the end."""
    spec = ClusterSpec(name=f"kafka-{release}", settings={**_SETTINGS, **more})
    if release == CURRENT:
        with start_clusters([spec]) as started:
            yield started[spec.name]
        return
    cluster = ZooKeeperCluster(spec, java=java_executable(), class_path=class_path(jar_set(release)), directory=None)
    try:
        cluster.begin()
        cluster.launch()
        cluster.wait_until_up()
        yield cluster
    finally:
        cluster.stop()


class Releases:
    """Clusters by release, each started when it is asked for the first time."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._started: dict[str, EmbeddedCluster] = {}

    def __getitem__(self, release: str) -> EmbeddedCluster:
        if release not in self._started:
            self._started[release] = self._stack.enter_context(start_release(release))
        return self._started[release]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
