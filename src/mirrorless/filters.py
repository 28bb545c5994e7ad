"""Filters of topics, consumer groups and topic configs.

Rules (MirrorMaker 2's `DefaultTopicFilter`, `DefaultGroupFilter` and `DefaultConfigPropertyFilter`): lists of Java
regular expressions, each matched against the whole name; excluded names are never selected; an empty list matches
nothing. Each filter can be replaced by a custom class, built with `of(flow)`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, Self

from mirrorless.name_filters import (
    GroupFilter,
    NameFilter,
    PatternFilter,
    TopicFilter,
    group_filter_for,
    topic_filter_for,
)
from mirrorless.policy import policy_for, why_not_named
from mirrorless.selection import LeftOut, left_out
from mirrorless.service_topics import examined_on, service_of
from mirrorless.settings.classes import build
from mirrorless.settings.patterns import compile_patterns, plain_name

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Sequence

    from mirrorless.policy import ReplicationPolicy
    from mirrorless.settings import Flow

__all__ = [
    "ConfigFilter",
    "ConfigPropertyFilter",
    "GroupFilter",
    "NameFilter",
    "TopicFilter",
    "config_filter_for",
    "group_filter_for",
    "topic_filter_for",
]


class ConfigFilter(Protocol):
    """The interface of filters of topic configs, by their names."""

    def selects(self, name: str) -> bool:
        """Whether the config of this name is replicated."""
        ...

    def selects_default(self, name: str) -> bool:
        """Whether a config at its default on the source is set on the target, instead of the target's default."""
        ...


@dataclass(frozen=True, slots=True)
class ConfigPropertyFilter:
    """The topic configs that are replicated: all that match none of `exclude`; with `defaults`, default values too."""

    exclude: Sequence[str]
    defaults: bool = False
    _excluded: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "exclude", tuple(self.exclude))
        object.__setattr__(self, "_excluded", compile_patterns(self.exclude))

    @classmethod
    def of(cls, flow: Flow) -> Self:
        """Build the filter from `config.properties.exclude` and `use.defaults.from`."""
        return cls(flow.config_properties_exclude, flow.use_defaults_from == "source")

    def selects(self, name: str) -> bool:
        """Whether the config of this name is replicated."""
        return not any(pattern.fullmatch(name) for pattern in self._excluded)

    def selects_default(self, name: str) -> bool:  # noqa: ARG002 -- a custom filter may distinguish names
        """Whether `use.defaults.from` is `source`."""
        return self.defaults


class _BuildsConfigFilter(Protocol):
    def of(self, flow: Flow) -> ConfigFilter: ...


_CONFIG_FILTERS: Final[dict[str, _BuildsConfigFilter]] = {"DefaultConfigPropertyFilter": ConfigPropertyFilter}


def config_filter_for(flow: Flow) -> ConfigFilter:
    """Build the class that `config.property.filter.class` names; raises ConfigurationError if it cannot be imported."""
    text, methods = flow.config_property_filter_class, ("selects", "selects_default")
    return build(flow, key="config.property.filter.class", text=text, built_in=_CONFIG_FILTERS, methods=methods)


def why_left_out(flow: Flow) -> Callable[[str], tuple[LeftOut, str] | None]:
    """Return a function that returns why a flow does not replicate a topic of its source: kind and reason, or None.

    Raises ConfigurationError if the flow's policy or filter cannot be imported.
    """
    policy, topics = policy_for(flow), topic_filter_for(flow)
    mixes, by_records = _mixing(flow, policy, topics), examined_on(flow.source).services

    def service(topic: str) -> str | None:
        """The service whose state a topic is, by its name or by what was read of it."""
        return (service_of(topic) or by_records.get(topic)) if mixes(topic) else None

    def ask(topic: str) -> tuple[LeftOut, str] | None:
        kind = left_out(topic, flow=flow, policy=policy, selects=topics.selects)
        match kind:
            case None if (reason := why_not_named(topic, policy)) is not None:
                return LeftOut.NAME, reason
            case None | LeftOut.SERVICE | LeftOut.NAME:
                why = "the target's own has a topic of this name too; name it in topics to copy it"
                return None if (whose := service(topic)) is None else (LeftOut.SERVICE, f"state of {whose}; {why}")
            case LeftOut.INTERNAL:
                return kind, "internal topic of Kafka, Connect or MirrorMaker"
            case LeftOut.CYCLE:
                on_target = policy.is_cycle(topic, flow.target.alias)
                return kind, f"was already replicated from {(flow.target if on_target else flow.source).alias}"
            case LeftOut.FILTER:
                told = topics.refusal(topic) if isinstance(topics, PatternFilter) else None
                return kind, told or f"{flow.topic_filter_class} does not select it"

    return ask


def may_mix_state(flow: Flow) -> Callable[[str], bool]:
    """Return the test whether a service's state in a topic would be mixed with that of the target's service.

    It is where the copy has the topic's name, unless `topics` has it exactly; a custom filter is taken at its word.
    """
    return _mixing(flow, policy_for(flow), topic_filter_for(flow))


def _mixing(flow: Flow, policy: ReplicationPolicy, topics: NameFilter) -> Callable[[str], bool]:
    if type(topics) is not TopicFilter:
        return lambda _: False
    named, alias = {plain_name(pattern) for pattern in flow.topics}, flow.source.alias
    return lambda topic: topic not in named and policy.format_remote_topic(alias, topic) == topic


def replicated_topics(flow: Flow) -> Callable[[str], bool]:
    """Return the test whether a flow replicates a topic of its source: filter, heartbeats, internal topics and cycles.

    Raises ConfigurationError if the flow's policy or filter cannot be imported.
    """
    ask = why_left_out(flow)
    return lambda topic: ask(topic) is None
