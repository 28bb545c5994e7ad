"""Records of the operations topic, and the state that they add up to. No I/O.

An operation is in the records of its steps, so any machine can continue it. Records are judged in the order of the
log: an operation begins only if none of its pair of clusters is open and its number is higher than every earlier one, a
term is taken by the first claim of it, and steps count only from the owner of the current term. So of two operators
that write at once, each reader of the log sees the same one win. The clocks of the operators' machines decide nothing.
Every record but a renewal has a key of its own: compaction changes nothing.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FENCE: Final = "fence"
"""The step that blocks writers on the source; its data has the topics and what was before."""
WARNED: Final = "warned"
"""The warnings of a step, in its data: the report of a process that continues has them too."""
EVERYTHING: Final = ".*"
_OWN: Final = "mirrorless"
_LARGE: Final = 4_096


class OperationKind(StrEnum):
    """What an operation is for."""

    SWITCHOVER = "switchover"
    FAILOVER = "failover"
    FAILBACK = "failback"


class StepState(StrEnum):
    """How far a step is; `UNDONE` is that of a step whose changes were reverted."""

    BEGUN = "begun"
    DONE = "done"
    UNDONE = "undone"


class OperationOutcome(StrEnum):
    """How an operation ended; a running one may be continued."""

    RUNNING = "running"
    COMPLETED = "completed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What an operation was asked to do; `topics` and `groups` are patterns for whole names. Times are in seconds.

    `fence` is as in `mirrorless.fence`, resolved; `switches` are as in `mirrorless.switch`. `stranded` is what a
    failback does with records that were never replicated. `configuration` is the hash of the flow's settings.
    """

    kind: OperationKind
    source: str
    target: str
    topics: str = EVERYTHING
    groups: str = EVERYTHING
    fence: str = "none"
    switches: tuple[str, ...] = ()
    quiet_s: float = 10.0
    drain_timeout_s: float = 90.0
    wait_groups_s: float = 10.0
    accepted: tuple[str, ...] = ()
    stranded: str = "list"
    configuration: str = ""
    version: str = ""

    @property
    def pair(self) -> frozenset[str]:
        """The two clusters, in either direction."""
        return frozenset((self.source, self.target))

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Request:
        """Read what `asdict` returns; fields of later releases are ignored. Raises KeyError, TypeError, ValueError."""
        known = {name: fields[name] for name in cls.__dataclass_fields__ if name in fields}
        known["kind"] = OperationKind(known["kind"])
        for name in ("switches", "accepted"):
            known[name] = tuple(known.get(name, ()))
        return cls(**known)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """A step: its state, when it began and ended (ms since 1970), and what it needs to continue, undo and report."""

    state: StepState
    began_ms: int
    ended_ms: int | None = None
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Duration; 0 while it is not ended."""
        return 0.0 if self.ended_ms is None else max(0, self.ended_ms - self.began_ms) / 1000


@dataclass(slots=True, kw_only=True)
class OperationState:
    """One operation, as its records say. `renewals` grows while its owner is alive.

    `owner` is None before a claim, and once it has said that it stopped. `number` is higher than those of operations
    that began before it on one of its clusters. `created_ms` is a time of the machine that began it, for people.
    `lifted` are the topics from which its fence was removed after its end.
    """

    id: str
    request: Request
    created_ms: int
    number: int = 0
    term: int = 0
    owner: str | None = None
    owner_text: str = ""
    renewals: int = 0
    steps: dict[str, StepRecord] = field(default_factory=dict)
    outcome: OperationOutcome = OperationOutcome.RUNNING
    ended_ms: int | None = None
    reason: str = ""
    lifted: set[str] = field(default_factory=set)

    @property
    def standing_fence(self) -> dict[str, Any]:
        """What is, or may be, left of its fence: it stays after a switchover, until applications return.

        As the step's data, with the topics that it is not lifted from.
        """
        fence = self.data(FENCE)
        topics = {topic: count for topic, count in fence.get("topics", {}).items() if topic not in self.lifted}
        return {**fence, "topics": topics, "planned": only(fence.get("planned", {}), topics)} if topics else {}

    @property
    def is_open(self) -> bool:
        """Whether it has neither completed nor been undone."""
        return self.outcome is OperationOutcome.RUNNING

    @property
    def warnings(self) -> list[str]:
        """The warnings of all steps."""
        return [line for one in self.steps.values() for line in one.data.get(WARNED, ())]

    def data(self, step: str) -> dict[str, Any]:
        """What a step recorded; empty if it did not begin, or was undone."""
        record = self.steps.get(step)
        return {} if record is None or record.state is StepState.UNDONE else record.data


class Operations:
    """All operations that a log has; `take` its records in order. `highest` is the highest number of them."""

    def __init__(self) -> None:
        self.by_id: dict[str, OperationState] = {}
        self.highest = 0

    def open(self, pair: frozenset[str]) -> OperationState | None:
        """The open operation of a pair of clusters, in either direction."""
        return next((one for one in self.by_id.values() if one.is_open and one.request.pair == pair), None)

    def of(self, pair: frozenset[str]) -> list[OperationState]:
        """The operations of a pair, the oldest first."""
        return sorted((one for one in self.by_id.values() if one.request.pair == pair), key=lambda one: one.number)

    def last_completed(self, pair: frozenset[str]) -> OperationState | None:
        """The last operation of a pair that completed.

        None also if two have its number: each was done while the cluster of the other one was down.
        """
        completed = [one for one in self.of(pair) if one.outcome is OperationOutcome.COMPLETED]
        last = [one for one in completed if one.number == completed[-1].number]
        return last[0] if len(last) == 1 else None

    def fences_on(self, cluster: str) -> list[OperationState]:
        """The operations whose fence is on a cluster now, the oldest first."""
        return sorted(
            (one for one in self.by_id.values() if one.request.source == cluster and one.standing_fence),
            key=lambda one: one.number,
        )

    def fenced_on(self, cluster: str, *, besides: str = "") -> set[str]:
        """The topics of a cluster that operations fence now, without the one that is named.

        A fence that another operation is removing, since applications return, does not count any more.
        """
        removed = {
            (number, topic)
            for one in self.by_id.values()
            for number, fence in one.data("open").get("lift", {}).items()
            for topic in fence["topics"]
        }
        return {
            topic
            for one in self.fences_on(cluster)
            if one.id != besides
            for topic in one.standing_fence["topics"]
            if (one.id, topic) not in removed
        }

    def take(self, key: bytes | None, value: bytes | None) -> None:
        """Process the next record; what is not this program's, or makes no sense, is ignored."""
        try:
            own, names = json.loads(key or b"")
            if own != _OWN or value is None:
                return
            self._take(str(names["operation"]), str(names["record"]), names, json.loads(value))
        except (ValueError, KeyError, TypeError, AttributeError):
            return

    def _begin(self, operation_id: str, request: Request, number: int, said: dict[str, Any]) -> None:
        if operation_id in self.by_id or self.open(request.pair) is not None or number <= self.highest:
            return
        self.highest = number
        self.by_id[operation_id] = OperationState(
            id=operation_id, request=request, created_ms=int(said["ms"]), number=number
        )

    def _take(self, operation_id: str, record: str, names: dict[str, Any], said: dict[str, Any]) -> None:
        if record == "begin":
            # A release before this one wrote no number: the order of the log is that of its operations.
            self._begin(operation_id, Request.read(said["request"]), int(said.get("number", self.highest + 1)), said)
            return
        operation = self.by_id.get(operation_id)
        if operation is not None and record == "lifted":
            operation.lifted |= set(said["topics"])
        if operation is None or not operation.is_open:
            return
        if record == "closed":
            operation.outcome, operation.ended_ms = OperationOutcome(said["outcome"]), int(said["ms"])
            return
        owner, term = str(names["owner"]), int(said["term"])
        if record == "claim":
            if term == operation.term + 1:
                operation.term, operation.owner, operation.owner_text = term, owner, str(said.get("text", ""))
                operation.renewals += 1
        elif (owner, term) != (operation.owner, operation.term):
            return
        elif record == "renewal":
            operation.renewals += 1
        elif record == "released":
            operation.owner = None
        elif record == "step":
            ended = said.get("endedMs")
            operation.steps[str(names["step"])] = StepRecord(
                state=StepState(names["state"]),
                began_ms=int(said["beganMs"]),
                ended_ms=None if ended is None else int(ended),
                data=_unpacked(said.get("data", {})),
            )
        elif record == "end":
            operation.outcome = OperationOutcome(said["outcome"])
            operation.ended_ms, operation.reason = int(said["ms"]), str(said.get("reason", ""))


