"""A process's connections to clusters: what is slow, lost or held there, and how synchronous code waits for answers."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mirrorless.operation_log.topic import OPERATIONS_TOPIC
from tests.simulation.client import Link, SimulatedClient
from tests.simulation.system_threads import Killed, SimulatedThread, running, wait_for
from tests.simulation.world import Process, clock
from tests.support.virtual_loop import VirtualLoop

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.administration import AdministeredCluster
    from tests.simulation.world import World

_RETRY_S = 0.1
_RENEWING = ("operation owner", "run mark")
"""Threads whose writes are renewals."""
_COPYING = ("mm2-offset-syncs.", "mm2-offsets.")


class Unanswered(Exception):
    """No answer came in time; the request may have been carried out."""


class ConnectionLost(Exception):
    """The connection was cut; the request may have been carried out."""


@dataclass(slots=True)
class Network:
    """What the network between a process and a cluster does to the next requests; the fields are those of `Link`."""

    lose_requests: int = 0
    lose_answers: int = 0
    held_until: float = 0.0
    slow_s: float = 0.0


class SyncProcess(Process):
    """A process whose code is synchronous: threads, clients that wait, and loops that run in a thread."""

    def __init__(self, world: World, name: str, *, ahead_s: float = 0.0) -> None:
        super().__init__(world, name, ahead_s=ahead_s)
        self.networks: dict[str, Network] = {}
        self.own: dict[str, Any] = {}
        """What modules of the product keep for a process."""
        self.writes: Counter[str] = Counter()
        self.stop_at: dict[tuple[str, int], tuple[float, bool]] = {}
        """Before which of its writes it is suspended: for how long, and whether its machine sleeps; it is killed if
        that is 0. Writes are counted by kind: `record` is one of the operations' logs, `effect` any other."""

    def network(self, alias: str) -> Network:
        """The network to a cluster."""
        return self.networks.setdefault(alias, Network())

    def about_to_write(self, topic: str = "") -> None:
        """Suspend the process if that is planned before this write; renewals do not count, nor a copy beside others."""
        is_copy = topic.startswith(_COPYING) and not self.name.startswith("copier")
        if running().name in _RENEWING or is_copy:
            return
        kind = "record" if topic == OPERATIONS_TOPIC else "effect"
        self.writes[kind] += 1
        if (stop := self.stop_at.pop((kind, self.writes[kind]), None)) is not None:
            seconds, slept = stop
            if not seconds:
                self.world.events["killed before a write"] += 1
                self.kill()
                raise Killed
            self.world.events["suspended before a write"] += 1
            self.world.note(f"{self.name} is before {kind} {self.writes[kind]} {topic}")
            self.suspend()
            self.world.later(seconds, None, lambda: self.resume(slept=slept))
            running().block(0.0)

    def begin(self, work: Callable[[], object], name: str = "main") -> SimulatedThread:
        """Run something in a thread of this process."""
        thread = SimulatedThread(self, work, name)
        thread.start()
        return thread


def current_process() -> SyncProcess:
    """The process whose turn it is."""
    found = running().process
    assert isinstance(found, SyncProcess)
    return found


class SharedLink(Link):
    """A link of one client, in a network that its process's other clients share."""

    def __init__(self, process: Any, cluster: AdministeredCluster, network: Network) -> None:  # noqa: ANN401
        self._network = Network()
        super().__init__(process, cluster)
        self._network = network

    @property
    def lose_requests(self) -> int:
        return self._network.lose_requests

    @lose_requests.setter
    def lose_requests(self, number: int) -> None:
        self._network.lose_requests = number

    @property
    def lose_answers(self) -> int:
        return self._network.lose_answers

    @lose_answers.setter
    def lose_answers(self, number: int) -> None:
        self._network.lose_answers = number

    @property
    def held_until(self) -> float:
        return self._network.held_until

    @held_until.setter
    def held_until(self, at: float) -> None:
        self._network.held_until = at

    @property
    def slow_s(self) -> float:
        return self._network.slow_s

    @slow_s.setter
    def slow_s(self, seconds: float) -> None:
        self._network.slow_s = seconds


