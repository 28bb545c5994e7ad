"""Real Kafka clusters in KRaft mode on the loopback address, for tests and trials."""

from __future__ import annotations

import atexit
import base64
import contextlib
import os
import re
import secrets
import shutil
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mirrorless.errors import ClusterError, ConfigurationError
from mirrorless.local.broker import (
    BROKER_USER,
    HOST,
    STOP_GRACE_S,
    TRIAL_JVM,
    Broker,
    PortTaken,
    SecureListener,
    Voter,
    broker_settings,
    free_ports,
    secured_settings,
    with_secure_listeners,
)
from mirrorless.local.jars import class_path
from mirrorless.local.java import java_executable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

# Only for hangs: a broker that cannot start ends by itself, and one of six on a busy machine takes a minute.
START_LIMIT_S = 180.0
MOST_CONTROLLERS = 3
ADMIN_USER = "admin"
_PORT_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """A cluster to start: its name, how many brokers, and broker settings that override the built-in ones.

    With `users`, names and passwords, every client logs in with SASL_PLAINTEXT and PLAIN, and the KRaft authorizer
    checks ACLs; the user `admin` may do everything. `secure` are listeners for clients beside the
    plain one, on every broker; `EmbeddedCluster.secure_servers` has their addresses. `jvm` is `TRIAL_JVM`, which starts
    faster, or `SHIPPED_JVM`, as in Kafka's own script. `cluster_id` is random unless it is set. `racks` are assigned to
    the brokers in turn. Raises
    ConfigurationError for a name that cannot be a folder's name, for less than one broker, and for a user or password
    that JAAS would have to quote.
    """

    name: str
    brokers: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    secure: tuple[SecureListener, ...] = ()
    jvm: tuple[str, ...] = TRIAL_JVM
    cluster_id: str | None = None
    racks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", self.name):
            raise ConfigurationError("use letters, digits, '.', '_' and '-'", key="name", value=self.name)
        if self.brokers < 1:
            raise ConfigurationError("a cluster has at least one broker", key="brokers", value=str(self.brokers))
        for name, password in self.users.items():
            if name == BROKER_USER or not all(re.fullmatch(r"[A-Za-z0-9_-]+", text) for text in (name, password)):
                reason = f"use letters, digits, '_' and '-' in name and password; {BROKER_USER} is taken"
                raise ConfigurationError(reason, key="users", value=name)