def merged(found: Mapping[str, Operations], pair: frozenset[str] | None = None) -> Operations:
    """Combine the logs of clusters, by alias, for all operations or those of a pair.

    Of each operation the log of its target decides, or another one that has it. A log that missed some counts fewer: of
    operations without a number of their own the higher one is right.
    """
    combined = Operations()
    for alias, operations in found.items():
        for one in operations.by_id.values() if pair is None else operations.of(pair):
            known = combined.by_id.get(one.id)
            if known is None or alias == one.request.target:
                combined.by_id[one.id] = one
            if known is not None:
                combined.by_id[one.id].number = max(one.number, known.number)
    return combined


@dataclass(frozen=True, slots=True)
class Entry:
    """A record to append."""

    key: bytes
    value: bytes


def begin(operation: str, request: Request, *, number: int, ms: int) -> Entry:
    """Begin an operation; of several with one number the first in the log does."""
    return _entry(operation, "begin", {}, {"ms": ms, "number": number, "request": asdict(request)})


def claim(operation: str, *, owner: str, term: int, text: str, ms: int) -> Entry:
    """Take the next term; `text` says who the owner is, for people."""
    return _entry(operation, "claim", {"owner": owner, "term": term}, {"term": term, "text": text, "ms": ms})


def renewal(operation: str, *, owner: str, term: int, ms: int) -> Entry:
    """Show that the owner is alive."""
    return _entry(operation, "renewal", {"owner": owner}, {"term": term, "ms": ms})


