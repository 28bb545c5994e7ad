"""kafka-python's admin client, and requests sent with it that it has no method for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    "ask_controller",
    "connect",
]

sockets.close_unused()


def connect(settings: Mapping[str, Any]) -> KafkaAdminClient:
    """Connect an admin client; its requests for metadata create no topic. Raises kafka-python's errors."""
    client: Any = KafkaAdminClient(**settings)
    client._manager.cluster.config["allow_auto_create_topics"] = False
    return client  # type: ignore[no-any-return]


def ask_any_broker(client: Any, request: Any) -> Any:  # noqa: ANN401 -- the library's messages
    """Send any request to some broker and return the response; raises kafka-python's errors."""
    return client._manager.run(client._manager.send, request)


def ask_controller(client: Any, request: Any) -> Any:  # noqa: ANN401 -- the library's messages
    """Send any request to the controller and return the response; raises kafka-python's errors."""
    return client._manager.run(client._send_request_to_controller, request, lambda _: (), False)
