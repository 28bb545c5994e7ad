"""Reads a few records of topics that may be the state of a service, so that none is copied under a kept name.

Only topics are read that services make so: compacted, or of one partition that keeps its records for ever (ksqlDB).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaException

from mirrorless.clusters.compaction import CLEANUP_POLICY, COMPACT
from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.consumers import first_records
from mirrorless.clusters.topics import high_watermarks, log_starts, topic_ids
from mirrorless.errors import MirrorlessError
from mirrorless.filters import may_mix_state, replicated_topics
from mirrorless.metadata.plan import replicated
from mirrorless.service_topics import Examined, StateRecord, examined_on, note_examined, service_of_records

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.configs import Configs
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.settings import Flow

_PARTITIONS: Final = 100
"""A topic with more is no service's: Connect's topic of offsets has 25 by default."""
_READ: Final = 2
"""So many partitions of a topic are read."""
_RECORDS: Final = 5
_AT_ONCE: Final = 200
"""Partitions that are read at once: each response has up to 64 KiB of one."""
_SECONDS: Final = 10.0
_FOR_EVER: Final = frozenset({"-1", str(2**63 - 1)})
_LIKELY: Final = ("config", "offset", "status", "schema", "ksql", "command", "connect", "registry")
_log = logging.getLogger(__name__)


def examine_records(
    flow: Flow, source: Admin, counts: Mapping[str, int], *, only: Collection[str] | None = None
) -> Collection[str]:
    """Read records of topics that the flow would copy under their names, unless this process has read them.

    `counts` are all topics of the source; `only` limits what is read to some. What is found applies to every later
    question which topics a flow replicates. Returns topics whose records may not be read: these are recognised by name
    only, as are all topics if the cluster does not answer.
    """
    mixes, replicates = may_mix_state(flow), replicated_topics(flow)
    known = examined_on(flow.source)
    asked = counts.keys() if only is None else counts.keys() & set(only)
    chosen = {topic for topic in asked if counts[topic] <= _PARTITIONS and mixes(topic)}
    chosen = {topic for topic in chosen if topic in known.services or replicates(topic)}
    if not chosen:
        return ()
    try:
        _examine(flow, source, {topic: counts[topic] for topic in chosen}, known, counts)
    except (MirrorlessError, KafkaException) as error:
        _log.debug("%s: topics are recognised by their names only: %s", flow.name, error)
    return [topic for topic in examined_on(flow.source).unread if topic in chosen]


def unread_note(alias: str, unread: Collection[str]) -> list[str]:
    """Return a line on topics whose records may not be read, or none."""
    if not unread:
        return []
    more = len(unread) - 1
    return [
        f"topics of {alias} that may be a service's own, by their configs, are recognised by their names only; grant "
        f"READ on these to recognise them by their records: {min(unread)}{f' and {more} more' if more else ''}"
    ]


def replicated_on(
    flow: Flow, source: Admin, counts: Mapping[str, int], *, only: Collection[str] | None = None
) -> dict[str, str]:
    """Return the source's topics that the flow replicates, each with its remote topic; reads records as above.

    Raises ConfigurationError as `replicated`.
    """
    examine_records(flow, source, counts, only=only)
    return replicated(flow, counts)


def _examine(flow: Flow, source: Admin, chosen: Mapping[str, int], known: Examined, counts: Mapping[str, int]) -> None:
    passed = {topic for topic in known.passed if topic in counts}
    asked = [topic for topic in chosen if topic not in passed]
    ids, _ = topic_ids(source, asked)
    # Of another flow's topics nothing is asked; they stay as they are.
    same = {topic for topic, number in known.ids.items() if topic not in asked or ids.get(topic) == number}
    same &= counts.keys()
    new = [topic for topic in asked if topic not in same]
    services = {topic: service for topic, service in known.services.items() if topic in same}
    unread = {topic for topic in known.unread if topic in same}
    examined = {topic: known.ids[topic] for topic in same}
    configs, _ = topic_configs(source, new) if new else ({}, {})
    candidates = [topic for topic in new if _is_candidate(topic, chosen[topic], configs.get(topic))]
    passed |= set(new).difference(candidates)
    places = _with_records(source, {topic: chosen[topic] for topic in sorted(candidates)})
    for at in range(0, len(places), _AT_ONCE):
        read, refused = first_records(flow.source, places[at : at + _AT_ONCE], most=_RECORDS, seconds=_SECONDS)
        unread |= {topic for topic, _ in refused}
        by_topic: dict[str, list[StateRecord]] = {topic: [] for topic, _ in (*read, *refused)}
        for (topic, _), records in read.items():
            by_topic[topic] += [StateRecord(*one) for one in records]
        for topic, found in by_topic.items():
            if (service := service_of_records(found)) is not None:
                services[topic] = service
            if found or topic in unread:
                examined[topic] = ids.get(topic)
    note_examined(flow.source, Examined(services, examined, passed, unread))


def _is_candidate(topic: str, partitions: int, configs: Configs | None) -> bool:
    """Whether a service may have made the topic; without its configs by words that are usual in such names."""
    if configs is None:
        return any(word in topic.lower() for word in _LIKELY)
    policy = configs[CLEANUP_POLICY].value if CLEANUP_POLICY in configs else None
    retention = configs["retention.ms"].value if "retention.ms" in configs else None
    return COMPACT in (policy or COMPACT) or (partitions == 1 and retention in _FOR_EVER)


def _with_records(source: Admin, counts: Mapping[str, int]) -> list[TopicPartition]:
    """Return the first partitions with records of each topic."""
    places = [(topic, partition) for topic, count in counts.items() for partition in range(count)]
    if not places:
        return []
    ends, _ = high_watermarks(source, places)
    starts, _ = log_starts(source, [place for place, end in ends.items() if end])
    filled = [place for place in places if place in starts and ends[place] > starts[place]]
    return list(_first_of_each(filled))


def _first_of_each(places: Iterable[TopicPartition]) -> Iterable[TopicPartition]:
    taken: dict[str, int] = {}
    for topic, partition in places:
        if taken.setdefault(topic, 0) < _READ:
            taken[topic] += 1
            yield topic, partition
