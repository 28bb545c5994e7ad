"""A TCP proxy on the loopback address that can cut connections half-way through what is said, and delay them."""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import suppress

_PIECE_BYTES = 64 << 10
_AT_ONCE = struct.pack("ii", 1, 0)


class Proxy:
    """Stands before one broker: clients come to `port`, the broker listens on `target_port`, once that is known."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.target_port = 0
        self._open: set[socket.socket] = set()
        self._doomed: set[socket.socket] = set()
        self._slow_until = 0.0
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> int:
        """Let every connection break in the middle of the next thing said on it; returns how many there are."""
        with self._lock:
            self._doomed |= self._open
            return len(self._open) // 2

    def delay(self, seconds: float) -> None:
        """Hold back everything for so long."""
        self._slow_until = time.monotonic() + seconds

    def close(self) -> None:
        """Take no more connections and close those there are."""
        self._server.close()
        with self._lock:
            for one in self._open:
                _reset(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(("127.0.0.1", self.target_port))
            except OSError:
                _reset(client)
                continue
            with self._lock:
                self._open |= {client, broker}
            self._join(client, broker)

    def _join(self, client: socket.socket, broker: socket.socket) -> None:
        """Hand what is said on either side to the other."""
        for here, there in ((client, broker), (broker, client)):
            threading.Thread(target=self._pump, args=(here, there), daemon=True).start()

    def _leave(self, here: socket.socket, there: socket.socket) -> None:
        with self._lock:
            self._open -= {here, there}
            self._doomed -= {here, there}
        _reset(here)
        _reset(there)

    def _pump(self, here: socket.socket, there: socket.socket) -> None:
        try:
            while piece := here.recv(_PIECE_BYTES):
                while (pause := self._slow_until - time.monotonic()) > 0:
                    time.sleep(min(pause, 0.05))
                if here in self._doomed:
                    there.sendall(piece[: len(piece) // 2])
                    break
                there.sendall(piece)
        except OSError:
            pass
        finally:
            self._leave(here, there)


def _reset(one: socket.socket) -> None:
    with suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        one.shutdown(socket.SHUT_RDWR)
    one.close()
