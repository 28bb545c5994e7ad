r"""Names of topics by the rules of `mirrorless.topics.rename`, and back. No I/O.

A name belongs to one topic. Where the rules allow several, as `legacy\.(.*) -> $1` does for `legacy.t` and `t`, it
is the one that was copied, else the only one that exists, else the one that existed first; other topics of that name
are not copied. A topic that nothing is known of is given to the first rule that can be inverted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.errors import ConfigurationError
from mirrorless.known_topics import copied_by, topics_of
from mirrorless.name_filters import topic_filter_for
from mirrorless.settings.rename_rules import rules_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.settings import Flow

KEY: Final = "mirrorless.topics.rename"


class Renaming:
    """The names of a flow's topics: those of its own rules, or the inverse of those of the flow that it inverts.

    Topics that `keeps` accepts are never renamed.
    """

    def __init__(self, flow: Flow, *, keeps: Callable[[str], bool]) -> None:
        self._flow = flow
        self._ruled = flow if flow.inverts is None else flow.inverts
        self._rules = rules_of(self._ruled.topics_rename)
        self._selects = topic_filter_for(self._ruled).selects
        self._keeps = keeps
        self._given: dict[str, str] = {}
        self._possible: dict[str, list[str]] = {}

    def renamed(self, topic: str) -> str | None:
        """Return the name that a topic of the source has on the target, before the policy; None if it has none."""
        return self._name(topic) if self._flow is self._ruled else self._owner(topic)

    def origin(self, name: str) -> str | None:
        """Return the topic of the source that has a name on the target; None if none can have it."""
        return self._owner(name) if self._flow is self._ruled else self._name(name)

    def clash(self, topic: str, name: str) -> str | None:
        """Return why a topic must not get a name that another one has, None if the name is its own."""
        if self._flow is not self._ruled or (owner := self._owner(name)) == topic:
            return None
        other = owner or next(one for one in self._existing(name) if one != topic)
        rule = next((rule for rule in self._rules if self._name(other) == name != other and rule.apply(other)), None)
        how = "keeps its name" if rule is None else f"is renamed by rule {rule.text!r}"
        was = "was copied or existed first" if owner is not None else "exists too"
        return (
            f"would be named {name} on {self._flow.target.alias}, as is {other}, which {how} and {was}: their records "
            f"would be mixed; exclude one of them with topics.exclude, or give it another name ({KEY})"
        )

    def nameless(self, topic: str) -> str:
        """Return why a topic of the source has no name on the target."""
        ruled, there = self._ruled.name, self._flow.target.alias
        if existing := self._existing(topic):
            return (
                f"is the name of {' and of '.join(sorted(existing))} of {there} by the rules of {ruled}, and which of "
                f"them was copied is not known; {self.advice}"
            )
        return (
            f"is not the name of any topic of {there} by the rules of {ruled}, so it has no name there; exclude it "
            f"with topics.exclude, or add a rule to {ruled}.{KEY}"
        )

    @property
    def advice(self) -> str:
        """What can be done about a topic with a name that cannot be used."""
        return f"exclude it with topics.exclude, or change its rule in {self._ruled.name}.{KEY}"

    def never(self, reserved_for: Callable[[str], str | None]) -> ConfigurationError | None:
        """Return the error of the first rule that can never be followed, None if there is none.

        `reserved_for` returns what keeps topics of a name for itself.
        """
        for rule in self._rules:
            name = rule.example
            if (owner := reserved_for(name)) is not None:
                what = name if rule.only_name else f"names such as {name}"
                return self._error(f"rule {rule.text!r} gives {what}, an internal topic of {owner}; give another name")
        return None

    def _error(self, reason: str) -> ConfigurationError:
        rules = ", ".join(self._ruled.topics_rename)
        return ConfigurationError(f"flow {self._ruled.name}: {reason}", key=KEY, value=rules)

    def _name(self, topic: str) -> str:
        """Apply the first rule that matches."""
        name = self._given.get(topic)
        if name is None:
            name = self._given[topic] = topic if self._keeps(topic) else self._first(topic)
        return name

    def _first(self, topic: str) -> str:
        return next((name for rule in self._rules if (name := rule.apply(topic)) is not None), topic)

    def _owner(self, name: str) -> str | None:
        """Return the topic that has a name on the target; None if none can, or if several exist and none was first."""
        possible = self._topics(name)
        if len(possible) < 2:
            return possible[0] if possible else None
        copied = [topic for topic in possible if topic in copied_by(self._ruled)]
        if len(copied) == 1:
            return copied[0]
        since = topics_of(self._ruled.source.bootstrap_servers)
        existing = sorted(self._existing(name), key=since.__getitem__)
        if not existing:
            return possible[0]
        return None if len(existing) > 1 and since[existing[0]] == since[existing[1]] else existing[0]

    def _existing(self, name: str) -> list[str]:
        known = topics_of(self._ruled.source.bootstrap_servers)
        return [topic for topic in self._topics(name) if topic in known]

    def _topics(self, name: str) -> list[str]:
        """Return every topic that may have a name on the target: those that the flow selects, if it selects any."""
        found = self._possible.get(name)
        if found is None:
            # A rule for one topic says more than one for many.
            rules = sorted(self._rules, key=lambda rule: rule.only_topic is None)
            every = [topic for rule in rules for topic in rule.inverted(name)]
            found = list(dict.fromkeys(topic for topic in (*every, name) if self._name(topic) == name))
            found = self._possible[name] = list(filter(self._selects, found)) or found
        return found
