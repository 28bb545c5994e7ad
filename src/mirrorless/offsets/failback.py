"""Fails groups back: translates offsets in remote topics to offsets in the topics that they were copied from.

A group that failed over from A to B reads `A.t` there. When it returns, the flow B->A translates its offset to `t`: the
flow A->B has the pairs, used in the other direction. MirrorMaker 2 names such checkpoints but
has no syncs for them, so it never writes one. Only topics of one hop are failed back: for `A.C.t` the topic on A is
`C.t`, where MirrorMaker 2's rule says `t`. A group with an offset from A->B's own checkpoints only is not moved on A:
see `FailbackFilter`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mirrorless.clusters.internal_topics import checkpoints_topic
from mirrorless.errors import ClusterUnavailable
from mirrorless.filters import replicated_topics
from mirrorless.modes import Modes
from mirrorless.offsets.checkpoints import CheckpointTopic
from mirrorless.offsets.inverse_translation import InverseTranslator
from mirrorless.offsets.translation import How, Translated, Unknown
from mirrorless.policy import policy_for

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.groups import Committed
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.formats import Checkpoint
    from mirrorless.offsets.translation_service import Answers
    from mirrorless.settings import Flow


def failback_of(flow: Flow, *, source: Admin, target: Admin, wants_group: Callable[[str], bool]) -> Failback | None:
    """Return what fails groups back along `flow`; None if they return from no copies, or its translator does it.

    `source` and `target` are the clients of the flow's ends.
    """
    forward = Modes(flow).returning_copies
    return None if forward is None else Failback(forward, source=target, target=source, wants_group=wants_group)


@dataclass(slots=True)
class Returning:
    """Offsets of groups in remote topics of the forward flow, as `Failback.divide` found them.

    `wanted` are to be translated, by partition; `moved` are those of them where the group itself consumed, by group.
    `echoes` are offsets that the forward flow committed: the group is where it is on the other cluster.
    """

    wanted: dict[TopicPartition, set[int]] = field(default_factory=lambda: defaultdict(set))
    moved: dict[str, set[TopicPartition]] = field(default_factory=lambda: defaultdict(set))
    echoes: dict[tuple[str, TopicPartition], Translated | Unknown] = field(default_factory=dict)


class Failback:
    """Translates offsets in remote topics of the flow `forward` into offsets of its source.

    `source` and `target` are the clients of the forward flow's ends.
    """

    def __init__(self, forward: Flow, *, source: Admin, target: Admin, wants_group: Callable[[str], bool]) -> None:
        self._echoes = FailbackFilter(forward, target, wanted=wants_group)
        self._alias = forward.source.alias
        self._policy = policy_for(forward)
        self._selects = replicated_topics(forward)
        self._inverse = InverseTranslator(forward, source=source, target=target)
        self._covered: dict[str, bool] = {}
        self._deaf: str | None = None

    @property
    def troubles(self) -> list[str]:
        """Why walks of the last translation were ended."""
        return self._inverse.troubles

    @property
    def walked_records(self) -> int:
        """Records that the last translation counted."""
        return self._inverse.walked_records

    def covers(self, topic: str) -> bool:
        """Whether the topic is a remote topic of the forward flow, over one hop; cached for many groups."""
        found = self._covered.get(topic)
        if found is None:
            found = self._covered[topic] = self._is_remote(topic)
        return found

    def _is_remote(self, topic: str) -> bool:
        if self._policy.topic_source(topic) != self._alias:
            return False
        upstream = self._policy.upstream_topic(topic)
        return upstream is not None and upstream == self._policy.original_topic(topic) and self._selects(upstream)

    def is_home(self, topic: str) -> bool:
        """Whether the topic is one of the forward flow's source that groups fail back to."""
        return self.covers(self._policy.format_remote_topic(self._alias, topic))

    def listen(self, topics: Iterable[str], *, stopping: Callable[[], bool] = lambda: False) -> str | None:
        """Read the forward flow's checkpoints of remote `topics`; returns why this is not possible.

        The offsets of the groups must have been read before: a checkpoint is written before it is committed.
        """
        try:
            self._echoes.read(stopping=stopping)
            self._inverse.translator.identify(map(self._policy.original_topic, topics), stopping=stopping)
        except ClusterUnavailable as error:
            self._deaf = str(error)
        else:
            late = None if self._echoes.complete else f"{self._echoes.name} is not read to its end yet"
            self._deaf = self._echoes.refused or late
        return self._deaf

    def echo(self, group: str, place: TopicPartition, offset: int) -> Translated | Unknown | None:
        """The position of a group that has not moved in a remote topic: it is known without translating.

        A source topic that was recreated since it was copied is another one, in which no group was.
        """
        home = self._policy.original_topic(place[0]), place[1]
        if self._deaf is None and (reason := self._inverse.translator.why_not(home)) is not None:
            return Unknown(reason)
        last = None if self._deaf is not None else self._echoes.of(group, place, offset)
        return None if last is None else Translated(last.upstream, How.PAIR)

    def went_on(self, group: str, place: TopicPartition, offset: int) -> bool:
        """Whether the group itself consumed in a remote topic, so that it may be moved on the source too."""
        return self._deaf is None and self._echoes.went_on(group, place, offset)

    def consumed(self, group: str, place: TopicPartition, offset: int) -> bool:
        """Whether the group itself moved in a remote topic, forward or back; `offset` is no echo."""
        return self._deaf is None and (self.went_on(group, place, offset) or self._echoes.knows_committed(group, place))

    def divide(self, committed: Mapping[str, Mapping[TopicPartition, Committed]]) -> Returning:
        """Find the offsets in remote topics: those that are translated, and those of groups that did not move."""
        found = Returning()
        for group, offsets in committed.items():
            for place, one in offsets.items():
                if not self.covers(place[0]):
                    continue
                if (echo := self.echo(group, place, one.offset)) is not None:
                    found.echoes[group, place] = echo
                    continue
                found.wanted[place].add(one.offset)
                if self.went_on(group, place, one.offset):
                    found.moved[group].add(place)
        return found

    def translate(
        self,
        wanted: Mapping[TopicPartition, Collection[int]],
        *,
        deadline: float,
        stopping: Callable[[], bool] = lambda: False,
    ) -> Answers:
        """Translate offsets of remote topics; walks end at the monotonic time `deadline`. Raises `ClusterError`.

        If `stopping` returns true before everything required is read, nothing has an answer yet.
        """
        home = {place: (self._policy.original_topic(place[0]), place[1]) for place in wanted}
        if not self._inverse.refresh(home.values(), stopping=stopping):
            late = Unknown("the opposite flow's offset syncs are not read to their end yet")
            return {place: dict.fromkeys(offsets, late) for place, offsets in wanted.items()}
        answers = self._inverse.translate({home[place]: some for place, some in wanted.items()}, deadline=deadline)
        return {place: answers[home[place]] for place in wanted}

    def close(self) -> None:
        """Close all connections."""
        self._echoes.close()
        self._inverse.close()


