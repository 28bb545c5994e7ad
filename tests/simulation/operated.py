"""Runs synchronous code of the product in the simulated world: its clients, threads, clocks and ids are simulated."""

from __future__ import annotations

import random
import uuid
from collections.abc import MutableMapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pytest

from mirrorless import settings
from mirrorless.clusters import admin as admin_module
from mirrorless.clusters import clients as cluster_clients
from mirrorless.clusters import side_by_side
from mirrorless.copy.engines import lease_run
from mirrorless.kafka_python import admin as kafka_python_admin
from mirrorless.operations import switches
from mirrorless.operations.steps import preflight
from mirrorless.protocol import clients as protocol_clients
from tests.simulation import system_threads as threads
from tests.simulation.admin_requests import _ANSWERS, SimulatedRequests
from tests.simulation.client import SimulatedClient
from tests.simulation.libraries import SimulatedAdmin, SimulatedConsumer, SimulatedSender, cluster_of
from tests.simulation.network import SharedLink, SimulatedLoop, current_process
from tests.simulation.world import clock, install, uninstall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from mirrorless.kafka_python.connection_manager import Node


class PerProcess(MutableMapping[Any, Any]):
    """What a module keeps for its process."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def _own(self) -> dict[Any, Any]:
        found: dict[Any, Any] = current_process().own.setdefault(self._name, {})
        return found

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401
        return self._own[key]

    def __setitem__(self, key: Any, value: Any) -> None:  # noqa: ANN401
        self._own[key] = value

    def __delitem__(self, key: Any) -> None:  # noqa: ANN401
        del self._own[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)


class LoopClient(SimulatedClient):
    """What `ClusterClient` is on a simulated loop, for the requests of operations too."""

    async def ask(self, request: Any, node: Node, *, timeout_ms: int = 0) -> Any:  # noqa: ANN401
        """As of `ClusterClient`."""
        own = _ANSWERS.get(type(request).__name__)
        if own is None or type(request).__name__ == "DescribeProducersRequest":
            return await super().ask(request, node, timeout_ms=timeout_ms)
        broker = node if isinstance(node, int) else node.node
        return await self.link.send(node, lambda answer: answer(own(self._cluster, broker, request)))


def _cluster_client(net: SimulatedLoop, *, config: Mapping[str, Any], **_: Any) -> LoopClient:  # noqa: ANN401
    cluster = cluster_of(config)
    client = LoopClient(net, cluster)  # type: ignore[arg-type]
    client.link = SharedLink(net, cluster, net.process.network(cluster.alias))
    return client


def _stopped_before(throw: Callable[..., None]) -> Callable[..., None]:
    """A process may be stopped before it replaces the switch's file."""

    def file(path: Path, servers: str, number: int) -> None:
        if number:
            current_process().about_to_write()
        throw(path, servers, number)

    return file


def _uuid4() -> uuid.UUID:
    return uuid.UUID(int=random.getrandbits(128))


@contextmanager
def operated() -> Iterator[None]:
    """Give the product's modules everything simulated."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(cluster_clients, "admin", SimulatedAdmin)
        monkeypatch.setattr(cluster_clients, "producer", SimulatedSender)
        monkeypatch.setattr(cluster_clients, "consumer", SimulatedConsumer)
        monkeypatch.setattr(kafka_python_admin, "connect", SimulatedRequests)
        monkeypatch.setattr(protocol_clients, "event_loop", SimulatedLoop)
        monkeypatch.setattr(protocol_clients, "cluster_client", _cluster_client)
        monkeypatch.setattr(side_by_side, "ThreadPoolExecutor", threads.Pool)
        monkeypatch.setattr(admin_module, "_connected", PerProcess("admin clients"))
        monkeypatch.setattr(lease_run, "_slots", PerProcess("slots"))
        monkeypatch.setattr(preflight, "examine", lambda _: [])  # `mirrorless doctor` opens sockets
        monkeypatch.setattr(uuid, "uuid4", _uuid4)
        monkeypatch.setattr(switches, "_file", _stopped_before(switches._file))
        monkeypatch.setattr(settings, "load", lru_cache(maxsize=4)(settings.load))  # nobody edits the file
        monkeypatch.setattr(clock, "sleeps", threads.sleep)
        clocks, locks = install(), threads.install()
        try:
            yield
        finally:
            uninstall(clocks)
            threads.uninstall(locks)
