"""Determines what a new topic would get: a validate-only creation, whose response has all configs (KIP-525).

It shows the cluster's defaults without a right on the cluster: brokers authorize it by `CREATE`, and the configs by
`DESCRIBE_CONFIGS` on the topic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.messages import CreateTopicsRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_TIMEOUT_MS: Final = 15_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveConfigs:
    """The result of a validate-only creation.

    `error_code` is 0 if the topic could be created, otherwise `reason` says why not. `configs` are all that it would
    have, None without the right to see them, and from brokers before 2.4; likewise the `replication_factor`.
    """

    error_code: int
    reason: str
    configs: Mapping[str, str | None] | None
    replication_factor: int | None


def ask_creation(
    ask: Callable[[Any], Any], topic: str, *, partitions: int, replication_factor: int, config: Mapping[str, str]
) -> EffectiveConfigs:
    """Return what a new topic would get; `ask` sends a request to the controller and returns its response."""
    new = CreateTopicsRequest.CreatableTopic(
        name=topic,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[],
        configs=[
            CreateTopicsRequest.CreatableTopic.CreatableTopicConfig(name=name, value=value)
            for name, value in config.items()
        ],
    )
    (found,) = ask(CreateTopicsRequest(topics=[new], timeout_ms=_TIMEOUT_MS, validate_only=True)).topics
    configs = getattr(found, "configs", None)
    factor = getattr(found, "replication_factor", None)
    return EffectiveConfigs(
        error_code=found.error_code,
        reason=found.error_message or kafka_errors.for_code(found.error_code).__name__,
        configs=None if not configs else {one.name: one.value for one in configs},
        replication_factor=None if factor is None or factor < 1 else factor,
    )
