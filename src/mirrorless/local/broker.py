"""One Kafka broker as a child process: its settings, its log, its signals."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import javaproperties
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from mirrorless.errors import ClusterError, ClusterUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

HOST = "127.0.0.1"
STOP_GRACE_S = 10.0
_POLL_S = 0.1
_LOGGER = "-Dorg.slf4j.simpleLogger."
_JVM = (
    "-Djava.awt.headless=true",
    f"{_LOGGER}defaultLogLevel=info",
    f"{_LOGGER}showDateTime=true",
    f"{_LOGGER}dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
    f"{_LOGGER}levelInBrackets=true",
)
# The formatter runs for a second, in which the second compiler never pays off.
_FORMAT_JVM = ("-XX:-UsePerfData", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Trial brokers run for minutes: measured on two cores, a cold broker with the first compiler alone appends
# 700,000 records/s; with both, which compete with it for CPU, 540,000.
TRIAL_JVM = ("-XX:-UsePerfData", "-Xms256m", "-Xmx512m", "-XX:+UseParallelGC", "-XX:TieredStopAtLevel=1")
# As Kafka's kafka-server-start.sh and kafka-run-class.sh: for brokers that are measured.
SHIPPED_JVM = (
    "-Xms1G",
    "-Xmx1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)


BROKER_USER = "broker"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


class PortTaken(ClusterError):
    """Another program took the broker's port before the broker did: retry with other ports."""

    retriable = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    """One controller of a cluster: its node id and its port for the other nodes."""

    node_id: int
    port: int


def broker_settings(
    *, node_id: int, port: int, voters: Sequence[Voter], brokers: int, overrides: Mapping[str, str]
) -> dict[str, str]:
    """Return the content of server.properties, except `log.dirs`; `overrides` take precedence.

    `brokers` is the number of brokers; the internal topics get as many replicas, at most three.
    """
    own = next((voter for voter in voters if voter.node_id == node_id), None)
    replicas = min(3, brokers)
    # One replica may be missing, otherwise a test that kills a broker would stop transactions too.
    enough = max(1, replicas - 1)
    listeners = [f"PLAINTEXT://{HOST}:{port}"]
    if own is not None:
        listeners.append(f"CONTROLLER://{HOST}:{own.port}")
    return {
        "process.roles": "broker" if own is None else "broker,controller",
        "node.id": str(node_id),
        "controller.quorum.voters": ",".join(f"{voter.node_id}@{HOST}:{voter.port}" for voter in voters),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listeners": ",".join(listeners),
        "advertised.listeners": listeners[0],
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": str(replicas),
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(enough),
        "transaction.state.log.num.partitions": "5",
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(enough),
        "share.coordinator.state.topic.num.partitions": "5",
        "group.initial.rebalance.delay.ms": "0",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "log.cleaner.dedupe.buffer.size": "4194304",
        **overrides,
    }


