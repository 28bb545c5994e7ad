"""Reads and changes configs of topics, with the origin of each value, in batches."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final, cast

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from mirrorless.errors import ClusterUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mirrorless.clusters.admin import Admin, Refusal

# Measured: a response for 500 topics of 33 configs each is 2 MB. Larger ones are not faster.
TOPICS_A_REQUEST: Final = 500


class Origin(IntEnum):
    """The origin of a value, by the protocol's numbers; others are configs of brokers or groups."""

    TOPIC = 1
    STATIC_BROKER = 4
    DEFAULT = 5


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """A topic's value of one config; `origin` is one of `Origin` or another number of the protocol.

    `fixed` says that it is read-only, or sensitive so that the cluster does not show it.
    """

    value: str | None
    origin: int
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """Set a config to `value`, or with None delete the topic's own value, so that the cluster's default applies."""

    name: str
    value: str | None


Configs = dict[str, ConfigValue]


def topic_configs(admin: Admin, topics: Iterable[str]) -> tuple[dict[str, Configs], dict[str, Refusal]]:
    """Describe topics, hundreds per request; returns the configs of each by name, and the errors of the others.

    Raises `ClusterUnavailable` if the cluster does not answer.
    """
    found: dict[str, Configs] = {}
    failed: dict[str, Refusal] = {}
    wanted = list(topics)
    for at in range(0, len(wanted), TOPICS_A_REQUEST):
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in wanted[at : at + TOPICS_A_REQUEST]]
        for resource, future in admin.client.describe_configs(resources).items():
            refusal = admin.refusal(future)
            if refusal is None:
                found[resource.name] = {name: _value(entry) for name, entry in admin.result(future).items()}
            elif refusal.code < 0:  # an error of librdkafka: no broker has answered
                raise ClusterUnavailable(refusal.text, cluster=admin.alias)
            else:
                failed[resource.name] = refusal
    return found, failed


def alter_topic_configs(admin: Admin, changes: Mapping[str, Sequence[ConfigChange]]) -> dict[str, Refusal | None]:
    """Change only the given configs of topics in one request; returns for each topic None, or the error.

    Brokers without incremental changes (before Kafka 2.3) refuse: replacing all configs of a topic would revert
    changes by others.
    """
    resources = [_resource(topic, some) for topic, some in changes.items()]
    answers = admin.client.incremental_alter_configs(resources) if resources else {}
    return {resource.name: admin.refusal(future) for resource, future in answers.items()}


def _value(entry: ConfigEntry) -> ConfigValue:
    origin = cast("int", entry.source)  # typed as an enum, but a number
    return ConfigValue(entry.value, origin, entry.is_read_only or entry.is_sensitive)


def _resource(topic: str, changes: Sequence[ConfigChange]) -> ConfigResource:
    return ConfigResource(
        ResourceType.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry(
                change.name,
                change.value,
                incremental_operation=AlterConfigOpType.DELETE if change.value is None else AlterConfigOpType.SET,
            )
            for change in changes
        ],
    )
