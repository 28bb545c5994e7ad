"""Consumer groups of a cluster: which there are, what they are doing, their committed offsets.

The library sends one request a group; many are under way at once, on the coordinators' connections.
"""

from __future__ import annotations

from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaException, TopicPartition

from mirrorless.clusters.admin import TIMEOUT_S
from mirrorless.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topics import Place

_AT_ONCE: Final = 64


class Activity(Enum):
    """What a group is doing, as far as its offsets are concerned."""

    EMPTY = "no members"
    ACTIVE = "has members"
    DEAD = "about to vanish"
    UNKNOWN = "not known"


class Committed(NamedTuple):
    """A committed offset; metadata is empty where there is none."""

    offset: int
    metadata: str


# UNKNOWN is what brokers before 2.6 say of all groups, and the library of the consumer protocol's own states.
_INACTIVE: Final = {
    ConsumerGroupState.EMPTY: Activity.EMPTY,
    ConsumerGroupState.DEAD: Activity.DEAD,
    ConsumerGroupState.UNKNOWN: Activity.UNKNOWN,
}


def list_groups(admin: Admin) -> tuple[dict[str, Activity], list[str]]:
    """All groups of consumers, classic (KIP-62) and of the consumer protocol (KIP-848), also those without a protocol.

    Returns them with what they are doing, and for each broker that did not answer why not. Raises `ClusterError`.
    """
    listed = admin.result(admin.client.list_consumer_groups(request_timeout=TIMEOUT_S))
    groups = {one.group_id: _INACTIVE.get(one.state, Activity.ACTIVE) for one in listed.valid or ()}
    return groups, [_text(error) for error in listed.errors or ()]


def committed_offsets(admin: Admin, groups: Iterable[str]) -> Iterator[tuple[str, dict[Place, Committed] | str]]:
    """Yield every committed offset of each group, or in one line why they could not be had.

    A partition that was never committed is left out, and so is one whose offset is -1 or not known for an error.
    """
    for some in _batched(groups):
        futures = {
            group: admin.client.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group)], request_timeout=TIMEOUT_S
            )[group]
            for group in some
        }
        for group, future in futures.items():
            try:
                answer = admin.result(future)
            except ClusterError as error:
                yield group, str(error)
            else:
                yield (
                    group,
                    {
                        (one.topic, one.partition): Committed(one.offset, one.metadata or "")
                        for one in answer.topic_partitions or ()
                        if one.error is None and one.offset >= 0
                    },
                )


def commit_offsets(
    admin: Admin, wanted: Mapping[str, Mapping[Place, Committed]]
) -> dict[str, dict[Place, str | None] | str]:
    """Commit offsets for groups without members; says for each partition None, or why not.

    Where a whole group was refused, which is what brokers do when it has members, the reason stands for the group.
    """
    outcomes: dict[str, dict[Place, str | None] | str] = {}
    for some in _batched(wanted):
        futures = {
            group: admin.client.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group, [_commit(place, one) for place, one in wanted[group].items()])],
                request_timeout=TIMEOUT_S,
            )[group]
            for group in some
            if wanted[group]
        }
        for group, future in futures.items():
            try:
                answer = admin.result(future)
            except ClusterError as error:
                outcomes[group] = str(error)
            else:
                outcomes[group] = {
                    (one.topic, one.partition): None if one.error is None else _text(one.error)
                    for one in answer.topic_partitions or ()
                }
    return outcomes


def _batched(groups: Iterable[str]) -> Iterator[list[str]]:
    left = iter(groups)
    while some := list(islice(left, _AT_ONCE)):
        yield some


def _commit(place: Place, committed: Committed) -> TopicPartition:
    return TopicPartition(*place, committed.offset, committed.metadata)


def _text(error: object) -> str:
    inner = error.args[0] if isinstance(error, KafkaException) else error
    return inner.str() if hasattr(inner, "str") else str(inner)