class FailbackFilter(CheckpointTopic):
    """The checkpoints of the flow `forward`, and how far they moved each group; `admin` is its target's client.

    If both flows of a pair commit group offsets, A->B creates each group of A on B as well. B->A would translate its
    offset in `A.t` back to `t`: useless at best, and wrong for an offset that was reset on A, or a group that was
    deleted there.

    This is derived from all records that the compacted topic still has: for a group that was reset on the source the
    last one is not sufficient.
    """

    def __init__(self, forward: Flow, admin: Admin, *, wanted: Callable[[str], bool]) -> None:
        super().__init__(checkpoints_topic(forward), admin, wanted=wanted)
        self._furthest: dict[tuple[str, TopicPartition], int] = {}

    def note(self, checkpoint: Checkpoint) -> None:
        """Use a checkpoint as the last one of its key.

        One that went back although its group did not is of a recreated remote topic; to one that was committed itself,
        an operation moved the group.
        """
        place = checkpoint.topic, checkpoint.partition
        last = self.last(checkpoint.group, place)
        super().note(checkpoint)
        key = checkpoint.group, place
        reset = last is not None and checkpoint.upstream >= last.upstream and checkpoint.downstream < last.downstream
        begins = reset or checkpoint.committed == checkpoint.downstream
        known = -1 if begins else self._furthest.get(key, -1)
        self._furthest[key] = max(known, checkpoint.downstream, checkpoint.committed or -1)

    def of(self, group: str, place: TopicPartition, offset: int) -> Checkpoint | None:
        """The last checkpoint of a group, if the group's offset in a remote topic is the flow's own."""
        return self.last(group, place) if self.is_ours(group, place, offset) else None

    def knows_committed(self, group: str, place: TopicPartition) -> bool:
        """Whether it is known which offset the flow committed last for a group: any other one is the group's own."""
        last = self.last(group, place)
        return last is not None and last.committed is not None

    def went_on(self, group: str, place: TopicPartition, offset: int) -> bool:
        """Whether a group's offset in a remote topic is one that no checkpoint has."""
        return offset > self._furthest.get((group, place), -1)

    def _forget_all(self) -> None:
        super()._forget_all()
        self._furthest = {}
