"""The Java originals: MirrorMaker 2 in dedicated mode, and small programs against its client library."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import quote
from urllib.request import Request, urlopen

from mirrorless.local.broker import SHIPPED_JVM, free_ports
from mirrorless.local.jars import JarSet, class_path
from mirrorless.local.java import java_executable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from tests.support.world import World

MIRRORMAKER: Final = JarSet(
    name="connect-mirror-4.3.0",
    title="MirrorMaker 2 4.3.0",
    modules=("org.apache.kafka:connect-mirror:4.3.0", "org.slf4j:slf4j-simple:1.7.36"),
)
# Kafka's connect-mirror-maker.sh has another heap than its brokers.
_SHIPPED_JVM: Final = (*SHIPPED_JVM, "-Xms256M", "-Xmx2G")
# Its tests wait for its start, most of which were the second compiler and a search of the class path by reflection.
_TRIAL_JVM: Final = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_PLUGINS: Final = {"plugin.discovery": "service_load"}
_STOP_S: Final = 20
_START_S: Final = 90
_BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"


def peer_settings(*worlds: World, **extra: str) -> dict[str, str]:
    """Settings of a MirrorMaker 2 for the flows of worlds between the same two clusters; in a hurry where it can be."""
    first = worlds[0]
    factors = ("config.storage", "status.storage", "offset.storage", "offset-syncs.topic", "checkpoints.topic")
    return {
        "clusters": f"{first.source_alias}, {first.target_alias}",
        f"{first.source_alias}.bootstrap.servers": first.source.bootstrap_servers,
        f"{first.target_alias}.bootstrap.servers": first.target.bootstrap_servers,
        **{f"{world.flow}.enabled": "true" for world in worlds},
        "topics": ", ".join(topic for world in worlds for topic in world.topics),
        "replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        **{f"{one}.replication.factor": "1" for one in factors},
        "emit.checkpoints.interval.seconds": "1",
        "refresh.groups.interval.seconds": "5",
        "refresh.topics.interval.seconds": "5",
        **extra,
    }


class _Peer:
    """A Java program of MirrorMaker 2's class path with a properties `file`; leaving the context stops it."""

    def __init__(
        self, folder: Path, program: str, settings: Mapping[str, str], *, jvm: Sequence[str] = _TRIAL_JVM
    ) -> None:
        file = self.file = folder / f"peer-{time.monotonic_ns()}.properties"
        file.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        self.log = file.with_suffix(".log")
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                [java_executable(), *jvm, "-cp", class_path(MIRRORMAKER), program, str(file)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
            )
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def check(self) -> None:
        """Fail with the end of its log if it does not run any more."""
        assert self._process.poll() is None, self.log.read_text()[-3000:]

    def stop(self) -> None:
        """Stop it in an orderly way."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


class MirrorMaker(_Peer):
    """A running MirrorMaker 2 in dedicated mode; as its own script starts it if `as_shipped`."""

    def __init__(self, folder: Path, settings: Mapping[str, str], *, as_shipped: bool = False) -> None:
        program = "org.apache.kafka.connect.mirror.MirrorMaker"
        if as_shipped:
            super().__init__(folder, program, settings, jvm=_SHIPPED_JVM)
            return
        prefixes = ["", *(f"{alias.strip()}." for alias in settings["clusters"].split(","))]
        plugins = {prefix + key: value for prefix in prefixes for key, value in _PLUGINS.items()}
        super().__init__(folder, program, {**settings, **plugins})


class ConnectWorker(_Peer):
    """A Connect cluster of one worker in distributed mode, beside `cluster`; its progress is in `offsets_topic`."""

    def __init__(self, folder: Path, cluster: EmbeddedCluster, *, offsets_topic: str) -> None:
        (port,) = free_ports(1)
        self._url = f"http://127.0.0.1:{port}"
        settings = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": offsets_topic,
            "listeners": self._url,
            "key.converter": _BYTES,
            "value.converter": _BYTES,
            "header.converter": _BYTES,
            "offset.storage.topic": offsets_topic,
            "config.storage.topic": f"{offsets_topic}-configs",
            "status.storage.topic": f"{offsets_topic}-status",
            "offset.flush.interval.ms": "1000",
            **_PLUGINS,
            **{f"{kind}.storage.replication.factor": "1" for kind in ("offset", "config", "status")},
        }
        super().__init__(folder, "org.apache.kafka.connect.cli.ConnectDistributed", settings)

    def start(self, connector: Mapping[str, Any]) -> None:
        """Put a connector there as soon as the worker answers."""
        data = json.dumps(connector["config"]).encode()
        self._until(lambda: self._ask("PUT", connector, "config", data) is not None)

    def stop_connector(self, connector: Mapping[str, Any]) -> None:
        """Stop a connector (KIP-875), and wait until it is stopped and has no tasks."""
        self._ask("PUT", connector, "stop")
        self._until(lambda: self._state(connector) == ("STOPPED", 0))

    def resume_connector(self, connector: Mapping[str, Any]) -> None:
        """Have a connector that is stopped, or paused, go on."""
        self._ask("PUT", connector, "resume")

    def _state(self, connector: Mapping[str, Any]) -> tuple[str, int]:
        status = json.loads(self._ask("GET", connector, "status"))
        return status["connector"]["state"], len(status["tasks"])

    def _until(self, done: Callable[[], bool]) -> None:
        until = time.monotonic() + _START_S
        while True:
            with contextlib.suppress(OSError):  # it does not answer yet, or is about to rebalance
                if done():
                    return
            self.check()
            assert time.monotonic() < until, self.log.read_text()[-3000:]
            time.sleep(0.5)

    def _ask(self, method: str, connector: Mapping[str, Any], path: str, data: bytes | None = None) -> bytes:
        address = f"{self._url}/connectors/{quote(str(connector['name']))}/{path}"
        request = Request(address, data, {"Content-Type": "application/json"}, method=method)  # noqa: S310
        with urlopen(request, timeout=10) as answer:  # noqa: S310 -- loopback
            found: bytes = answer.read()
            return found


def run_java(program: Path, *arguments: str) -> str:
    """Run a program of one source file (JEP 330) with MirrorMaker 2 on its class path; return what it prints."""
    ended = subprocess.run(
        [
            java_executable(),
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
            "-cp",
            class_path(MIRRORMAKER),
            str(program),
            *arguments,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=120,
        env=os.environ,
    )
    assert ended.returncode == 0, ended.stderr.decode()[-3000:]
    return ended.stdout.decode()
