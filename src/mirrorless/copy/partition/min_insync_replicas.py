"""Appends that a partition refuses because it has fewer in-sync replicas than its `min.insync.replicas`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.protocol.broker_errors import error_name

if TYPE_CHECKING:
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.protocol.cluster_client import ClusterClient

NOT_ENOUGH: Final = frozenset({19, 20})  # NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND


class TooFewReplicas(kafka_errors.NotEnoughReplicasError):
    """`text` has what to do about it. `lasting`: all replicas are in sync, so that waiting does not help."""

    def __init__(self, text: str, *, lasting: bool) -> None:
        super().__init__(text)
        self.text = text
        self.lasting = lasting


def too_few_replicas(target: ClusterClient, place: TopicPartition, code: int) -> TooFewReplicas:
    """Return why a partition of the target refuses appends, from its metadata about replicas."""
    topic, partition = place
    text = f"append: {error_name(code)}: {target.alias} refuses appends to {topic}-{partition}: "
    known = target.replicas(place)
    if known is None:
        text += "fewer replicas are in sync than its min.insync.replicas; compare that with its replication factor"
        return TooFewReplicas(text, lasting=False)
    in_sync, replicas = known
    if in_sync < replicas:
        text += f"{in_sync} of its {replicas} replicas are in sync, fewer than its min.insync.replicas; it is retried"
        return TooFewReplicas(text, lasting=False)
    text += (
        f"replication factor {replicas} is below its min.insync.replicas; add replicas to {topic} "
        f"(kafka-reassign-partitions), or set its min.insync.replicas to {replicas}"
    )
    return TooFewReplicas(text, lasting=True)
