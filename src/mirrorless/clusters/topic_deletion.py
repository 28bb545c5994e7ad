"""Deletes topics by their ids (KIP-516), bound to a condition that is confirmed just before.

A process may be suspended between the confirmation and the request. The id makes the request harmless once the topic
was created again. And it is sent over a connection that was open before the confirmation: a broker closes it after
`connections.max.idle.ms`, so from then on the request of a suspended process cannot arrive any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from confluent_kafka.admin import ConfigResource, ResourceType

from mirrorless.clusters.connection_errors import grant
from mirrorless.clusters.kafka_admin_client import admin_client
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.messages import DeleteTopicsRequest, MetadataRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.settings import Cluster

_ATTEMPTS: Final = 5
_BY_ID: Final = 6
"""The first version of DeleteTopics with ids."""
_NONE: Final = 0
_UNKNOWN_TOPIC_ID: Final = 100
_NOT_CONTROLLER: Final = 41
_TIMEOUT_MS: Final = 30_000
_IDLE: Final = "connections.max.idle.ms"
_IDLE_S: Final = 600.0
"""Kafka's default."""
_MARGIN_S: Final = 15.0


def delete_by_id(cluster: Cluster, ids: Mapping[str, str], confirm: Callable[[], None]) -> None:
    """Delete topics that still have these ids; a topic without its id is gone already. May be repeated.

    `confirm` raises if they must not be deleted. Raises `ClusterError` for the first topic that is refused,
    `ClusterUnavailable` where there is no answer.
    """
    try:
        client = admin_client(cluster)
        try:
            left = dict(ids)
            for _ in range(_ATTEMPTS):
                node = client.controller()
                client.ask_broker(node, MetadataRequest())  # opens the connection
                confirm()
                request = DeleteTopicsRequest(
                    topics=[DeleteTopicsRequest.DeleteTopicState(topic_id=UUID(one)) for one in left.values()],
                    timeout_ms=_TIMEOUT_MS,
                    min_version=_BY_ID,
                )
                try:
                    answer = client.ask_without_reconnecting(node, request)
                except kafka_errors.NodeNotReadyError:
                    continue  # confirmed again over the next connection
                left = _left(cluster, left, {str(one.topic_id): one.error_code for one in answer.responses})
                if not left:
                    return
        finally:
            client.close()
    except (kafka_errors.KafkaError, OSError) as error:
        raise ClusterUnavailable(str(error) or type(error).__name__, cluster=cluster.alias) from error
    raise ClusterUnavailable(f"topic {min(left)} could not be deleted; try again", cluster=cluster.alias)


def _left(cluster: Cluster, ids: Mapping[str, str], codes: Mapping[str, int]) -> dict[str, str]:
    """Return those that another controller has to be asked for; raises `ClusterError` for one that is refused."""
    left: dict[str, str] = {}
    for topic, number in ids.items():
        code = codes.get(number, _NOT_CONTROLLER)
        if code == _NOT_CONTROLLER:
            left[topic] = number
        elif code not in (_NONE, _UNKNOWN_TOPIC_ID):
            reason = f"{kafka_errors.for_code(code).__name__}{grant(code, 'DELETE on it')}"
            raise ClusterError(f"topic {topic} cannot be deleted: {reason}", cluster=cluster.alias)
    return left


def idle_seconds(admin: Admin) -> float:
    """After how long brokers have closed every connection on which nothing was sent; Kafka's default if not known."""
    longest = 0.0
    for node in admin.metadata().brokers:
        resource = ConfigResource(ResourceType.BROKER, str(node))
        future = admin.client.describe_configs([resource])[resource]
        if admin.refusal(future) is not None:
            return _IDLE_S + _MARGIN_S
        longest = max(longest, int(future.result()[_IDLE].value) / 1000)
    return longest + _MARGIN_S
