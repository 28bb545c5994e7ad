"""Consumer groups of a cluster: their names, states and committed offsets.

Groups are listed with confluent-kafka. Offsets are read and committed with kafka-python: it asks each coordinator once
for many groups (KIP-709), where confluent-kafka takes one group per call; and confluent-kafka 2.16 commits metadata
with a zero byte at its end, which Java's readers then see.
"""

from __future__ import annotations

import threading
import time
from enum import Enum
from functools import partial
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import ConsumerGroupState, KafkaException

from mirrorless.clusters.admin import TIMEOUT_S
from mirrorless.clusters.connection_errors import grant
from mirrorless.clusters.kafka_admin_client import admin_client
from mirrorless.clusters.side_by_side import each
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.structs import OffsetAndMetadata
from mirrorless.kafka_python.structs import TopicPartition as KafkaTopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.kafka_python.admin import AdminRequests
    from mirrorless.settings import Cluster

_NO_COORDINATOR: Final = (kafka_errors.CoordinatorNotAvailableError, kafka_errors.CoordinatorLoadInProgressError)
"""A new cluster creates its offsets topic at the first request; a new coordinator first loads it."""
_DELETED: Final = ("OK", "GroupIdNotFoundError")
_GROUPS_A_REQUEST: Final = 100
_COMMITS_AT_ONCE: Final = 400
_COMMITS_A_CONNECTION: Final = 16
_MOST_CONNECTIONS: Final = 4
"""A broker answers the requests of one connection one after the other, and a commit waits up to 5 ms for others
(`group.coordinator.append.linger.ms`): 200 commits took 0.6 s with one connection, 0.28 s with four, and no less with
more."""
_PATIENCE_S: Final = 5.0
_PAUSE_S: Final = 0.5


class Activity(Enum):
    """The state of a group, as far as its offsets are concerned."""

    EMPTY = "no members"
    ACTIVE = "has members"
    DEAD = "about to vanish"
    UNKNOWN = "not known"

    @property
    def may_have_members(self) -> bool:
        """Whether members may read and commit: a state that is not known counts as that of a group with members."""
        return self in (Activity.ACTIVE, Activity.UNKNOWN)


class Committed(NamedTuple):
    """A committed offset; metadata is empty if there is none."""

    offset: int
    metadata: str


# UNKNOWN is what brokers before 2.6 list, and the library's name for Assigning and Reconciling (KIP-848).
_INACTIVE: Final = {
    ConsumerGroupState.EMPTY: Activity.EMPTY,
    ConsumerGroupState.DEAD: Activity.DEAD,
    ConsumerGroupState.UNKNOWN: Activity.UNKNOWN,
}


def list_groups(admin: Admin) -> tuple[dict[str, Activity], list[str]]:
    """All consumer groups, classic (KIP-62) and of the consumer protocol (KIP-848), also those without a protocol.

    Returns them with their states, and the errors of brokers that did not answer. Groups that are listed without a
    state are described. Raises `ClusterError`.
    """
    listed = admin.result(admin.client.list_consumer_groups(request_timeout=TIMEOUT_S))
    groups = {one.group_id: _INACTIVE.get(one.state, Activity.ACTIVE) for one in listed.valid or ()}
    groups |= _described(admin, [name for name, activity in groups.items() if activity is Activity.UNKNOWN])
    refused = f"cluster {admin.alias}: a broker did not list its consumer groups: "
    return groups, [refused + _text(error) for error in listed.errors or ()]


def _described(admin: Admin, groups: list[str]) -> dict[str, Activity]:
    """The states of groups by DescribeGroups; one that cannot be described stays unknown."""
    found: dict[str, Activity] = {}
    for name, future in (
        admin.client.describe_consumer_groups(groups, request_timeout=TIMEOUT_S) if groups else {}
    ).items():
        try:
            one = admin.result(future)
        except ClusterError:
            continue
        found[name] = Activity.ACTIVE if one.members else _INACTIVE.get(one.state, Activity.ACTIVE)
    return found


