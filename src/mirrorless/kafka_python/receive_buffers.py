"""Buffers that responses are read into; some of the large ones are kept, and reused once nothing refers to them.

A new buffer of 8 MiB is filled with zeros first, mostly in memory that the kernel has to map and to clear. And a batch
that is a view of its response keeps the whole response: with buffers that are kept anyway, that has a bound.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from kafka.protocol.frame import KafkaBytes

_LARGE_BYTES: Final = 1 << 20
_LARGE_PART: Final = 8


def _references(kept: list[Any], number: int) -> int:
    return sys.getrefcount(kept[number])


_UNUSED: Final = _references([bytearray()], 0)
"""References to an object that only its list refers to; versions of Python count those on the stack differently."""


class ReceiveBuffer(KafkaBytes):
    """A response, decoded in place; the library makes two copies of it first. `lasts` if it is kept for reuse."""

    lasts = False

    def read(self, nbytes: int | None = None) -> Any:  # noqa: ANN401 -- the library is untyped
        """Return the next bytes, or a view of all that are left."""
        return super().read(nbytes) if nbytes is not None else memoryview(self)[self.tell() :]  # type: ignore[no-untyped-call]


class ReceiveBuffers:
    """Makes buffers, and keeps those of 1 MiB and more, up to `limit_bytes` in total. Not thread-safe.

    The limit is for their lengths; a buffer reused for a shorter response keeps its memory, up to twice as much.
    """

    def __init__(self, limit_bytes: int = 0) -> None:
        self._limit_bytes = limit_bytes
        self._kept: list[ReceiveBuffer] = []

    @property
    def kept_bytes(self) -> int:
        """Bytes of all buffers that are kept, in use or not."""
        return sum(map(len, self._kept))

    def take(self, size: int) -> ReceiveBuffer:
        """Return a buffer of so many bytes, with any content."""
        if size < _LARGE_BYTES:
            return _made(size)
        for number in reversed(range(len(self._kept))):
            if _references(self._kept, number) > _UNUSED:
                continue
            frame = self._kept[number]
            if self.kept_bytes - len(frame) + size <= self._limit_bytes:
                _resize(frame, size)
                frame.seek(0)  # type: ignore[no-untyped-call]
                return frame
            del self._kept[number]  # with others of its size there is no room for this response
        frame = _made(size)
        if self.kept_bytes + size <= self._limit_bytes:
            frame.lasts = True
            self._kept.append(frame)
        return frame


def outlasts(records: bytes | memoryview) -> bool:
    """Whether batches may be views of these records of a response.

    They may if its buffer is kept anyway, or is not much larger than these records: else a batch that waits for a slow
    leader would keep 8 MiB for some hundred bytes.
    """
    if not isinstance(records, memoryview):
        return False
    answer = records.obj
    return (isinstance(answer, ReceiveBuffer) and answer.lasts) or len(records) * _LARGE_PART >= memoryview(
        answer
    ).nbytes


def _made(size: int) -> ReceiveBuffer:
    return ReceiveBuffer(size)  # type: ignore[no-untyped-call]


def _resize(frame: ReceiveBuffer, size: int) -> None:
    if size < len(frame):
        del frame[size:]
    else:
        frame.extend(bytes(size - len(frame)))
