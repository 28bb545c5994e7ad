"""Commits on the target what groups have just committed on the source."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.groups import Committed, GroupOffsets, list_groups
from mirrorless.clusters.internal_topics import checkpoints_topic
from mirrorless.clusters.producer import TopicProducer
from mirrorless.clusters.side_by_side import side_by_side
from mirrorless.clusters.target_state import waits_for_its_turn
from mirrorless.filters import group_filter_for, topic_filter_for
from mirrorless.formats import Checkpoint
from mirrorless.group_sync.commit_feeds import AskingFeed, NotReadable, TopicFeed
from mirrorless.modes import Modes
from mirrorless.offsets.checkpoints import CheckpointTopic
from mirrorless.offsets.other_sources import OtherSources
from mirrorless.offsets.translation import How, Translated
from mirrorless.offsets.turn_translation import translator_of
from mirrorless.policy import policy_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.group_sync.commit_feeds import CommitFeed, Commits
    from mirrorless.settings import Flow

_WAIT_S: Final = 0.2
_EVERY_S: Final = 0.3
"""A step begins so long after the one before, at least; most of it waits for the target's group coordinators."""
_WALKING_S: Final = 1.0
_GROUPS_EVERY_S: Final = 5.0
_TURN_EVERY_S: Final = 5.0
_FLUSH_S: Final = 5.0
_GIVE_UP_S: Final = 60.0
"""Then the checkpoint runs are left to find an answer, and to report that there is none."""
_READ_AGAIN_S: Final = 60.0
"""How soon `__consumer_offsets` is tried again where it could not be read."""
_NOT_THE_LAST: Final = (How.BEYOND, How.EMPTY, How.NEAREST)
"""Answers that are later once the copy, or what is known of it, has reached the commit."""


@dataclass(slots=True)
class _Waiting:
    """A commit that the target does not have yet, since a monotonic time."""

    committed: Committed
    since: float


@dataclass(slots=True)
class FollowReport:
    """What one step did: offsets written, commits that wait, and for how long the oldest of them has."""

    written: int = 0
    waiting: int = 0
    oldest_s: float = 0.0


