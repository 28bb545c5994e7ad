"""In place of kafka-python's admin client: the methods that the product uses, and requests that it sends itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from kafka.admin import ACL, ResourcePattern

from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.admin import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType
from mirrorless.kafka_python.structs import OffsetAndMetadata
from mirrorless.kafka_python.structs import TopicPartition as KafkaTopicPartition
from mirrorless.protocol.requests import DEBUGGING
from tests.simulation import answers
from tests.simulation.administration import DEFAULTS, IDLE_MS, LEADER_NOT_AVAILABLE, UNKNOWN_MEMBER
from tests.simulation.libraries import cluster_of
from tests.simulation.network import ConnectionLost, Unanswered, Wire
from tests.simulation.world import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_REQUEST_S = 30.0
_LITERAL = ACLResourcePatternType.LITERAL
_BROKER = 4


class SimulatedRequests:
    """In place of `AdminRequests`."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._cluster = cluster_of(settings)
        self._wire = Wire(self._cluster)
        self._used: dict[int, float] = {}
        self._read(lambda: None)

    def close(self) -> None:
        """Leave nothing open."""

    # Groups

    def list_groups(self) -> list[dict[str, Any]]:
        """All groups."""
        return self._read(  # type: ignore[no-any-return]
            lambda: [
                {
                    "group_id": name,
                    "group_type": "classic",
                    "group_state": "Stable" if group.members else "Empty",
                    "protocol_type": "consumer",
                }
                for name, group in sorted(self._cluster.groups.items())
            ]
        )

    def describe_groups(self, groups: Iterable[str]) -> dict[str, Any]:
        """Members of groups, without their subscriptions."""
        return self._read(lambda: {name: {"members": []} for name in groups})  # type: ignore[no-any-return]

    def fetch_at_once(self, *_: object, **__: object) -> dict[str, Any]:
        """Committed offsets of many groups are asked for as those of one."""
        return {}

    def commit_at_once(self, *_: object) -> set[str]:
        """Offsets of many groups are committed as those of one."""
        return set()

    def list_group_offsets(self, groups: Mapping[str, Any]) -> dict[str, Any]:
        """Committed offsets."""
        known = self._cluster.groups

        def look() -> dict[str, Any]:
            return {
                name: {
                    KafkaTopicPartition(*place): OffsetAndMetadata(offset, metadata, -1)
                    for place, (offset, metadata) in (known[name].offsets if name in known else {}).items()
                }
                for name in groups
            }

        return self._read(look)  # type: ignore[no-any-return]

    def alter_group_offsets(self, group: str, offsets: Mapping[Any, OffsetAndMetadata]) -> dict[Any, Any]:
        """Commit without a member."""

        def carry_out() -> dict[Any, Any]:
            wanted = {(place.topic, place.partition): (one.offset, one.metadata) for place, one in offsets.items()}
            there = {place: one for place, one in wanted.items() if self._cluster.has(place)}
            code = self._cluster.commit(group, there) if there else 0
            error = kafka_errors.NoError if not code else kafka_errors.for_code(UNKNOWN_MEMBER)
            missing = kafka_errors.UnknownTopicOrPartitionError
            return {place: error if self._cluster.has((place.topic, place.partition)) else missing for place in offsets}

        return self._change(carry_out)  # type: ignore[no-any-return]

    def delete_group_offsets(self, group: str, places: Iterable[Any]) -> dict[Any, Any]:
        """Delete committed offsets."""
        some = list(places)

        def carry_out() -> dict[Any, Any]:
            known = self._cluster.groups.get(group)
            for place in some:
                if known is not None:
                    known.offsets.pop((place.topic, place.partition), None)
            return dict.fromkeys(some, kafka_errors.NoError)

        return self._change(carry_out)  # type: ignore[no-any-return]

    def delete_groups(self, groups: Iterable[str]) -> dict[str, str]:
        """Delete groups without members."""
        some = list(groups)

        def carry_out() -> dict[str, str]:
            found: dict[str, str] = {}
            for name in some:
                group = self._cluster.groups.get(name)
                if group is None:
                    found[name] = "GroupIdNotFoundError"
                elif group.members:
                    found[name] = "NonEmptyGroupError"
                else:
                    del self._cluster.groups[name]
                    found[name] = "OK"
            return found

        return self._change(carry_out)  # type: ignore[no-any-return]

    # ACLs and others

    def describe_acls(self, wanted: Any) -> tuple[list[ACL], Any]:  # noqa: ANN401
        """ACLs of a type of resource."""
        kind = wanted.resource_pattern.resource_type.name

        def look() -> list[ACL]:
            return [
                ACL(
                    one.principal,
                    one.host,
                    ACLOperation[one.operation],
                    ACLPermissionType[one.permission],
                    ResourcePattern(ResourceType[one.kind], one.name, ACLResourcePatternType[one.pattern]),
                )
                for one in sorted(self._cluster.acls)
                if one.kind == kind
            ]

        return self._read(look), kafka_errors.NoError

    def describe_log_dirs(self) -> list[Any]:
        """Sizes of logs."""
        return []

    # Requests

    def controller(self) -> int:
        """The broker that takes requests for the controller."""
        return self._read(lambda: min(self._cluster.nodes))  # type: ignore[no-any-return]

    def ask_any_broker(self, request: Any) -> Any:  # noqa: ANN401
        """Send a request to some broker."""
        return self._read(lambda: self._answer(min(self._cluster.nodes), request))

    def ask_broker(self, node: int, request: Any) -> Any:  # noqa: ANN401
        """Send a request to one broker."""
        found = self._read(lambda: self._answer(node, request), node=node)
        self._used[node] = clock.monotonic()
        return found

    def ask_controller(self, request: Any) -> Any:  # noqa: ANN401
        """Send a request to the controller."""
        return self.ask_any_broker(request)

    def ask_without_reconnecting(self, node: int, request: Any) -> Any:  # noqa: ANN401
        """Send a request over the connection of the last one, which brokers close when it was idle for long."""
        self._wire.process.about_to_write()
        opened = self._used.get(node)
        world_idle_s = self._wire.process.world.now - self._true(node)
        if opened is None or world_idle_s > IDLE_MS / 1000:
            self._used.pop(node, None)
            raise kafka_errors.NodeNotReadyError(node)
        return self._sent(lambda: self._answer(node, request), node=node)

    def _true(self, node: int) -> float:
        """When the last request to a broker was answered, by the broker's clock."""
        process = self._wire.process
        return process.world.now - (process.monotonic() - self._used.get(node, 0.0))

    def _answer(self, node: int, request: Any) -> Any:  # noqa: ANN401
        own = _ANSWERS.get(type(request).__name__)
        return answers.to(self._cluster, node, request) if own is None else own(self._cluster, node, request)

    def _read(self, look: Callable[[], Any], *, node: int | None = None) -> Any:  # noqa: ANN401
        try:
            return self._wire.simply(look, seconds=_REQUEST_S, node=node)
        except Unanswered:
            raise kafka_errors.KafkaTimeoutError("no answer") from None

    def _change(self, carry_out: Callable[[], Any]) -> Any:  # noqa: ANN401
        self._wire.process.about_to_write()
        return self._sent(carry_out)

    def _sent(self, carry_out: Callable[[], Any], *, node: int | None = None) -> Any:  # noqa: ANN401
        try:
            return self._wire.simply(carry_out, seconds=_REQUEST_S, node=node, again=False)
        except Unanswered:
            raise kafka_errors.KafkaTimeoutError("no answer") from None
        except ConnectionLost:
            raise kafka_errors.KafkaConnectionError("connection lost") from None


