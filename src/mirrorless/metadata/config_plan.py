"""Plans the configs that remote topics are created with, and the changes that make them match their source. No I/O.

Rules: `MirrorSourceConnector.targetConfig` of MirrorMaker 2 4.3. Static broker configs of the source are never
replicated; dynamic ones are; a default is deleted on the target, so that the target's default applies, or set if the
filter selects it (`use.defaults.from`). Limits on the age of records are an exception (`timestamp_limits`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mirrorless.clusters.configs import Origin
from mirrorless.metadata.actions import AlterConfigs, ConfigDifference
from mirrorless.metadata.fences import FENCED_BYTES, MAX_BYTES
from mirrorless.metadata.timestamp_limits import AGE_LIMITS, is_replicated, lifted_limits, why_lifted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mirrorless.clusters.configs import Configs, ConfigValue
    from mirrorless.filters import ConfigFilter


def creation_config(chosen: ConfigFilter, source: Configs) -> dict[str, str]:
    """Return the configs of a new remote topic: the source's, without defaults unless the filter selects them."""
    return {
        name: one.value
        for name, one in _followed(chosen, source)
        if one.value is not None and not _left_to_target(chosen, name, one)
    }


def plan_configs(
    chosen: ConfigFilter,
    *,
    remote: Mapping[str, str],
    source: Mapping[str, Configs],
    target: Mapping[str, Configs],
) -> tuple[list[AlterConfigs], list[str]]:
    """Compare the configs of every replicated topic that both sides could describe; `remote` is by source topic.

    Returns actions, and a note for each config that the target's older brokers do not support and so never accept.
    """
    actions: list[AlterConfigs] = []
    unknown: dict[str, list[str]] = defaultdict(list)
    for topic, name in remote.items():
        if topic not in source or name not in target:
            continue
        differences = tuple(_differences(chosen, source[topic], target[name]))
        reasons = [f"to match {topic}"] if differences else []
        now = {config: one.value for config, one in target[name].items()}
        after = now | {one.name: one.upstream for one in differences if not one.delete}
        if lifted := lifted_limits(chosen, source[topic], after):
            reasons.append(why_lifted(topic, lifted, after))
            differences += tuple(
                ConfigDifference(name=config, upstream=value, downstream=now[config])
                for config, value in lifted.items()
            )
        if differences:
            actions.append(AlterConfigs(topic=name, differences=differences, reason="; ".join(reasons)))
        for config in creation_config(chosen, source[topic]).keys() - target[name].keys():
            unknown[config].append(name)
    notes = [
        f"the target's brokers do not support config {config}; it is not set on {len(names)} topics, among them "
        f"{names[0]}"
        for config, names in sorted(unknown.items())
    ]
    return actions, notes


def _differences(chosen: ConfigFilter, source: Configs, target: Configs) -> Iterator[ConfigDifference]:
    for name, wanted in _followed(chosen, source):
        now = target.get(name)
        if now is None or (name == MAX_BYTES and now.value == FENCED_BYTES):
            continue  # the fence of an operation away from the target, where both directions have the same topics
        own = now.origin == Origin.TOPIC
        if _left_to_target(chosen, name, wanted):
            if own and name not in AGE_LIMITS:
                yield ConfigDifference(name=name, upstream=wanted.value, downstream=now.value, delete=True)
        elif wanted.value is not None and not (own and now.value == wanted.value):
            yield ConfigDifference(name=name, upstream=wanted.value, downstream=now.value)


def _followed(chosen: ConfigFilter, source: Configs) -> Iterator[tuple[str, ConfigValue]]:
    for name in sorted(source):
        one = source[name]
        followed = not one.fixed and one.origin != Origin.STATIC_BROKER and is_replicated(name, one)
        if followed and chosen.selects(name):
            yield name, one


def _left_to_target(chosen: ConfigFilter, name: str, one: ConfigValue) -> bool:
    return one.origin == Origin.DEFAULT and not chosen.selects_default(name)
