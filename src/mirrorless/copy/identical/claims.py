"""Which process may write the markers of a partition: a claim in the progress topic, one after the other.

Markers are no compare-and-append: one that is sent twice takes two offsets. So one process at a time writes them. A
claim is a record of the progress topic whose sequence follows that of the claim before it, so of two processes that
claim at once one is refused. The owner confirms its claim all `CONFIRM_EVERY_S` and stops without that for
`CERTAIN_FOR_S`. A process that claims what another one has not released waits for longer than that, until the log end
has not moved for so long: what the other one sent was answered or given up by then. Its first marker has a higher
epoch, so the target refuses markers of the one before it.

A progress topic that was deleted has no claims when it is created again: owners write theirs into it. Otherwise the
next claims would begin at number 0, and the target would refuse markers until they have reached the number of before.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mirrorless.batches.header import SEQUENCES
from mirrorless.copy.partition.errors import append_error
from mirrorless.copy.resume.compare_and_append import CompareAndAppend
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.progress.producer_ids import claim_id, marker_id
from mirrorless.progress.records import Claim, SourcePartition
from mirrorless.protocol.leaders import NotNow, by_leader, leader_of
from mirrorless.protocol.markers import last_sequences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.exact_state import ExactState
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.kafka_python.event_loop import EventLoop
    from mirrorless.progress.records import Known
    from mirrorless.protocol.cluster_client import ClusterClient

CONFIRM_EVERY_S: Final = 5.0
CERTAIN_FOR_S: Final = 15.0
WAIT_S: Final = 35.0
"""More than the request timeout of brokers and clients (30 s), and than `CERTAIN_FOR_S`."""
_NO_PRODUCERS: Final = (
    "identical offsets need brokers that remember producers (producer.id.expiration.ms) and answer DescribeProducers, "
    "by which a process notices that another one has claimed its partition; the target's do not"
)


@dataclass(slots=True)
class _HeldClaim:
    """A claim of this process; `waits_since` is when the wait for the owner before it began, None if it is over.

    Times are of `_now`. `log_end` is the remote partition's when the wait began.
    """

    number: int
    confirmed: float
    waits_since: float | None
    log_end: int


def _now() -> float:
    """Return a time in seconds that also counts while the process is frozen."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Claims:
    """The claims of one slot; `reread` reads the progress topic to its end, and blocks the event loop."""

    def __init__(
        self,
        *,
        net: EventLoop,
        target: ClusterClient,
        source_alias: str,
        source_id: Callable[[], str],
        progress_topic: str,
        reread: Callable[[], Mapping[TopicPartition, Known]],
    ) -> None:
        self.owner = str(uuid.uuid4())
        self._target = target
        self._alias = source_alias
        self._source_id = source_id
        self._records = CompareAndAppend(net=net, target=target, topic=progress_topic)
        self._reread = reread
        self._held: dict[TopicPartition, _HeldClaim] = {}
        self._doubtful: set[TopicPartition] = set()

    def markers_of(self, place: TopicPartition) -> tuple[int, int]:
        """Return producer id and epoch for markers of a partition; raises `NotNow` without a confirmed claim."""
        held = self._held.get(place)
        if held is None or held.waits_since is not None:
            raise NotNow(f"markers of {place[0]}-{place[1]} are not claimed")
        if _now() - held.confirmed > CERTAIN_FOR_S:
            raise NotNow(f"the claim of {place[0]}-{place[1]} was not confirmed for {CERTAIN_FOR_S:.0f} s")
        return marker_id(self._source_id(), *place, claim=held.number)

    def doubt(self, place: TopicPartition) -> None:
        """Give up a claim after a request with markers had no answer: it may still be carried out for a while."""
        self._held.pop(place, None)
        self._doubtful.add(place)

    def lose(self, place: TopicPartition) -> None:
        """Forget a claim that another process has followed by its own."""
        self._held.pop(place, None)

    async def hold(self, copy: PartitionCopy, log_end: int) -> str | None:
        """Claim a partition if it is not, and wait for the owner before; None when it is held, else why not yet.

        `log_end` is the end of the remote partition's log, as read just now. After a new claim it has to be read again.
        """
        place = copy.place
        held = self._held.get(place)
        if held is None:
            return await self._claim(copy, log_end)
        if held.waits_since is None:
            return None
        name = f"{place[0]}-{place[1]}"
        if log_end != held.log_end:
            held.log_end, held.waits_since = log_end, _now()
            return f"another process appends to the copy of {name}, which this one has claimed"
        left_s = held.waits_since + WAIT_S - _now()
        if left_s > 0:
            return f"{name} was claimed by another process, whose requests are waited for: {left_s:.0f} s"
        held.waits_since = None
        return None

    async def _claim(self, copy: PartitionCopy, log_end: int) -> str | None:
        place, last = copy.place, _exact(copy).claim
        wanted = Claim(0 if last is None else last.number + 1, self.owner)
        name = f"{place[0]}-{place[1]}"
        stored = await self._append(place, wanted)
        if stored != wanted:
            copy.learn(self._reread().get(place))
            return f"another process has claimed {name} just now"
        _exact(copy).learn(wanted)
        await self._check_that_producers_are_remembered(copy)
        now = _now()
        free = last is None or last.released or last.owner == self.owner
        waits = place in self._doubtful or not free
        self._doubtful.discard(place)
        self._held[place] = _HeldClaim(wanted.number, now, now if waits else None, log_end)
        return f"{name} is claimed; its log end is read again"

    async def _check_that_producers_are_remembered(self, copy: PartitionCopy) -> None:
        """Raise `AppendRefused` where the target does not report the claim that was just appended."""
        producer, progress_place = claim_id(self._source_id(), *copy.place), self._progress_place(copy.place)
        node = leader_of(self._target, progress_place)
        if (await self._target.producers(node, {progress_place: producer}))[progress_place] is None:
            raise append_error(copy, _NO_PRODUCERS)

    async def confirm(self) -> list[TopicPartition]:
        """Ask whether claims are still the last ones; returns those that are not, which are forgotten.

        A claim that the progress topic lost is written again.
        """
        try:
            return await self._confirm()
        except (kafka_errors.KafkaError, NotNow):
            self._target.refresh_leaders()  # the topic may have been created again
            raise

    async def _confirm(self) -> list[TopicPartition]:
        now = _now()
        due = [place for place, held in self._held.items() if now - held.confirmed >= CONFIRM_EVERY_S]
        places = {place: self._progress_place(place) for place in due}
        lost: list[TopicPartition] = []
        stored: Mapping[TopicPartition, Known] | None = None
        for node, led in by_leader(self._target, set(places.values())).items():
            asked = _now()
            sequences = await last_sequences(self._target, node, led)
            for place in due:
                held = self._held.get(place)
                if held is None or places[place] not in led:
                    continue
                last = sequences.get((places[place], claim_id(self._source_id(), *place)))
                if last is None:
                    stored = self._reread() if stored is None else stored
                    is_last = await self._is_stored(place, held.number, stored.get(place))
                else:
                    is_last = last == held.number % SEQUENCES
                if self._held.get(place) is not held:
                    continue
                if is_last:
                    held.confirmed = asked
                else:
                    del self._held[place]
                    lost.append(place)
        return lost

    async def _is_stored(self, place: TopicPartition, number: int, known: Known | None) -> bool:
        """Whether the progress topic has a claim that its broker has forgotten, or lost it and takes it again."""
        own = Claim(number, self.owner)
        if known is not None and known.claim is not None:
            return known.claim == own
        return await self._append(place, own) == own

    async def release(self, copies: Iterable[PartitionCopy]) -> None:
        """Give up the claims of copies with nothing in flight, so that the next owner need not wait."""
        releasing = []
        for copy in copies:
            held = self._held.get(copy.place)
            # While the owner before it is waited for, the next lease continues to wait.
            if held is not None and held.waits_since is None:
                del self._held[copy.place]
                releasing.append(self._release(copy, Claim(held.number + 1, self.owner, released=True)))
        await self._target.side_by_side(*releasing)

    async def _release(self, copy: PartitionCopy, released: Claim) -> None:
        if await self._append(copy.place, released) == released:
            _exact(copy).learn(released)

    def _progress_place(self, place: TopicPartition) -> TopicPartition:
        return self._records.place_of(self._key(place))

    def _key(self, place: TopicPartition) -> bytes:
        return SourcePartition(self._alias, *place).claim_key()

    async def _append(self, place: TopicPartition, claim: Claim) -> Claim | None:
        """Append a claim; returns the one that is stored with its number, None if later ones are."""
        stored = await self._records.append(
            self._key(place),
            claim.to_bytes(),
            producer=claim_id(self._source_id(), *place),
            sequence=claim.number % SEQUENCES,
        )
        return stored if isinstance(stored, Claim) else None


def _exact(copy: PartitionCopy) -> ExactState:
    assert copy.exact is not None
    return copy.exact
