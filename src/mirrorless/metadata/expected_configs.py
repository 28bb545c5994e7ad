"""The configs that remote topics have, or will have once created and once their configs are synced. No I/O itself.

Broker defaults of the target are known from topics that exist. For a topic to be created, or a config that is about to
be deleted, the target is asked by `would_be`: which configs a new topic would get.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.configs import Origin
from mirrorless.metadata.config_plan import creation_config
from mirrorless.metadata.timestamp_limits import AGE_LIMITS, lifted_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mirrorless.clusters.configs import Configs
    from mirrorless.clusters.effective_configs import EffectiveConfigs
    from mirrorless.filters import ConfigFilter
    from mirrorless.settings import Flow

Ask = "Callable[[str, Mapping[str, str]], EffectiveConfigs | str]"
"""Returns the configs that a new topic of this name with these configs would get; a string says why it is unknown."""
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPair:
    """A source topic with its partition count and configs, and its remote topic as it is or will be.

    `replicas` of the remote topic are None if unknown; `is_there` says whether it exists yet.
    """

    topic: str
    remote: str
    partitions: int
    source: Configs
    target: Mapping[str, str | None]
    replicas: int | None
    is_there: bool

    def limit(self, name: str) -> int | None:
        """The remote topic's number for a config; None if it has none, or one without effect."""
        return _limit(self.target.get(name))

    def source_limit(self, name: str) -> int | None:
        """The source topic's number for a config."""
        return _limit(self.source[name].value) if name in self.source else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is known of the target: visible topics with their replicas, and configs of those described."""

    replicas: Mapping[str, int]
    configs: Mapping[str, Configs]


class Unread:
    """Reasons why the configs of topics are not known, each with its topics."""

    def __init__(self) -> None:
        self._topics: dict[str, list[str]] = {}

    def add(self, reason: str, topics: Iterable[str]) -> None:
        """Add a reason, in which `{}` stands for the topics."""
        if names := list(topics):
            self._topics.setdefault(reason, []).extend(names)

    def __str__(self) -> str:
        return "; ".join(reason.replace("{}", _some(names)) for reason, names in self._topics.items())


def topic_pairs(
    flow: Flow,
    *,
    remote: Mapping[str, str],
    counts: Mapping[str, int],
    chosen: ConfigFilter,
    source: Mapping[str, Configs],
    target: Target,
    would_be: Callable[[str, Mapping[str, str]], EffectiveConfigs | str],
    unread: Unread,
) -> Iterator[TopicPair]:
    """Yield a pair for each topic of `remote` whose configs are known; the others are added to `unread`."""
    asked: dict[frozenset[tuple[str, str]], EffectiveConfigs | str] = {}

    def ask(name: str, config: Mapping[str, str]) -> EffectiveConfigs | str:
        like = frozenset(config.items())
        if like not in asked:
            asked[like] = _asked(would_be, name, config)
        return asked[like]

    for topic, name in remote.items():
        if topic not in source or (name in target.replicas and name not in target.configs):
            continue
        config = creation_config(chosen, source[topic])
        replicas = target.replicas.get(name)
        if name in target.configs:
            there = target.configs[name]
            found = {key: one.value for key, one in there.items()}
            if flow.sync_topic_configs_enabled:
                found |= {key: value for key, value in config.items() if key in found}
                deleted = [key for key in there if _is_to_be_deleted(key, there, source[topic], chosen)]
                after = ask(name, config) if deleted else ""
                if not isinstance(after, str) and after.configs is not None:
                    found |= {key: after.configs[key] for key in deleted if key in after.configs}
                found |= lifted_limits(chosen, source[topic], found)
        else:
            after = ask(name, config)
            if isinstance(after, str) or after.configs is None:
                unread.add(after if isinstance(after, str) else _silent(flow.target.alias), [name])
                continue
            found = dict(after.configs)
            found |= lifted_limits(chosen, source[topic], found)
            replicas = after.replication_factor if flow.replication_factor == -1 else flow.replication_factor
        yield TopicPair(
            topic=topic,
            remote=name,
            partitions=counts[topic],
            source=source[topic],
            target=found,
            replicas=replicas,
            is_there=name in target.configs,
        )


def _asked(
    would_be: Callable[[str, Mapping[str, str]], EffectiveConfigs | str], name: str, config: Mapping[str, str]
) -> EffectiveConfigs | str:
    """Ask with the source's configs, and without them if the target refuses them."""
    answer: EffectiveConfigs | str = ""
    for wanted in (config, {}):
        answer = would_be(name, wanted)
        if isinstance(answer, str) or not answer.error_code:
            return answer
    assert not isinstance(answer, str)
    return f"{{}} would not be created: {answer.reason}"


def _is_to_be_deleted(key: str, there: Configs, source: Configs, chosen: ConfigFilter) -> bool:
    """Whether the config sync is about to delete a topic's own value, so that the target's default applies."""
    if there[key].origin != Origin.TOPIC or key not in source or source[key].fixed or key in AGE_LIMITS:
        return False
    return chosen.selects(key) and source[key].origin == Origin.DEFAULT and not chosen.selects_default(key)


def _silent(alias: str) -> str:
    return f"{alias} does not show what configs {{}} would get; grant DESCRIBE_CONFIGS"


def _limit(value: str | None) -> int | None:
    return None if value is None or int(value) >= 2**63 - 1 else int(value)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
