"""Executes plans: the only module that changes a target's topics, configs and ACLs; kinds change the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from confluent_kafka import KafkaError

from mirrorless.clusters.acls import create_acls, delete_acls
from mirrorless.clusters.configs import ConfigChange, alter_topic_configs
from mirrorless.clusters.topics import ABOUT_CONFIGS, grow_topics
from mirrorless.errors import ClusterError
from mirrorless.metadata.actions import (
    AddAcl,
    AlterConfigs,
    ClusterDifference,
    CreateTopic,
    ForgetAcl,
    GrowTopic,
    RemoveAcl,
)
from mirrorless.metadata.kind_results import apply_differences
from mirrorless.metadata.timestamp_limits import AGE_LIMITS, BEFORE
from mirrorless.metadata.topic_creation import create

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from mirrorless.clusters.acls import Acl
    from mirrorless.clusters.admin import Admin, Refusal
    from mirrorless.metadata.acl_record import AclRecord
    from mirrorless.metadata.actions import Action, ConfigDifference
    from mirrorless.metadata.kind import BothEnds

_A_REQUEST: Final = 500
_GRANTS: Final = {
    GrowTopic: "ALTER on the topic",
    AlterConfigs: "ALTER_CONFIGS on the topic",
    AddAcl: "ALTER on the cluster",
    RemoveAcl: "ALTER on the cluster",
}
_ORDER: Final = (CreateTopic, GrowTopic, AlterConfigs, AddAcl, RemoveAcl, ForgetAcl, ClusterDifference)
_AUTHORIZATION: Final = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Applied:
    """An action and its result: `error` is None, or one line; `note` says what differs from the plan."""

    action: Action
    error: str | None
    note: str | None = None


def batches(actions: Sequence[Action]) -> Iterable[Sequence[Action]]:
    """Divide a plan into batches that are executed at once: at most 500 actions, in the order of `apply`."""
    return _chunks(sorted(actions, key=lambda action: _ORDER.index(type(action))))


def apply(target: Admin, actions: Sequence[Action], *, record: AclRecord, ends: BothEnds) -> list[Applied]:
    """Execute a plan on the target; an action that fails does not stop the others."""
    applied: list[Applied] = []
    created = [one for one in actions if isinstance(one, CreateTopic)]
    outcomes = create(target, created)
    applied += [Applied(one, *outcomes[one.topic]) for one in created]
    applied += _grow(target, [one for one in actions if isinstance(one, GrowTopic)])
    applied += _alter(target, [one for one in actions if isinstance(one, AlterConfigs)])
    applied += _add(target, [one for one in actions if isinstance(one, AddAcl)], record)
    applied += _remove(target, [one for one in actions if isinstance(one, RemoveAcl | ForgetAcl)], record)
    differences = [one for one in actions if isinstance(one, ClusterDifference)]
    applied += map(Applied, differences, apply_differences(ends, differences))
    return applied


def _grow(target: Admin, actions: Sequence[GrowTopic]) -> list[Applied]:
    outcomes: dict[str, Refusal | None] = {}
    for some in _chunks(actions):
        outcomes |= grow_topics(target, {one.topic: one.partitions for one in some})
    return [Applied(one, _text(one, outcomes[one.topic])) for one in actions]


def _alter(target: Admin, actions: Sequence[AlterConfigs]) -> list[Applied]:
    outcomes: dict[str, Refusal | None] = {}
    for some in _chunks(actions):
        outcomes |= alter_topic_configs(
            target, {one.topic: [_change(each) for each in one.differences] for one in some}
        )
    # A topic's configs are changed all or none: if one of them is refused, the others are changed separately.
    mixed = [
        one
        for one in actions
        if len(one.differences) > 1 and (refusal := outcomes[one.topic]) is not None and refusal.code in ABOUT_CONFIGS
    ]
    refused: dict[str, dict[str, str]] = {one.topic: {} for one in mixed}
    for number in range(max((len(one.differences) for one in mixed), default=0)):
        single = {one.topic: one.differences[number] for one in mixed if len(one.differences) > number}
        for some_topics in _chunks(list(single)):
            changes = {topic: [_change(single[topic])] for topic in some_topics}
            for topic, refusal in alter_topic_configs(target, changes).items():
                if refusal is not None:
                    refused[topic][single[topic].name] = f"{single[topic].name}: {refusal.text}"
    found = []
    for one in actions:
        texts = refused.get(one.topic)
        error = _text(one, outcomes[one.topic]) if texts is None else _refused(texts, texts.values())
        found.append(Applied(one, error))
    return found


def _refused(configs: Iterable[str], texts: Collection[str]) -> str | None:
    """Return one line on configs that were refused, and what to exclude; None if there are none."""
    if not texts:
        return None
    exclude = dict.fromkeys(BEFORE if name in AGE_LIMITS else name for name in configs)
    advice = f"to keep the target's values, add {', '.join(exclude)} to config.properties.exclude"
    return "; ".join([*texts, advice])


def _change(difference: ConfigDifference) -> ConfigChange:
    return ConfigChange(difference.name, None if difference.delete else difference.upstream)


def _add(target: Admin, actions: Sequence[AddAcl], record: AclRecord) -> list[Applied]:
    outcomes: dict[Acl, Refusal | None] = {}
    for some in _chunks(actions):
        outcomes |= create_acls(target, [one.acl for one in some])
    added = [one.acl for one in actions if one.recorded and outcomes[one.acl] is None]
    unrecorded = _recorded(record.add, added)
    return [
        Applied(one, f"added, but it will not be removed automatically: {unrecorded}")
        if unrecorded is not None and one.acl in added
        else Applied(one, _text(one, outcomes[one.acl]))
        for one in actions
    ]


def _remove(target: Admin, actions: Sequence[RemoveAcl | ForgetAcl], record: AclRecord) -> list[Applied]:
    # Forgotten first: dying in between leaves an ACL; the other order could remove one added by hand meanwhile.
    unrecorded = _recorded(record.forget, [one.acl for one in actions])
    if unrecorded is not None:
        return [Applied(one, f"not removed: {unrecorded}") for one in actions]
    outcomes: dict[Acl, Refusal | None] = {}
    for some in _chunks([one for one in actions if isinstance(one, RemoveAcl)]):
        outcomes |= delete_acls(target, [one.acl for one in some])
    unrecorded = _recorded(record.add, [acl for acl, refusal in outcomes.items() if refusal is not None])
    return [
        Applied(one, error and (f"{error}; {unrecorded}" if unrecorded else error))
        for one in actions
        for error in [_text(one, outcomes.get(one.acl))]
    ]


def _recorded(write: Callable[[Iterable[Acl]], None], acls: Sequence[Acl]) -> str | None:
    if acls:
        try:
            write(acls)
        except ClusterError as error:
            return str(error)
    return None


def _text(action: Action, refusal: Refusal | None) -> str | None:
    if refusal is None:
        return None
    if isinstance(action, AlterConfigs) and refusal.code in ABOUT_CONFIGS:
        names = [one.name for one in action.differences]
        return _refused(names, [f"{', '.join(names)}: {refusal.text}"])
    grant = _GRANTS.get(type(action)) if refusal.code in _AUTHORIZATION else None
    return refusal.text if grant is None else f"{refusal.text}; grant {grant}"


def _chunks(items: Sequence[_Item]) -> Iterable[Sequence[_Item]]:
    return (items[at : at + _A_REQUEST] for at in range(0, len(items), _A_REQUEST))
