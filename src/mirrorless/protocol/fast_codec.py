"""What Produce and Fetch have in common where the copier writes and reads them itself: headers, lengths, answers.

The library makes an object of each part of a message, and another of each header, which for these two, of which a busy
flow has thousands a second, took longer than all that is done with them.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mirrorless.clusters.topics import Place

    Frame = bytes | bytearray | memoryview
    Read = Callable[[Frame, int], Any]

NO_TAGS = b"\0"
_ID_BYTES = 16
_LAST_SHIFT = 28
_REQUEST_HEADER = struct.Struct(">hhih")
_ANSWER_HEADER = struct.Struct(">iB")


class Header(NamedTuple):
    """A request's header, as the library's parser keeps it until the answer comes; `answer` reads that one."""

    request_api_key: int
    request_api_version: int
    correlation_id: int
    client_id: str
    answer: Answer

    def get_response_class(self) -> Answer:
        """Return what reads the answer to this request."""
        return self.answer

    def to_bytes(self) -> bytes:
        """Version 2 of `RequestHeader.json`, that of flexible requests (KIP-482)."""
        key, version, number, client, _ = self
        name = client.encode()
        return _REQUEST_HEADER.pack(key, version, number, len(name)) + name + NO_TAGS


class _Numbered(NamedTuple):
    correlation_id: int


class Answer:
    """Stands where the library expects its class for the answers of one version.

    `read` takes a frame and where its body begins, and returns None for what it leaves to the library's `theirs`. It
    may raise `IndexError`, `ValueError` or `struct.error` for what is no answer.
    """

    def __init__(self, theirs: Any, read: Read) -> None:  # noqa: ANN401 -- the library's messages are untyped
        self._theirs = theirs
        self._read = read

    def parse_header(self, frame: Any) -> Any:  # noqa: ANN401
        """Read the answer's header: version 1 of `ResponseHeader.json`."""
        at = frame.tell()
        if len(frame) < at + _ANSWER_HEADER.size or frame[at + _ANSWER_HEADER.size - 1]:
            return self._theirs.parse_header(frame)
        frame.seek(at + _ANSWER_HEADER.size)
        return _Numbered(_ANSWER_HEADER.unpack_from(frame, at)[0])

    def decode(self, frame: Any) -> Any:  # noqa: ANN401
        """Read what follows the header."""
        try:
            found = self._read(frame, frame.tell())
            return self._theirs.decode(frame) if found is None else found
        except IndexError as error:  # the library takes any other error for what it is, and ends the connection
            raise ValueError("the answer ends too early") from error


def count(frame: Frame, at: int) -> tuple[int, int]:
    """Read a compact length, -1 for what is null, and say where what it counts begins.

    Raises `ValueError` where it has more than five bytes: a long row of set bits would else be read for hours.
    """
    found = shift = 0
    while (byte := frame[at]) & 0x80:
        found |= (byte & 0x7F) << shift
        shift += 7
        if shift > _LAST_SHIFT:
            raise ValueError("a length of more than five bytes")
        at += 1
    return (found | byte << shift) - 1, at + 1


def topic_at(frame: Frame, at: int, *, by_id: bool) -> tuple[str | UUID, int]:
    """Read what an answer calls a topic, its id (KIP-516) or its name, and say where what follows begins."""
    if by_id:
        return UUID(bytes=bytes(frame[at : at + _ID_BYTES])), at + _ID_BYTES
    size, at = count(frame, at)
    return bytes(frame[at : at + size]).decode(), at + size


def by_topic(places: Iterable[Place]) -> dict[str, list[int]]:
    """Return the partitions of each topic, both in order of their first place."""
    grouped: dict[str, list[int]] = defaultdict(list)
    for topic, partition in places:
        grouped[topic].append(partition)
    return grouped
