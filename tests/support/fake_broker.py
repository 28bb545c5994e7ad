"""A broker of one thread for each connection: answers what a test tells it to, and keeps what it was asked.

It knows requests by key and version only, so that what it receives can be compared to the byte.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

API_VERSIONS, METADATA = 18, 3
TOPIC, TOPIC_ID = "orders", UUID(int=7)
CLUSTER_ID = "a-fake-cluster"
NODE = 1
_KNOWN = {0: (3, 13), 1: (4, 13), METADATA: (0, 12), API_VERSIONS: (0, 3)}
"""Versions of Produce, Fetch, Metadata and ApiVersions."""
_HEADER = struct.Struct(">hhi")


@dataclass(slots=True)
class FakeBroker:
    """Listens on a port of this machine; `answers` are by API key, each a function of the version and the request.

    A function that returns None leaves the request without an answer.
    """

    answers: Mapping[int, Callable[[int, bytes], Any]] = field(default_factory=dict)
    versions: Mapping[int, tuple[int, int]] = field(default_factory=lambda: dict(_KNOWN))
    asked: list[tuple[int, bytes]] = field(default_factory=list)
    connections: list[socket.socket] = field(default_factory=list)
    _listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in (self._listener, *self.connections):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection.makefile("rb") as stream:
            while len(size := stream.read(4)) == 4:
                request = stream.read(int.from_bytes(size))
                key, version, number = _HEADER.unpack_from(request)
                self.asked.append((key, size + request))
                answer = self._answer(key, version, request)
                if answer is not None:
                    answer.API_VERSION = version
                    answer.with_header(correlation_id=number)
                    connection.sendall(answer.encode(header=True, framed=True))

    def _answer(self, key: int, version: int, request: bytes) -> Any:  # noqa: ANN401 -- the library's messages
        if key in self.answers:
            return self.answers[key](version, request)
        if key == API_VERSIONS:
            return ApiVersionsResponse(
                error_code=0,
                api_keys=[
                    ApiVersionsResponse.ApiVersion(api_key=api, min_version=least, max_version=most)
                    for api, (least, most) in self.versions.items()
                ],
                throttle_time_ms=0,
            )
        assert key == METADATA, f"nobody told what to answer to a request with key {key}"
        topic = MetadataResponse.MetadataResponseTopic
        partition = topic.MetadataResponsePartition(
            error_code=0,
            partition_index=0,
            leader_id=NODE,
            leader_epoch=0,
            replica_nodes=[NODE, 2, 3],
            isr_nodes=[NODE, 2],
            offline_replicas=[],
        )
        return MetadataResponse(
            throttle_time_ms=0,
            brokers=[
                MetadataResponse.MetadataResponseBroker(node_id=NODE, host="127.0.0.1", port=self.port, rack=None)
            ],
            cluster_id=CLUSTER_ID,
            controller_id=NODE,
            topics=[topic(error_code=0, name=TOPIC, topic_id=TOPIC_ID, is_internal=False, partitions=[partition])],
        )
