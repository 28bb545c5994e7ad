"""The modes of a flow: how it names topics, what flows in both directions do, and which offsets records get.

`docs/modes.md` is their page, `settings.combinations` has what excludes what. Other modules do not combine settings:
they ask for what follows from them. No I/O.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from mirrorless.filters import replicated_topics
from mirrorless.policy import RenamingPolicy, keeps_names, policy_for
from mirrorless.settings.patterns import compile_patterns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mirrorless.policy import ReplicationPolicy
    from mirrorless.settings import Flow

_SAMPLE: Final = "orders"


class Modes:
    """What follows from the modes of one flow, with those of the other flows of its file.

    A custom policy is loaded when it is needed; then ConfigurationError is raised if it cannot be used.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    @cached_property
    def _policy(self) -> ReplicationPolicy:
        return policy_for(self._flow)

    @cached_property
    def keeps_names(self) -> bool:
        """Whether remote topics have the names of their source topics, or those that rules give, and no prefix."""
        return keeps_names(self._policy, self._flow.source.alias, _SAMPLE)

    @cached_property
    def keeps_any_offsets(self) -> bool:
        """Whether remote records may get the source's offsets."""
        return self._flow.offsets == "identical"

    def keeps_offsets(self, topic: str) -> bool:
        """Whether the remote records of a source topic get the source's offsets; heartbeats never do.

        A flow with the inverse of the opposite flow's rules has the patterns for that flow's topics.
        """
        if self._flow.inverts is not None:
            topic = self.name_there(topic)
        patterns = compile_patterns(self._flow.offsets_identical_topics) if self.keeps_any_offsets else ()
        return any(one.fullmatch(topic) for one in patterns) and not self._policy.is_heartbeats_topic(topic)

    def keeps_offsets_in_turns(self, topics: Iterable[str]) -> set[str]:
        """Return the topics whose records keep their offsets from turn to turn; none if the flow takes no turns."""
        return set() if self.other_turn is None else set(filter(self.keeps_offsets, topics))

    @cached_property
    def other_direction(self) -> Flow | None:
        """The flow in the other direction, with the rest of the file as it sees it; None if the file has none."""
        name = f"{self._flow.target.alias}->{self._flow.source.alias}"
        return next((one for one in others_on_circle(self._flow) if one.name == name), None)

    @cached_property
    def other_turn(self) -> Flow | None:
        """The flow in the other direction if the two take turns: only one copies at a time, as operations say."""
        one, other = self._flow, self.other_direction
        if (
            other is None
            or one.active_cluster != other.active_cluster
            or not one.directions == other.directions == "turns"
        ):
            return None
        if one.active_cluster not in (one.source.alias, one.target.alias):
            return None
        return other if self.keeps_names and Modes(other).keeps_names else None

    @property
    def begins_stopped(self) -> bool:
        """Whether a flow only copies once an operation has started it: applications write to its target."""
        return self.other_turn is not None and self._flow.active_cluster != self._flow.source.alias

    @property
    def skips_copies(self) -> bool:
        """Whether a flow keeps names and copies only what was written to its source itself."""
        return self._flow.directions == "skip" and self.keeps_names

    @property
    def why_shared(self) -> str | None:
        """Why remote topics have records of others beside the flow's, in one line; None if they have none."""
        if not self.skips_copies:
            return None
        return "applications of both clusters write to topics of this flow (mirrorless.both.directions=skip)"

    @cached_property
    def shares_topics(self) -> bool:
        """Whether both clusters have the same topics with records of both: flows both ways that skip copies."""
        return self.skips_copies and self.other_direction is not None and Modes(self.other_direction).skips_copies

    @property
    def ends_with_a_move(self) -> bool:
        """Whether the flow has to stop before writers come to its target: it keeps names, and would not skip them."""
        return self.keeps_names and not self.shares_topics

    @property
    def returning_copies(self) -> Flow | None:
        """The flow in the other direction if groups return from its remote topics; translators know other ways back."""
        return None if self.other_turn is not None or self.shares_topics else self.other_direction

    def name_there(self, topic: str) -> str:
        """Return what applications of the target call a topic of the source after a move."""
        return self._policy.moved(topic) if isinstance(self._policy, RenamingPolicy) else topic

    def name_here(self, topic: str) -> str | None:
        """Return what applications of the source call a topic of the target's; None if they have none of that name."""
        return self._policy.home(topic) if isinstance(self._policy, RenamingPolicy) else topic

    def second_names(self, topics: Iterable[str]) -> list[str]:
        """Return the topics that have two names on the target after a move: their own beside the remote topic's."""
        return [] if self.keeps_names else list(topics)

    def appends_to(self, topics: Iterable[str]) -> bool:
        """Whether some of these topics of the target are, or may be, remote topics of the flow."""
        if self.keeps_names:
            here = (name for topic in topics if (name := self.name_here(topic)) is not None)
            return any(map(replicated_topics(self._flow), here))
        return any(self._policy.topic_source(topic) == self._flow.source.alias for topic in topics)

    @property
    def same_remote_topics(self) -> tuple[Flow, ...]:
        """The other flows that may write to the same remote topics, and of whose sources the flow knows no records."""
        if not self.ends_with_a_move:
            return ()
        return tuple(one for one in self._flow.beside if Modes(one).keeps_names)

    @property
    def other_origins(self) -> tuple[Flow, ...]:
        """The other flows to the target whose records groups of the source may have read there already."""
        if not self.shares_topics:
            return ()
        return tuple(one for one in self._flow.beside if Modes(one).skips_copies)

    def routes(self) -> list[tuple[Flow, Flow | None]]:
        """Return the flows to the source that skip copies, each with that by which its records reach the target.

        It is None for records of the target itself. Records without a flow to the target are left out.
        """
        by_name = {one.name: one for one in others_on_circle(self._flow) if Modes(one).skips_copies}
        found: list[tuple[Flow, Flow | None]] = []
        for one in by_name.values():
            direct = by_name.get(f"{one.source.alias}->{self._flow.target.alias}")
            at_home = one.source.alias == self._flow.target.alias
            if one.target.alias == self._flow.source.alias and (at_home or direct is not None):
                found.append((one, None if at_home else direct))
        return found


def others_on_circle(flow: Flow) -> Sequence[Flow]:
    """Return the flows of `circle`, each with its own."""
    every = (flow, *flow.circle)
    return [
        one.among(aliases=one.aliases, circle=[other for other in every if other.name != one.name], beside=one.beside)
        for one in flow.circle
    ]