def released(operation: str, *, owner: str, term: int) -> Entry:
    """Say that the owner of a term has stopped, and does nothing more."""
    return _entry(operation, "released", {"owner": owner, "term": term}, {"term": term})


def step(operation: str, name: str, record: StepRecord, *, owner: str, term: int) -> Entry:
    """Write the state of a step."""
    said = {"term": term, "beganMs": record.began_ms, "endedMs": record.ended_ms, "data": _packed(record.data)}
    return _entry(operation, "step", {"owner": owner, "term": term, "step": name, "state": record.state}, said)


def end(operation: str, outcome: OperationOutcome, *, owner: str, term: int, ms: int, reason: str = "") -> Entry:
    """End an operation."""
    return _entry(operation, "end", {"owner": owner}, {"term": term, "outcome": outcome, "ms": ms, "reason": reason})


def lifted(operation: str, topics: Iterable[str], *, by: str, ms: int) -> Entry:
    """Say that the fence of an operation that has ended was removed from topics, `by` which operation or command."""
    return _entry(operation, "lifted", {"by": by}, {"topics": sorted(topics), "ms": ms})


def closed(operation: str, outcome: OperationOutcome, *, ms: int) -> Entry:
    """End an operation in a log that has missed its end, or in which it may not have begun."""
    return _entry(operation, "closed", {}, {"outcome": outcome, "ms": ms})


def only(planned: dict[str, Any], topics: Iterable[str]) -> dict[str, Any]:
    """Return the part of a fence's data that is about some topics."""
    wanted = set(topics)
    return {
        key: {topic: one for topic, one in some.items() if topic in wanted}
        if isinstance(some, dict)
        else [topic for topic in some if topic in wanted]
        for key, some in planned.items()
    }


def _entry(operation: str, record: str, names: dict[str, Any], said: dict[str, Any]) -> Entry:
    key = [_OWN, {"operation": operation, "record": record, **names}]
    return Entry(json.dumps(key, separators=(",", ":")).encode(), json.dumps(said, separators=(",", ":")).encode())


def _packed(data: dict[str, Any]) -> object:
    """Return the data of a step as JSON, compressed where it is large: 10,000 offsets are some 50 KB then."""
    text = json.dumps(data, separators=(",", ":"))
    if len(text) < _LARGE:
        return data
    return {"zlib": base64.b64encode(zlib.compress(text.encode())).decode()}


def _unpacked(content: dict[str, Any]) -> dict[str, Any]:
    if content.keys() == {"zlib"}:
        unpacked: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(content["zlib"])))
        return unpacked
    return content
