"""Committed offsets of groups on the target, or their checkpoints, against the exact translation of the source's."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.groups import Activity, Committed, GroupOffsets, list_groups
from mirrorless.clusters.internal_topics import checkpoints_topic
from mirrorless.filters import GroupFilter
from mirrorless.offsets.checkpoints import CheckpointTopic
from mirrorless.offsets.translation import Translated
from mirrorless.offsets.translator import Translator
from mirrorless.verify.findings import Difference, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topics import Place
    from mirrorless.offsets.translator import Answers
    from mirrorless.settings import Flow

_WALKING_S: Final = 60.0
_ATTEMPTS: Final = 8
_PAUSE_S: Final = 1.0


@dataclass(slots=True)
class GroupsCompared:
    """How many offsets of groups were compared, what differs, what was left out and why, and what could not be."""

    offsets: int = 0
    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


class GroupComparison:
    """Compares the groups of one flow on the topics of `remote`.

    Where `sync.group.offsets.enabled` is set, the target's committed offsets count, else the checkpoints. A group that
    is reading on the source may be ahead of its last checkpoint, and one that is reading on the target goes its own
    way: neither is a difference. No offset may be ahead of the exact one, in any case: records would be skipped.
    """

    def __init__(self, flow: Flow, *, source: Admin, target: Admin, remote: Mapping[str, str]) -> None:
        self._flow = flow
        self._source, self._target = source, target
        self._remote = remote
        self._translator = Translator(flow, source=source, target=target)
        self._source_groups, self._target_groups = GroupOffsets(flow.source), GroupOffsets(flow.target)
        selects = GroupFilter.of(flow).selects
        self._wants = selects
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
        if not self._flow.emit_checkpoints_enabled and not self._flow.sync_group_offsets_enabled:
            found.notes.append("group offsets are not compared: emit.checkpoints.enabled is false")
            return found
        listed, troubles = _listed(self._source)
        found.troubles += troubles
        committed = {
            group: {place: one for place, one in offsets.items() if place[0] in self._remote}
            for group, offsets in self._read(self._source_groups, filter(self._wants, listed)).items()
        }
        committed = {group: offsets for group, offsets in committed.items() if offsets}
        if not committed:
            return found
        there, busy = self._theirs(list(committed))
        wanted: dict[Place, set[int]] = defaultdict(set)
        for offsets in committed.values():
            for place, one in offsets.items():
                wanted[place].add(one.offset)
        self._translator.refresh(wanted)
        answers = self._translator.translate(wanted, deadline=time.monotonic() + _WALKING_S)
        for group, offsets in sorted(committed.items()):
            if group in busy:
                found.notes.append(f"group {group} is active on {self._flow.target.alias}: not compared")
                continue
            moving = listed.get(group) is Activity.ACTIVE
            self._compare(group, offsets, there.get(group, {}), answers, moving=moving)
        return found

    def _theirs(self, groups: list[str]) -> tuple[dict[str, dict[Place, int]], set[str]]:
        """Where the groups would go on on the target, by remote partition; and those that are active there."""
        if not self._flow.sync_group_offsets_enabled:
            known = self._checkpoints.read()
            return {
                group: {place: one.downstream for place, one in known.get(group, {}).items()} for group in groups
            }, set()
        activity, troubles = _listed(self._target)
        self._found.troubles += troubles
        busy = {group for group in groups if activity.get(group) is Activity.ACTIVE}
        found = self._read(self._target_groups, groups)
        return {group: {place: one.offset for place, one in some.items()} for group, some in found.items()}, busy

    def _read(self, groups: GroupOffsets, names: object) -> dict[str, dict[Place, Committed]]:
        found: dict[str, dict[Place, Committed]] = {}
        for group, offsets in groups.committed(names):  # type: ignore[arg-type]
            if isinstance(offsets, str):
                self._found.troubles.append(f"group {group}: {offsets}")
            else:
                found[group] = offsets
        return found

    def _compare(
        self,
        group: str,
        offsets: Mapping[Place, Committed],
        there: Mapping[Place, int],
        answers: Answers,
        *,
        moving: bool,
    ) -> None:
        for place, one in sorted(offsets.items()):
            answer = answers[place][one.offset]
            name = f"group {group}, {place[0]}-{place[1]}"
            if not isinstance(answer, Translated) or not answer.exact:
                reason = "only a nearest pair is known" if isinstance(answer, Translated) else answer.reason
                self._found.notes.append(f"{name}: not compared, {reason}")
                continue
            self._found.offsets += 1
            remote = self._remote[place[0]]
            now = there.get((remote, place[1]))
            if now == answer.downstream:
                continue
            if moving and (now is None or now < answer.downstream):
                self._found.notes.append(f"{name}: it is reading, and its checkpoint follows")
                continue
            self._found.differences.append(
                Difference(
                    kind=Kind.GROUP_OFFSET,
                    topic=place[0],
                    remote_topic=remote,
                    partition=place[1],
                    upstream=one.offset,
                    downstream=now,
                    what=group,
                    source_has=f"{one.offset} (exactly {answer.downstream} there)",
                    target_has="none" if now is None else str(now),
                )
            )


def _listed(admin: Admin) -> tuple[dict[str, Activity], list[str]]:
    """All groups; coordinators that are just loading are asked again."""
    for _ in range(_ATTEMPTS):
        groups, troubles = list_groups(admin)
        if not troubles:
            break
        time.sleep(_PAUSE_S)
    return groups, troubles
