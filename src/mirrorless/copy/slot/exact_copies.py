"""What a slot needs for the partitions that get identical offsets: claims, markers, and where they continue."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mirrorless.copy.partition.exact_state import ExactState
from mirrorless.errors import ClusterError
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.modes import Modes
from mirrorless.protocol.leaders import NotNow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.identical.claims import Claims
    from mirrorless.copy.identical.holes import HoleWriter
    from mirrorless.copy.identical.rule import IdenticalOffsets
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.slot.error_policy import ErrorPolicy
    from mirrorless.progress.records import Known
    from mirrorless.settings import Flow


class ExactCopies(NamedTuple):
    """The copies with identical offsets of a flow, in one slot; the claims are kept from lease to lease."""

    flow: Flow
    claims: Claims
    holes: HoleWriter
    rule: IdenticalOffsets

    def state_of(self, topic: str, known: Known, source_id: str) -> ExactState | None:
        """Return the state that a partition of a source topic begins with; None if it gets other offsets."""
        if not Modes(self.flow).keeps_offsets(topic):
            return None
        return ExactState(source_id, known.claim, self.flow.offsets_holes_max)

    async def confirm(self, copies: Mapping[TopicPartition, PartitionCopy], error_policy: ErrorPolicy) -> None:
        """Halt copies whose claim another process has followed by its own."""
        try:
            lost = await self.claims.confirm()
        except (kafka_errors.KafkaError, ClusterError, NotNow):
            return  # without a confirmation no markers are written after a while
        for place in lost:
            if (copy := copies.get(place)) is not None and copy.exact is not None:
                error_policy.claim_lost(copy)

    async def release(self, copies: Iterable[PartitionCopy]) -> None:
        """Give up the claims of copies that have nothing in flight."""
        try:
            await self.claims.release([copy for copy in copies if copy.exact is not None and not copy.in_flight])
        except (kafka_errors.KafkaError, NotNow):
            return  # the next owner waits
