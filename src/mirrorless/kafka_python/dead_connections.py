"""Ends connections whose other end does not acknowledge anything any more, long before their requests time out.

A link that is cut leaves connections open. TCP sends what was lost again, after pauses that double: a connection
continues about as long after the end of the cut as the cut lasted, and at the latest when its requests time out. A new
connection works at once.

Only acknowledgements count, which come from the other machine's kernel: a broker that takes its time, for a garbage
collection or because a quota is used up, keeps its connection.
"""

from __future__ import annotations

import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mirrorless.kafka_python import errors as kafka_errors

if TYPE_CHECKING:
    from mirrorless.kafka_python.connection_manager import ConnectionManager
    from mirrorless.kafka_python.event_loop import EventLoop

_LOOK_EVERY_S: Final = 1.0
_RETRANSMISSIONS: Final = 4
"""With the shortest first pause, 0.2 s, the fourth one is sent after 3 s; at a round trip of 100 ms after 4.5 s."""
_RETRANSMITS_AT: Final = 2
"""Where `struct tcp_info` counts the retransmissions since the last acknowledgement, in one byte."""

SOCKET_OPTIONS: Final[tuple[tuple[int, int, int], ...]] = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    # While a response is waited for there is nothing to send again; then the kernel asks, and ends the connection.
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 3), ("TCP_KEEPINTVL", 1), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
)
"""Options of connections; seconds."""


class DeadConnections:
    """Looks at the connections of `manager` every second, until that is closed. Only Linux counts retransmissions."""

    def __init__(self, net: EventLoop, manager: ConnectionManager) -> None:
        self._net = net
        self._manager = manager
        if sys.platform == "linux":
            self._net.call_later(_LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        if self._manager.closed:
            return
        for connection in list(self._manager._conns.values()):
            sock = None if connection.transport is None else connection.transport._sock
            if sock is not None and (count := retransmissions(sock)) >= _RETRANSMISSIONS:
                where = connection.transport.host_port().partition("<")[0]
                reason = f"{where} does not acknowledge what was sent {count + 1} times"
                connection.close(kafka_errors.KafkaConnectionError(reason))
        self._net.call_later(_LOOK_EVERY_S, self._look)


def end_unanswered(manager: ConnectionManager, reason: str) -> None:
    """End the connections with requests that are not answered; what they did not send yet is not sent later."""
    for connection in list(manager._conns.values()):
        if connection.in_flight_requests:
            connection.close(kafka_errors.KafkaConnectionError(reason))


def retransmissions(sock: socket.socket) -> int:
    """How often the kernel has sent again, since the last acknowledgement, what is not acknowledged."""
    with suppress(OSError):
        return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RETRANSMITS_AT + 1)[_RETRANSMITS_AT]
    return 0
