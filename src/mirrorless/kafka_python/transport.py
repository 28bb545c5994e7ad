"""Reads responses and writes requests without copies: decoded where they were read, written from the batches.

kafka-python reads 4 KiB at a time, joins the pieces, splits them into frames and copies each frame; that was more than
half of the cost of a copy. Here the first 4 KiB are read the same way, which is all of most responses. The rest of a
larger frame is read straight into the parser's buffer, except for its last byte: given that one, the parser finds the
frame complete.
"""

from __future__ import annotations

import itertools
import selectors
import socket
import ssl
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kafka.net import connection
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.parser import KafkaProtocol

from mirrorless.errors import without_frames
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.receive_buffers import ReceiveBuffers

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

_SIZE_BYTES = 4
_SMALL_BYTES = 4 << 10
_PIECES = 64
_LOW_WATER_BYTES = 128 << 10
_HELD_BYTES = 32 << 10
"""More than OpenSSL may have read ahead of a response: one incomplete TLS record."""
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: closing sends RST, and what was not sent or not acknowledged is dropped."""
_NOTHING_MORE = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Chunks(list["bytes | bytearray | memoryview"]):
    """A request in pieces, none of them empty, to be written in order."""


class Protocol(KafkaProtocol):
    """The library's parser, which also takes requests in pieces.

    Responses that do not come in one piece are put into `frames`.
    """

    frames = ReceiveBuffers()

    def send_bytes(self) -> bytes | Chunks:
        """Remove and return all requests that wait to be sent."""
        waiting, self.bytes_to_send = self.bytes_to_send, []
        if len(waiting) == 1:
            only: bytes | Chunks = waiting[0]
            return only
        pieces = Chunks()
        for request in waiting:
            pieces += request if isinstance(request, Chunks) else [request]
        return pieces

    def receive_bytes(self, data: bytes) -> list[tuple[int, Any]]:
        """Parse what was read from the socket; a response that is not complete is put into one of `frames`."""
        if not self._receiving and not self._header.tell() and len(data) >= _SIZE_BYTES:
            size = int.from_bytes(data[:_SIZE_BYTES], signed=True)
            if size > len(data) - _SIZE_BYTES:
                self._begin(size)
                data = data[_SIZE_BYTES:]
        answers: list[tuple[int, Any]] = super().receive_bytes(data)  # type: ignore[no-untyped-call]
        return answers

    def _begin(self, size: int) -> None:
        """Prepare to receive the rest of a response, as the library does when it has read the length."""
        self._validate_frame_size(size)  # type: ignore[no-untyped-call]
        self._header.seek(_SIZE_BYTES)
        self._rbuffer = self.frames.take(size)
        self._receiving = True


# Every connection makes its own parser, by this name; there is no parameter for it.
connection.KafkaProtocol = Protocol  # type: ignore[attr-defined]


class _InPlace:
    """What is the same with TLS and without: responses are read into `frames`.

    `low_water` is how many bytes have to arrive before the socket counts as readable (`SO_RCVLOWAT`).
    """

    frames = ReceiveBuffers()
    low_water = 1

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        """Hand the connection all complete responses; no bytes are left for the library to hand over."""
        failure = read_answers(self)
        transport: Any = self
        if failure is None and transport._protocol is None:  # a response ended the connection
            failure = kafka_errors.KafkaConnectionError("closed")
        return b"", failure

    def abort(self, error: BaseException | None = None) -> None:
        """End the connection now, also while it is being closed and its socket does not take what is left to send.

        The library does nothing for a connection that is being closed.
        """
        transport: Any = self
        if transport._closed and transport._sock is not None:
            transport._write_buffer.clear()
            transport._close(error)
        else:
            super().abort(error)  # type: ignore[misc]

    def _close(self, error: BaseException | None = None) -> None:
        """Close the socket; after an error at once, which drops what was not acknowledged (`reset_on_close`)."""
        transport: Any = self
        sock = transport._sock
        if error is not None and sock is not None:
            with suppress(KeyError, ValueError):
                transport._net.unregister_event(sock, selectors.EVENT_READ | selectors.EVENT_WRITE)
            sock.close()
        super()._close(error)  # type: ignore[misc]


class Plain(_InPlace, KafkaTCPTransport):
    """A connection without TLS."""

    def write(self, data: bytes | Chunks) -> None:
        """Send a request: at once what the socket takes, the rest in the library's task once it takes more."""
        if self._write and not self._closed and not self._writing:
            self._write_buffer.extend(data if isinstance(data, Chunks) else [data])
            _, failure = self._sock_send()
            if failure is None and not self._write_buffer:
                self.last_write = time.monotonic()
                return
            data = Chunks()
        # If sending failed, the library's task fails the same way, and ends the connection.
        self.writelines(data if isinstance(data, Chunks) else [data])  # type: ignore[no-untyped-call]

    def _sock_send(self) -> tuple[int, Exception | None]:
        return write_pieces(self._sock, self._write_buffer)


