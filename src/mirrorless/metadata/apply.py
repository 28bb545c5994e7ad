"""The one place that changes topics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from confluent_kafka.admin import NewTopic

from mirrorless.clusters.topics import create_topics, grow_topics
from mirrorless.metadata.plan import Action, CreateTopic, GrowTopic

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mirrorless.clusters.admin import Admin

_TOPICS_A_REQUEST = 500
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Applied:
    """An action and how it ended: `error` is None, or one line."""

    action: Action
    error: str | None


def apply(target: Admin, actions: Sequence[Action]) -> list[Applied]:
    """Carry out a plan on the target; one action that fails does not hold up the others."""
    created = [action for action in actions if isinstance(action, CreateTopic)]
    grown = [action for action in actions if isinstance(action, GrowTopic)]
    outcomes: dict[str, str | None] = {}
    for some in _chunks(created):
        outcomes |= create_topics(
            target,
            [
                NewTopic(
                    action.topic,
                    num_partitions=action.partitions,
                    replication_factor=action.replication_factor,
                    config=dict(action.config),
                )
                for action in some
            ],
        )
    for some_grown in _chunks(grown):
        outcomes |= grow_topics(target, {action.topic: action.partitions for action in some_grown})
    return [Applied(action, outcomes[action.topic]) for action in actions]


def _chunks(items: Sequence[_Item]) -> Iterable[Sequence[_Item]]:
    return (items[at : at + _TOPICS_A_REQUEST] for at in range(0, len(items), _TOPICS_A_REQUEST))
