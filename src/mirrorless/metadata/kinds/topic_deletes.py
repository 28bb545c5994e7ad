"""Deleted topics: remote topics whose source topic no longer exists. MirrorMaker 2 keeps them.

By default only where the names of remote topics have the source's alias; where names are kept, a topic of the target
may be its own. A source topic that the user may not see is not taken for a deleted one: it is asked for by name.

With `mirrorless.sync.topic.deletes` they are deleted, by id: only what the flow copied by its progress, with no records
of others (`progress.own_copies`), and whose source topic was seen missing for `missing_topics.DELAY_S`. In every doubt
the topic stays, and the plan has a line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.clusters.cluster_requests import NotThere, asked
from mirrorless.clusters.target_state import not_started
from mirrorless.clusters.topic_deletion import delete_by_id
from mirrorless.errors import ClusterError
from mirrorless.filters import replicated_topics
from mirrorless.kafka_python.messages import MetadataRequest
from mirrorless.metadata import missing_topics
from mirrorless.metadata.actions import ClusterDifference
from mirrorless.metadata.kind import DELETES, Kind
from mirrorless.metadata.missing_topics import DELAY_S, MissingTopics, notes_topic
from mirrorless.metadata.recreated_topics import OwnCopy
from mirrorless.modes import Modes
from mirrorless.policy import policy_for

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from mirrorless.kafka_python.admin import AdminRequests
    from mirrorless.metadata.kind import BothEnds, Found
    from mirrorless.settings import Cluster, Flow

_UNKNOWN_TOPIC: Final = 3
_A_REQUEST: Final = 500
_NAME: Final = "topic-deletes"


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


def copied_orphans(
    flow: Flow, copied: Iterable[str], *, source: Collection[str], target: Collection[str]
) -> dict[str, str]:
    """As `orphans`, by the source topics that progress names: also where names are kept. Never an internal topic."""
    policy, selects = policy_for(flow), replicated_topics(flow)
    found: dict[str, str] = {}
    for topic in sorted(copied):
        if topic in source or not selects(topic) or policy.is_heartbeats_topic(topic):
            continue
        name = policy.format_remote_topic(flow.source.alias, topic)
        if name in target and not policy.is_internal_topic(name) and not policy.is_internal_topic(topic):
            found[name] = topic
    return found


def differences(
    flow: Flow, gone: Mapping[str, str], *, copies: Mapping[str, OwnCopy | str], missing: MissingTopics
) -> list[ClusterDifference]:
    """Return a difference for each remote topic of a deleted source topic: what is done now, or why nothing is.

    `gone` has the source topic of each remote topic, `copies` is by source topic.
    """
    found = []
    for name, topic in gone.items():
        copy = copies.get(topic, "not checked")
        if isinstance(copy, str):
            found.append(_difference(flow, name, topic, reason=f"not deleted: {copy}"))
            continue
        change = {"topic": topic, "source_id": copy.source_id, "remote_id": copy.remote_id}
        waited = missing.waited(topic, copy)
        if waited is not None and waited >= DELAY_S:
            reason = f"{DELETES}=true, and it was seen missing for {waited:.0f} s"
            found.append(_difference(flow, name, topic, reason=reason, change={"do": "delete"} | change))
        elif missing.noted.get(topic, (None, None))[0] == copy and missing.has_no_times(topic):
            reason = f"not deleted: {notes_topic(flow)} on {flow.target.alias} has no append times (LogAppendTime)"
            found.append(_difference(flow, name, topic, reason=reason))
        else:
            begins = waited is None
            so_far = "not noted yet" if begins else f"seen missing for {waited:.0f} s"
            text = (
                f"wait before deleting {name} on {flow.target.alias}: {topic} no longer exists on {flow.source.alias}"
            )
            reason = f"{so_far}; deleted by a later sync, once that is {DELAY_S} s"
            change = {"do": "note" if begins else "look"} | change
            found.append(_difference(flow, name, topic, reason=reason, change=change, text=text))
    return found


def _difference(
    flow: Flow, name: str, topic: str, *, reason: str, change: Mapping[str, str] | None = None, text: str | None = None
) -> ClusterDifference:
    source, target = flow.source.alias, flow.target.alias
    return ClusterDifference(
        kind=_NAME,
        on=name,
        what="source topic",
        source_has="deleted",
        target_has="kept",
        text=text or f"delete {name} on {target}: {topic} no longer exists on {source}",
        reason=reason,
        change=change,
    )


def returned(flow: Flow, missing: MissingTopics, gone: Collection[str]) -> list[ClusterDifference]:
    """Return a difference for each note on a topic that is not missing: it is there again, or hidden."""
    return [
        ClusterDifference(
            kind=_NAME,
            on=topic,
            what="note",
            source_has="visible",
            target_has="noted as missing",
            text=f"delete the note that {topic} is missing on {flow.source.alias}",
            reason="it is there again, is hidden, or has no remote topic",
            change={"do": "forget", "topic": topic},
        )
        for topic in sorted(missing.noted)
        if topic not in gone and replicated_topics(flow)(topic)
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
    flow = ends.flow
    unseen = orphans(flow, source=ends.source_topics, target=ends.target_topics)
    if flow.sync_topic_deletes and ends.copied is not None:
        there = ends.source_topics, ends.target_topics
        unseen |= copied_orphans(flow, ends.copied.topics(), source=there[0], target=there[1])
        missing = missing_topics.read(flow) if notes_topic(flow) in ends.target_topics else MissingTopics({})
    else:
        missing = MissingTopics({})
    deleted = _deleted(flow.source, sorted(unseen.values())) if unseen else frozenset()
    if isinstance(deleted, NotThere):
        return deleted
    gone = {name: topic for name, topic in unseen.items() if topic in deleted}
    if not flow.sync_topic_deletes:
        return [_difference(flow, name, topic, reason=f"{DELETES} is false") for name, topic in gone.items()]
    return differences(flow, gone, copies=_copies(ends, gone), missing=missing) + returned(
        flow, missing, set(gone.values())
    )


def _copies(ends: BothEnds, gone: Mapping[str, str]) -> Mapping[str, OwnCopy | str]:
    """Return the copies that may be deleted, or why not."""
    if not gone:
        return {}
    why = refusal(ends)
    if why is not None or ends.copied is None:
        return dict.fromkeys(gone.values(), why or "`mirrorless plan` shows whether it may be")
    return ends.copied.own_copies({topic: name for name, topic in gone.items()})


def refusal(ends: BothEnds) -> str | None:
    """Why nothing of this flow is deleted; None if topics may be."""
    if (shared := Modes(ends.flow).why_shared) is not None:
        return shared
    if (stopped := not_started(ends.flow, ends.target)) is not None:
        return stopped  # after a move, what is left on the source may be deleted there
    if not ends.remote:
        return f"{ends.flow.source.alias} shows no topic that the flow replicates, as a cluster that lost all would"
    return None


def _apply(ends: BothEnds, some: Sequence[ClusterDifference]) -> list[str | None]:
    """Note, forget and delete; what cannot be written leaves all topics there."""
    changes = [one.change or {} for one in some]
    noted = {one["topic"]: _copy_of(one) for one in changes if one["do"] == "note"}
    if any(one["do"] in ("note", "look") for one in changes):
        missing_topics.note(ends.flow, ends.target, noted)
    if back := [one["topic"] for one in changes if one["do"] == "forget"]:
        missing_topics.forget(ends.flow, back)
    return [
        _delete(ends, difference.on, change["topic"], _copy_of(change)) if change["do"] == "delete" else None
        for difference, change in zip(some, changes, strict=True)
    ]


def _copy_of(change: Mapping[str, str]) -> OwnCopy:
    return OwnCopy(source_id=change.get("source_id", ""), remote_id=change.get("remote_id", ""))


def _delete(ends: BothEnds, name: str, topic: str, copy: OwnCopy) -> str | None:
    """Delete a remote topic by its id; everything is checked again on the connection that the request is sent on."""
    flow = ends.flow

    def confirm() -> None:
        gone = _deleted(flow.source, [topic])
        if isinstance(gone, NotThere) or topic not in gone:
            raise ClusterError(f"not deleted: {topic} is there again, or hidden", cluster=flow.source.alias)
        found = _copies(ends, {name: topic})[topic]
        if found != copy:
            why = found if isinstance(found, str) else "other topics have these names now"
            raise ClusterError(f"not deleted: {name}: {why}", cluster=flow.target.alias)

    try:
        delete_by_id(flow.target, {name: copy.remote_id}, confirm)
        missing_topics.forget(flow, [topic])
    except ClusterError as error:
        return str(error)
    return None


KIND = Kind(
    name=_NAME,
    about="remote topics whose source topic was deleted",
    left="remote topics with records that the flow did not copy, and what cannot be proved",
    compare=_compare,
    apply=_apply,
    reads="DESCRIBE",
    writes="DELETE",
    on_serverless=True,
    deletes=True,
)
