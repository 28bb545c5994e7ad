"""Has an empty remote partition begin at a source offset: fills it with batches up to there, and deletes these.

A filler batch's sequence is its offset, so each is a compare-and-append: two processes that fill one partition do not
disturb each other, and one that is killed is continued where the log ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.batches.filler import FILLER_RECORDS, filler
from mirrorless.batches.header import SEQUENCES
from mirrorless.copy.partition.errors import append_error
from mirrorless.progress.producer_ids import filler_id
from mirrorless.protocol.broker_errors import error_for, error_name
from mirrorless.protocol.leaders import TROUBLE, NotNow
from mirrorless.protocol.markers import delete_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.protocol.cluster_client import ClusterClient

_AT_ONCE: Final = 5
"""Brokers recognise a resent batch among the last five of a producer."""
_DELETE_EVERY: Final = 200 * FILLER_RECORDS
_TIMEOUT_MS: Final = 30_000
_POLICY_VIOLATION: Final = 44
_AUTHORIZATION_FAILED: Final = 29


async def holds_only_filler(target: ClusterClient, node: int, copy: PartitionCopy, log_end: int) -> bool:
    """Whether a remote partition has nothing but filler up to its end."""
    if log_end == 0:
        return True
    producer = _producer(copy)
    state = (await target.producers(node, {copy.remote_place: producer}))[copy.remote_place]
    if isinstance(state, int):
        raise error_for(state)
    return state is not None and state.last_sequence == (log_end - 1) % SEQUENCES


async def seed(
    target: ClusterClient, node: int, copy: PartitionCopy, *, log_end: int, start: int, over: Callable[[], bool]
) -> bool:
    """Fill from `log_end` to `start` and delete it; False if the lease is `over` before that.

    Raises `AppendRefused` where the target does not allow it, and `NotNow` where another process is doing it.
    """
    producer = _producer(copy)
    at, deleted = log_end, log_end
    while at < start:
        if over():
            return False
        sizes = [min(FILLER_RECORDS, start - at - n * FILLER_RECORDS) for n in range(_AT_ONCE)]
        appends, offset = [], at
        for count in sizes:
            if count > 0:
                batch = filler(count, producer_id=producer, base_sequence=offset % SEQUENCES)
                appends.append(target.append(node, [(copy.remote_place, batch)], timeout_ms=_TIMEOUT_MS))
                offset += count
        for (answer,) in await target.in_order(node, *appends):
            if answer.error_code:
                raise _refused(copy, answer.error_code, answer.error_message, "WRITE")
            if answer.base_offset != at:
                raise NotNow(f"filler for offset {at} is at offset {answer.base_offset}: another process fills too")
            at += min(FILLER_RECORDS, start - at)
        if at - deleted >= _DELETE_EVERY:
            await _delete(target, node, copy, at)
            deleted = at
    await _delete(target, node, copy, start)
    return True


async def _delete(target: ClusterClient, node: int, copy: PartitionCopy, before: int) -> None:
    code = (await delete_records(target, node, {copy.remote_place: before})).get(copy.remote_place, 0)
    if code:
        raise _refused(copy, code, None, "DELETE")


def _refused(copy: PartitionCopy, code: int, message: str | None, right: str) -> Exception:
    if issubclass(error_for(code), TROUBLE) or code == 45:
        return NotNow(f"filling {copy.row.remote_topic}-{copy.row.partition}: {error_name(code)}")
    what = f"{copy.row.remote_topic} cannot be filled up to the source's first offset: {error_name(code)}"
    if code == _AUTHORIZATION_FAILED:
        what += f"; grant {right} on topic {copy.row.remote_topic}"
    elif code == _POLICY_VIOLATION:
        what += (
            "; its records cannot be deleted with cleanup.policy=compact: set cleanup.policy=delete on "
            f"{copy.row.remote_topic} until the copy has begun"
        )
    elif message:
        what += f": {message}"
    return append_error(copy, what)


def _producer(copy: PartitionCopy) -> int:
    assert copy.exact is not None
    return filler_id(copy.exact.source_id, *copy.place)