class EmbeddedCluster:
    """A running cluster; created by `start_clusters`.

    Nodes are numbered from 1. Below three brokers the first is the only controller, so the cluster does not work
    while that one is down; from three on the first three are controllers and any one of them may be down.
    """

    def __init__(self, spec: ClusterSpec, *, java: Path, class_path: str, directory: Path | None) -> None:
        self.name = spec.name
        self.cluster_id = spec.cluster_id or new_cluster_id()
        self.brokers: tuple[Broker, ...] = ()
        self.directory = Path(tempfile.mkdtemp(prefix=f"mirrorless-{spec.name}-", dir=directory))
        self._spec = spec
        self._passwords = {**spec.users, BROKER_USER: secrets.token_hex(16)} if spec.users else {}
        self._java = java
        self._class_path = class_path
        self._deadline = 0.0
        self._kept_logs: set[Path] = set()
        self._secure_ports: dict[str, list[int]] = {}
        self._owner = os.getpid()
        atexit.register(self.stop)

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, running or not."""
        return ",".join(broker.address for broker in self.brokers)

    def client_settings(self, user: str = ADMIN_USER) -> dict[str, str]:
        """Return the Java settings of a client, without addresses: empty if the cluster has no users, else a login."""
        if not self._passwords:
            return {}
        if user not in self._passwords:
            raise ConfigurationError(f"cluster {self.name} does not have this user", key="users", value=user)
        login = f'username="{user}" password="{self._passwords[user]}"'
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f"org.apache.kafka.common.security.plain.PlainLoginModule required {login};",
        }

    def secure_ports(self, listener: str) -> tuple[int, ...]:
        """The ports of one of the secure listeners, broker by broker, whatever is advertised."""
        return tuple(self._secure_ports[listener])

    def secure_servers(self, listener: str) -> str:
        """The addresses of one of the secure listeners, on all brokers."""
        return ",".join(f"{HOST}:{port}" for port in self._secure_ports[listener])

    def broker(self, node_id: int) -> Broker:
        """Return one broker. Raises ConfigurationError if the cluster has no broker with this id."""
        for broker in self.brokers:
            if broker.node_id == node_id:
                return broker
        raise ConfigurationError(f"cluster {self.name} does not have this broker", key="node_id", value=str(node_id))

    def kill_broker(self, node_id: int) -> None:
        """End a broker with SIGKILL, like a machine failure, and return when it has ended."""
        self.broker(node_id).end(deadline=0)

    def stop_broker(self, node_id: int) -> None:
        """Stop a broker in an orderly way: SIGTERM, then SIGKILL after 10 s; return when it has ended."""
        broker = self.broker(node_id)
        broker.ask_to_stop()
        broker.end(deadline=time.monotonic() + STOP_GRACE_S)

    def start_broker(self, node_id: int) -> None:
        """Start a broker that was stopped or killed, on the same data and port, and return when it answers.

        A broker that runs is not changed. Raises ClusterError if it ends, ClusterUnavailable after 180 s.
        """
        broker = self.broker(node_id)
        if broker.process_id is not None:
            return
        for attempts_left in reversed(range(_PORT_ATTEMPTS)):
            self._deadline = time.monotonic() + START_LIMIT_S
            broker.launch(self._java, self._class_path, jvm=self._spec.jvm)
            try:
                self._wait([broker])
            except PortTaken:
                # The port must stay, so wait until a temporary connection releases it.
                if not attempts_left:
                    raise
                time.sleep(1)
            else:
                return

    def stop(self) -> None:
        """End all brokers, in any order, since their data is removed with them; does nothing the second time."""
        # A forked child inherits the handlers of `atexit`, but the brokers belong to the parent.
        if os.getpid() != self._owner:
            return
        self._halt()
        if self.directory.is_dir():
            self._clear()
            with contextlib.suppress(OSError):  # it has a kept log
                self.directory.rmdir()
        atexit.unregister(self.stop)

    def begin(self) -> None:
        """Start to format the data folders."""
        self._lay_out()
        self._deadline = time.monotonic() + START_LIMIT_S
        for broker in self.brokers:
            broker.begin_format(self._java, self._class_path, cluster_id=self.cluster_id)

    def launch(self) -> None:
        """Wait for the formatting to end and start the brokers. Raises ClusterError if formatting fails."""
        for broker in self.brokers:
            with self._log_kept_on_failure(broker):
                broker.end_format(deadline=self._deadline)
        self._deadline = time.monotonic() + START_LIMIT_S
        for broker in self.brokers:
            broker.launch(self._java, self._class_path, jvm=self._spec.jvm)

    def wait_until_up(self) -> None:
        """Return when all brokers answer and list each other; try other ports if one was taken meanwhile.

        Raises ClusterError if a broker ends, ClusterUnavailable after 180 s.
        """
        for attempts_left in reversed(range(_PORT_ATTEMPTS)):
            try:
                self._wait(self.brokers)
            except PortTaken:
                if not attempts_left:
                    raise
                self._halt()
                self._clear()
                self.begin()
                self.launch()
            else:
                return

    def _lay_out(self) -> None:
        """Choose ports and write settings."""
        count = self._spec.brokers
        controllers = MOST_CONTROLLERS if count >= MOST_CONTROLLERS else 1
        ports = free_ports(count + controllers)
        voters = [Voter(node_id=node_id, port=ports.pop()) for node_id in range(1, controllers + 1)]
        overrides: dict[str, str] = {}
        login: dict[str, str] = {}
        if self._passwords:
            overrides = secured_settings(self._passwords, super_users=[ADMIN_USER])
            login = {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": BROKER_USER,
                "sasl.password": self._passwords[BROKER_USER],
            }
        brokers: list[Broker] = []
        self._secure_ports = {listener.name: [] for listener in self._spec.secure}
        for node_id in range(1, count + 1):
            port = ports.pop()
            racks = self._spec.racks
            rack = {"broker.rack": racks[(node_id - 1) % len(racks)]} if racks else {}
            settings = broker_settings(
                node_id=node_id,
                port=port,
                voters=voters,
                brokers=count,
                overrides={**overrides, **rack, **self._spec.settings},
            )
            settings = self._with_secure_listeners(settings, node_id)
            brokers.append(
                Broker(
                    cluster=self.name,
                    node_id=node_id,
                    port=port,
                    folder=self.directory,
                    settings=settings,
                    login=login,
                )
            )
        self.brokers = tuple(brokers)

    def _with_secure_listeners(self, settings: dict[str, str], node_id: int) -> dict[str, str]:
        if not self._spec.secure:
            return settings
        ports = free_ports(len(self._spec.secure))
        for listener, port in zip(self._spec.secure, ports, strict=True):
            self._secure_ports[listener.name].append(port)
        return with_secure_listeners(settings, self._spec.secure, ports=ports, node_id=node_id)

    def _wait(self, brokers: Sequence[Broker]) -> None:
        peers = {broker.node_id for broker in self.brokers if broker in brokers or broker.process_id is not None}
        for awaited in brokers:
            up = False
            while not up:
                # All of them, because the first one never lists a second one that has ended.
                for broker in brokers:
                    with self._log_kept_on_failure(broker):
                        broker.check_running()
                with self._log_kept_on_failure(awaited):
                    up = awaited.is_up(cluster_id=self.cluster_id, peers=peers, deadline=self._deadline)

    @contextlib.contextmanager
    def _log_kept_on_failure(self, broker: Broker) -> Iterator[None]:
        """Keep the log after `stop` if the broker's last error refers to it."""
        try:
            yield
        except ClusterError:
            self._kept_logs.add(broker.log)
            raise
        self._kept_logs.discard(broker.log)

    def _halt(self) -> None:
        for broker in self.brokers:
            broker.end(deadline=0)

    def _clear(self) -> None:
        """Remove everything except kept logs."""
        for entry in self.directory.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            elif entry not in self._kept_logs:
                entry.unlink()


