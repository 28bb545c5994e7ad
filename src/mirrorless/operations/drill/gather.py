"""Reads the facts of a drill from both clusters; writes nothing to them."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Final, TypeVar

from mirrorless.clusters.acls import AclResource, NoAcls, acls_of
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.groups import GroupOffsets, list_every_group, list_groups
from mirrorless.clusters.identity import ends_of
from mirrorless.clusters.internal_topics import replicated_heartbeats
from mirrorless.clusters.side_by_side import side_by_side
from mirrorless.clusters.topics import partition_counts
from mirrorless.copy.api import status_of
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.filters import group_filter_for
from mirrorless.heartbeats import last_heartbeat
from mirrorless.metadata.planning import Admins
from mirrorless.metadata.service_records import replicated_on
from mirrorless.offsets.failover_plan import failover_plan
from mirrorless.operations.drill.facts import AclFacts, DrillFacts, GroupFacts
from mirrorless.operations.drill.gather_records import RecordGathering
from mirrorless.operations.results import Stopwatch, UnreadPart
from mirrorless.policy import policy_for
from mirrorless.progress.run_marks import deployment_of
from mirrorless.verify.metadata_diff import compare_metadata

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from confluent_kafka.admin import ClusterMetadata

    from mirrorless.clusters.acls import Acl
    from mirrorless.settings import Flow

_Part = TypeVar("_Part")
_OTHER_RESOURCES: Final = (AclResource.GROUP, AclResource.TRANSACTIONAL_ID)


def gather(flow: Flow, *, location: str, most_positions: int, chance: random.Random) -> DrillFacts:
    """Read the facts of one flow; `location` is that of its configuration.

    At most `most_positions` positions of groups are compared, chosen by `chance`. Raises `ClusterError` if an end does
    not answer, `SameClusterError` if there is only one cluster.
    """
    watch = Stopwatch()
    with watch.step("connect and list topics", in_rto=True):
        source, target = Admin(flow.source), Admin(flow.target)
        at_source, at_target = side_by_side(source.metadata, target.metadata)
        ends_of(flow, source=source, target=target, at_source=at_source, at_target=at_target)
    counts, remote_counts = partition_counts(at_source), partition_counts(at_target)
    remote = replicated_on(flow, source, counts)
    with watch.step("read the state of the flow", in_rto=True):
        status = _part(lambda: status_of(flow, deployment=deployment_of(location, flow.name)))
        heartbeat_ms = _part(lambda: _heartbeat_ms(flow, at_target))
        heartbeat_read_ms = int(time.time() * 1000)
    with watch.step("list groups on both clusters", in_rto=True):
        groups = _part(lambda: _groups(flow, target, remote))
    with watch.step("translate the offsets of all groups", in_rto=True):
        plan = failover_plan(flow)
    if not plan.source_answers:
        raise ClusterUnavailable("; ".join(plan.troubles), cluster=flow.source.alias)
    with watch.step("read ACLs", in_rto=True):
        acls = _part(lambda: _acls(flow))
    with watch.step("compare topics, configs and ACLs"):
        metadata = _part(lambda: compare_metadata(flow, Admins(source, target), wanted=lambda _: True))
    policy = policy_for(flow)
    places = [
        (topic, partition)
        for topic in remote
        if not policy.is_heartbeats_topic(topic)
        for partition in range(counts[topic])
    ]
    with closing(RecordGathering(flow, source=source, target=target, places=places, remote=remote)) as gathering:
        with watch.step("count records that are not copied"):
            backlog = _part(gathering.backlog)
        with watch.step("compare records"):
            records = _part(lambda: gathering.records(plan.forecasts, most=most_positions, chance=chance))
    return DrillFacts(
        flow=flow,
        remote=remote,
        counts={topic: (counts[topic], remote_counts.get(name)) for topic, name in remote.items()},
        plan=plan,
        status=status,
        heartbeat_ms=heartbeat_ms,
        heartbeat_read_ms=heartbeat_read_ms,
        backlog=backlog,
        metadata=metadata,
        acls=acls,
        groups=groups,
        records=records,
        steps=tuple(watch.steps),
    )


def _part(read: Callable[[], _Part]) -> _Part | UnreadPart:
    """Read one part; the others are read even if this one cannot be."""
    try:
        return read()
    except ClusterError as error:
        return UnreadPart(str(error))


def _heartbeat_ms(flow: Flow, at_target: ClusterMetadata) -> int | None:
    if replicated_heartbeats(flow) not in at_target.topics:
        return None
    beat = last_heartbeat(flow)
    return None if beat is None else beat.timestamp_ms


def _groups(flow: Flow, target: Admin, remote: dict[str, str]) -> GroupFacts:
    selects = group_filter_for(flow).selects
    listed = list_every_group(flow.source)
    activity, _ = list_groups(target)
    active = {name for name, state in activity.items() if state.may_have_members}
    with closing(GroupOffsets(flow.source)) as offsets:
        others = dict(offsets.committed(one.name for one in listed if not selects(one.name)))
    unselected = [
        name for name, some in others.items() if not isinstance(some, str) and any(topic in remote for topic, _ in some)
    ]
    return GroupFacts(
        active_on_target=frozenset(one.name for one in listed if selects(one.name) and one.name in active),
        listed=tuple(listed),
        unselected=tuple(sorted(unselected)),
    )


def _acls(flow: Flow) -> AclFacts:
    source, target = side_by_side(
        lambda: acls_of(flow.source, AclResource.TOPIC), lambda: acls_of(flow.target, AclResource.TOPIC)
    )
    if isinstance(source, NoAcls) or isinstance(target, NoAcls):
        return AclFacts(source=source, target=target)
    selects = group_filter_for(flow).selects
    others: list[dict[AclResource, frozenset[Acl]]] = []
    for cluster in (flow.source, flow.target):
        found = {resource: acls_of(cluster, resource) for resource in _OTHER_RESOURCES}
        others.append({resource: one for resource, one in found.items() if not isinstance(one, NoAcls)})
    groups = frozenset(
        one
        for one in others[0].get(AclResource.GROUP, ())
        if one.pattern != "LITERAL" or one.topic == "*" or selects(one.topic)
    )
    return AclFacts(
        source=source,
        target=target,
        groups=(groups, others[1].get(AclResource.GROUP, frozenset())),
        transactional_ids=(
            others[0].get(AclResource.TRANSACTIONAL_ID, frozenset()),
            others[1].get(AclResource.TRANSACTIONAL_ID, frozenset()),
        ),
    )