class GroupListing(NamedTuple):
    """A group of any kind: its `kind` (classic, consumer, share, streams) and state in lower case.

    `has_protocol` is false if no member ever joined it: its offsets were committed without membership. Brokers before
    3.8 do not report kinds.
    """

    name: str
    kind: str
    state: str
    has_protocol: bool


def list_every_group(cluster: Cluster) -> list[GroupListing]:
    """List groups of all kinds, also those that are no consumer groups; raises `ClusterUnavailable`."""
    try:
        client = admin_client(cluster)
        try:
            found = client.list_groups()
        finally:
            client.close()
    except (kafka_errors.KafkaError, OSError) as error:
        raise ClusterUnavailable(str(error) or type(error).__name__, cluster=cluster.alias) from error
    return [
        GroupListing(
            name=one["group_id"],
            kind=str(one.get("group_type") or "").lower(),
            state=str(one.get("group_state") or "").lower(),
            has_protocol=bool(one.get("protocol_type")),
        )
        for one in found
    ]


def subscriptions(cluster: Cluster, groups: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the topics that members of groups subscribe to; groups without members, or with KIP-848's, are missing.

    Of a pattern these are the topics that match it now. Raises `ClusterUnavailable`.
    """
    wanted = sorted(groups)
    if not wanted:
        return {}
    try:
        client = admin_client(cluster)
        try:
            found: dict[str, Any] = client.describe_groups(wanted)
        finally:
            client.close()
    except (kafka_errors.KafkaError, OSError) as error:
        raise ClusterUnavailable(str(error) or type(error).__name__, cluster=cluster.alias) from error
    topics = {
        group: frozenset(
            topic
            for member in one.get("members") or ()
            if isinstance(member.get("member_metadata"), dict)
            for topic in member["member_metadata"].get("topics") or ()
        )
        for group, one in found.items()
    }
    return {group: some for group, some in topics.items() if some}


class GroupOffsets:
    """Committed offsets of the groups of one cluster; connects at the first request.

    Every method raises `ClusterUnavailable` if the cluster does not answer. `shortened` has a line for each group whose
    offsets were committed without their metadata.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.shortened: list[str] = []
        self._cluster = cluster
        self._clients: dict[int, AdminRequests] = {}
        self._lock = threading.Lock()

    def committed(self, groups: Iterable[str]) -> Iterator[tuple[str, dict[TopicPartition, Committed] | str]]:
        """Yield every committed offset of each group, or in one line why they could not be read.

        A partition that was never committed, or whose offset was reset to -1, is omitted.
        """
        groups = list(groups)
        try:
            at_once = self._connected().fetch_at_once(groups, most=_GROUPS_A_REQUEST) if groups else {}
        except kafka_errors.KafkaError:
            at_once = {}
        for group, offsets in at_once.items():
            yield group, {place: Committed(*one) for place, one in offsets.items()}
        until = time.monotonic() + _PATIENCE_S
        for some in _batched(group for group in groups if group not in at_once):
            try:
                found = self._patiently(until, partial(_list, groups=some))
            except kafka_errors.KafkaError:
                # One group fails the request for all of them: ask for each alone, to find which and why.
                for group in some:
                    yield group, self._committed_alone(group)
                continue
            for group in some:
                yield group, _readable(found.get(group, {}))

    def commit(
        self, wanted: Mapping[str, Mapping[TopicPartition, Committed]], *, stopping: Callable[[], bool] = lambda: False
    ) -> dict[str, dict[TopicPartition, str | None] | str]:
        """Commit offsets for groups without members; returns for each partition None, or the error.

        Brokers refuse groups that have members. If a whole group failed, the result has the error of the group. Once
        `stopping` returns true no other group is begun; the groups that are left are not in the result. Metadata that
        is larger than the brokers allow is left out: without the offset the group would begin at an end of the log.
        """
        outcomes: dict[str, dict[TopicPartition, str | None] | str] = {}
        until = time.monotonic() + _PATIENCE_S
        for some in _batched(takewhile(lambda _: not stopping(), wanted), most=_COMMITS_AT_ONCE):
            done = self._committed_at_once({group: wanted[group] for group in some if wanted[group]})
            outcomes |= {group: dict.fromkeys(wanted[group]) for group in done}
            left = [group for group in some if group not in done]
            answers = each([partial(self._commit, until, group, wanted[group]) for group in left])
            outcomes |= dict(zip(left, answers, strict=True))
        return outcomes

    def _committed_at_once(self, wanted: Mapping[str, Mapping[TopicPartition, Committed]]) -> set[str]:
        """Commit, and return the groups of which nothing was refused; of the others each is committed alone then."""
        connections = min(_MOST_CONNECTIONS, -(-len(wanted) // _COMMITS_A_CONNECTION))
        parts = [dict(islice(wanted.items(), number, None, connections)) for number in range(connections)]
        return set().union(*each([partial(self._commit_part, number, part) for number, part in enumerate(parts)]))

    def _commit_part(self, connection: int, wanted: Mapping[str, Mapping[TopicPartition, Committed]]) -> set[str]:
        try:
            return self._connected(connection).commit_at_once(wanted)
        except kafka_errors.KafkaError:
            return set()

    def _commit(
        self, until: float, group: str, offsets: Mapping[TopicPartition, Committed]
    ) -> dict[TopicPartition, str | None] | str:
        try:
            answer = self._altered(until, group, offsets)
            large = [place for place, error in answer.items() if error is kafka_errors.OffsetMetadataTooLargeError]
            if large:
                answer |= self._altered(until, group, {place: Committed(offsets[place].offset, "") for place in large})
                self.shortened.append(self._shortened(group, {place: offsets[place] for place in large}))
        except kafka_errors.KafkaError as error:
            return _said(error, "READ on the group")
        return {
            place: None
            if error is kafka_errors.NoError
            else f"{error.message}{grant(error.errno or 0, 'READ on the group and its topics')}"
            for place, error in answer.items()
        }

    def _altered(
        self, until: float, group: str, offsets: Mapping[TopicPartition, Committed]
    ) -> dict[TopicPartition, Any]:
        """Commit once; returns the library's class of errors for each partition."""
        alter = partial(
            _alter,
            group=group,
            offsets={
                KafkaTopicPartition(*place): OffsetAndMetadata(one.offset, one.metadata, -1)
                for place, one in offsets.items()
            },
        )
        return {(place.topic, place.partition): error for place, error in self._patiently(until, alter).items()}

    def _shortened(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> str:
        topic, partition = min(offsets)
        more = f" and {len(offsets) - 1} more" if len(offsets) > 1 else ""
        size = max(len(one.metadata) for one in offsets.values())
        return (
            f"group {group}: the metadata of its offsets in {topic}-{partition}{more}, up to {size:,} characters, is "
            f"left out on {self._cluster.alias}, whose brokers allow less; increase their offset.metadata.max.bytes to "
            "keep it"
        )

    def delete(self, group: str, places: Iterable[TopicPartition]) -> list[str]:
        """Delete committed offsets of a group without members; returns a line for each that was not deleted."""
        wanted = [KafkaTopicPartition(*place) for place in places]
        until = time.monotonic() + _PATIENCE_S
        try:
            answer = self._patiently(until, lambda client: client.delete_group_offsets(group, wanted))
        except kafka_errors.KafkaError as error:
            return [f"group {group}: {_said(error, 'DELETE on the group')}"]
        return [
            f"group {group}, {place.topic}-{place.partition}: {error.message}{grant(error.errno, 'READ on the topic')}"
            for place, error in answer.items()
            if error is not kafka_errors.NoError
        ]

    def delete_groups(self, groups: Iterable[str]) -> list[str]:
        """Delete groups without members; returns a line for each that was not deleted. A missing group is no error."""
        wanted = list(groups)
        if not wanted:
            return []
        until = time.monotonic() + _PATIENCE_S
        try:
            answer = self._patiently(until, lambda client: client.delete_groups(wanted))
        except kafka_errors.KafkaError as error:
            return [_said(error, "DELETE on the groups")]
        return [f"group {group}: {error}" for group, error in answer.items() if error not in _DELETED]

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()

    def _connected(self, number: int = 0) -> AdminRequests:
        with self._lock:
            client = self._clients.get(number)
            if client is None:
                try:
                    client = self._clients[number] = admin_client(self._cluster)
                except kafka_errors.KafkaError as error:
                    reason = f"no answer from {self._cluster.bootstrap_servers}: {error}"
                    raise ClusterUnavailable(reason, cluster=self._cluster.alias) from error
            return client

    def _patiently(self, until: float, call: Callable[[AdminRequests], Any]) -> Any:  # noqa: ANN401 -- as the library
        """Ask again if a group has no coordinator yet or any more, or has another one now.

        The library looks up the coordinator only once. `until`, on the monotonic clock, is for all groups together:
        many without a coordinator must not wait one after the other.
        """
        while True:
            try:
                return call(self._connected())
            except (kafka_errors.RetriableError, kafka_errors.UnknownBrokerIdError) as error:
                if not isinstance(error, _NO_COORDINATOR):
                    self.close()
                if time.monotonic() > until:
                    raise
                time.sleep(_PAUSE_S)

    def _committed_alone(self, group: str) -> dict[TopicPartition, Committed] | str:
        try:
            return _readable(self._connected().list_group_offsets({group: None})[group])
        except kafka_errors.KafkaError as error:
            return _said(error, "DESCRIBE on the group")


def refusals(group: str, outcome: Mapping[TopicPartition, str | None] | str) -> list[str]:
    """Return a line for each reason for which offsets of a group were not committed, with the partitions."""
    if isinstance(outcome, str):
        return [f"group {group}: {outcome}"]
    places: dict[str, list[TopicPartition]] = {}
    for place, reason in sorted(outcome.items()):
        if reason is not None:
            places.setdefault(reason, []).append(place)
    return [
        f"group {group}, {topic}-{partition}{f' and {len(more)} more' if more else ''}: {reason}"
        for reason, ((topic, partition), *more) in places.items()
    ]


def _list(client: AdminRequests, *, groups: list[str]) -> Any:  # noqa: ANN401 -- the library's answers
    return client.list_group_offsets(dict.fromkeys(groups))


def _alter(
    client: AdminRequests, *, group: str, offsets: Mapping[KafkaTopicPartition, OffsetAndMetadata]
) -> dict[KafkaTopicPartition, type[kafka_errors.BrokerResponseError]]:
    """Commit; raises if the broker is not the coordinator, which it reports for each partition."""
    answer: dict[KafkaTopicPartition, type[kafka_errors.BrokerResponseError]] = client.alter_group_offsets(
        group, offsets
    )
    for error in answer.values():
        if issubclass(error, (kafka_errors.NotCoordinatorError, *_NO_COORDINATOR)):
            raise error
    return answer


def _said(error: kafka_errors.KafkaError, right: str) -> str:
    """One line; the library ends its messages with a colon if the broker gave no reason."""
    return f"{str(error).rstrip(': ')}{grant(getattr(error, 'errno', 0), right)}"


def _readable(found: Mapping[KafkaTopicPartition, OffsetAndMetadata]) -> dict[TopicPartition, Committed]:
    return {
        (place.topic, place.partition): Committed(one.offset, one.metadata or "")
        for place, one in found.items()
        if one.offset >= 0
    }


def _batched(groups: Iterable[str], *, most: int = _GROUPS_A_REQUEST) -> Iterator[list[str]]:
    left = iter(groups)
    while some := list(islice(left, most)):
        yield some


def _text(error: object) -> str:
    inner = error.args[0] if isinstance(error, KafkaException) else error
    return inner.str() if hasattr(inner, "str") else str(inner)
