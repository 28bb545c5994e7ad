"""Fetches from the source's leaders and turns what comes into stamped batches for the appender."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mirrorless.batches.header import FormatError
from mirrorless.batches.intake import PassedTo, take_in
from mirrorless.batches.reverse_copy import LoopedBatch
from mirrorless.batches.stamp import stamp
from mirrorless.clusters.connection_errors import grant
from mirrorless.copy.partition.loop_check import loop_at
from mirrorless.copy.partition.state import READABLE, Pending, cut_at
from mirrorless.copy.slot.empty_fetch import out_of_range, pass_over_hole
from mirrorless.copy.slot.fetch_queue import FetchQueue
from mirrorless.errors import without_frames
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.receive_buffers import outlasts
from mirrorless.protocol.broker_errors import error_for, error_name
from mirrorless.protocol.fetch_session import FetchSession
from mirrorless.protocol.leaders import TROUBLE
from mirrorless.protocol.requests import OFFSET_OUT_OF_RANGE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence

    from mirrorless.clusters.topics import Place
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.slot.appender import Appender
    from mirrorless.copy.slot.keeper import Keeper
    from mirrorless.copy.slot.rate_limit import RateLimit
    from mirrorless.protocol.cluster_client import ClusterClient
    from mirrorless.protocol.requests import Fetched

_WAIT_MS = 500
_CROWDED_WAIT_MS = 10
_IDLE_S = 0.02
_LONGEST_PAUSE_S = 0.1
_CROWDED_S = 0.002
_PARTITION_BYTES = 2 << 20
_RESPONSE_BYTES = 8 << 20
_MERGED_BYTES = 768 << 10
"""Below Kafka's default of `max.message.bytes`, records uncompressed."""
_SHARES = 8
"""Of the buffer, how many there are; the copies with something queued may fill one of them together."""
_DOUBTS = 3
_LOOK_EVERY_S = 0.5
"""Where answers are full, nearly all who came away with nothing only wait for their turn."""


