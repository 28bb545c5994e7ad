"""A link between regions before one broker: latency, a window for each connection, bandwidth, cuts and resets.

The relay runs in a process of its own, so that it costs a test no CPU time. What it imitates of TCP over
distance: each byte arrives half a round trip later; a connection is open after a whole one; a sender stops when
`window_bytes` are unacknowledged, and acknowledgements need half a round trip too. It has no slow start and no loss.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import socket
import struct
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_LOOPBACK: Final = "127.0.0.1"
_PIECE_BYTES: Final = 256 << 10
_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: closing sends RST instead of FIN."""
_RESETS_EVERY_S: Final = 1.0
_SYN_RETRY_S: Final = 1.0
_LEAST_RETRY_S: Final = 0.2
_LONGEST_RETRY_S: Final = 120.0
"""Linux's `TCP_TIMEOUT_INIT`, `TCP_RTO_MIN` and `TCP_RTO_MAX`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTerms:
    """What a link is like.

    `round_trip_s` in seconds; `window_bytes` are unacknowledged bytes of one connection in one direction at most;
    `bytes_per_second` is the bandwidth of the link in each direction, None is no limit; every second, each connection
    is reset with the probability `resets`.
    """

    round_trip_s: float = 0.0
    window_bytes: int = 64 << 20
    bytes_per_second: float | None = None
    resets: float = 0.0


class Link:
    """Relays from `port` to a broker's port, which `connect` sets, on the loopback address or another one of ours."""

    def __init__(self, terms: LinkTerms | None = None, *, host: str = _LOOPBACK) -> None:
        listener = socket.create_server((host, 0), backlog=1024)
        self.port: int = listener.getsockname()[1]
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(listener, theirs, terms or LinkTerms()), daemon=True)
        self._process.start()
        theirs.close()
        listener.close()

    def connect(self, target_port: int, *, host: str = _LOOPBACK) -> None:
        """Relay new connections to this port."""
        self._call("connect", (host, target_port))

    def become(self, terms: LinkTerms) -> None:
        """Change the terms, also for connections that are open."""
        self._call("become", terms)

    def cut(self, seconds: float, *, retransmits: bool = False) -> None:
        """Deliver nothing for so long, in either direction; connections stay open, as through a router that failed.

        Afterwards everything is delivered at once, or if it `retransmits`, by each connection at the time of TCP's next
        attempt: one that was stalled for long resumes late, as does a new one whose SYN was lost.
        """
        self._call("cut", (seconds, retransmits))

    def reset(self) -> int:
        """Reset every connection; returns how many there were."""
        return int(self._call("reset", None))

    def stats(self) -> dict[str, int]:
        """Return `open` and `accepted` connections, and the `bytes` `to_broker` and `from_broker`."""
        return cast("dict[str, int]", self._call("stats", None))

    def close(self) -> None:
        """End the relay and its connections."""
        with suppress(OSError, ValueError):
            self._pipe.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()

    def _call(self, what: str, value: Any) -> Any:  # noqa: ANN401
        self._pipe.send((what, value))
        return self._pipe.recv()


def _serve(listener: socket.socket, pipe: Connection, terms: LinkTerms) -> None:
    asyncio.run(_Relay(listener, pipe, terms).run())


class _Relay:
    """All connections through one link."""

    def __init__(self, listener: socket.socket, pipe: Connection, terms: LinkTerms) -> None:
        self.terms = terms
        self.cut_from = self.cut_until = 0.0
        self.retransmits = False
        self.flows: dict[_Flow, None] = {}
        self.carried = {"to_broker": 0, "from_broker": 0}
        self._free_at = {"to_broker": 0.0, "from_broker": 0.0}
        self._target = (_LOOPBACK, 0)
        self._accepted = 0
        self._listener = listener
        self._pipe = pipe
        self._over = asyncio.Event()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(self._pipe.fileno(), self._command)
        server = await loop.create_server(lambda: _Flow(self, "to_broker"), sock=self._listener, backlog=1024)
        resets = loop.create_task(self._resets())
        await self._over.wait()
        resets.cancel()
        server.close()

    def arrival(self, direction: str, size: int, *, opened_at: float) -> float:
        """Return when bytes that leave now are at the other end."""
        now = asyncio.get_running_loop().time()
        leaves = max(now, self._free_at[direction], opened_at + self.terms.round_trip_s)
        if self.terms.bytes_per_second is not None:
            leaves += size / self.terms.bytes_per_second
            self._free_at[direction] = leaves
        return leaves + self.terms.round_trip_s / 2

    async def open(self, near: _Flow) -> None:
        """Connect to the broker for a client."""
        self._accepted += 1
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: _Flow(self, "from_broker", other=near), *self._target
            )
        except OSError:
            near.abort()

    def _command(self) -> None:
        try:
            what, value = self._pipe.recv()
        except (EOFError, OSError):
            self._over.set()
            return
        answer: Any = None
        if what == "connect":
            self._target = value
        elif what == "become":
            self.terms = value
        elif what == "cut":
            seconds, self.retransmits = value
            self.cut_from = asyncio.get_running_loop().time()
            self.cut_until = self.cut_from + seconds
        elif what == "reset":
            answer = self._reset(1.0)
        else:
            clients = sum(1 for flow in self.flows if flow.direction == "to_broker")
            answer = {"open": clients, "accepted": self._accepted, **self.carried}
        self._pipe.send(answer)

    async def _resets(self) -> None:
        while True:
            await asyncio.sleep(_RESETS_EVERY_S)
            if self.terms.resets:
                self._reset(self.terms.resets)

    def _reset(self, share: float) -> int:
        clients = [flow for flow in self.flows if flow.direction == "to_broker"]
        chosen = [flow for flow in clients if random.random() < share]
        for flow in chosen:
            flow.abort()
        return len(chosen)


