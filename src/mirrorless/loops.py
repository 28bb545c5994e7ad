"""Finds topics that flows of one file would replicate in a loop, because each flow keeps the topic's name.

With `IdentityReplicationPolicy`, or any policy that keeps names, B cannot distinguish the records that A->B copied from
its own, and B->A copies them back. The rule uses names only; no I/O. A topic that is renamed on its way is followed
under the name that it has on each cluster.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from mirrorless.errors import LoopError
from mirrorless.filters import replicated_topics
from mirrorless.modes import Modes
from mirrorless.policy import DefaultReplicationPolicy, keeps_names, policy_for, without_renaming
from mirrorless.settings.patterns import FIXED, plain_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mirrorless.settings import Cluster, Flow


@dataclass(frozen=True, slots=True)
class _Step:
    """One flow of a cycle: `there` is the name that a topic of its source has on its target, without a prefix.

    It is None for a topic that the flow does not replicate; `here` is the other way round.
    """

    flow: Flow
    there: Callable[[str], str | None]
    here: Callable[[str], str | None]


class Loops:
    """The loops that a flow of a file is part of; raises ConfigurationError if a policy or filter cannot be used."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        modes = Modes(flow)
        ends = (flow.source.alias, flow.target.alias)
        others = {end.alias: end for one in flow.circle for end in (one.source, one.target)}
        self.ways_back = [one.name for one in flow.circle]
        """The flows that lead back to the source, by name."""
        self.elsewhere = [end for alias, end in others.items() if alias not in ends]
        """The clusters of these flows that are no end of this one."""
        self._name_here = modes.name_here
        self._skips, self._other_turn = modes.skips_copies, modes.other_turn
        on_circle = (flow, *flow.circle) if flow.circle else ()
        self._steps = [step for one in on_circle if (step := _step(one)) is not None]
        self.possible = self._path([step.flow for step in self._steps]) is not None
        """Whether the flows and their policies allow a loop, whatever topics they select."""

    def named(self) -> frozenset[str]:
        """Plain topic names in the lists of the flows, whether these topics exist or not."""
        return frozenset(name for step in self._steps for pattern in step.flow.topics if (name := plain_name(pattern)))

    def find(self, topics: Iterable[str]) -> dict[str, tuple[Flow, ...]]:
        """Return those of the topics that would loop, each with the flows of its loop, this one first."""
        found: dict[str, tuple[Flow, ...]] = {}
        if self.possible:
            every = set(topics)
            every |= {topic for name in every if (topic := self._name_here(name)) is not None}
            for topic in sorted(every):
                path = self._path(self._with(topic))
                if path is not None:
                    found[topic] = path
        return found

    def skipped(self, topic: str) -> tuple[Cluster, ...]:
        """Return the clusters whose records this flow skips in a topic of its source, if it skips copies.

        They are copied to the source under the topic's name, and are the target or have a flow to it that selects the
        topic.
        """
        if not self._skips:
            return ()
        flows = self._with(topic)
        if self._flow not in flows:
            return ()
        here, there = self._flow.source.alias, self._flow.target.alias
        direct = {there, *(flow.source.alias for flow in flows if flow.target.alias == there)}
        return tuple(flow.source for flow in flows if flow.target.alias == here and flow.source.alias in direct)

    def refuse(self, topics: Iterable[str]) -> None:
        """Raise `LoopError` if one of the topics would loop."""
        if found := self.find(topics):
            topic, path = next(iter(found.items()))
            raise LoopError(
                flow=self._flow.name,
                path=tuple(one.name for one in path),
                topic=topic,
                more=len(found) - 1,
                lacking=self._lacking(self._with(topic)),
            )

    def names(self, topic: str) -> dict[str, str]:
        """Return the names of a topic of the source, by the alias of each cluster that flows connect with it.

        Where flows lead to it comes first. A flow back to a cluster under another name is followed no further.
        """
        found = {self._flow.source.alias: topic}
        for directions in ((True,), (True, False)):
            ahead = list(found)
            for alias in ahead:
                for step, is_forward in product(self._steps, directions):
                    ends = step.flow.source.alias, step.flow.target.alias
                    here, there = ends if is_forward else (ends[1], ends[0])
                    if here != alias or there in found:
                        continue
                    name = step.there(found[alias]) if is_forward else step.here(found[alias])
                    if name is not None:
                        found[there] = name
                        ahead.append(there)
        return found

    def _with(self, topic: str) -> list[Flow]:
        """Return the flows that replicate a topic of the source, under the name that it has on their sources.

        One that brings it back under another name, which is not replicated further, closes no loop.
        """
        names = self.names(topic)
        found: list[Flow] = []
        for step in self._steps:
            there = step.there(names.get(step.flow.source.alias, topic))
            if there is None:
                continue
            is_home = step.flow.target.alias == self._flow.source.alias
            if not is_home or there == topic or any(one.flow is self._flow and one.there(there) for one in self._steps):
                found.append(step.flow)
        return found

    def undecided(self) -> tuple[Flow, ...] | None:
        """Return flows of a cycle whose patterns may all match one topic; whether it exists, only the clusters know."""
        usable = [step.flow for step in self._steps if _is_open(step.flow)]
        path = self._path(usable) if self.possible else None
        if path is None or not all(_overlap(one, other) for one, other in product(path, repeat=2)):
            return None
        return path

    def _path(self, flows: list[Flow]) -> tuple[Flow, ...] | None:
        """The shortest loop that begins with this flow, None if there is none or if each of its flows skips copies."""
        path = self._back(flows)
        if path is None or not all(flow.directions == "skip" for flow in path):
            return path
        return path if self._lacking(flows) is not None else None

    def _lacking(self, flows: list[Flow]) -> str | None:
        """The name of a flow without which records would not arrive where a flow that skips copies leads.

        Records of a third cluster are not copied on: they need a flow of their own.
        """
        there = {flow.name for flow in flows}
        for flow in flows:
            if flow.directions != "skip":
                continue
            for other in flows:
                wanted = f"{other.source.alias}->{flow.target.alias}"
                leads_here = other.target.alias == flow.source.alias and other.source.alias != flow.target.alias
                if leads_here and wanted not in there:
                    return wanted
        return None

    def _back(self, flows: list[Flow]) -> tuple[Flow, ...] | None:
        """The shortest path that begins with this flow and ends at its source, through `flows`."""
        if self._flow not in flows:
            return None
        flows = [flow for flow in flows if self._other_turn is None or flow.name != self._other_turn.name]
        paths: list[tuple[Flow, ...]] = [(self._flow,)]
        reached = {self._flow.target.alias}
        for path in paths:
            if path[-1].target.alias == self._flow.source.alias:
                return path
            for flow in flows:
                if flow.source.alias == path[-1].target.alias and flow.target.alias not in reached:
                    reached.add(flow.target.alias)
                    paths.append((*path, flow))
        return None


