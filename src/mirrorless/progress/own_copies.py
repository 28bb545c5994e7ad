"""Proves that a remote topic has no records but those that a flow copied to it.

The copy's last epoch begins at the first offset of this very topic (by its id), and its sequence counts its records.
If the log ends where it would with these records alone, no offset of it was ever another record's, or a marker's. This
is read from the last batch: its producer id is derived from the source's cluster id, topic and partition. Where
retention has deleted all records, the progress has to say the same. Whatever differs is no proof: a second epoch in
the same topic, a copy with identical offsets that began elsewhere, 2^31 records, an older message format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.batches.header import SEQUENCES, FormatError, scan
from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.clusters.identity import id_of
from mirrorless.clusters.topics import high_watermarks, log_starts, partition_counts, topic_ids
from mirrorless.errors import ClusterUnavailable
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.metadata.recreated_topics import OwnCopy
from mirrorless.progress.producer_ids import producer_id
from mirrorless.progress.topic_ids import copied_id, remote_id
from mirrorless.protocol import clients
from mirrorless.protocol.leaders import NotNow, leader_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mirrorless.batches.header import BatchHeader
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.metadata.planning import Admins
    from mirrorless.progress.records import Known
    from mirrorless.settings import Flow

_TIMEOUT_MS: Final = 20_000


def ids_of(known: Collection[Known], remote_now: str | None, *, flow: str) -> OwnCopy | str:
    """Return the ids of the topics that all partitions were copied between, or why these are not known."""
    if not any(one.announced for one in known):
        return f"progress does not say that {flow} copied it"
    if remote_now is None:
        return "its id is not known (brokers before 2.8 have none)"
    began = [one for one in known if one.announced]
    sources, remotes = {copied_id(one) for one in began}, {remote_id(one) for one in began}
    if remotes != {remote_now}:
        return f"progress does not say that {flow} copied to this topic: it was recreated, or its id was not known"
    (source, *more) = sources
    if source is None or more:
        return "progress does not say which source topic was copied: its id is not known, or not the same everywhere"
    return OwnCopy(source_id=source, remote_id=remote_now)


def doubt(known: Known | None, last: BatchHeader | None, *, end: int, producer: int) -> str | None:
    """Why a partition whose log ends at `end` may have other records than those copied; None if it has none.

    `last` is the batch before the end, None if retention has deleted it.
    """
    if end == 0:
        return None
    if known is None or not known.announced:
        return "progress does not say that anything was copied to it"
    epoch = max(known.announced)
    if known.announced[epoch].downstream != 0 or end >= SEQUENCES:
        return "the copy did not begin at its first offset, or has too many records to count"
    if last is None:
        progress = known.progress
        if progress is None or (progress.epoch, progress.sequence, progress.last_downstream) != (epoch, end, end - 1):
            return f"its records are deleted, and progress does not show that it had only {end:,} copied ones"
        return None
    if (last.producer_id, last.producer_epoch) != (producer, epoch):
        return "its last batch was not appended by the copy"
    if last.next_offset != end or last.last_sequence != end - 1:
        return f"it ends at offset {end:,}, and the copy appended {last.last_sequence + 1:,} records"
    return None


def own_copies(
    flow: Flow, admins: Admins, remote: Mapping[str, str], progress: Mapping[TopicPartition, Known]
) -> dict[str, OwnCopy | str]:
    """Return for each source topic of `remote` the copy that its remote topic is, or why that is not proved.

    Raises `ClusterError`.
    """
    ids, _ = topic_ids(admins.target, remote.values())
    counts = partition_counts(admins.target.metadata())
    found: dict[str, OwnCopy | str] = {}
    for topic, name in remote.items():
        known = [one for (about, _), one in progress.items() if about == topic]
        found[topic] = ids_of(known, ids.get(name), flow=flow.name)
    asked = {topic: remote[topic] for topic, one in found.items() if isinstance(one, OwnCopy)}
    places = [(name, number) for name in asked.values() for number in range(counts.get(name, 0))]
    if not places:
        return found
    ends, unknown = high_watermarks(admins.target, places)
    starts, unread = log_starts(admins.target, places)
    unknown = unknown | unread
    kept = {place: end - 1 for place, end in ends.items() if place not in unknown and end > starts.get(place, 0)}
    batches = _last_batches(flow, kept)
    source_id = id_of(flow.source, admins.source.metadata().cluster_id)
    for topic, name in asked.items():
        for number in range(counts.get(name, 0)):
            place = (name, number)
            last = batches.get(place)
            why: str | None
            if place in unknown or place not in ends:
                why = f"its end is not known: {unknown.get(place, 'no answer')}"
            elif isinstance(last, str):
                why = last
            elif place in kept and last is None:
                why = "its last batch is not known"
            else:
                producer = producer_id(source_id, topic, number)
                why = doubt(progress.get((topic, number)), last, end=ends[place], producer=producer)
            if why is not None:
                found[topic] = f"records of others cannot be excluded: {name}-{number}: {why}"
                break
    return found


def _last_batches(flow: Flow, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, BatchHeader | str | None]:
    """Return the batch with each offset, None if there is none, or why it could not be read."""
    if not wanted:
        return {}
    net = clients.event_loop()
    client = clients.cluster_client(
        net, cluster=flow.target.alias, config=for_kafka_python(flow.target, role="consumer")
    )

    async def run() -> dict[TopicPartition, BatchHeader | str | None]:
        await client.connect(timeout_ms=_TIMEOUT_MS, topics={topic for topic, _ in wanted})
        found: dict[TopicPartition, BatchHeader | str | None] = {}
        for place, offset in wanted.items():
            try:
                found[place] = _last(await client.read_at(leader_of(client, place), place, offset))
            except (kafka_errors.KafkaError, NotNow, FormatError) as error:
                found[place] = f"its last batch cannot be read: {error}"
        return found

    try:
        batches: dict[TopicPartition, BatchHeader | str | None] = net.run(run)
    except (kafka_errors.KafkaError, OSError) as error:
        raise ClusterUnavailable(str(error) or type(error).__name__, cluster=flow.target.alias) from error
    finally:
        client.close()
        net.close()
    return batches


def _last(records: bytes | memoryview) -> BatchHeader | None:
    last = None
    for header, _ in scan(records):
        last = header
    return last
