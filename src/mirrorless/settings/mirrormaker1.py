"""Reads a MirrorMaker 1 (a consumer file, a producer file and the topics) like an mm2.properties file.

Topic names stay as they are and no internal topic is written, as in MirrorMaker 1 (KIP-720 removed it). The
offsets of the consumer's group do not change any more, so they are not taken over.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlencode

from mirrorless.errors import ConfigurationError
from mirrorless.settings.client_keys import is_connection_key
from mirrorless.settings.locations import read
from mirrorless.settings.properties import ARROW, NOBODYS, PropertyEntry, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX: Final = "mirrormaker1:"
_CONSUMER, _PRODUCER, _INCLUDE = "consumer.config", "producer.config", "include"
_SOURCE, _TARGET = "source", "target"
_FLOW: Final = f"{_SOURCE}{ARROW}{_TARGET}"
_SAME_NAMES: Final = {
    f"{_FLOW}.enabled": "true",
    f"{_FLOW}.replication.policy.class": "IdentityReplicationPolicy",
    # As MirrorMaker 1's producer created topics: with the brokers' defaults.
    f"{_FLOW}.replication.factor": "-1",
    "offset.storage.replication.factor": "-1",
    f"{_FLOW}.topics.exclude": "__.*",  # the consumer's exclude.internal.topics
    f"{_FLOW}.heartbeats.replication.enabled": "false",
    "emit.heartbeats.enabled": "false",  # also for the reverse direction, which would write to the source
    f"{_FLOW}.emit.checkpoints.enabled": "false",
    f"{_FLOW}.emit.offset-syncs.enabled": "false",
    f"{_FLOW}.sync.topic.configs.enabled": "false",
    f"{_FLOW}.sync.topic.acls.enabled": "false",
    # The default of a Java consumer, which MirrorMaker 1 used.
    f"{_SOURCE}.consumer.auto.offset.reset": "latest",
}


def location(*, consumer: str, producer: str, include: str) -> str:
    """Return the location of such a configuration as one string."""
    return PREFIX + urlencode({_CONSUMER: consumer, _PRODUCER: producer, _INCLUDE: include})


def read_mirrormaker1(text: str) -> tuple[dict[str, PropertyEntry], tuple[str, ...]]:
    """Read what `location` returned; raises ConfigurationError for files that cannot be read or have no brokers.

    Returns the entries as of an mm2.properties file, and warnings.
    """
    named = {key: values[-1] for key, values in parse_qs(text.removeprefix(PREFIX), keep_blank_values=True).items()}
    for key in (_CONSUMER, _PRODUCER, _INCLUDE):
        if not named.get(key, "").strip():
            raise ConfigurationError("is missing; MirrorMaker 1 needs consumer, producer and topics", key=f"--{key}")
    include = named[_INCLUDE]
    entries = {key: PropertyEntry(value, NOBODYS, "as MirrorMaker 1", key) for key, value in _SAME_NAMES.items()}
    entries["clusters"] = PropertyEntry(f"{_SOURCE},{_TARGET}", NOBODYS, "as MirrorMaker 1")
    entries[f"{_FLOW}.topics"] = PropertyEntry(_topics(include), 0, "--include", "include")
    consumer = parse(read(named[_CONSUMER]), file=named[_CONSUMER])
    producer = parse(read(named[_PRODUCER]), file=named[_PRODUCER])
    entries |= _of(consumer, _SOURCE, "consumer") | _of(producer, _TARGET, "producer")
    warnings = []
    if "group.id" in consumer:
        group = consumer["group.id"]
        entries[f"{_FLOW}.mirrorless.start.group"] = replace(group, written="group.id")
        warnings.append(
            f"{group.place}: group.id={group.value.strip()}: partitions begin at its committed offsets "
            "(mirrorless.start.group), those in which it has none at "
            f"{entries[f'{_SOURCE}.consumer.auto.offset.reset'].value.strip()}"
        )
    return entries, tuple(warnings)


def _of(settings: Mapping[str, PropertyEntry], alias: str, role: str) -> dict[str, PropertyEntry]:
    return {
        f"{alias}.{key}" if is_connection_key(key) else f"{alias}.{role}.{key}": replace(entry, written=key)
        for key, entry in settings.items()
    }


def _topics(include: str) -> str:
    """Read the one pattern of MirrorMaker 1: quotes around it and blanks are ignored, `,` and `|` both mean or."""
    return include.strip().strip("\"'").replace(" ", "")
