"""Requests that are encoded, and whose responses are decoded, outside of kafka-python.

The library makes an object of each part of a message, and another of each header. For Produce and Fetch, of which a
busy flow has thousands a second, that took longer than all that is done with them.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    Frame = bytes | bytearray | memoryview
    Read = Callable[[Frame, int], Any]

NO_TAGS = b"\0"
_REQUEST_HEADER = struct.Struct(">hhih")
_RESPONSE_HEADER = struct.Struct(">iB")
_LAST_SHIFT = 28
_ONE_BYTE = 0x7F


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


def compact_length(length: int) -> bytes:
    """Encode a compact length (KIP-482)."""
    left = length + 1
    found = bytearray()
    while left > _ONE_BYTE:
        found.append(left & _ONE_BYTE | _ONE_BYTE + 1)
        left >>= 7
    found.append(left)
    return bytes(found)


def compact_string(text: str) -> bytes:
    """Encode a string behind its compact length."""
    data = text.encode()
    return compact_length(len(data)) + data


class RawHeader(NamedTuple):
    """A request's header, as the library's parser keeps it until the response comes.

    It is version 2 of `RequestHeader.json`, that of flexible requests (KIP-482). `response` decodes the response.
    """

    request_api_key: int
    request_api_version: int
    correlation_id: int
    client_id: str
    response: RawResponse

    def get_response_class(self) -> RawResponse:
        """Return what decodes the response to this request; the library asks for it."""
        return self.response

    def to_bytes(self) -> bytes:
        """Encode it."""
        key, version, number, client, _ = self
        name = client.encode()
        return _REQUEST_HEADER.pack(key, version, number, len(name)) + name + NO_TAGS


class _ResponseHeader(NamedTuple):
    correlation_id: int


class RawResponse:
    """Stands where the library expects its class for the responses of one version, `library_class`.

    `read` takes a frame and where its body begins, and returns None for what it leaves to the library. It may raise
    `IndexError`, `ValueError` or `struct.error` for bytes that are no response.
    """

    def __init__(self, library_class: Any, read: Read) -> None:  # noqa: ANN401 -- the library's messages are untyped
        self._library_class = library_class
        self._read = read

    def parse_header(self, frame: Any) -> Any:  # noqa: ANN401
        """Decode the header: version 1 of `ResponseHeader.json`."""
        at = frame.tell()
        if len(frame) < at + _RESPONSE_HEADER.size or frame[at + _RESPONSE_HEADER.size - 1]:
            return self._library_class.parse_header(frame)
        frame.seek(at + _RESPONSE_HEADER.size)
        return _ResponseHeader(_RESPONSE_HEADER.unpack_from(frame, at)[0])

    def decode(self, frame: Any) -> Any:  # noqa: ANN401
        """Decode what follows the header."""
        try:
            found = self._read(frame, frame.tell())
            return self._library_class.decode(frame) if found is None else found
        except IndexError as error:  # the library handles `ValueError`, and ends the connection
            raise ValueError("the response ends too early") from error


class RawRequest:
    """Mixed into one of the library's request classes: from `RAW_SINCE` on a version is encoded by `encode_raw`.

    Older versions are encoded by the library, once `fill` has set its fields.
    """

    if TYPE_CHECKING:
        API_KEY: int
        API_VERSION: int
        header: RawHeader
        _header: Any

    RAW_SINCE: int

    def raw_response(self, version: int) -> RawResponse:
        """Return what decodes a response of this version."""
        raise NotImplementedError

    def encode_raw(self) -> Any:  # noqa: ANN401 -- bytes, or pieces of them
        """Encode the whole request, its length and header included."""
        raise NotImplementedError

    def fill(self) -> None:
        """Set the fields that the library encodes."""
        raise NotImplementedError

    def with_header(self, correlation_id: int = 0, client_id: str = "kafka-python") -> None:
        """Number the request, for the library's parser to know its response by."""
        version = self.API_VERSION
        if version < self.RAW_SINCE:
            super().with_header(correlation_id=correlation_id, client_id=client_id)  # type: ignore[misc]
        else:
            self._header = RawHeader(self.API_KEY, version, correlation_id, client_id, self.raw_response(version))

    def encode(self, version: int | None = None, header: bool = False, framed: bool = False) -> Any:  # noqa: ANN401
        """Encode the whole request, as the library's parser asks for it: with header and length."""
        assert version is None
        assert header
        assert framed
        if self.API_VERSION >= self.RAW_SINCE:
            return self.encode_raw()
        self.fill()
        return super().encode(header=True, framed=True)  # type: ignore[misc]