def _acls(cluster: Any, node: int, request: Any) -> Any:  # noqa: ANN401
    resources = [
        SimpleNamespace(
            resource_name=one.name,
            acls=[
                SimpleNamespace(
                    principal=one.principal,
                    operation=ACLOperation[one.operation],
                    permission_type=ACLPermissionType[one.permission],
                )
            ],
        )
        for one in sorted(cluster.acls)
        if one.kind == "TOPIC" and one.pattern == "LITERAL"
    ]
    return SimpleNamespace(error_code=0, resources=resources)


def _configs(cluster: Any, node: int, request: Any) -> Any:  # noqa: ANN401
    results = []
    for asked in request.resources:
        if asked.resource_type == _BROKER:
            known = {"producer.id.expiration.ms": "86400000", "transactional.id.expiration.ms": "604800000"}
        elif asked.resource_name in cluster.topics:
            known = {name: value for name, (value, _) in cluster.configs(asked.resource_name).items()}
        else:
            results.append(SimpleNamespace(error_code=3, resource_name=asked.resource_name, configs=[]))
            continue
        names = asked.configuration_keys or list(known)
        configs = [SimpleNamespace(name=name, value=known.get(name)) for name in names]
        results.append(SimpleNamespace(error_code=0, resource_name=asked.resource_name, configs=configs))
    return SimpleNamespace(results=results)


