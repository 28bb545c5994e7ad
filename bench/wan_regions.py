"""Two clusters with a link before each of them, and what the links can carry."""

from __future__ import annotations

import socket
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from bench.brokers import LINKED, source_and_target
from bench.wan_cells import PLACEMENTS, PLAIN, terms
from tests.support.link import Link, LinkTerms
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.wan_cells import Cell
    from mirrorless.local.embedded_kafka import EmbeddedCluster

_PIECE: Final = b"x" * (1 << 20)
_LIMIT_SETTLE_S: Final = 1.0
_LIMIT_S: Final = 3.0


class Regions:
    """The source's and the target's broker; what fills topics and reads ends does not go through a link."""

    def __init__(self, clusters: dict[str, EmbeddedCluster], links: dict[str, Link]) -> None:
        self.clusters = clusters
        self._links = links
        for name, link in links.items():
            link.connect(clusters[name].secure_ports(LINKED)[0])

    @contextmanager
    def world(self, cell: Cell, topics: Sequence[str]) -> Iterator[World]:
        """A flow whose far cluster is reached by a link as the cell has it."""
        far = PLACEMENTS[cell.placement]
        self._links[far].become(terms(cell.link, cell.delay_ms))
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            world = World(self.clusters["source"], self.clusters["target"], Path(folder), topics=list(topics))
            alias = world.source_alias if far == "source" else world.target_alias
            world.write_settings(**{f"{alias}.bootstrap.servers": f"127.0.0.1:{self._links[far].port}"})
            yield world

    def relay_cpu_s(self, cell: Cell) -> float:
        """CPU seconds that the relay of a cell's link has used so far: they are not the engine's."""
        times = psutil.Process(self._links[PLACEMENTS[cell.placement]]._process.pid).cpu_times()
        return times.user + times.system


@contextmanager
def regions() -> Iterator[Regions]:
    """Start both clusters and the links before them."""
    with ExitStack() as stack:
        links = {name: Link() for name in ("source", "target")}
        for link in links.values():
            stack.callback(link.close)
        clusters = stack.enter_context(source_and_target({name: link.port for name, link in links.items()}))
        yield Regions(clusters, links)


def link_limit(delay_ms: int, connections: int, *, link: str = PLAIN) -> float:
    """Bytes per second that a link carries to clients which do nothing with them, by so many connections."""
    found = terms(link, delay_ms)
    server = socket.create_server(("127.0.0.1", 0))
    ending = threading.Event()
    threading.Thread(target=_serve, args=(server, ending), daemon=True).start()
    relay = Link(LinkTerms(round_trip_s=found.round_trip_s))
    relay.connect(server.getsockname()[1])
    relay.become(found)
    clients = [socket.create_connection(("127.0.0.1", relay.port)) for _ in range(connections)]
    received = [0] * connections
    readers = [
        threading.Thread(target=_read, args=(client, received, number), daemon=True)
        for number, client in enumerate(clients)
    ]
    try:
        for reader in readers:
            reader.start()
        time.sleep(_LIMIT_SETTLE_S + 2 * found.round_trip_s)
        began, before = time.monotonic(), sum(received)
        time.sleep(_LIMIT_S)
        return (sum(received) - before) / (time.monotonic() - began)
    finally:
        ending.set()
        relay.close()  # first: it logs each piece that it cannot deliver
        for client in clients:
            client.close()
        server.close()


def _serve(server: socket.socket, ending: threading.Event) -> None:
    while not ending.is_set():
        try:
            client, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=_send, args=(client, ending), daemon=True).start()


def _send(client: socket.socket, ending: threading.Event) -> None:
    with client:
        try:
            while not ending.is_set():
                client.sendall(_PIECE)
        except OSError:
            return


def _read(client: socket.socket, received: list[int], number: int) -> None:
    buffer = bytearray(1 << 20)
    try:
        while count := client.recv_into(buffer):
            received[number] += count
    except OSError:
        return
