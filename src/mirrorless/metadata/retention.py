"""Finds remote topics that delete records sooner than their source topics, by retention. No I/O.

Compared are the effective `retention.ms` and `retention.bytes`, including broker defaults. A topic whose
`cleanup.policy` does not include `delete` has no limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.configs import Origin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mirrorless.filters import ConfigFilter
    from mirrorless.metadata.expected_configs import TopicPair
    from mirrorless.settings import Flow

TIME: Final = "retention.ms"
SIZE: Final = "retention.bytes"
_POLICY: Final = "cleanup.policy"
_UNLIMITED: Final = -1
# The value of an unlimited retention when topics are ordered by how much shorter the target's is.
_ALWAYS: Final = {TIME: 10 * 365 * 86_400_000, SIZE: 10 << 40}
_SHOWN: Final = 3
_UNITS: Final = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second"))


@dataclass(frozen=True, slots=True)
class Shorter:
    """A remote topic with a lower limit than its source topic for one config; -1 is no limit."""

    pair: TopicPair
    name: str
    ours: int
    theirs: int

    def __str__(self) -> str:
        return (
            f"{self.pair.remote} {_shown(self.name, self.ours)} ({self.pair.topic}: {_shown(self.name, self.theirs)})"
        )

    @property
    def share(self) -> float:
        """The target's retention as a share of the source's."""
        return self.ours / (_ALWAYS[self.name] if self.theirs == _UNLIMITED else max(1, self.theirs))


@dataclass(frozen=True, slots=True)
class RetentionComparison:
    """One line about the shortest, and one on what to do."""

    text: str
    fix: str


def compare_retention(flow: Flow, chosen: ConfigFilter, pairs: Iterable[TopicPair]) -> RetentionComparison | None:
    """Compare the retention of each topic with its remote topic's; None if none is shorter."""
    pairs = list(pairs)
    found = sorted((one for pair in pairs for one in _shorter(pair)), key=lambda one: (one.share, one.pair.remote))
    worst: dict[str, Shorter] = {}
    for one in found:
        worst.setdefault(one.pair.remote, one)
    if not worst:
        return None
    source, target = flow.source.alias, flow.target.alias
    named = list(map(str, worst.values()))
    more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    text = (
        f"retention of {len(named)} of {len(pairs)} topics is shorter on {target} than on {source}, so their records "
        f"are deleted sooner: {', '.join(named[:_SHOWN])}{more}"
    )
    return RetentionComparison(text, _fix(flow, chosen, found))


def _shorter(pair: TopicPair) -> Iterable[Shorter]:
    for name in (TIME, SIZE):
        theirs = _kept(name, lambda key: pair.source[key].value if key in pair.source else None)
        ours = _kept(name, pair.target.get)
        if theirs is not None and ours is not None and ours != _UNLIMITED and (theirs == _UNLIMITED or ours < theirs):
            yield Shorter(pair, name, ours, theirs)


def _kept(name: str, value_of: Callable[[str], str | None]) -> int | None:
    """A topic's retention, -1 for no limit, None if unknown."""
    policy, value = value_of(_POLICY), value_of(name)
    if policy is None or value is None:
        return None
    if "delete" not in policy:
        return _UNLIMITED
    return max(_UNLIMITED, int(value))


def _fix(flow: Flow, chosen: ConfigFilter, found: list[Shorter]) -> str:
    """The settings that would help, by the origin of the source's values and whether they are replicated."""
    names = sorted({one.name for one in found})
    followed = [
        one for one in found if chosen.selects(one.name) and (flow.sync_topic_configs_enabled or not one.pair.is_there)
    ]
    ways: list[str] = []
    if any(one.pair.source[one.name].origin == Origin.DEFAULT for one in followed):
        ways.append("use.defaults.from=source")
    if followed:
        ways.append(f"{' and '.join(names)} on the source topics")
    if len(followed) < len(found):
        ways.append(f"{' and '.join(names)} on the remote topics")
    brokers = " and ".join(f"log.{name}" for name in names)
    return f"set {', or '.join(ways)}, or raise {brokers} of {flow.target.alias}'s brokers"


def _shown(name: str, value: int) -> str:
    if value == _UNLIMITED:
        return "no limit"
    if name == SIZE:
        return f"{value:,} bytes"
    for unit, word in _UNITS:
        if value >= unit and value % unit == 0:
            return f"{value // unit} {word}{'' if value == unit else 's'}"
    return f"{value} ms"
