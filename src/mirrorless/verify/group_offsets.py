"""Compares offsets of groups on the target, or their checkpoints, with the exact translation of the source's."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.admin import Refusal
from mirrorless.clusters.connection_errors import grant
from mirrorless.clusters.groups import Activity, Committed, GroupOffsets, list_groups
from mirrorless.clusters.internal_topics import checkpoints_topic
from mirrorless.clusters.topics import describe
from mirrorless.errors import ClusterError
from mirrorless.filters import group_filter_for, topic_filter_for
from mirrorless.offsets.checkpoints import CheckpointTopic
from mirrorless.offsets.translation import How, Translated
from mirrorless.offsets.turn_translation import translator_of
from mirrorless.verify.findings import Difference, DifferenceKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.offsets.checkpoints import ByGroup
    from mirrorless.offsets.translation_service import Answers
    from mirrorless.settings import Flow

_WALKING_S: Final = 60.0
_ATTEMPTS: Final = 8
_PAUSE_S: Final = 1.0


@dataclass(slots=True)
class GroupsCompared:
    """Differences, groups that were not compared and why, and what failed."""

    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


class GroupComparison:
    """Compares the groups of one flow on the topics of `remote`.

    If `sync.group.offsets.enabled` is set, the target's committed offsets are compared, otherwise the checkpoints. A
    group that consumes on the source may be ahead of its last checkpoint, one that is ahead of the copy has no offset
    on the target yet, and one that consumes on the target commits independently: none of these is a difference. An
    offset ahead of the exact one is always a difference: records would be skipped.
    """

    def __init__(self, flow: Flow, *, source: Admin, target: Admin, remote: Mapping[str, str]) -> None:
        self._flow = flow
        self._source, self._target = source, target
        self._remote = remote
        self._translator = translator_of(flow, source=source, target=target)
        self._source_groups, self._target_groups = GroupOffsets(flow.source), GroupOffsets(flow.target)
        selects = group_filter_for(flow).selects
        self._wants = selects
        self._wants_topic = topic_filter_for(flow).selects
        self._checkpoints = CheckpointTopic(checkpoints_topic(flow), target, wanted=selects)
        self._found = GroupsCompared()

    def close(self) -> None:
        """Close all connections."""
        self._translator.close()
        self._source_groups.close()
        self._target_groups.close()
        self._checkpoints.close()

    def compare(self) -> GroupsCompared:
        """Compare all groups; raises `ClusterError` if an end does not answer."""
        found = self._found
        if not self._flow.writes_checkpoints:
            key = "emit.offset-syncs.enabled" if self._flow.emit_checkpoints_enabled else "emit.checkpoints.enabled"
            found.notes.append(f"group offsets are not compared: {key} is false")
            return found
        listed, troubles = _listed(self._source)
        found.troubles += troubles
        # First the target's offsets, then the source's: no checkpoint is newer than what it is compared with.
        there, busy = self._theirs(list(filter(self._wants, listed)))
        committed = {
            group: {place: one for place, one in offsets.items() if self._covers(place[0])}
            for group, offsets in self._read(self._source_groups, there).items()
        }
        committed = {group: offsets for group, offsets in committed.items() if offsets}
        if not committed:
            return found
        committed = {group: offsets for group, offsets in committed.items() if group in there}
        wanted: dict[TopicPartition, set[int]] = defaultdict(set)
        for offsets in committed.values():
            for place, one in offsets.items():
                wanted[place].add(one.offset)
        self._translator.refresh(wanted)
        answers = self._translator.translate(wanted, deadline=time.monotonic() + _WALKING_S)
        for group, offsets in sorted(committed.items()):
            if group in busy:
                found.notes.append(f"group {group} {busy[group]} on {self._flow.target.alias}: not compared")
                continue
            self._compare(group, offsets, there[group], answers, moving=_moving(listed.get(group)) is not None)
        return found

    def _covers(self, topic: str) -> bool:
        """Heartbeats are replicated without being selected, and get no checkpoints then."""
        return topic in self._remote and self._wants_topic(topic)

    def _theirs(self, groups: list[str]) -> tuple[dict[str, dict[TopicPartition, int]], dict[str, str]]:
        """Where the groups would continue on the target, by remote partition; and those that are active there, and how.

        Groups that are missing in it could not be queried, which is reported.
        """
        if not self._flow.sync_group_offsets_enabled:
            known = self._known_checkpoints()
            return {
                group: {place: one.downstream for place, one in known.get(group, {}).items()} for group in groups
            }, {}
        activity, troubles = _listed(self._target)
        self._found.troubles += troubles
        moving = {group: _moving(activity.get(group, Activity.DEAD)) for group in groups}
        busy = {group: how for group, how in moving.items() if how is not None}
        found = self._read(self._target_groups, groups)
        return {group: {place: one.offset for place, one in some.items()} for group, some in found.items()}, busy

    def _known_checkpoints(self) -> ByGroup:
        """Without the right to read the topic it would appear empty, and every group without an offset."""
        name = self._checkpoints.name
        found = describe(self._target, name)
        if isinstance(found, Refusal) and (right := grant(found.code, "READ on it")):
            raise ClusterError(f"{name}: {found.text}{right}", cluster=self._flow.target.alias)
        return self._checkpoints.read()

    def _read(self, groups: GroupOffsets, names: object) -> dict[str, dict[TopicPartition, Committed]]:
        found: dict[str, dict[TopicPartition, Committed]] = {}
        for group, offsets in groups.committed(names):  # type: ignore[arg-type]
            if isinstance(offsets, str):
                self._found.troubles.append(f"group {group}: {offsets}")
            else:
                found[group] = offsets
        return found

    def _compare(
        self,
        group: str,
        offsets: Mapping[TopicPartition, Committed],
        there: Mapping[TopicPartition, int],
        answers: Answers,
        *,
        moving: bool,
    ) -> None:
        for place, one in sorted(offsets.items()):
            answer = answers[place][one.offset]
            name = f"group {group}, {place[0]}-{place[1]}"
            if not isinstance(answer, Translated) or not answer.exact:
                reason = "only a nearby offset pair is known" if isinstance(answer, Translated) else answer.reason
                self._found.notes.append(f"{name}: not compared, {reason}")
                continue
            remote = self._remote[place[0]]
            now = there.get((remote, place[1]))
            if now == answer.downstream:
                continue
            behind = now is None or now < answer.downstream
            if behind and answer.how is How.BEYOND:
                self._found.notes.append(f"{name}: not compared, the group is ahead of the copy")
                continue
            if behind and answer.how is How.START:
                reason = f"{remote} begins later, at {answer.downstream}, and the next checkpoint raises the offset"
                self._found.notes.append(f"{name}: {reason}")
                continue
            if moving and behind:
                self._found.notes.append(f"{name}: not compared, the group is active and its next checkpoint follows")
                continue
            self._found.differences.append(
                Difference(
                    kind=DifferenceKind.GROUP_OFFSET,
                    topic=place[0],
                    remote_topic=remote,
                    partition=place[1],
                    upstream=one.offset,
                    downstream=now,
                    what=group,
                    translated=answer.downstream,
                    source_has=f"{one.offset} (exactly {answer.downstream} there)",
                    target_has="none" if now is None else str(now),
                )
            )


def _moving(activity: Activity | None) -> str | None:
    """How a group may be committing meanwhile, None if it is not: brokers before 2.6 do not report group states."""
    if activity in (Activity.EMPTY, Activity.DEAD):
        return None
    return "is active" if activity is Activity.ACTIVE else "may be active"


def _listed(admin: Admin) -> tuple[dict[str, Activity], list[str]]:
    """All groups; coordinators that are loading are asked again."""
    for _ in range(_ATTEMPTS):
        groups, troubles = list_groups(admin)
        if not troubles:
            break
        time.sleep(_PAUSE_S)
    return groups, troubles
