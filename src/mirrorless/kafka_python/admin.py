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
    from collections.abc import Callable, Mapping

__all__ = [
    "ACLFilter",
    "ACLOperation",
    "ACLPermissionType",
    "ACLResourcePatternType",
    "AdminRequests",
    "ResourcePatternFilter",
    "ResourceType",
    "connect",
]

sockets.close_unused()

_IN_FLIGHT: Final = 1_000
"""By the library's default of 5, requests of several threads would be refused."""


class AdminRequests(KafkaAdminClient):
    """The library's admin client, and requests that it has no method for; all raise kafka-python's errors."""

    if TYPE_CHECKING:
        # What is used of it, which the library leaves without types.
        _manager: Any
        _refresh_controller_id: Any
        _send_request_to_controller: Any
        alter_group_offsets: Callable[..., Any]
        close: Callable[[], None]
        delete_group_offsets: Callable[..., Any]
        delete_groups: Callable[..., Any]
        describe_acls: Callable[..., Any]
        describe_groups: Callable[..., Any]
        describe_log_dirs: Callable[..., Any]
        get_broker_version_data: Callable[..., Any]
        list_group_offsets: Callable[..., Any]
        list_groups: Callable[..., Any]

    def ask_any_broker(self, request: Any) -> Any:  # noqa: ANN401 -- the library's messages
        """Send any request to some broker and return the response."""
        return self._manager.run(self._manager.send, request)

    def ask_broker(self, node: int, request: Any) -> Any:  # noqa: ANN401 -- the library's messages
        """Send any request to one broker and return the response."""
        return self._manager.run(self._manager.send, request, node)

    def controller(self) -> int:
        """Return the broker that takes requests for the controller."""
        return self._manager.run(self._refresh_controller_id)  # type: ignore[no-any-return]

    def ask_without_reconnecting(self, node: int, request: Any) -> Any:  # noqa: ANN401 -- the library's messages
        """Send any request over the connection that is open, and return the response.

        Raises `NodeNotReadyError` if it was closed since the last request to this broker.
        """
        connection = self._manager._conns.get(node)
        if connection is None or not connection.connected:
            raise NodeNotReadyError(node)
        return self._manager.run(connection.send_request, request)

    def ask_controller(self, request: Any) -> Any:  # noqa: ANN401 -- the library's messages
        """Send any request to the controller and return the response."""
        return self._manager.run(self._send_request_to_controller, request, lambda _: (), False)


def connect(settings: Mapping[str, Any]) -> AdminRequests:
    """Connect an admin client, which several threads may use; its requests for metadata create no topic.

    Raises kafka-python's errors.
    """
    client = AdminRequests(**settings, max_in_flight_requests_per_connection=_IN_FLIGHT)  # type: ignore[no-untyped-call]
    client._manager.cluster.config["allow_auto_create_topics"] = False
    return client
