"""Asks the target's leaders what they hold of remote partitions, with a few requests for each leader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.batches.header import SEQUENCES, BatchHeader, FormatError, scan
from mirrorless.copy.partition.errors import append_error
from mirrorless.copy.resume.decision import RemoteLogState
from mirrorless.copy.resume.shared_target import known_pair, with_own_records
from mirrorless.errors import MirrorlessError
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.protocol import cluster_client
from mirrorless.protocol.broker_errors import refusal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.protocol.cluster_client import ClusterClient
    from mirrorless.protocol.requests import Offset, ProducerState

_TAILS_AT_ONCE = 200
_Tail = BatchHeader | kafka_errors.KafkaError | None
"""Header of a last batch, or why it could not be read; None where it is of an older format."""


async def states_of(
    target: ClusterClient, node: int, copies: Sequence[PartitionCopy]
) -> dict[PartitionCopy, RemoteLogState | kafka_errors.KafkaError | MirrorlessError]:
    """Return what the leader `node` holds of each copy's remote partition, or the error of asking.

    Raises `TROUBLE` and kafka-python's errors where it does not answer at all.
    """
    places = [copy.remote_place for copy in copies]
    # In this order: what the leader remembers, or has in its log, is older than the end that is read.
    known, log_ends, starts, ends = await target.in_order(
        node,
        target.producers(node, {copy.remote_place: copy.producer_id for copy in copies}),
        target.log_ends(node, places),
        target.offsets(node, places, at=cluster_client.EARLIEST),
        target.offsets(node, places, at=cluster_client.LATEST),
    )
    unknown = [
        copy
        for copy in copies
        if known[copy.remote_place] is None
        and not copy.shares_target
        and not _is_at(copy, ends[copy.remote_place].offset)
    ]
    asked = {copy.remote_place: ends[copy.remote_place].offset - 1 for copy in unknown}
    tails = await _tails(target, node, {place: at for place, at in asked.items() if starts[place].offset <= at})
    found: dict[PartitionCopy, RemoteLogState | kafka_errors.KafkaError | MirrorlessError] = {}
    for copy in copies:
        place = copy.remote_place
        try:
            for answer in (starts[place], ends[place]):
                if answer.error_code:
                    raise refusal(answer.error_code, right="READ", topic=place[0])
            found[copy] = _state(copy, known[place], ends[place].offset, log_ends.get(place), tails)
        except (kafka_errors.KafkaError, MirrorlessError) as error:
            found[copy] = error
    shared = [
        (copy, state)
        for copy, state in found.items()
        if isinstance(state, RemoteLogState) and (copy.shares_target or _others_wrote(copy, state))
    ]
    searches = (_searched(target, copy, state, starts[copy.remote_place].offset) for copy, state in shared)
    for (copy, _), answer in zip(shared, await target.side_by_side(*searches), strict=True):
        found[copy] = answer
    return found


def _others_wrote(copy: PartitionCopy, state: RemoteLogState) -> bool:
    """Whether other producers appended after what the copy knows of: then the log's length does not count its records.

    So several flows may copy into one topic, and applications may write to it.
    """
    if copy.exact is not None:
        return False  # its log must not have other records
    if state.foreign_tail:
        return True
    known = None if state.epoch is None else known_pair(copy, state.epoch)
    if known is None or state.last_sequence is None:
        return False
    own = (state.last_sequence + 1 - known.sequence) % SEQUENCES
    return 0 < own < SEQUENCES // 2 and state.log_end - known.downstream > own


async def _searched(
    target: ClusterClient, copy: PartitionCopy, state: RemoteLogState, log_start: int
) -> RemoteLogState | kafka_errors.KafkaError | MirrorlessError:
    """Return the state with the copy's own records, or the error of reading them."""
    try:
        return await with_own_records(target, copy, state, log_start=log_start)
    except FormatError as error:
        return append_error(copy, f"a batch of the target at offset {error.offset} cannot be read: {error}")
    except (kafka_errors.KafkaError, MirrorlessError) as error:
        return error


def _is_at(copy: PartitionCopy, downstream: int) -> bool:
    """Whether a copy is known to end right before a target offset, with no newer epoch to begin."""
    known = copy.known_progress
    if known is None or known.epoch is None or known.last_downstream is None:
        return False
    return known.epoch == copy.newest_epoch and known.last_downstream + 1 == downstream


async def _tails(target: ClusterClient, node: int, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, _Tail]:
    """Return the headers of the batches at these offsets; some at a time, since whole responses are kept meanwhile."""
    found: dict[TopicPartition, _Tail] = {}
    places = list(wanted.items())
    for at in range(0, len(places), _TAILS_AT_ONCE):
        answers = await target.read_each_at(node, dict(places[at : at + _TAILS_AT_ONCE]))
        for place, answer in answers.items():
            found[place] = answer if isinstance(answer, kafka_errors.KafkaError) else _last_batch(answer)
    return found


def _state(
    copy: PartitionCopy,
    known: ProducerState | int | None,
    end: int,
    log_end: Offset | None,
    tails: Mapping[TopicPartition, _Tail],
) -> RemoteLogState:
    """Return what a leader holds of one remote partition; `tails` has its last batch, where it was asked for.

    That batch is used where the broker has forgotten the producer, or cannot be asked about producers.
    """
    if isinstance(known, int):
        raise refusal(known, right="READ", topic=copy.row.remote_topic)
    # Other brokers than Apache Kafka may not answer with the end of their own log.
    answered = log_end is not None and not log_end.error_code and log_end.offset >= 0
    unreplicated = max(0, log_end.offset - end) if log_end is not None and answered else None
    if known is not None:
        return RemoteLogState(
            log_end=end,
            epoch=known.epoch,
            last_sequence=known.last_sequence,
            remembered=True,
            unreplicated=unreplicated,
        )
    if copy.remote_place not in tails:
        return RemoteLogState(log_end=end, unreplicated=unreplicated)
    last = tails[copy.remote_place]
    if isinstance(last, kafka_errors.KafkaError):
        raise last
    if last is None or last.producer_id != copy.producer_id:
        return RemoteLogState(log_end=end, foreign_tail=True, unreplicated=unreplicated)
    return RemoteLogState(
        log_end=end, epoch=last.producer_epoch, last_sequence=last.last_sequence, unreplicated=unreplicated
    )


def _last_batch(records: bytes | memoryview) -> BatchHeader | None:
    """Return the header of the last batch; None where it has an older format, which is not ours."""
    last = None
    try:
        for header, _at in scan(records):
            last = header
    except FormatError:
        return None
    return last
