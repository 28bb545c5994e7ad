"""Writes the markers that take the offsets of a hole, and reads the log end after each request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.clusters.connection_errors import grant
from mirrorless.copy.partition.errors import append_error, misplaced
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.protocol.broker_errors import error_for, error_name
from mirrorless.protocol.leaders import TROUBLE, NotNow
from mirrorless.protocol.markers import MARKERS_AT_ONCE, RIGHT, write_markers

if TYPE_CHECKING:
    from mirrorless.copy.identical.claims import Claims
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.protocol.cluster_client import ClusterClient

_INVALID_PRODUCER_EPOCH: Final = 47


class HoleWriter:
    """Writes markers by the claims of this process."""

    def __init__(self, target: ClusterClient, claims: Claims) -> None:
        self._target = target
        self._claims = claims

    async def write(self, copy: PartitionCopy, node: int, start: int, end: int) -> None:
        """Take the offsets from `start`, where the target's log ends, up to `end`.

        Raises `NotNow` and kafka-python's errors where the copy has to be resumed, `Gap` where the log does not end
        where it should, and `AppendRefused` where markers are refused for good.
        """
        _refuse_large(copy, start, end)
        at = start
        while at < end:
            count = min(MARKERS_AT_ONCE, end - at)
            at += await self._some(copy, node, at, count)

    async def _some(self, copy: PartitionCopy, node: int, at: int, count: int) -> int:
        place = copy.remote_place
        producer, epoch = self._claims.markers_of(copy.place)
        try:
            code, ends = await self._target.in_order(
                node,
                write_markers(self._target, node, place, producer=producer, epoch=epoch, count=count),
                self._target.log_ends(node, [place]),
            )
        except (kafka_errors.KafkaError, NotNow):
            self._claims.doubt(copy.place)
            raise
        if code == _INVALID_PRODUCER_EPOCH:
            self._claims.lose(copy.place)
            raise NotNow("another process has claimed the partition: the target refuses markers of this one")
        if code:
            if issubclass(error_for(code), TROUBLE):
                raise NotNow(f"markers: {error_name(code)}")
            reason = f"the target refuses markers: {error_name(code)}"
            raise append_error(copy, reason + grant(code, RIGHT))
        end = ends[place]
        if end.error_code:
            raise error_for(end.error_code)
        if end.offset != at + count:
            raise misplaced(copy, at + count, end.offset)
        return count


def _refuse_large(copy: PartitionCopy, start: int, end: int) -> None:
    assert copy.exact is not None
    if end - start > copy.exact.most_markers:
        raise append_error(
            copy,
            f"the source has no records from offset {start} to {end}, {end - start} offsets, more than "
            f"mirrorless.offsets.holes.max ({copy.exact.most_markers}), each of which takes 78 bytes on the target; "
            "raise it, or delete the remote topic and run `mirrorless offsets reset` to begin after the hole",
        )
