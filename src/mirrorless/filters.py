"""Which topics and consumer groups a flow takes.

Rules (MirrorMaker 2's `DefaultTopicFilter` and `DefaultGroupFilter`): lists of Java regular expressions, each matched
against the whole name; what is excluded is never selected; an empty list matches nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from mirrorless.policy import policy_for, should_replicate
from mirrorless.settings.patterns import compile_patterns

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Sequence

    from mirrorless.settings import Flow

__all__ = ["GroupFilter", "TopicFilter", "compile_patterns", "replicated_topics"]


@dataclass(frozen=True, slots=True)
class _NameFilter:
    """Names that match one of `include` and none of `exclude`; ValueError for a pattern that does not compile."""

    include: Sequence[str]
    exclude: Sequence[str]
    _included: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)
    _excluded: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, patterns in (("include", self.include), ("exclude", self.exclude)):
            object.__setattr__(self, name, tuple(patterns))
            object.__setattr__(self, f"_{name}d", compile_patterns(patterns))

    def selects(self, name: str) -> bool:
        """Whether the filter lets this name through."""
        return _any_matches(self._included, name) and not _any_matches(self._excluded, name)


class TopicFilter(_NameFilter):
    """The topics a flow takes, before policy and cycles have their say."""

    __slots__ = ()

    @classmethod
    def of(cls, flow: Flow) -> Self:
        """Build the filter from `topics` and `topics.exclude`."""
        return cls(flow.topics, flow.topics_exclude)


class GroupFilter(_NameFilter):
    """The consumer groups whose offsets a flow takes."""

    __slots__ = ()

    @classmethod
    def of(cls, flow: Flow) -> Self:
        """Build the filter from `groups` and `groups.exclude`."""
        return cls(flow.groups, flow.groups_exclude)


def replicated_topics(flow: Flow) -> Callable[[str], bool]:
    """Return the test whether a flow replicates a topic of its source: filter, heartbeats, internal topics and cycles.

    Raises ConfigurationError where the flow names a policy that does not exist here.
    """
    policy = policy_for(flow)
    selects = TopicFilter.of(flow).selects
    return lambda topic: should_replicate(topic, flow=flow, policy=policy, selects=selects)


def _any_matches(patterns: tuple[re.Pattern[str], ...], name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)
