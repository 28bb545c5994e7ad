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
from mirrorless.kafka_python.errors import KafkaError, NodeNotReadyError
from mirrorless.kafka_python.group_offsets import AllCommitted, CommitOffsets, FetchedOffsets, FetchOffsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mirrorless.kafka_python.group_offsets import Offsets

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
        _find_coordinator_ids: Callable[..., Any]
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

    def commit_at_once(self, wanted: Mapping[str, Mapping[tuple[str, int], tuple[int, str]]]) -> set[str]:
        """Commit offsets of groups without members, all requests in flight at once.

        Returns the groups whose offsets were all committed; why others were not, `alter_group_offsets` finds.
        """
        asked = [
            (group, node, CommitOffsets(group, wanted[group])) for group, node in self._coordinators(wanted).items()
        ]
        answers = self._manager.run(self._ask_side_by_side, [(request, node) for _, node, request in asked])
        return {group for (group, *_), answer in zip(asked, answers, strict=True) if isinstance(answer, AllCommitted)}

    def fetch_at_once(self, groups: Sequence[str], *, most: int) -> dict[str, Offsets]:
        """Return all committed offsets of groups; `most` groups are in one request, and all requests in flight at once.

        Groups of an answer with an error are missing; why, `list_group_offsets` finds.
        """
        by_node: dict[int, list[str]] = {}
        for group, node in self._coordinators(groups).items():
            by_node.setdefault(node, []).append(group)
        asked = [
            (FetchOffsets(some[at : at + most]), node)
            for node, some in by_node.items()
            for at in range(0, len(some), most)
        ]
        found: dict[str, Offsets] = {}
        for answer in self._manager.run(self._ask_side_by_side, asked):
            if isinstance(answer, FetchedOffsets):
                found |= answer.groups
        return found

    def _coordinators(self, groups: Iterable[str]) -> dict[str, int]:
        found: dict[str, int] = self._manager.run(self._find_coordinator_ids, list(groups))
        return found

    async def _ask_side_by_side(self, asked: Sequence[tuple[Any, int]]) -> list[Any]:
        """Send requests to brokers, all at once; returns the answers, None for one that failed."""
        under_way = [self._manager.send(request, node) for request, node in asked]
        answers: list[Any] = []
        for one in under_way:
            try:
                answers.append(await one)
            except KafkaError:
                answers.append(None)
        return answers

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