def _delete_topics(cluster: Any, node: int, request: Any) -> Any:  # noqa: ANN401
    by_id = {topic.id: name for name, topic in cluster.topics.items()}
    responses = []
    for asked in request.topics:
        name = by_id.get(asked.topic_id)
        if name is not None:
            cluster.delete(name)
        responses.append(SimpleNamespace(topic_id=asked.topic_id, error_code=0 if name is not None else 100))
    return SimpleNamespace(responses=responses)


def _would_create(cluster: Any, node: int, request: Any) -> Any:  # noqa: ANN401
    """Of topics that are not created, only validated."""
    assert request.validate_only
    topics = []
    for one in request.topics:
        configs = DEFAULTS | {config.name: config.value for config in one.configs}
        topics.append(
            SimpleNamespace(
                name=one.name,
                error_code=36 if one.name in cluster.topics else 0,
                error_message=None,
                replication_factor=3,
                configs=[SimpleNamespace(name=name, value=value) for name, value in configs.items()],
            )
        )
    return SimpleNamespace(topics=topics)


def _list_offsets(cluster: Any, node: int, request: Any) -> Any:  # noqa: ANN401
    topics = []
    for asked in request.topics:
        parts = []
        for one in asked.partitions:
            place = asked.name, one.partition_index
            led = cluster.led(place)
            code = led if isinstance(led, int) else 0
            if isinstance(led, int):
                offset = -1
            elif request.replica_id == DEBUGGING:
                offset = led.log.end
            else:
                offset = led.log.stable if request.isolation_level else led.log.high_watermark
            parts.append(SimpleNamespace(partition_index=one.partition_index, offset=offset, error_code=code))
        topics.append(SimpleNamespace(name=asked.name, partitions=parts))
    return SimpleNamespace(topics=topics)


def _producers(cluster: Any, node: int, request: Any) -> Any:  # noqa: ANN401
    topics = []
    for asked in request.topics:
        parts = []
        for index in asked.partition_indexes:
            led = cluster.led((asked.name, index))
            if isinstance(led, int):
                parts.append(SimpleNamespace(partition_index=index, error_code=led, active_producers=[]))
                continue
            log = led.log
            states = [
                SimpleNamespace(
                    producer_id=number,
                    producer_epoch=one.epoch,
                    last_sequence=one.last_sequence,
                    last_timestamp=one.timestamp_ms,
                    current_txn_start_offset=log.open.get(number, -1),
                )
                for number, one in log.producers.items()
                if one.last_sequence >= 0
            ]
            parts.append(SimpleNamespace(partition_index=index, error_code=0, active_producers=states))
        topics.append(SimpleNamespace(name=asked.name, partitions=parts))
    return SimpleNamespace(topics=topics)


_ANSWERS: dict[str, Callable[[Any, int, Any], Any]] = {
    "MetadataRequest": lambda *_: SimpleNamespace(),
    "DescribeAclsRequest": _acls,
    "DescribeConfigsRequest": _configs,
    "CreateTopicsRequest": _would_create,
    "DeleteTopicsRequest": _delete_topics,
    "ListOffsetsRequest": _list_offsets,
    "DescribeProducersRequest": _producers,
    "DescribeClientQuotasRequest": lambda *_: SimpleNamespace(error_code=0, entries=[]),
    "DescribeUserScramCredentialsRequest": lambda *_: SimpleNamespace(error_code=0, results=[]),
}

__all__ = ["LEADER_NOT_AVAILABLE", "SimulatedRequests"]