class Fetcher:
    """Asks every source leader for the partitions it leads, as long as `stop` was not called.

    `bounded` leaves out what lies behind each row's `source_end`; `buffer_bytes` bounds what waits for the target,
    and `budget` how fast it comes. A partition that had its turn goes to the end of its leader's line, so that none
    starves; in a session the leader sees to that. Where many are behind, only as many are asked for as may fill an
    answer, and without a session.

    Memory: besides what waits, each source leader has one answer under way, of `_RESPONSE_BYTES` or one batch, and the
    source keeps the frames of some answers (`kafka_python.receive_buffers`).
    """

    def __init__(
        self,
        *,
        source: ClusterClient,
        copies: Mapping[Place, PartitionCopy],
        appender: Appender,
        keeper: Keeper,
        bounded: bool,
        buffer_bytes: int,
        budget: RateLimit,
        sleep: Callable[[float], Any],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._source = source
        self._copies = copies
        self._appender = appender
        self._keeper = keeper
        self._bounded = bounded
        self._buffer_bytes = buffer_bytes
        self._budget = budget
        self._sleep = sleep
        self._spawn = spawn
        self._led: dict[int, FetchQueue] = {}
        self._sessions: dict[int, FetchSession] = {}
        self._aside: set[PartitionCopy] = set()
        self._stopped = False
        self.hurried = False

    def stop(self) -> None:
        """Take nothing more; an answer that is still under way is thrown away."""
        self._stopped = True

    def assign(self) -> None:
        """Group the copies by the leader that serves them; every leader gets a loop of its own.

        Who stands in a line stays where it stands, or those at its end would never be served.
        """
        lined_up = dict.fromkeys(
            copy for line in self._led.values() for copy in line if self._copies.get(copy.place) is copy
        )
        for line in self._led.values():
            line.clear()
        for copy in _readable(lined_up | dict.fromkeys(self._copies.values())):
            self._line_up(copy)
        self._led = {node: line for node, line in self._led.items() if len(line)}

    def add(self, copy: PartitionCopy) -> None:
        """Take one more copy, which is where it goes on."""
        for session in self._sessions.values():
            session.renew(copy.place)
        self._line_up(copy)

    def _line_up(self, copy: PartitionCopy) -> None:
        if copy in self._aside:
            return
        node = self._source.leader(copy.place)
        if node is None:
            self._keeper.later(copy, f"{copy.row.topic}-{copy.row.partition} has no leader at the moment")
            return
        self._led.setdefault(node, FetchQueue()).join(copy)
        if node not in self._sessions:
            self._sessions[node] = FetchSession()
            self._spawn(self._loop(node))

    async def _loop(self, node: int) -> None:
        session = self._sessions[node]
        look_due = 0.0
        try:
            while not self._stopped and node in self._led:
                if pause := self._budget.pause_s(time.monotonic()):
                    await self._sleep(min(pause, _LONGEST_PAUSE_S))
                    continue
                if quiet_s := self._source.quiet_s(node):
                    await self._be_quiet(node, min(quiet_s, _LONGEST_PAUSE_S))
                    continue
                line = self._led[node]
                wanted, crowded = self._wanted(line)
                front = line.front(wanted, now=time.monotonic())
                if not (asked := self._still_there(front)):
                    await self._sleep(_CROWDED_S if crowded else _IDLE_S)
                    continue
                some = len(front) < len(wanted)  # of these, records are known to be there
                hurry = some or crowded or self.hurried
                answers = await self._fetch(node, asked, None if some else session, hurry=hurry)
                served = {part.place for part in answers if len(part.records)}
                if answers or not some:  # a broker whose quota is used up says nothing at all
                    line.answered(front, served, in_order=some)
                del answers  # views of a frame that is filled again
                if time.monotonic() >= look_due and (doubtful := _doubtful(wanted)):
                    look_due = time.monotonic() + _LOOK_EVERY_S
                    await self._look_closer(node, doubtful)
        finally:
            del self._sessions[node]
        await self._source.forget(node, session)

    async def _be_quiet(self, node: int, seconds: float) -> None:
        await self._sleep(seconds)
        for copy in self._led.get(node, ()):
            copy.stats.fetch_throttle_ms += round(seconds * 1000)

    async def _fetch(
        self, node: int, wanted: Sequence[PartitionCopy], session: FetchSession | None, *, hurry: bool
    ) -> list[Fetched]:
        """Fetch once and queue what came; returns what was taken note of."""
        asked = {copy.place: copy.fetch_from for copy in wanted}
        try:
            fetched = await self._source.fetch(
                node,
                [(copy.place, copy.fetch_from, copy.leader_epoch) for copy in wanted],
                max_wait_ms=_CROWDED_WAIT_MS if hurry else _WAIT_MS,
                max_bytes=self._budget.most_bytes(_RESPONSE_BYTES),
                partition_max_bytes=_PARTITION_BYTES,
                session=session,
            )
        except TROUBLE as error:
            if not self._stopped:
                for copy in _readable(wanted):
                    self._keeper.later(copy, error)
            return []
        except kafka_errors.KafkaError as error:
            for copy in _readable(wanted):
                self._keeper.halt(copy, copy.error_at_fetch(f"the source refuses to be read: {error}"))
            return []
        if self._stopped:
            return []
        if session is not None:
            _note_silence(wanted, fetched)
        # The lease that began meanwhile may not have all of them.
        known = [part for part in fetched if part.place in asked and part.place in self._copies]
        outside: list[PartitionCopy] = []
        for part in known:
            copy = self._copies[part.place]
            if len(part.records):
                self._budget.spend(len(part.records))
            self._take(copy, part, asked[part.place])
            if part.error_code == OFFSET_OUT_OF_RANGE:
                outside.append(copy)
        self._appender.pump()
        for copy in outside:
            await out_of_range(self._source, self._keeper, node, copy, asked[copy.place])
        return known

    async def _look_closer(self, node: int, copy: PartitionCopy) -> None:
        """Ask for one alone whose broker answers with nothing though the source's end lies ahead.

        Asked for many partitions, its answer may have been full.
        """
        copy.empty_answers = 0
        before = copy.fetch_from
        answers = await self._fetch(node, [copy], None, hurry=False)
        if answers and not answers[0].error_code and not answers[0].records and copy.fetch_from == before:
            await pass_over_hole(self._source, self._keeper, node, copy, answers[0])

    def _wanted(self, line: FetchQueue) -> tuple[list[PartitionCopy], bool]:
        """Copies that can take more, in the line's order, and whether others have to wait for the target."""
        if self._appender.queued_bytes > self._buffer_bytes:
            return [], True
        # What is not asked for while others are waits for their answer, so few busy ones may have more in store.
        busy = sum(1 for copy in line if copy.queue)
        room = max(_PARTITION_BYTES, self._buffer_bytes // _SHARES // max(1, busy))
        wanted = [
            copy for copy in _readable(line) if copy.queued_bytes < room and (copy.is_behind or not self._bounded)
        ]
        return wanted, busy > 0

    def _still_there(self, copies: Iterable[PartitionCopy]) -> list[PartitionCopy]:
        """Those of the copies whose topic is the one that they were resumed at; the others are, again."""
        for copy in copies:
            if self._source.topic_id(copy.row.topic) != copy.source_id:
                self._keeper.later(copy, f"{copy.row.topic} was created again, or is gone")
        return _readable(copies)

    def _take(self, copy: PartitionCopy, fetched: Fetched, asked_from: int) -> None:
        """Queue what a fetch brought for one partition."""
        if copy.state not in READABLE or copy.fetch_from != asked_from:
            return  # it was resumed elsewhere in the meantime
        if fetched.error_code:
            self._failed(copy, fetched)
            return
        if fetched.diverges_at is not None:
            self._keeper.gap(copy, cut_at(copy, min(fetched.diverges_at, asked_from)))
            return
        copy.suspected = None  # what was looked for is there
        if not self._bounded:
            copy.source_end = fetched.last_stable_offset
        high = min(fetched.high_watermark, copy.source_end) if self._bounded else fetched.high_watermark
        if high > fetched.last_stable_offset or copy.open is not None:
            copy.note_open_transaction(fetched.last_stable_offset, high, now=time.monotonic())
            if not fetched.records and fetched.last_stable_offset < copy.fetch_from:
                self._spawn(self._set_aside(copy))
        if not fetched.records and fetched.last_stable_offset > copy.fetch_from:
            copy.empty_answers += 1
            return
        copy.empty_answers = 0
        try:
            self._queue(copy, fetched)
        except FormatError as error:
            self._keeper.damaged(copy, without_frames(error))
        except LoopedBatch as found:
            self._keeper.halt(copy, loop_at(copy, found.offset), land_first=True)
        if copy.queue and not self._appender.offer(copy):
            self._keeper.later(
                copy, f"{copy.row.remote_topic}-{copy.row.partition} has another leader now, or was created again"
            )
        self._keeper.moved(copy)

    async def _set_aside(self, copy: PartitionCopy) -> None:
        """Do not ask for a copy for a while that is behind the last stable offset, as a takeover may have put it.

        The broker would answer at once, again and again (`DelayedFetch.tryComplete`).
        """
        self._aside.add(copy)
        for line in self._led.values():
            line.leave(copy)
        await self._sleep(_WAIT_MS / 1000)
        self._aside.discard(copy)
        if not self._stopped and self._copies.get(copy.place) is copy and copy.state in READABLE:
            self.add(copy)  # as a new one of its session, which says nothing of what is as it was

    def _queue(self, copy: PartitionCopy, fetched: Fetched) -> None:
        now_ms = int(time.time() * 1000)
        for taken in take_in(
            fetched.records,
            fetched.aborted,
            wanted_from=copy.fetch_from,
            until=copy.source_end if self._bounded else None,
            max_batch_bytes=copy.max_batch_bytes,
            verify=copy.verifies,
            views=outlasts(fetched.records),
            merge_below=_MERGED_BYTES if copy.window.merges else 0,
            opposite=copy.opposite,
        ):
            if isinstance(taken, PassedTo):
                copy.fetch_from = max(copy.fetch_from, taken.offset)
                if taken.leader_epoch >= 0:  # of an answer without batches nothing is known
                    copy.leader_epoch = taken.leader_epoch
                continue
            if not copy.row.is_first and not copy.window.remembers(taken.header.max_timestamp_ms, now_ms):
                self._keeper.wait(copy, _leaves_it_to_another(copy))
                return
            batch = stamp(
                taken.header,
                taken.body,
                producer_id=copy.producer_id,
                producer_epoch=copy.epoch,
                base_sequence=copy.next_sequence,
            )
            self._appender.queued_bytes += batch.size_bytes
            copy.enqueue(
                Pending(
                    batch,
                    taken.base_offset,
                    taken.last_offset,
                    taken.header.record_count,
                    copy.next_sequence,
                    taken.header.max_timestamp_ms,
                    taken.leader_epoch,
                ),
                now_ms=now_ms,
            )

    def _failed(self, copy: PartitionCopy, fetched: Fetched) -> None:
        name = error_name(fetched.error_code)
        if fetched.error_code == OFFSET_OUT_OF_RANGE:
            return  # looked into when the rest was taken; see `out_of_range`
        if issubclass(error_for(fetched.error_code), TROUBLE):
            self._keeper.later(copy, f"fetch: {name}")
        else:
            name += grant(fetched.error_code, "READ on the topic")
            self._keeper.halt(copy, copy.error_at_fetch(f"the source refuses to be read: {name}"))


def _readable(copies: Iterable[PartitionCopy]) -> list[PartitionCopy]:
    return [copy for copy in copies if copy.state in READABLE and copy.detour is None]


def _leaves_it_to_another(copy: PartitionCopy) -> str:
    return (
        f"another run of this flow copies {copy.row.topic}-{copy.row.partition}, whose next record is too old for the "
        "target to tell two runs apart; this one continues when the other has stopped"
    )


def _doubtful(copies: Iterable[PartitionCopy]) -> PartitionCopy | None:
    """The copy that was answered with nothing most often, if it was too often."""
    most = max(_readable(copies), key=lambda copy: copy.empty_answers, default=None)
    return most if most is not None and most.empty_answers > _DOUBTS else None


def _note_silence(wanted: Iterable[PartitionCopy], fetched: Iterable[Fetched]) -> None:
    """Count as an empty answer that nothing at all is said of a copy that is behind."""
    told = {part.place for part in fetched}
    for copy in wanted:
        if copy.is_behind and copy.place not in told and copy.held_by is None:
            copy.empty_answers += 1