def secured_settings(users: Mapping[str, str], *, super_users: Sequence[str]) -> dict[str, str]:
    """Return settings with which every client, broker and controller logs in (SASL PLAIN).

    `users` are names and passwords, `broker` among them; super users may do everything, all others need ACLs.
    """
    known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    own = f'username="{BROKER_USER}" password="{users[BROKER_USER]}"'
    login = f"{_PLAIN} required {own} {known};"
    return {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": login,
        "listener.name.controller.plain.sasl.jaas.config": login,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(f"User:{name}" for name in (BROKER_USER, *super_users)),
        "allow.everyone.if.no.acl.found": "false",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SecureListener:
    """An additional listener for clients: TLS, SASL or both. `settings` are the listener's, without its prefix.

    `advertised` are the advertised ports, broker by broker, if a proxy is in front of the listener.
    """

    name: str
    protocol: str
    settings: Mapping[str, str]
    advertised: tuple[int, ...] = ()
    advertised_host: str = HOST


def with_secure_listeners(
    settings: Mapping[str, str], listeners: Sequence[SecureListener], *, ports: Sequence[int], node_id: int
) -> dict[str, str]:
    """Return a broker's settings with these listeners beside the plain one, which brokers continue to use."""
    found = dict(settings)
    for listener, port in zip(listeners, ports, strict=True):
        name = listener.name.upper()
        found["listeners"] += f",{name}://{HOST}:{port}"
        told = listener.advertised[node_id - 1] if listener.advertised else port
        found["advertised.listeners"] += f",{name}://{listener.advertised_host}:{told}"
        found["listener.security.protocol.map"] += f",{name}:{listener.protocol}"
        found |= {f"listener.name.{listener.name.lower()}.{key}": value for key, value in listener.settings.items()}
    return found


def free_ports(count: int) -> list[int]:
    """Return so many different ports of the loopback address that no process listens on at the moment."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]


class Broker:
    """One node of a cluster; knows its process, and ends no other.

    `port` is the port for clients on the loopback address, `log` is the output of its Java. `login` is the login
    of a librdkafka client, if required.
    """

    def __init__(
        self,
        *,
        cluster: str,
        node_id: int,
        port: int,
        folder: Path,
        settings: Mapping[str, str],
        login: Mapping[str, str] | None = None,
    ) -> None:
        self.node_id = node_id
        self.port = port
        self.log = folder / f"broker-{node_id}.log"
        self._cluster = cluster
        self._properties = folder / f"broker-{node_id}.properties"
        with self._properties.open("w", encoding="latin-1") as file:
            javaproperties.dump({"log.dirs": str(folder / f"broker-{node_id}"), **settings}, file, timestamp=None)
        self._login = dict(login or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def address(self) -> str:
        """Host and port for clients."""
        return f"{HOST}:{self.port}"

    @property
    def process_id(self) -> int | None:
        """The id of the running process, or None."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def begin_format(self, java: Path, class_path: str, *, cluster_id: str) -> None:
        """Start to format the data folder with the cluster's id."""
        tool = ("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self._properties))
        self._launch(java, *_FORMAT_JVM, "-cp", class_path, *tool)

    def end_format(self, *, deadline: float) -> None:
        """Wait for what `begin_format` started. Raises ClusterError if it fails, ClusterUnavailable at `deadline`."""
        while self.process_id is not None:
            self._pause(deadline)
        if self._process is not None and self._process.returncode != 0:
            raise self._failure(f"broker {self.node_id} could not format its data folder")

    def launch(self, java: Path, class_path: str, *, jvm: Sequence[str] = TRIAL_JVM) -> None:
        """Start the broker's process; `is_up` says when it is ready."""
        self._launch(java, *jvm, "-cp", class_path, "kafka.Kafka", str(self._properties))

    def check_running(self) -> None:
        """Raise PortTaken or ClusterError, with the log's path in its text, if the process has ended."""
        if self.process_id is None:
            raise self._failure(f"broker {self.node_id} ended")

    def is_up(self, *, cluster_id: str, peers: set[int], deadline: float) -> bool:
        """Return whether this broker answers as a member of the cluster and lists all `peers`; takes at most a second.

        Raises ClusterUnavailable if it does not and `deadline` (of time.monotonic) has passed.
        """
        # A new client each time: its first answer can only come from this broker.
        own: dict[str, str | int | float | bool] = {
            "bootstrap.servers": self.address,
            "log_level": 0,
            "reconnect.backoff.max.ms": 200,
        }
        admin = AdminClient({**own, **self._login})
        with contextlib.suppress(KafkaException):
            answer = admin.list_topics(timeout=1)
            # If another cluster's broker took the port, that broker answers for a moment.
            # (str, because the library's types have the id always None)
            if str(answer.cluster_id) == cluster_id and peers <= answer.brokers.keys():
                return True
        self._pause(deadline)
        return False

    def ask_to_stop(self) -> None:
        """Send SIGTERM, on which a broker closes its files and moves its leaderships."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def end(self, *, deadline: float) -> None:
        """Wait for the process to end, kill it at `deadline` (of time.monotonic), and reap it."""
        if self._process is None:
            return
        try:
            self._process.wait(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _launch(self, java: Path, *arguments: str) -> None:
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            # A separate session keeps Ctrl-C on the terminal from reaching the broker before the orderly stop does.
            self._process = subprocess.Popen(
                # Temporary files go with its data: a killed broker leaves them behind.
                [java, *_JVM, f"-Djava.io.tmpdir={self.log.parent}", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _pause(self, deadline: float) -> None:
        if time.monotonic() >= deadline:
            # The log's last lines now show what it hung on; the exit itself would add nothing.
            raise ClusterUnavailable(
                self._account(f"broker {self.node_id} did not start in time"), cluster=self._cluster
            )
        time.sleep(_POLL_S)

    def _failure(self, what: str) -> ClusterError:
        status = self._process.returncode if self._process is not None else None
        how = signal.Signals(-status).name if status is not None and status < 0 else f"exit status {status}"
        kind = PortTaken if "Address already in use" in self._own_log() else ClusterError
        return kind(self._account(f"{what} ({how})"), cluster=self._cluster)

    def _account(self, what: str) -> str:
        error = last_error(self._own_log())
        return f"{what}{f': {error}' if error else ''}; log: {self.log}"

    def _own_log(self) -> str:
        """Return the output of the latest process."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")


def last_error(log: str) -> str | None:
    """Return the last exception in a Java log, else its last line of level ERROR, else None."""
    lines = log.splitlines()
    # An exception is more specific than the errors that are logged during the shutdown that it causes.
    for pattern in (
        r'(?:Caused by: |Exception in thread "[^"]*" )?([\w.$]*(?:Exception|Error)\b.*)',
        r"(.*\[ERROR\].*)",
    ):
        for line in reversed(lines):
            if found := re.match(pattern, line):
                return found[1][:300]
    return None
