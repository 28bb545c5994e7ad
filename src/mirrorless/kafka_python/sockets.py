"""Closes sockets of kafka-python that did not become a connection.

The library leaves a socket to the garbage collector when the connection is refused or the TLS handshake fails: while a
cluster is down, one for each attempt of each lease. Only admin clients need this: `connection_manager` opens the
copier's sockets itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.net.inet import KafkaNetSocket
from kafka.net.transport import KafkaSSLTransport

if TYPE_CHECKING:
    import socket

_connect: Any = KafkaNetSocket.sock_connect
_handshake: Any = KafkaSSLTransport.handshake


async def _connect_or_close(
    self: KafkaNetSocket,
    net: Any,  # noqa: ANN401 -- the library is untyped
    sock: socket.socket,
    sockaddr: Any,  # noqa: ANN401
    timeout_at: float | None = None,
) -> Any:  # noqa: ANN401
    try:
        return await _connect(self, net, sock, sockaddr, timeout_at=timeout_at)
    except BaseException:
        sock.close()
        raise


async def _handshake_or_close(self: KafkaSSLTransport) -> None:
    try:
        await _handshake(self)
    except BaseException:
        self.abort()
        raise


def close_unused() -> None:
    """Have every attempt to connect that fails close its socket; may be called again."""
    KafkaNetSocket.sock_connect = _connect_or_close  # type: ignore[method-assign]
    KafkaSSLTransport.handshake = _handshake_or_close  # type: ignore[method-assign]
