"""Answers of a simulated broker to requests that the product sends as kafka-python's messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.protocol.admin.topics import DeleteRecordsResponse
from kafka.protocol.admin.transactions import DescribeProducersResponse
from kafka.protocol.producer.transaction import WriteTxnMarkersResponse

from mirrorless.protocol.broker_errors import error_for, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.errors import MirrorlessError
    from mirrorless.kafka_python import errors as kafka_errors
    from tests.simulation.cluster import SimulatedCluster


def error(code: int) -> Any:  # noqa: ANN401 -- as `refusal`
    """The error of a code, as the client returns it."""
    found: kafka_errors.KafkaError | MirrorlessError = refusal(code, right="READ", topic="")
    return found


def to(cluster: SimulatedCluster, node: int, request: Any) -> Any:  # noqa: ANN401
    """Answer a request."""
    return _ANSWERS[type(request).__name__](cluster, node, request)


def _describe_producers(cluster: SimulatedCluster, node: int, request: Any) -> DescribeProducersResponse:  # noqa: ANN401
    topic = DescribeProducersResponse.TopicResponse
    part = topic.PartitionResponse
    topics = []
    for asked in request.topics:
        parts = []
        for index in asked.partition_indexes:
            found = cluster.find((asked.name, index), node)
            code = found if isinstance(found, int) else 0
            states = (
                []
                if isinstance(found, int)
                else [
                    part.ProducerState(
                        producer_id=producer_id,
                        producer_epoch=one.epoch,
                        last_sequence=one.last_sequence,
                        last_timestamp=one.timestamp_ms,
                    )
                    for producer_id, one in found.log.producers.items()
                ]
            )
            parts.append(part(partition_index=index, error_code=code, error_message=None, active_producers=states))
        topics.append(topic(name=asked.name, partitions=parts))
    return DescribeProducersResponse(throttle_time_ms=0, topics=topics)


def _write_markers(cluster: SimulatedCluster, node: int, request: Any) -> WriteTxnMarkersResponse:  # noqa: ANN401
    result = WriteTxnMarkersResponse.WritableTxnMarkerResult
    of_topic = result.WritableTxnMarkerTopicResult
    of_partition = of_topic.WritableTxnMarkerPartitionResult
    markers = []
    for marker in request.markers:
        topics = []
        for asked in marker.topics:
            codes = {}
            for index in asked.partition_indexes:
                found = cluster.find((asked.name, index), node)
                codes[index] = (
                    found
                    if isinstance(found, int)
                    else found.log.mark(
                        marker.producer_id,
                        marker.producer_epoch,
                        commit=marker.transaction_result,
                        now_ms=cluster.world.now_ms,
                    )
                )
            parts = [of_partition(partition_index=index, error_code=code) for index, code in codes.items()]
            topics.append(of_topic(name=asked.name, partitions=parts))
        markers.append(result(producer_id=marker.producer_id, topics=topics))
    return WriteTxnMarkersResponse(markers=markers)


def _delete_records(cluster: SimulatedCluster, node: int, request: Any) -> DeleteRecordsResponse:  # noqa: ANN401
    of_topic = DeleteRecordsResponse.DeleteRecordsTopicResult
    of_partition = of_topic.DeleteRecordsPartitionResult
    topics = []
    for asked in request.topics:
        parts = []
        for one in asked.partitions:
            found = cluster.find((asked.name, one.partition_index), node)
            low, code = -1, 0
            if isinstance(found, int):
                code = found
            else:
                log = found.log
                before = log.high_watermark if one.offset == -1 else one.offset
                if before > log.high_watermark:
                    code = 1
                else:
                    log.delete_before(before)
                    low = log.start
            parts.append(of_partition(partition_index=one.partition_index, low_watermark=low, error_code=code))
        topics.append(of_topic(name=asked.name, partitions=parts))
    return DeleteRecordsResponse(throttle_time_ms=0, topics=topics)


_ANSWERS: dict[str, Callable[[SimulatedCluster, int, Any], Any]] = {
    "DescribeProducersRequest": _describe_producers,
    "WriteTxnMarkersRequest": _write_markers,
    "DeleteRecordsRequest": _delete_records,
}
__all__ = ["error", "error_for", "to"]
