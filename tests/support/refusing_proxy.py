"""A proxy before one broker that answers some Produce requests itself, with an error, and forwards the next ones."""

from __future__ import annotations

import itertools
import struct
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from kafka.protocol.producer.produce import ProduceRequest, ProduceResponse

from tests.support.proxy import Proxy

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

ERRORS = (19, 6)
"""NOT_ENOUGH_REPLICAS and NOT_LEADER_OR_FOLLOWER."""
_PRODUCE = 0
_FLEXIBLE_SINCE = 9


@dataclass(eq=False)
class _Answers:
    """What a client is owed, in the order of its requests: None stands for an answer of the broker's."""

    client: socket.socket
    owed: deque[bytes | None] = field(default_factory=deque)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def expect(self, own: bytes | None) -> None:
        with self.lock:
            self.owed.append(own)
            self._send_own()

    def came(self, frame: bytes) -> None:
        with self.lock:
            assert self.owed.popleft() is None
            self.client.sendall(frame)
            self._send_own()

    def _send_own(self) -> None:
        while self.owed and (own := self.owed[0]) is not None:
            self.client.sendall(own)
            self.owed.popleft()


class RefusingProxy(Proxy):
    """Refuses one Produce request in `every`, by turns with each of `ERRORS`; `refused` counts them."""

    def __init__(self, *, every: int = 20) -> None:
        self.refused = self.seen = 0
        self._every = every
        self._errors = itertools.cycle(ERRORS)
        super().__init__()

    def _join(self, client: socket.socket, broker: socket.socket) -> None:
        answers = _Answers(client)
        asked = partial(self._asked, broker=broker, answers=answers)
        for here, there, take in ((client, broker, asked), (broker, client, answers.came)):
            threading.Thread(target=self._hand_on, args=(here, there, take), daemon=True).start()

    def _hand_on(self, here: socket.socket, there: socket.socket, take: Callable[[bytes], None]) -> None:
        with suppress(OSError, EOFError):
            while True:
                take(_frame(here))
        self._leave(here, there)

    def _asked(self, frame: bytes, *, broker: socket.socket, answers: _Answers) -> None:
        (api,) = struct.unpack_from(">h", frame, 4)
        if api == _PRODUCE and self._is_refused():
            answers.expect(_refusal(frame, next(self._errors)))
            return
        answers.expect(None)
        broker.sendall(frame)

    def _is_refused(self) -> bool:
        with self._lock:
            self.seen += 1
            refused = self.seen % self._every == 0
            self.refused += refused
        return refused


def _frame(sock: socket.socket) -> bytes:
    head = _exactly(sock, 4)
    return head + _exactly(sock, struct.unpack(">i", head)[0])


def _exactly(sock: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        piece = sock.recv(size - len(found))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)


def _refusal(frame: bytes, code: int) -> bytes:
    """The answer to a Produce request that no partition of it was appended."""
    _, version, correlation, client_bytes = struct.unpack_from(">hhih", frame, 4)
    at = 14 + max(0, client_bytes)
    flexible = version >= _FLEXIBLE_SINCE
    request = ProduceRequest[version].decode(frame[at + flexible :])
    topic_of, part_of = ProduceResponse.TopicProduceResponse, ProduceResponse.TopicProduceResponse
    topics = []
    for topic in request.topic_data:
        parts = [
            part_of.PartitionProduceResponse(index=part.index, error_code=code, base_offset=-1)
            for part in topic.partition_data
        ]
        named = {"topic_id": topic.topic_id} if version >= 13 else {"name": topic.name}
        topics.append(topic_of(**named, partition_responses=parts))
    body = ProduceResponse(version=version, responses=topics, throttle_time_ms=0).encode(version=version)
    head = struct.pack(">i", correlation) + (b"\0" if flexible else b"")
    return struct.pack(">i", len(head) + len(body)) + head + bytes(body)