@contextlib.contextmanager
def start_clusters(
    specs: Sequence[ClusterSpec],
    *,
    directory: Path | None = None,
    say: Callable[[str], None] | None = None,
    is_up: Callable[[EmbeddedCluster], None] | None = None,
) -> Iterator[dict[str, EmbeddedCluster]]:
    """Start clusters in parallel, yield them by name when all are up, and stop them at the end.

    Data and logs are in new folders below `directory`, which must exist; below the system's folder for temporary files
    if it is None. `say` is called before a download, `is_up` for each cluster that is up. Raises PrerequisiteError if
    Java or Kafka's jars are not available, ClusterError or ClusterUnavailable if a broker does not start; the text has
    the path of its log, which is kept in that case.
    """
    names = [spec.name for spec in specs]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise ConfigurationError(f"the name {repeated} is given twice: use a different name for each cluster")
    java, jars = java_executable(), class_path(say=say)
    clusters: dict[str, EmbeddedCluster] = {}
    try:
        for spec in specs:
            clusters[spec.name] = EmbeddedCluster(spec, java=java, class_path=jars, directory=directory)
        # Every step is begun for all clusters before it is awaited for the first, so they start in parallel.
        for cluster in clusters.values():
            cluster.begin()
        for cluster in clusters.values():
            cluster.launch()
        for cluster in clusters.values():
            cluster.wait_until_up()
            if is_up is not None:
                is_up(cluster)
        yield clusters
    finally:
        for cluster in clusters.values():
            cluster.stop()


def new_cluster_id() -> str:
    """Return a random cluster id in Kafka's format: 16 bytes in 22 characters of base64url."""
    while True:
        # Kafka's formatter takes an id that begins with "-" for an option.
        if not (found := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
            return found