class Tls(_InPlace, KafkaSSLTransport):
    """A connection with TLS."""

    async def shake_hands(self, *, until: float | None) -> None:
        """Do the TLS handshake until the monotonic time `until`; the library's has no limit.

        Raises `KafkaTimeoutError`, or the error of `ssl`.
        """
        while True:
            try:
                self._sock.do_handshake()
            except ssl.SSLWantReadError:
                await self._net.wait_read(self._sock, timeout_at=until)
            except ssl.SSLWantWriteError:
                await self._net.wait_write(self._sock, timeout_at=until)
            else:
                return

    def write(self, data: bytes | Chunks) -> None:
        """Send a request in one piece: encryption copies it anyway, and each small piece would be a TLS record.

        As a view, because the library cuts off what was sent, a TLS record of 16 KiB each time: bytes would be copied.
        """
        whole = b"".join(data) if isinstance(data, Chunks) else data
        super().write(memoryview(whole))  # type: ignore[no-untyped-call]


def reset_on_close(sock: socket.socket) -> None:
    """Have the socket drop what is unsent or unacknowledged when it is closed, also by the end of the process.

    The kernel would otherwise send it later, for minutes while a link is cut: an append that the copier has given up,
    or that of a process that was killed, would reach the broker after those that followed it.
    """
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def read_answers(transport: Any) -> Exception | None:  # noqa: ANN401 -- the library's transports are untyped
    """Read all there is and hand each complete response to the connection; return the error that ends it, if any."""
    receiver = transport.get_protocol()
    receiver.parser.frames = transport.frames
    sock = transport._sock
    may_hold_more = isinstance(sock, ssl.SSLSocket)  # a read returns one TLS record at most
    try:
        while not transport.is_closing():
            read, wanted = _frame(sock, receiver.parser, receiver.data_received)
            if not read:
                return kafka_errors.KafkaConnectionError("socket disconnected")
            if read < wanted and not may_hold_more:
                _wait_for_much(transport, receiver.parser)
                return None
    except _NOTHING_MORE:
        _wait_for_much(transport, receiver.parser)
        return None
    except kafka_errors.KafkaProtocolError as error:
        return without_frames(error)
    except OSError as error:
        return kafka_errors.KafkaConnectionError(str(error))
    return None


def _wait_for_much(transport: Any, parser: Any) -> None:  # noqa: ANN401
    """Let a large response that is under way arrive in large pieces.

    A broker sends it by TLS records of 16 KiB, and the event loop's turn for each of them costs more than decryption.
    """
    missing = len(parser._rbuffer) - parser._rbuffer.tell() if parser._receiving else 0
    low_water = max(1, min(_LOW_WATER_BYTES, missing - _HELD_BYTES))
    if low_water != transport.low_water:
        transport._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, low_water)
        transport.low_water = low_water


def write_pieces(sock: Any, pieces: deque[Any]) -> tuple[int, Exception | None]:  # noqa: ANN401
    """Write as much as the socket takes; return the number of bytes, and the error that ends the connection, if any.

    What was written is removed from `pieces`.
    """
    total = 0
    if sock is None:
        return total, kafka_errors.KafkaConnectionError("connection closed during send")
    while pieces:
        try:
            sent = sock.sendmsg(list(itertools.islice(pieces, _PIECES)))
        except (BlockingIOError, InterruptedError):
            break
        except OSError as error:
            return total, kafka_errors.KafkaConnectionError(str(error))
        total += sent
        while sent:
            piece = pieces.popleft()
            if len(piece) > sent:
                pieces.appendleft(memoryview(piece)[sent:])
                break
            sent -= len(piece)
    return total, None


def _frame(sock: Any, parser: Any, received: Callable[[bytes], None]) -> tuple[int, int]:  # noqa: ANN401
    """Read some of a frame; return the number of bytes, 0 at the end of the stream, and for how many there was room."""
    frame = parser._rbuffer
    missing = len(frame) - frame.tell() if parser._receiving else _SMALL_BYTES
    if not parser._receiving or missing == 1 or len(frame) <= _SMALL_BYTES:
        data: bytes = sock.recv(missing)
        if data:
            received(data)
        return len(data), missing
    at = frame.tell()
    with memoryview(frame) as view, view[at:-1] as room:
        size: int = sock.recv_into(room)
    frame.seek(at + size)
    return size, missing - 1
