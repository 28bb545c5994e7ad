"""Creates topics in large requests; if a target refuses one topic, the others are created."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError
from confluent_kafka.admin import NewTopic

from mirrorless.clusters.replication_factors import factor_advice
from mirrorless.clusters.topics import ABOUT_CONFIGS, create_topics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mirrorless.clusters.admin import Admin, Refusal
    from mirrorless.metadata.actions import CreateTopic

# KRaft accepts 10,000 records (a topic, each partition, each config) per request, and refuses larger ones.
_RECORDS_A_REQUEST: Final = 5_000
_TOPICS_A_REQUEST: Final = 500
_PATIENCE_S: Final = 30.0
_PAUSE_S: Final = 1.0
_PASSING: Final = (
    KafkaError.THROTTLING_QUOTA_EXCEEDED,
    KafkaError.NOT_CONTROLLER,
    KafkaError.REQUEST_TIMED_OUT,
)
_NEEDED: Final = "cleanup.policy"


def create(target: Admin, actions: Sequence[CreateTopic]) -> dict[str, tuple[str | None, str | None]]:
    """Create topics; return for each its error, and a note, or None.

    If a target refuses configs, as MSK Serverless does, the topic is created without them and the note names them; but
    not without `cleanup.policy`, because then the target would delete what the source keeps. Retriable errors are
    retried for half a minute. (A used-up quota is among them, though librdkafka 2.16 uses a version of the request in
    which brokers accept the topics and delay the next request instead, KIP-599.)
    """
    refusals = _create(target, actions)
    suspects = [one for one in actions if one.config and _is_about_configs(refusals[one.topic])]
    found = _refused_configs(target, suspects)
    second = [
        replace(one, config={name: value for name, value in one.config.items() if name not in found[one.topic]})
        for one in suspects
        if found.get(one.topic) and _NEEDED not in found[one.topic]
    ]
    refusals |= _create(target, second)
    outcomes: dict[str, tuple[str | None, str | None]] = {}
    for one in actions:
        refusal, refused = refusals[one.topic], found.get(one.topic, {})
        without = "; ".join(f"{name}={one.config[name]}: {why}" for name, why in refused.items())
        if refusal is None:
            note = f"created without configs that {target.alias} refuses: {without}" if refused else None
            outcomes[one.topic] = None, note
        elif _NEEDED in refused:
            outcomes[one.topic] = f"not created, because {target.alias} refuses {without}", None
        else:
            outcomes[one.topic] = _advised(refusal, one, target.alias), None
    return outcomes


def _create(target: Admin, actions: Sequence[CreateTopic]) -> dict[str, Refusal | None]:
    outcomes: dict[str, Refusal | None] = {}
    until = time.monotonic() + _PATIENCE_S
    left = list(actions)
    while left:
        for some in _requests(left):
            outcomes |= create_topics(target, [_new_topic(one, one.config) for one in some])
        left = [one for one in left if (refusal := outcomes[one.topic]) is not None and refusal.code in _PASSING]
        if time.monotonic() > until:
            break
        if left:
            time.sleep(_PAUSE_S)
    return outcomes


def _refused_configs(target: Admin, actions: Sequence[CreateTopic]) -> dict[str, dict[str, str]]:
    """Find out, without creating anything, which configs are refused by themselves, and why; one request per config.

    A topic that would be refused without any config too is not in the result: it has another error.
    """
    bare = _invalid(target, {one.topic: (one, {}) for one in actions})
    sound = [one for one in actions if one.topic not in bare]
    refused: dict[str, dict[str, str]] = {one.topic: {} for one in sound}
    for number in range(max((len(one.config) for one in sound), default=0)):
        asked = {
            one.topic: (one, dict([list(one.config.items())[number]])) for one in sound if len(one.config) > number
        }
        for topic, refusal in _invalid(target, asked).items():
            if _is_about_configs(refusal):
                refused[topic] |= dict.fromkeys(asked[topic][1], refusal.text)
            else:
                refused.pop(topic)  # the controller moved or did not answer: nothing is known of its configs
        sound = [one for one in sound if one.topic in refused]
    return refused


def _invalid(target: Admin, asked: Mapping[str, tuple[CreateTopic, Mapping[str, str]]]) -> dict[str, Refusal]:
    invalid: dict[str, Refusal] = {}
    for some in _requests([one for one, _ in asked.values()]):
        topics = [_new_topic(one, asked[one.topic][1]) for one in some]
        answers = create_topics(target, topics, validate_only=True)
        invalid |= {topic: refusal for topic, refusal in answers.items() if refusal is not None}
    return invalid


def _requests(actions: Sequence[CreateTopic]) -> Iterator[list[CreateTopic]]:
    some: list[CreateTopic] = []
    records = 0
    for one in actions:
        weight = 1 + max(one.partitions, 1) + len(one.config)
        if some and (records + weight > _RECORDS_A_REQUEST or len(some) == _TOPICS_A_REQUEST):
            yield some
            some, records = [], 0
        some.append(one)
        records += weight
    if some:
        yield some


def _new_topic(one: CreateTopic, config: Mapping[str, str]) -> NewTopic:
    return NewTopic(
        one.topic, num_partitions=one.partitions, replication_factor=one.replication_factor, config=dict(config)
    )


def _is_about_configs(refusal: Refusal | None) -> bool:
    return refusal is not None and refusal.code in ABOUT_CONFIGS


def _advised(refusal: Refusal, one: CreateTopic, alias: str) -> str:
    match refusal.code:
        case KafkaError.TOPIC_AUTHORIZATION_FAILED | KafkaError.CLUSTER_AUTHORIZATION_FAILED:
            return f"{refusal.text}; grant CREATE on topic {one.topic}, or on cluster {alias}"
        case KafkaError.INVALID_REPLICATION_FACTOR:
            return f"{refusal.text}; {factor_advice(one.factor_key, alias)}"
        case KafkaError.THROTTLING_QUOTA_EXCEEDED:
            return f"{refusal.text}; the next sync run continues; or raise the controller_mutation_rate of {alias}"
    return refusal.text
