"""kafka-python's admin client, and requests sent with it that it has no method for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    KafkaAdminClient,
    ResourcePatternFilter,
    ResourceType,
)

from mirrorless.kafka_python import sockets
from mirrorless.kafka_python.errors import NodeNotReadyError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ACLFilter",
    "ACLOperation",
    "ACLPermissionType",
    "ACLResourcePatternType",
    "KafkaAdminClient",
    "ResourcePatternFilter",
    "ResourceType",
    "ask_any_broker",
    "ask_broker",
    "ask_controller",
    "ask_without_reconnecting",
    "connect",
    "controller",
]

sockets.close_unused()


_IN_FLIGHT: Final = 1_000
"""By the library's default of 5, requests of several threads would be refused."""


def connect(settings: Mapping[str, Any]) -> KafkaAdminClient:
    """Connect an admin client, which several threads may use; its requests for metadata create no topic.

    Raises kafka-python's errors.
    """
    client: Any = KafkaAdminClient(**settings, max_in_flight_requests_per_connection=_IN_FLIGHT)
    client._manager.cluster.config["allow_auto_create_topics"] = False
    return client  # type: ignore[no-any-return]


def ask_any_broker(client: Any, request: Any) -> Any:  # noqa: ANN401 -- the library's messages
    """Send any request to some broker and return the response; raises kafka-python's errors."""
    return client._manager.run(client._manager.send, request)


def ask_broker(client: Any, node: int, request: Any) -> Any:  # noqa: ANN401 -- the library's messages
    """Send any request to one broker and return the response; raises kafka-python's errors."""
    return client._manager.run(client._manager.send, request, node)


def controller(client: Any) -> int:  # noqa: ANN401 -- the library's client
    """Return the broker that takes requests for the controller; raises kafka-python's errors."""
    return client._manager.run(client._refresh_controller_id)  # type: ignore[no-any-return]


def ask_without_reconnecting(client: Any, node: int, request: Any) -> Any:  # noqa: ANN401 -- the library's messages
    """Send any request over the connection that is open, and return the response.

    Raises `NodeNotReadyError` if it was closed since the last request to this broker, and kafka-python's errors.
    """
    connection = client._manager._conns.get(node)
    if connection is None or not connection.connected:
        raise NodeNotReadyError(node)
    return client._manager.run(connection.send_request, request)


def ask_controller(client: Any, request: Any) -> Any:  # noqa: ANN401 -- the library's messages
    """Send any request to the controller and return the response; raises kafka-python's errors."""
    return client._manager.run(client._send_request_to_controller, request, lambda _: (), False)