class _Flow(asyncio.BufferedProtocol):
    """One end of a connection: what arrives from it is delivered to `other` later."""

    def __init__(self, relay: _Relay, direction: str, *, other: _Flow | None = None) -> None:
        self.direction = direction
        self._relay = relay
        self._other = other
        self._buffer = bytearray(_PIECE_BYTES)
        self._pieces: deque[tuple[float, bytes]] = deque()
        self._acked: deque[tuple[float, int]] = deque()
        self._unacked = 0
        self._paused = False
        self._is_blocked = False
        self._timer: asyncio.TimerHandle | None = None
        self._stalled_at: float | None = None
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=1 << 20)
        self._loop = asyncio.get_running_loop()
        self._opened_at = self._loop.time()
        self._relay.flows[self] = None
        if self._other is None:
            self._pause()
            self._loop.create_task(self._relay.open(self))
        else:
            self._opened_at -= self._relay.terms.round_trip_s  # the client's end has waited for it
            self._other.joined(self)

    def joined(self, other: _Flow) -> None:
        """Begin to relay to a connection that is open."""
        self._other = other
        self._resume()

    def get_buffer(self, _size: int) -> memoryview:
        room = max(1, self._relay.terms.window_bytes - self._unacked)
        return memoryview(self._buffer)[: min(_PIECE_BYTES, room)]

    def buffer_updated(self, size: int) -> None:
        self._relay.carried[self.direction] += size
        self._unacked += size
        due = self._relay.arrival(self.direction, size, opened_at=self._opened_at)
        self._pieces.append((due, bytes(memoryview(self._buffer)[:size])))
        if self._unacked >= self._relay.terms.window_bytes:
            self._pause()
        self._schedule()

    def eof_received(self) -> bool:
        self._ended = True
        self._schedule()
        return True  # what is on its way is delivered first

    def pause_writing(self) -> None:
        if self._other is not None:
            self._other._is_blocked = True

    def resume_writing(self) -> None:
        if self._other is not None:
            self._other._is_blocked = False
            self._other._schedule()

    def connection_lost(self, _error: Exception | None) -> None:
        self._relay.flows.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
        if self._other is not None and not self._ended:
            self._other.abort()

    def abort(self) -> None:
        """Reset both ends."""
        other, self._other = self._other, None
        self._ended = True
        with suppress(OSError, AttributeError):
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._transport.abort()
        if other is not None:
            other.abort()

    def _schedule(self) -> None:
        if self._timer is None and not self._is_blocked:
            dues = [queue[0][0] for queue in (self._pieces, self._acked) if queue]
            if dues:
                self._timer = self._loop.call_at(self._arrives(min(dues)), self._deliver)
            elif self._ended and self._other is not None:
                self._other._transport.close()

    def _deliver(self) -> None:
        self._timer = None
        other = self._other
        if other is None:
            return
        now = self._loop.time()
        if now < self._arrives(now):
            self._schedule()
            return
        self._stalled_at = None
        while self._pieces and self._pieces[0][0] <= now and not self._is_blocked:
            _, piece = self._pieces.popleft()
            other._transport.write(piece)
            self._acked.append((now + self._relay.terms.round_trip_s / 2, len(piece)))
        while self._acked and self._acked[0][0] <= now:
            self._unacked -= self._acked.popleft()[1]
        if self._paused and self._unacked < self._relay.terms.window_bytes:
            self._resume()
        self._schedule()

    def _arrives(self, due: float) -> float:
        """Return when what would arrive at `due` does so, after a cut by a retransmission."""
        relay = self._relay
        if self._stalled_at is None and self._loop.time() < relay.cut_until > due:
            self._stalled_at = due
        if self._stalled_at is None:
            return due
        arrives = relay.cut_until
        if relay.retransmits:
            arrives, wait = self._stalled_at, self._retry_s()
            while arrives < relay.cut_until:
                arrives, wait = arrives + wait, min(2 * wait, _LONGEST_RETRY_S)
        return max(due, arrives)

    def _retry_s(self) -> float:
        """Seconds until the first retransmission: of SYN for a connection that could not open, else of data."""
        if self._opened_at >= self._relay.cut_from:
            return _SYN_RETRY_S
        return max(_LEAST_RETRY_S, 3 * self._relay.terms.round_trip_s)

    def _pause(self) -> None:
        if not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
