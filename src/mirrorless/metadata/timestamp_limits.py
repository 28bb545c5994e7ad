"""Lifts a target's limit on the age of records from remote topics, so that it accepts what the source has. No I/O.

A broker refuses a record whose timestamp is older than the topic's `message.timestamp.before.max.ms` (KIP-937), unless
the topic replaces timestamps (`message.timestamp.type=LogAppendTime`). Kafka's default is no limit. Express brokers of
MSK have 86400000, one day ("Custom Express broker configurations" in the MSK developer guide). Brokers before 3.6 have
`message.timestamp.difference.max.ms` instead; until 4.0 it applies if the other one has no limit
(`LogConfig.messageTimestampBeforeMaxMs`).

A value of the source topic itself is replicated as any other config. All other values of these two configs are not: a
copied record is older than it was when the source accepted it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.configs import Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.clusters.configs import Configs, ConfigValue
    from mirrorless.filters import ConfigFilter
    from mirrorless.metadata.actions import CreateTopic

BEFORE: Final = "message.timestamp.before.max.ms"
AGE_LIMITS: Final = (BEFORE, "message.timestamp.difference.max.ms")
UNLIMITED: Final = str(2**63 - 1)
_TYPE: Final = "message.timestamp.type"
_REPLACES: Final = "LogAppendTime"
_KEPT: Final = ("retention.ms", "segment.ms")
"""A segment is deleted once its latest record is older than the retention; others may be older by its length."""
_DAY_MS: Final = 86_400_000


def lifted_limits(chosen: ConfigFilter, source: Configs, target: Mapping[str, str | None]) -> dict[str, str]:
    """Return the configs to set on a remote topic so that it refuses no record of its source topic for its age.

    `target` are the remote topic's effective configs without these. Nothing is set if the filter excludes `BEFORE`, or
    if the source topic has a limit of its own that is replicated.
    """
    limited = [name for name in AGE_LIMITS if _limit(source, name) is not None]
    own = any(is_replicated(name, source[name]) and chosen.selects(name) for name in limited)
    if own or not chosen.selects(BEFORE) or target.get(_TYPE) == _REPLACES:
        return {}
    oldest_ms = _oldest_ms(source)
    limits = {name: int(value) for name in AGE_LIMITS if (value := target.get(name)) not in (None, UNLIMITED)}
    return {name: UNLIMITED for name, limit in limits.items() if oldest_ms is None or limit < oldest_ms}


def is_replicated(name: str, one: ConfigValue) -> bool:
    """Whether a config of the source may be set on the target: every one but limits on the age by its brokers."""
    return name not in AGE_LIMITS or one.value == UNLIMITED or one.origin == Origin.TOPIC


def with_lifted_limits(
    chosen: ConfigFilter, action: CreateTopic, source: Configs, *, topic: str, defaults: Mapping[str, str | None]
) -> CreateTopic:
    """Return the creation of a remote topic without limits that would refuse records; `defaults` are the target's."""
    after = {**defaults, **action.config}
    lifted = lifted_limits(chosen, source, after)
    if not lifted:
        return action
    reason = f"{action.reason}; {why_lifted(topic, lifted, after)}"
    return replace(action, config={**action.config, **lifted}, reason=reason)


def why_lifted(topic: str, lifted: Iterable[str], target: Mapping[str, str | None]) -> str:
    """Return the reason for a plan's action; `target` are the effective configs without `lifted`."""
    limit_ms = min(int(target[name] or 0) for name in lifted)
    days = limit_ms / _DAY_MS
    age = f"{days:.0f} day{'' if days == 1 else 's'}" if days and days == round(days) else f"{limit_ms:,} ms"
    return f"records of {topic} older than {age} would be refused"


def _oldest_ms(source: Configs) -> int | None:
    """How old a record of the source topic can be when it is copied, None for any age.

    Its age when the source accepted it, and the time that the source keeps it. With append times any age is accepted.
    """
    limits = [limit for name in AGE_LIMITS if (limit := _limit(source, name)) is not None]
    value = {name: source[name].value for name in (_TYPE, "cleanup.policy", *_KEPT) if name in source}
    if not limits or value.get(_TYPE) == _REPLACES or value.get("cleanup.policy") != "delete":
        return None
    kept = [int(value.get(name) or -1) for name in _KEPT]
    return None if min(kept) < 0 else max(limits) + sum(kept)


def _limit(source: Configs, name: str) -> int | None:
    value = source[name].value if name in source else None
    return None if value in (None, UNLIMITED) else int(value)
