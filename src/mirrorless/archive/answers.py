"""What a broker of an archive answers to each request, as kafka-python's messages."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from mirrorless.kafka_python.messages import (
    ApiVersionsResponse,
    DescribeAclsResponse,
    DescribeConfigsResponse,
    DescribeGroupsResponse,
    FetchResponse,
    FindCoordinatorResponse,
    ListGroupsResponse,
    ListOffsetsResponse,
    MetadataResponse,
    OffsetFetchResponse,
    ProduceResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mirrorless.archive.broker import ArchiveBroker
    from mirrorless.archive.view import ReadLog
    from mirrorless.clusters.topic_partition import TopicPartition

NODE: Final = 1
_EPOCH: Final = 0
_NO_ERROR, _OUT_OF_RANGE, _UNKNOWN_TOPIC, _UNKNOWN_ID = 0, 1, 3, 100
_STORAGE: Final = 56
"""KAFKA_STORAGE_ERROR: where objects are missing or damaged. Clients try again, and say so."""
_POLICY_VIOLATION: Final = 44
_NO_AUTHORIZER: Final = 54
_EARLIEST: Final = (-2, -4)
_LATEST: Final = -1
_COMMITTED: Final = 1
_LONGEST_WAIT_S: Final = 1.0
_TOPIC: Final = 2
_OF_TOPIC: Final = 1
"""Type of a resource, and source of a config that a topic has itself."""


def api_versions(broker: ArchiveBroker, _: Any, *, error_code: int = _NO_ERROR) -> Any:  # noqa: ANN401
    """Requests and versions."""
    return ApiVersionsResponse(
        error_code=error_code,
        api_keys=[
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=least, max_version=most)
            for key, (least, most) in sorted(broker.versions.items())
        ],
        throttle_time_ms=0,
    )


def metadata(broker: ArchiveBroker, request: Any) -> Any:  # noqa: ANN401
    """The broker, and the topics that are asked for, all of them led by it."""
    topics = broker.view.document.topics
    wanted = list(topics) if request.topics is None else [_name(broker, one) for one in request.topics]
    return MetadataResponse(
        throttle_time_ms=0,
        brokers=[MetadataResponse.MetadataResponseBroker(node_id=NODE, host=broker.host, port=broker.port, rack=None)],
        cluster_id=broker.view.identity.cluster_id,
        controller_id=NODE,
        topics=[_topic(broker, name) for name in wanted],
    )


def _name(broker: ArchiveBroker, asked: Any) -> str:  # noqa: ANN401
    return str(asked.name or broker.ids.get(asked.topic_id, ""))


def _topic(broker: ArchiveBroker, name: str) -> Any:  # noqa: ANN401
    make = MetadataResponse.MetadataResponseTopic
    topic = broker.view.document.topics.get(name)
    if topic is None:
        return make(error_code=_UNKNOWN_TOPIC, name=name, topic_id=UUID(int=0), is_internal=False, partitions=[])
    return make(
        error_code=_NO_ERROR,
        name=name,
        topic_id=UUID(hex=topic.topic_id),
        is_internal=False,
        partitions=[
            make.MetadataResponsePartition(
                error_code=_NO_ERROR,
                partition_index=number,
                leader_id=NODE,
                leader_epoch=_EPOCH,
                replica_nodes=[NODE],
                isr_nodes=[NODE],
                offline_replicas=[],
            )
            for number in range(topic.partitions)
        ],
    )


def offsets(broker: ArchiveBroker, request: Any) -> Any:  # noqa: ANN401
    """First and next offsets; for a time, the next one: an archive is asked for offsets, not for times."""
    committed = getattr(request, "isolation_level", 0) == _COMMITTED
    make = ListOffsetsResponse.ListOffsetsTopicResponse
    return ListOffsetsResponse(
        throttle_time_ms=0,
        topics=[
            make(
                name=topic.name,
                partitions=[
                    _offset(broker.view.logs.get((topic.name, one.partition_index)), one, committed=committed)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _offset(log: ReadLog | None, asked: Any, *, committed: bool) -> Any:  # noqa: ANN401
    make = ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse
    error, offset = _NO_ERROR, -1
    if log is None:
        error = _UNKNOWN_TOPIC
    elif asked.timestamp in _EARLIEST:
        offset = log.start
    elif asked.timestamp == _LATEST or not committed:
        offset = log.end
    return make(
        partition_index=asked.partition_index, error_code=error, timestamp=-1, offset=offset, leader_epoch=_EPOCH
    )


def fetched(broker: ArchiveBroker, request: Any) -> Any:  # noqa: ANN401
    """Batches from each offset on; with no session, so each request names all that it wants."""
    left = request.max_bytes
    topics = []
    found = 0
    for topic in request.topics:
        name = broker.ids.get(topic.topic_id, "") if request.API_VERSION >= 13 else topic.topic
        partitions = []
        for one in topic.partitions:
            answer = _partition(broker, (name, one.partition), one, left=left, unknown=not name)
            size = len(answer.records or b"")
            left, found = left - size, found + size
            partitions.append(answer)
        topics.append(FetchResponse.FetchableTopicResponse(topic=name, topic_id=topic.topic_id, partitions=partitions))
    if not found and all(part.error_code == _NO_ERROR for one in topics for part in one.partitions):
        time.sleep(min(request.max_wait_ms / 1000, _LONGEST_WAIT_S))  # nothing will come
    return FetchResponse(throttle_time_ms=0, error_code=_NO_ERROR, session_id=0, responses=topics)


def _partition(broker: ArchiveBroker, place: TopicPartition, asked: Any, *, left: int, unknown: bool) -> Any:  # noqa: ANN401
    make = FetchResponse.FetchableTopicResponse.PartitionData
    log = broker.view.logs.get(place)
    error, records, aborted = _NO_ERROR, b"", list[tuple[int, int]]()
    start = end = -1
    if log is None:
        error = _UNKNOWN_ID if unknown else _UNKNOWN_TOPIC
    else:
        start, end = log.start, log.end
        if not start <= asked.fetch_offset <= end:
            error = _OUT_OF_RANGE
        elif asked.fetch_offset < end and left > 0:
            records, aborted = broker.view.records(place, asked.fetch_offset, min(left, asked.partition_max_bytes))
        elif asked.fetch_offset == end and log.lacking is not None:
            error = _STORAGE
    return make(
        partition_index=asked.partition,
        error_code=error,
        high_watermark=end,
        last_stable_offset=end,
        log_start_offset=start,
        aborted_transactions=[
            make.AbortedTransaction(producer_id=producer, first_offset=first) for producer, first in aborted
        ],
        preferred_read_replica=-1,
        records=records,
    )


def refused(_: ArchiveBroker, request: Any) -> Any:  # noqa: ANN401
    """No record is taken. librdkafka reads format v2 only from brokers that take it, so this is answered at all."""
    make = ProduceResponse.TopicProduceResponse
    text = "an archive is read only"
    return ProduceResponse(
        throttle_time_ms=0,
        responses=[
            make(
                name=topic.name,
                partition_responses=[
                    make.PartitionProduceResponse(
                        index=one.index,
                        error_code=_POLICY_VIOLATION,
                        base_offset=-1,
                        log_append_time_ms=-1,
                        log_start_offset=-1,
                        record_errors=[],
                        error_message=text,
                    )
                    for one in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ],
    )


def coordinators(broker: ArchiveBroker, request: Any) -> Any:  # noqa: ANN401
    """The broker itself, for every group."""
    at = {"node_id": NODE, "host": broker.host, "port": broker.port}
    fields: dict[str, Any] = {**at, "error_code": _NO_ERROR, "error_message": None}
    every = [FindCoordinatorResponse.Coordinator(key=key, **fields) for key in request.coordinator_keys or ()]
    return FindCoordinatorResponse(throttle_time_ms=0, coordinators=every, **fields)


def groups(broker: ArchiveBroker, _: Any) -> Any:  # noqa: ANN401
    """All groups of the archive's time, without members."""
    make = ListGroupsResponse.ListedGroup
    return ListGroupsResponse(
        throttle_time_ms=0,
        error_code=_NO_ERROR,
        groups=[
            make(group_id=name, protocol_type="consumer", group_state="Empty", group_type="classic")
            for name in sorted(broker.view.document.groups)
        ],
    )


