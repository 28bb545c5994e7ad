"""Serves an archive as a Kafka cluster of one broker, which can be read and not written.

So whatever reads a cluster reads an archive: the copier of either engine, `verify`, a drill, a consumer. Group offsets
are those of the archive's time; nobody can join a group here. It listens on this machine only and has no login: what
may read the archive decides.

Requests that are not in `_VERSIONS` are not advertised, and end their connection.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import UUID

from mirrorless.archive import answers
from mirrorless.kafka_python.messages import (
    ApiVersionsRequest,
    DescribeAclsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetFetchRequest,
    ProduceRequest,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.archive.view import ArchiveView

_HEADER: Final = struct.Struct(">hhi")
_LARGEST_REQUEST: Final = 16 << 20
_Answer = Any
_API_VERSIONS: Final = ApiVersionsRequest.API_KEY
_UNSUPPORTED_VERSION: Final = 35

_HANDLERS: Final[dict[type[Any], tuple[tuple[int, int], Callable[[Any, Any], _Answer]]]] = {
    ProduceRequest: ((3, 8), answers.refused),
    FetchRequest: ((4, 13), answers.fetched),
    ListOffsetsRequest: ((1, 6), answers.offsets),
    MetadataRequest: ((1, 12), answers.metadata),
    ApiVersionsRequest: ((0, 3), answers.api_versions),
    FindCoordinatorRequest: ((0, 4), answers.coordinators),
    ListGroupsRequest: ((0, 5), answers.groups),
    DescribeGroupsRequest: ((0, 5), answers.described_groups),
    OffsetFetchRequest: ((1, 8), answers.committed),
    DescribeConfigsRequest: ((1, 4), answers.configs),
    DescribeAclsRequest: ((1, 3), answers.acls),
}
"""By the class of a request: the versions that are answered, and what answers it."""
_BY_KEY: Final = {request.API_KEY: (request, *handler) for request, handler in _HANDLERS.items()}


class ArchiveBroker:
    """Listens from `with` on until its end; a thread for each connection."""

    def __init__(self, view: ArchiveView, *, port: int = 0) -> None:
        self.view = view
        self.host = "127.0.0.1"
        self._listener = socket.create_server((self.host, port))
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.ids = {UUID(hex=topic.topic_id): name for name, topic in view.document.topics.items()}

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    @property
    def address(self) -> str:
        """Its `bootstrap.servers`."""
        return f"{self.host}:{self.port}"

    @property
    def versions(self) -> dict[int, tuple[int, int]]:
        """The requests that are answered, with their versions."""
        return {key: versions for key, (_, versions, _) in _BY_KEY.items()}

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, name="archive-broker", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            every = [self._listener, *self._connections]
        for one in every:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._connections.add(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError, _Refused), connection.makefile("rb") as stream:
                while len(size := stream.read(4)) == 4:
                    length = int.from_bytes(size)
                    if length > _LARGEST_REQUEST:
                        return
                    request = stream.read(length)
                    key, version, number = _HEADER.unpack_from(request)
                    connection.sendall(self._answer(key, version, number, request))
        finally:
            connection.close()
            with self._lock:
                self._connections.discard(connection)

    def _answer(self, key: int, version: int, number: int, text: bytes) -> bytes:
        known = _BY_KEY.get(key)
        if known is None:
            raise _Refused
        request, (least, most), handle = known
        if not least <= version <= most:
            if key != _API_VERSIONS:
                raise _Refused
            # What a client speaks that knows newer versions: it asks again with one of those named here.
            return _encoded(answers.api_versions(self, None, error_code=_UNSUPPORTED_VERSION), 0, number)
        return _encoded(handle(self, request.decode(text, version=version, header=True)), version, number)


class _Refused(Exception):
    """A request that is not answered: the connection ends."""


def _encoded(answer: _Answer, version: int, number: int) -> bytes:
    answer.API_VERSION = version
    answer.with_header(correlation_id=number)
    return bytes(answer.encode(header=True, framed=True))