class Wire:
    """The connections of one synchronous client to one cluster."""

    def __init__(self, cluster: AdministeredCluster) -> None:
        self.process = current_process()
        self.cluster = cluster
        self.link = SharedLink(self.process, cluster, self.process.network(cluster.alias))

    def ask(
        self,
        carry_out: Callable[[Callable[[Any], None]], None],
        *,
        seconds: float,
        node: int | None = None,
        again: bool = True,
    ) -> Any:  # noqa: ANN401 -- as the request
        """Send a request, `again` if its connection is cut; raises `Unanswered` and `ConnectionLost`."""
        until = clock.monotonic() + seconds
        while True:
            left = until - clock.monotonic()
            nodes = self.cluster.nodes if node is None else [node] if node in self.cluster.nodes else []
            if left <= 0 or not nodes:
                if left > 0:
                    running().block(min(left, 1.0))
                    continue
                raise Unanswered
            future = self.link.send(nodes[0], carry_out)
            if not wait_for(future, left):
                raise Unanswered
            if future.exception is None:
                return future.value
            if not again:
                raise ConnectionLost
            running().block(_RETRY_S)

    def simply(self, carry_out: Callable[[], Any], **how: Any) -> Any:  # noqa: ANN401
        """Send a request that is answered at once."""
        return self.ask(lambda answer: answer(carry_out()), **how)


class SimulatedLoop(VirtualLoop):
    """In place of `EventLoop`: its coroutines run in the thread that calls `run`, or in one of its own.

    What a coroutine calls may wait as in any other thread, and keeps the loop from running meanwhile.
    """

    def __init__(self) -> None:
        super().__init__()
        self.process = current_process()
        self.world = _LoopWorld(self)
        self._runner: SimulatedThread | None = None
        self._own: SimulatedThread | None = None
        self._ended = False
        self._work: deque[Callable[[], None]] = deque()

    def monotonic(self) -> float:
        """As `time.monotonic`."""
        return self.process.monotonic()

    def time(self) -> float:
        """As `time.time`."""
        return self.process.time()

    def call_later(self, seconds: float, work: Callable[[], None]) -> None:
        """Call a function in this loop after so long."""
        self.process.world.later(seconds, self.process, lambda: self._soon(work))

    def run(self, work: Any, *args: Any) -> Any:  # noqa: ANN401
        """Run a coroutine, or a function that returns one, to its end."""
        future = self.call_soon_with_future(work(*args) if callable(work) else work)
        if self._own is not None:
            wait_for(future, None)
        else:
            self._turns(lambda: bool(future.is_done))
        if future.exception is not None:
            raise future.exception
        return future.value

    def start(self, *_: object) -> None:
        """Run between two calls of `run` too, in a thread of its own."""
        if self._own is None:
            self._ended = False
            self._own = self.process.begin(lambda: self._turns(lambda: self._ended), "event loop")

    def stop(self, *_: object) -> None:
        """End the thread."""
        if self._own is not None:
            self._ended = True
            self._own.wake()
            self._own.join()
            self._own = None

    def close(self) -> None:
        """End all coroutines where they are."""
        self.stop()
        super().close()

    def _soon(self, work: Callable[[], None]) -> None:
        self._work.append(work)
        if self._runner is not None:
            self._runner.wake()

    def _turns(self, over: Callable[[], bool]) -> None:
        before, self._runner = self._runner, running()
        try:
            while not over():
                if self._work:
                    self._work.popleft()()
                else:
                    running().block()
        finally:
            self._runner = before


class _LoopWorld:
    """The world as the links of a loop's clients see it: what the process hears, the loop hears."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self._world = loop.process.world

    def later(self, seconds: float, process: object, work: Callable[[], None]) -> None:
        """As of `World`."""
        if process is self._loop:
            self._loop.call_later(seconds, work)
        else:
            self._world.later(seconds, None, work)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._world, name)


def connections(net: Any, cluster: AdministeredCluster) -> SimulatedClient:  # noqa: ANN401
    """What `ClusterClient` is, on a simulated loop."""
    client = SimulatedClient(net, cluster)
    client.link = SharedLink(net, cluster, net.process.network(cluster.alias))
    return client