def described_groups(broker: ArchiveBroker, request: Any) -> Any:  # noqa: ANN401
    """Groups without members."""
    known = broker.view.document.groups
    make = DescribeGroupsResponse.DescribedGroup
    return DescribeGroupsResponse(
        throttle_time_ms=0,
        groups=[
            make(
                error_code=_NO_ERROR,
                group_id=name,
                group_state="Empty" if name in known else "Dead",
                protocol_type="consumer",
                protocol_data="",
                members=[],
            )
            for name in request.groups
        ],
    )


def committed(broker: ArchiveBroker, request: Any) -> Any:  # noqa: ANN401
    """Group offsets of the archive's time."""
    make = OffsetFetchResponse.OffsetFetchResponseGroup
    found = [
        make(
            group_id=one.group_id,
            topics=list(_committed(broker, one.group_id, one.topics, make.OffsetFetchResponseTopics)),
            error_code=_NO_ERROR,
        )
        for one in request.groups or ()
    ]
    alone = OffsetFetchResponse.OffsetFetchResponseTopic
    topics = [] if request.groups else list(_committed(broker, request.group_id, request.topics, alone))
    return OffsetFetchResponse(throttle_time_ms=0, groups=found, topics=topics, error_code=_NO_ERROR)


def _committed(broker: ArchiveBroker, group: str, wanted: Iterable[Any] | None, make: Any) -> Iterator[Any]:  # noqa: ANN401
    known = broker.view.document.groups.get(group, {})
    places: dict[str, list[int]] = {}
    if wanted is None:
        for topic, partition in sorted(known):
            places.setdefault(topic, []).append(partition)
    else:
        places = {one.name: list(one.partition_indexes) for one in wanted}
    part = getattr(make, "OffsetFetchResponsePartition", None) or make.OffsetFetchResponsePartitions
    for topic, partitions in places.items():
        yield make(
            name=topic,
            partitions=[
                part(
                    partition_index=number,
                    committed_offset=known.get((topic, number), (-1, ""))[0],
                    committed_leader_epoch=-1,
                    metadata=known.get((topic, number), (-1, ""))[1],
                    error_code=_NO_ERROR,
                )
                for number in partitions
            ],
        )


