"""Filters of names: the topics that a flow selects, and the consumer groups. `filters` has what else decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, Self

from mirrorless.settings.classes import build
from mirrorless.settings.patterns import Patterns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.settings import Flow


class NameFilter(Protocol):
    """The interface of filters of topics and of consumer groups."""

    def selects(self, name: str) -> bool:
        """Whether the filter selects this name."""
        ...


@dataclass(frozen=True, slots=True)
class PatternFilter:
    """Names that match one of `include` and none of `exclude`; ValueError for a pattern that does not compile."""

    include: Sequence[str]
    exclude: Sequence[str]
    _included: Patterns = field(init=False, repr=False, compare=False)
    _excluded: Patterns = field(init=False, repr=False, compare=False)
    _key: ClassVar[str]

    def __post_init__(self) -> None:
        for name, patterns in (("include", self.include), ("exclude", self.exclude)):
            object.__setattr__(self, name, tuple(patterns))
            object.__setattr__(self, f"_{name}d", Patterns(patterns))

    def selects(self, name: str) -> bool:
        """Whether the filter selects this name."""
        return self.refusal(name) is None

    def refusal(self, name: str) -> str | None:
        """Return why the filter does not select this name, or None."""
        if not self._included.match(name):
            return f"no pattern of {self._key} matches"
        excluding = self._excluded.first(name)
        return None if excluding is None else f"{excluding} of {self._key}.exclude matches"


class TopicFilter(PatternFilter):
    """The topics that a flow selects, before policy and cycles are checked."""

    __slots__ = ()
    _key = "topics"

    @classmethod
    def of(cls, flow: Flow) -> Self:
        """Build the filter from `topics` and `topics.exclude`."""
        return cls(flow.topics, flow.topics_exclude)


class GroupFilter(PatternFilter):
    """The consumer groups whose offsets a flow translates."""

    __slots__ = ()
    _key = "groups"

    @classmethod
    def of(cls, flow: Flow) -> Self:
        """Build the filter from `groups` and `groups.exclude`."""
        return cls(flow.groups, flow.groups_exclude)


_SELECTS: Final = ("selects",)


class _BuildsNameFilter(Protocol):
    def of(self, flow: Flow) -> NameFilter: ...


_TOPIC_FILTERS: Final[dict[str, _BuildsNameFilter]] = {"DefaultTopicFilter": TopicFilter}
_GROUP_FILTERS: Final[dict[str, _BuildsNameFilter]] = {"DefaultGroupFilter": GroupFilter}


def topic_filter_for(flow: Flow) -> NameFilter:
    """Build the class that `topic.filter.class` names; raises ConfigurationError if it cannot be imported."""
    text = flow.topic_filter_class
    return build(flow, key="topic.filter.class", text=text, built_in=_TOPIC_FILTERS, methods=_SELECTS)


def group_filter_for(flow: Flow) -> NameFilter:
    """Build the class that `group.filter.class` names; raises ConfigurationError if it cannot be imported."""
    text = flow.group_filter_class
    return build(flow, key="group.filter.class", text=text, built_in=_GROUP_FILTERS, methods=_SELECTS)
