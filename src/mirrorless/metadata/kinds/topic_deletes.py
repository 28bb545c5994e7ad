"""Deleted topics: remote topics whose source topic no longer exists. They are kept, as MirrorMaker 2 keeps them.

Only where the names of remote topics have the source's alias; where names are kept, a topic of the target may be its
own. A source topic that the user may not see is not taken for a deleted one: it is asked for by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.clusters.cluster_requests import NotThere, asked
from mirrorless.filters import replicated_topics
from mirrorless.kafka_python.messages import MetadataRequest
from mirrorless.metadata.actions import ClusterDifference
from mirrorless.metadata.kind import Kind
from mirrorless.policy import policy_for

if TYPE_CHECKING:
    from collections.abc import Collection

    from mirrorless.kafka_python.admin import AdminRequests
    from mirrorless.metadata.kind import BothEnds, Found
    from mirrorless.settings import Cluster, Flow

_UNKNOWN_TOPIC: Final = 3
_A_REQUEST: Final = 500


def orphans(flow: Flow, *, source: Collection[str], target: Collection[str]) -> dict[str, str]:
    """Return the remote topics of a flow whose source topic is not visible, with its name."""
    policy, selects = policy_for(flow), replicated_topics(flow)
    found: dict[str, str] = {}
    for name in sorted(target):
        topic = None if policy.is_internal_topic(name) else policy.upstream_topic(name)
        if topic is None or topic == name or policy.topic_source(name) != flow.source.alias:
            continue
        if topic not in source and selects(topic):
            found[name] = topic
    return found


def differences(flow: Flow, gone: dict[str, str]) -> list[ClusterDifference]:
    """Return a difference for each remote topic that would be deleted with its source topic."""
    source, target = flow.source.alias, flow.target.alias
    return [
        ClusterDifference(
            kind="topic-deletes",
            on=name,
            what="source topic",
            source_has="deleted",
            target_has="kept",
            text=f"delete {name} on {target}: {topic} no longer exists on {source}",
            reason="deletion of topics is not moved",
        )
        for name, topic in gone.items()
    ]


def _deleted(cluster: Cluster, topics: list[str]) -> frozenset[str] | NotThere:
    def ask(client: AdminRequests) -> frozenset[str]:
        found: set[str] = set()
        for at in range(0, len(topics), _A_REQUEST):
            some = [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics[at : at + _A_REQUEST]]
            answer = client.ask_any_broker(MetadataRequest(topics=some, allow_auto_topic_creation=False))
            found |= {one.name for one in answer.topics if one.error_code == _UNKNOWN_TOPIC}
        return frozenset(found)

    return asked(cluster, ask, what="topics", right="DESCRIBE")


def _compare(ends: BothEnds) -> Found:
    unseen = orphans(ends.flow, source=ends.source_topics, target=ends.target_topics)
    if not unseen:
        return []
    deleted = _deleted(ends.flow.source, sorted(unseen.values()))
    if isinstance(deleted, NotThere):
        return deleted
    return differences(ends.flow, {name: topic for name, topic in unseen.items() if topic in deleted})


KIND = Kind(
    name="topic-deletes",
    about="remote topics whose source topic was deleted",
    left="remote topics are kept; delete them by hand",
    compare=_compare,
    reads="DESCRIBE",
    on_serverless=True,
)