def configs(broker: ArchiveBroker, request: Any) -> Any:  # noqa: ANN401
    """The configs that a topic had itself; a broker has none to tell."""
    make = DescribeConfigsResponse.DescribeConfigsResult
    results = []
    for one in request.resources:
        topic = broker.view.document.topics.get(one.resource_name)
        is_unknown = one.resource_type == _TOPIC and topic is None
        own = topic.configs if topic is not None and one.resource_type == _TOPIC else {}
        results.append(
            make(
                error_code=_UNKNOWN_TOPIC if is_unknown else _NO_ERROR,
                error_message=None,
                resource_type=one.resource_type,
                resource_name=one.resource_name,
                configs=[
                    make.DescribeConfigsResourceResult(
                        name=name,
                        value=value,
                        read_only=False,
                        config_source=_OF_TOPIC,
                        is_sensitive=False,
                        synonyms=[],
                        config_type=0,
                        documentation=None,
                    )
                    for name, value in sorted(own.items())
                    if one.configuration_keys is None or name in one.configuration_keys
                ],
            )
        )
    return DescribeConfigsResponse(throttle_time_ms=0, results=results)


def acls(_: ArchiveBroker, __: Any) -> Any:  # noqa: ANN401
    """As a broker without an authorizer: an archive has no ACLs yet."""
    return DescribeAclsResponse(
        throttle_time_ms=0, error_code=_NO_AUTHORIZER, error_message="an archive has no ACLs", resources=[]
    )