class GroupFollower:
    """Follows the groups of one flow, as long as `step` is called.

    An offset is written as a checkpoint run would: for groups without members on the target, never backwards, never
    beyond a record that the group has not read. A commit that is ahead of the copy is written once the copy has reached
    it. Checkpoints are left to the checkpoint runs, except where the opposite flow fails groups back: by checkpoints it
    distinguishes offsets of this flow from those that a group consumed up to itself. Raises `ClusterError`.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._source, self._target = Admin(flow.source), Admin(flow.target)
        wants_group, wants_topic = group_filter_for(flow).selects, topic_filter_for(flow).selects
        policy, target = policy_for(flow), flow.target.alias
        self._wants_group = cache(wants_group)  # a custom filter may be slow
        self._wants_topic = cache(lambda topic: wants_topic(topic) and policy.topic_source(topic) != target)
        self.translator = translator_of(flow, source=self._source, target=self._target, must_read_to_end=True)
        self._groups = GroupOffsets(flow.target)
        self._others = OtherSources(flow, self._target, wanted=self._wants_group)
        self._waiting: dict[tuple[str, TopicPartition], _Waiting] = {}
        self._busy: set[str] = set()
        self._busy_at = self._turn_at = self._stepped_at = -_READ_AGAIN_S
        self._waits_for_turn = False
        self._checkpoints: _CheckpointWriter | None = None
        if Modes(flow).other_direction is not None:
            self._checkpoints = _CheckpointWriter(flow, self._target, wanted=self._wants_group)
        self.why_asking: str | None = None
        self._tried_at = 0.0
        self._feed: CommitFeed | None = None

    def begin(self) -> None:
        """Take what is committed from now on; what was committed before is left to the checkpoint runs."""
        self.pause()
        self._tried_at = time.monotonic()
        self._feed = self._new_feed()

    def pause(self) -> None:
        """Take nothing until `begin`; other connections remain open."""
        if self._feed is not None:
            self._feed.close()
            self._feed = None
        self._waiting.clear()

    def _wants(self, group: str, topic: str) -> bool:
        return self._wants_group(group) and self._wants_topic(topic)

    def _new_feed(self) -> CommitFeed:
        try:
            feed: CommitFeed = TopicFeed(self._flow.source, wants=self._wants)
        except NotReadable as reason:
            return self._asking(reason)
        self.why_asking = None
        return feed

    def _asking(self, reason: NotReadable) -> AskingFeed:
        self.why_asking, self._tried_at = str(reason), time.monotonic()
        return AskingFeed(self._flow.source, self._source, wants=self._wants)

    def step(self) -> FollowReport:
        """Take what was committed, and write what can be written; waits a moment if there is nothing."""
        self._take()
        report, now = FollowReport(), time.monotonic()
        if self._waiting and now - self._stepped_at >= _EVERY_S and not self._is_others_turn(now):
            self._stepped_at = now
            self._write(report)
        report.waiting = len(self._waiting)
        report.oldest_s = max((now - one.since for one in self._waiting.values()), default=0.0)
        return report

    def _take(self) -> None:
        feed = self._feed
        found: Commits = {}
        if feed is None:
            raise AssertionError("`begin` comes first")
        try:
            found = feed.take(_WAIT_S)
        except NotReadable as reason:
            feed.close()
            self._feed = self._asking(reason)
        now = time.monotonic()
        if self.why_asking is not None and now - self._tried_at > _READ_AGAIN_S:
            self._read_again(feed)
        for group, offsets in found.items():
            for place, committed in offsets.items():
                if committed is None:  # what is not on the target yet does not get there
                    self._waiting.pop((group, place), None)
                    continue
                before = self._waiting.get((group, place))
                # A group that commits all the time has waited since the first commit that the target lacks.
                since = now if before is None else before.since
                self._waiting[group, place] = _Waiting(committed, since)

    def _read_again(self, asking: CommitFeed) -> None:
        """Read the topic from now on if that is possible; the feed that asks knows what it has reported."""
        self._tried_at = time.monotonic()
        try:
            self._feed, self.why_asking = TopicFeed(self._flow.source, wants=self._wants), None
        except NotReadable:
            return
        asking.close()

    def _is_others_turn(self, now: float) -> bool:
        if now - self._turn_at >= _TURN_EVERY_S:
            self._waits_for_turn = waits_for_its_turn(self._flow, self._target) is not None
            self._turn_at = now
        if self._waits_for_turn:
            self._waiting.clear()
        return self._waits_for_turn

    def _write(self, report: FollowReport) -> None:
        wanted: dict[TopicPartition, set[int]] = {}
        for (_, place), one in self._waiting.items():
            wanted.setdefault(place, set()).add(one.committed.offset)
        self._look_for_members()
        groups = {group for group, _ in self._waiting} - self._busy
        there, whole = side_by_side(
            lambda: dict(self._groups.committed(groups)), lambda: self.translator.refresh(wanted)
        )
        if not whole:
            return
        answers = self.translator.translate(wanted, deadline=time.monotonic() + _WALKING_S)
        self._others.read()
        remotes = {place: (self.translator.remote(place[0]), place[1]) for place in wanted}
        chosen: dict[str, dict[TopicPartition, tuple[TopicPartition, Committed, bool]]] = {}
        for (group, place), one in self._waiting.items():
            answer = answers[place][one.committed.offset]
            if isinstance(answer, Translated):
                remote = remotes[place]
                at = self._others.earliest(group, remote, answer.downstream)
                last = answer.how not in _NOT_THE_LAST or self._is_reached(place, one.committed.offset)
                chosen.setdefault(group, {})[remote] = place, Committed(at, one.committed.metadata), last
        self._commit(chosen, there, report)
        self._give_up()

    def _is_reached(self, place: TopicPartition, offset: int) -> bool:
        """Whether the progress, by which offsets are translated, is at an offset of the source, or beyond it."""
        known = self.translator.progress.get(place)
        progress = None if known is None else known.progress
        return progress is not None and progress.last_offset + 1 >= offset

    def _look_for_members(self) -> None:
        now = time.monotonic()
        if now - self._busy_at >= _GROUPS_EVERY_S:
            activity, _ = list_groups(self._target)
            self._busy = {group for group, state in activity.items() if state.may_have_members}
            self._busy_at = now

    def _commit(
        self,
        chosen: dict[str, dict[TopicPartition, tuple[TopicPartition, Committed, bool]]],
        there: dict[str, dict[TopicPartition, Committed] | str],
        report: FollowReport,
    ) -> None:
        """Commit what was chosen, as far as it is after what is `there` already, for groups without members."""
        ahead: dict[str, dict[TopicPartition, Committed]] = {}
        for group, known in there.items():
            if isinstance(known, str) or group not in chosen:
                continue  # the next checkpoint run reports why
            later = {
                remote: one
                for remote, (_, one, _) in chosen[group].items()
                if remote not in known or one.offset > known[remote].offset
            }
            if later:
                ahead[group] = later
        if self._checkpoints is not None:
            self._checkpoints.write(
                {group: {at: chosen[group][at][0] for at in some} for group, some in ahead.items()},
                ahead,
                self._waiting,
            )
        outcomes = self._groups.commit(ahead)
        self._groups.shortened.clear()  # the checkpoint runs report it
        for group, outcome in outcomes.items():
            if isinstance(outcome, str):
                self._busy.add(group)  # it has members by now
            else:
                report.written += sum(reason is None for reason in outcome.values())
        self._settle(chosen)

    def _settle(self, chosen: dict[str, dict[TopicPartition, tuple[TopicPartition, Committed, bool]]]) -> None:
        """Forget the commits that the target has, and those of groups that read there."""
        for group, offsets in chosen.items():
            for place, _, last in offsets.values():
                if last or group in self._busy:
                    self._waiting.pop((group, place), None)

    def _give_up(self) -> None:
        now = time.monotonic()
        for key in [key for key, one in self._waiting.items() if now - one.since > _GIVE_UP_S]:
            del self._waiting[key]

    def close(self) -> None:
        """Close all connections."""
        self.pause()
        self._groups.close()
        self._others.close()
        self.translator.close()
        if self._checkpoints is not None:
            self._checkpoints.close()


class _CheckpointWriter:
    """Writes a checkpoint before each commit, so that the opposite flow knows whose offset it is."""

    def __init__(self, flow: Flow, target: Admin, *, wanted: Callable[[str], bool]) -> None:
        self._topic = CheckpointTopic(checkpoints_topic(flow), target, wanted=wanted)
        self._producer = TopicProducer(flow.target, creator="the next run", gives_up_after_s=_FLUSH_S)

    def write(
        self,
        places: dict[str, dict[TopicPartition, TopicPartition]],
        commits: dict[str, dict[TopicPartition, Committed]],
        waiting: dict[tuple[str, TopicPartition], _Waiting],
    ) -> None:
        """Write checkpoints of `commits` by remote partition; `places` has their source partitions."""
        self._topic.read()
        now_ms = int(time.time() * 1000)
        for group, offsets in commits.items():
            for remote, one in offsets.items():
                last = self._topic.last(group, remote)
                checkpoint = Checkpoint(
                    group=group,
                    topic=remote[0],
                    partition=remote[1],
                    upstream=waiting[group, places[group][remote]].committed.offset,
                    downstream=one.offset,
                    metadata=one.metadata,
                    committed=None if last is None else last.downstream,
                )
                self._producer.send(
                    self._topic.name,
                    key=checkpoint.key(),
                    value=checkpoint.value(),
                    partition=0,
                    timestamp_ms=now_ms,
                    waits=True,
                )
        self._producer.confirm(self._topic.name, _FLUSH_S)

    def close(self) -> None:
        """Close the connection."""
        self._topic.close()
