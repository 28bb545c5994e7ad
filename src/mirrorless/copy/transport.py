"""Reads a broker's answers from the socket into the place where they are decoded, without copies in between.

kafka-python reads 4 KiB at a time, joins the pieces, cuts them apart and puts them together again; of what a copy
costs, that was more than half. What is done here is what its parser does, in another order: the four bytes of a frame's
size by themselves, then the frame straight into the parser's buffer, but for its last byte, with which the parser is
given the frame.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

from kafka import errors as kafka_errors
from kafka.net.manager import KafkaConnectionManager
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.frame import KafkaBytes

if TYPE_CHECKING:
    from collections.abc import Callable

_SIZE_BYTES = 4
_NOTHING_MORE = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class _Frame(KafkaBytes):
    """A frame that is decoded where it lies; the library makes two copies of it first."""

    def read(self, nbytes: int | None = None) -> Any:  # noqa: ANN401
        """Return the next bytes, all that are left as a view."""
        return super().read(nbytes) if nbytes is not None else memoryview(self)[self.tell() :]  # type: ignore[no-untyped-call]


class _Plain(KafkaTCPTransport):
    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        return b"", read_answers(self)


class _Tls(KafkaSSLTransport):
    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        return b"", read_answers(self)


_OURS: dict[type, type] = {KafkaTCPTransport: _Plain, KafkaSSLTransport: _Tls}


class Manager(KafkaConnectionManager):
    """kafka-python's connections to one cluster, with transports that read in place."""

    async def _build_transport(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        transport: Any = await super()._build_transport(*arguments, **options)  # type: ignore[no-untyped-call]
        transport.__class__ = _OURS[type(transport)]
        return transport


def read_answers(transport: Any) -> Exception | None:  # noqa: ANN401 -- the library's transports are untyped
    """Read all there is and give each whole answer to the connection; return what ends the connection, if anything."""
    connection = transport.get_protocol()
    try:
        while not transport.is_closing():
            parser = connection.parser
            read = _frame(transport._sock, parser, connection.data_received)
            if not read:
                return kafka_errors.KafkaConnectionError("socket disconnected")
    except _NOTHING_MORE:
        return None
    except kafka_errors.KafkaProtocolError as error:
        return error
    except OSError as error:
        return kafka_errors.KafkaConnectionError(str(error))
    return None


def _frame(sock: Any, parser: Any, received: Callable[[bytes], None]) -> int:  # noqa: ANN401
    """Read some of a frame; return the number of bytes, 0 at the end of the stream."""
    frame = parser._rbuffer if parser._receiving else None
    missing = _SIZE_BYTES - parser._header.tell() if frame is None else len(frame) - frame.tell()
    if frame is None or missing == 1:
        data: bytes = sock.recv(missing)
        if data:
            received(data)
        return len(data)
    frame.__class__ = _Frame
    at = frame.tell()
    with memoryview(frame) as view, view[at:-1] as room:
        size: int = sock.recv_into(room)
    frame.seek(at + size)
    return size