def _step(flow: Flow) -> _Step | None:
    policy = policy_for(flow)
    if type(without_renaming(policy)) is DefaultReplicationPolicy:
        return None
    replicates, alias, modes = replicated_topics(flow), flow.source.alias, Modes(flow)

    def there(topic: str) -> str | None:
        return modes.name_there(topic) if keeps_names(policy, alias, topic) and replicates(topic) else None

    def here(name: str) -> str | None:
        topic = modes.name_here(name)
        return None if topic is None or there(topic) is None else topic

    return _Step(flow, there, here)


def _is_open(flow: Flow) -> bool:
    """Whether a flow may select topics that its list does not name."""
    return not flow.topic_filter_class.endswith("DefaultTopicFilter") or None in map(plain_name, flow.topics)


def _overlap(one: Flow, other: Flow) -> bool:
    """Whether a topic may match patterns of both lists, judged by how the patterns begin."""
    return any(
        here.startswith(there) or there.startswith(here)
        for here, there in product(_beginnings(one), _beginnings(other))
    )


def _beginnings(flow: Flow) -> list[str]:
    patterns = flow.topics
    if not flow.topic_filter_class.endswith("DefaultTopicFilter") or any("(?" in pattern for pattern in patterns):
        return [""]
    return [_beginning(pattern) for pattern in patterns]


def _beginning(pattern: str) -> str:
    if "|" in pattern:
        return ""
    text = re.sub(r"\\([\-_])", r"\1", pattern)
    fixed = "".join(FIXED.findall(text)[:1])
    optional = text[len(fixed) : len(fixed) + 1] in ("*", "?", "{", "+")
    return fixed[:-1] if optional else fixed
