"""Decides which of several runs of a flow's copy goes first where the target could not distinguish them.

Two runs append the same batches with the same sequences, and the target accepts each once, unless it has forgotten the
producer, as it does with old records (`SendWindow`). So every run keeps a mark in the progress topic, renewed every few
seconds, and a run that finds an earlier one leaves old records to it. All marks are in one partition: the offset of a
run's first mark, its claim, says which run was first. Kafka Connect ignores these records.

A mark also says what copies, and how much is left. Beside the marks are the choice of an engine, `EngineChoice`, and
the deals of its shares (`deals`).
"""

from __future__ import annotations

import hashlib
import json
import socket
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mirrorless.progress.deals import Deal
from mirrorless.progress.engine_choice import EngineChoice, EngineName

if TYPE_CHECKING:
    from mirrorless.settings import Flow

MARKS_PARTITION: Final = 0
"""The partition of the progress topic that has all marks."""
_DELETED: Final = 1_000
"""Of so many runs it is known that their marks were deleted."""


class Share(NamedTuple):
    """The part of a flow's partitions that a run copies: `number` of `of`, by the last deal; Spark copies all."""

    number: int = 0
    of: int = 1

    def overlaps(self, other: Share) -> bool:
        """Whether two shares may have a partition in common."""
        return self.of != other.of or self.number == other.number


WHOLE: Final = Share()


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a run has left to copy, in offsets and in estimated bytes, and how many bytes it copies a second."""

    lag_records: int
    lag_bytes: int
    bytes_per_s: float

    def as_fields(self) -> dict[str, Any]:
        """Return the part of a mark's value."""
        return {"lagRecords": self.lag_records, "lagBytes": self.lag_bytes, "bytesPerSecond": round(self.bytes_per_s)}


@dataclass(frozen=True, slots=True)
class RunMark:
    """A run's mark: what it copies, its claim, and when it was renewed, in ms by the clock of its machine.

    A mark that was not renewed for `valid_ms` is that of a run that ended without deleting it, and of which no slot
    copies any more. It was read at `read_s` (monotonic seconds), and `is_news` if all before it was read by then.
    `is_ready` says that the run has planned, and would copy if it was the first. `deployment` is as in
    `deployment_of`. `deal` is the number of a deal: the run copies nothing that this or an earlier one moved from its
    share.
    """

    run: str
    copied: str
    claim: int
    renewed_ms: int
    valid_ms: int
    engine: EngineName = "spark"
    share: Share = WHOLE
    is_ready: bool = True
    work: Work | None = None
    deployment: str = ""
    deal: int = 0
    read_s: float = 0.0
    is_news: bool = False

    def is_over(self, now: float) -> bool:
        """Whether it was not renewed for its validity since it was read here, whatever clocks say."""
        return now - self.read_s >= self.valid_ms / 1000

    @classmethod
    def parse(cls, names: dict[str, Any], said: dict[str, Any], *, offset: int, now: float, is_news: bool) -> RunMark:
        """Read a mark; raises KeyError, TypeError or ValueError."""
        work = None
        if "lagRecords" in said:
            work = Work(
                lag_records=int(said["lagRecords"]),
                lag_bytes=int(said["lagBytes"]),
                bytes_per_s=float(said["bytesPerSecond"]),
            )
        number, of = said.get("share", WHOLE)
        return cls(
            str(names["run"]),
            str(names["copied"]),
            int(said.get("claim", offset)),
            int(said["renewedMs"]),
            int(said["validMs"]),
            engine="functions" if said.get("engine") == "functions" else "spark",
            share=Share(int(number), int(of)),
            is_ready=bool(said.get("ready", True)),
            work=work,
            deployment=str(said.get("deployment", "")),
            deal=int(said.get("deal", 0)),
            read_s=now,
            is_news=is_news,
        )


def deployment_of(location: str, flow: str) -> str:
    """Identify the flow of a configuration, whatever version the configuration has and whatever the flow copies."""
    return hashlib.sha256(f"{location.partition('?versionId=')[0]} {flow}".encode()).hexdigest()[:16]


def run_in(folder: str) -> str:
    """Name the run that has a folder on this machine: all its processes, and a restarted query, are one run."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{socket.gethostname()}{folder}"))


def key_of(flow: Flow, run: str) -> bytes:
    """Key of the mark of a run of the flow's copy."""
    said = b'"%s","run":%s}]' % (_selection(flow).encode(), json.dumps(run).encode())
    return _prefix(flow.source.alias) + said


def choice_key(flow: Flow, deployment: str) -> bytes:
    """Key of the choice of the flow's engine."""
    return _prefix(flow.source.alias) + b'"%s","engine":"chosen"}]' % deployment.encode()


def deal_key(flow: Flow, deployment: str, deal: Deal) -> bytes:
    """A key for a deal, which no other record has."""
    names = deployment.encode(), deal.number, deal.of, str(uuid.uuid4()).encode()
    return _prefix(flow.source.alias) + b'"%s","deal":%d,"of":%d,"id":"%s"}]' % names


def is_mark(key: bytes | None) -> bool:
    """Whether a record of the progress topic is a mark, a choice of an engine, or a deal, of any flow."""
    return key is not None and key.startswith(b'["mirrorless",{"cluster":') and b',"copied":"' in key


def _prefix(cluster: str) -> bytes:
    return b'["mirrorless",{"cluster":%s,"copied":' % json.dumps(cluster, ensure_ascii=False).encode()


def _selection(flow: Flow) -> str:
    """Identifies what a flow copies: flows of one pair of clusters with separate topics do not compete."""
    selects = (flow.connector_name, flow.topics, flow.topics_exclude, flow.topic_filter_class)
    return hashlib.sha256(repr((selects, flow.replication_policy_class)).encode()).hexdigest()[:16]


class RunMarks:
    """The marks in the progress topic, of flows whose source is `cluster`.

    What a flow copies may change while it runs, so the relevant marks are determined each time: those of runs that copy
    the same, and those of the same `deployment`.
    """

    def __init__(self, cluster: str) -> None:
        self._begins = _prefix(cluster)
        self._marks: dict[bytes, RunMark] = {}
        self._deleted: dict[bytes, int] = {}
        self._choices: dict[bytes, EngineChoice] = {}
        self._deals: dict[tuple[str, int], tuple[Deal, float]] = {}
        self._deal_keys: dict[bytes, tuple[str, int, int]] = {}

    def take(self, key: bytes | None, value: bytes | None, offset: int, *, now: float, is_news: bool) -> bool:
        """Process a record of the progress topic if it is a mark, read at `time.monotonic` seconds; returns if it is.

        It `is_news` if the topic was read to its end before: then it was written since.
        """
        if key is None or not key.startswith(self._begins):
            return False
        try:
            names = json.loads(key)[1]
            said = None if value is None else json.loads(value)
            if "engine" in names:
                self._take_choice(key, said)
                return True
            if "deal" in names:
                self._take_deal(key, names, said, now)
                return True
            mark = said and RunMark.parse(names, said, offset=offset, now=now, is_news=is_news)
        except (ValueError, KeyError, TypeError, AttributeError):
            return True
        if mark is None:
            self._marks.pop(key, None)
            self._deleted.pop(key, None)
            self._deleted[key] = offset
            if len(self._deleted) > _DELETED:
                del self._deleted[next(iter(self._deleted))]
            return True
        if mark.claim < self._deleted.get(key, -1):
            return True  # a renewal that a link held back until after the deletion
        self._marks[key] = mark
        return True

    def has(self, key: bytes) -> bool:
        """Whether there is a mark with this key, valid or not, that was not deleted after its claim."""
        return key in self._marks

    def chosen(self, flow: Flow, deployment: str) -> EngineChoice | None:
        """The choice of the flow's engine, None if there is none."""
        return self._choices.get(choice_key(flow, deployment))

    def deal(self, deployment: str, of: int) -> Deal | None:
        """The last deal among so many shares, None if there is none."""
        found = self._deals.get((deployment, of))
        return None if found is None else found[0]

    def dealt_at(self, deployment: str, of: int) -> float | None:
        """When (monotonic seconds) the last deal was read here, None if there is none."""
        found = self._deals.get((deployment, of))
        return None if found is None else found[1]

    def earlier_deals(self, deployment: str, of: int) -> list[bytes]:
        """The keys of all deals but the last one."""
        last = self.deal(deployment, of)
        return [
            key
            for key, (where, shares, number) in self._deal_keys.items()
            if last is not None and (where, shares) == (deployment, of) and number < last.number
        ]

    def only_choice(self) -> EngineChoice | None:
        """The choice of an engine if there is one only, of whatever flow of this source."""
        return next(iter(self._choices.values())) if len(self._choices) == 1 else None

    def suspects(self, flow: Flow, *, now_ms: int, now: float, deployment: str = "") -> list[RunMark]:
        """Marks that have expired by clocks alone, which may be wrong: they are to be watched."""
        return [
            mark
            for _, mark in self._of(flow, deployment)
            if not mark.is_over(now) and not self._is_valid(mark, now_ms=now_ms, now=now)
        ]

    def valid(self, flow: Flow, *, now_ms: int, now: float, deployment: str = "") -> list[RunMark]:
        """The valid marks of the flow, the earliest claim first."""
        return sorted(
            (mark for _, mark in self._of(flow, deployment) if self._is_valid(mark, now_ms=now_ms, now=now)),
            key=lambda mark: mark.claim,
        )

    def watched(self, flow: Flow, *, now: float, deployment: str = "") -> list[RunMark]:
        """The flow's marks, without those that were watched for as long as they are valid and were not renewed.

        No clock of another machine decides: a mark of a run that was killed counts for as long as it is valid after it
        was read here first.
        """
        return sorted(
            (mark for _, mark in self._of(flow, deployment) if not mark.is_over(now)),
            key=lambda mark: mark.claim,
        )

    def of_others(self, flow: Flow, *, now: float, deployment: str) -> list[RunMark]:
        """The marks of runs that copy something else between the same clusters, as another file's; as in `watched`."""
        ours = {key for key, _ in self._of(flow, deployment)}
        return [mark for key, mark in self._marks.items() if key not in ours and not mark.is_over(now)]

    def expired(self, flow: Flow, *, now_ms: int, now: float, deployment: str = "") -> list[bytes]:
        """The keys of the flow's marks that are not valid any more."""
        ours = self._of(flow, deployment)
        return [key for key, mark in ours if not self._is_valid(mark, now_ms=now_ms, now=now)]

    def first(
        self, flow: Flow, *, now_ms: int, now: float, share: Share = WHOLE, deployment: str = ""
    ) -> RunMark | None:
        """The valid mark with the earliest claim, of those that copy a part of the share."""
        valid = self.valid(flow, now_ms=now_ms, now=now, deployment=deployment)
        return next((mark for mark in valid if mark.share.overlaps(share)), None)

    def _of(self, flow: Flow, deployment: str) -> list[tuple[bytes, RunMark]]:
        copied = _selection(flow)
        return [
            (key, mark)
            for key, mark in self._marks.items()
            if mark.copied == copied or (deployment and mark.deployment == deployment)
        ]

    @staticmethod
    def _is_valid(mark: RunMark, *, now_ms: int, now: float) -> bool:
        """Whether it counts: one that was read as news does by the clock of this process alone."""
        return not mark.is_over(now) and (mark.is_news or abs(now_ms - mark.renewed_ms) < mark.valid_ms)

    def _take_choice(self, key: bytes, said: object) -> None:
        if isinstance(said, dict) and (choice := EngineChoice.parse(said)) is not None:
            self._choices[key] = choice
        else:
            self._choices.pop(key, None)

    def _take_deal(self, key: bytes, names: dict[str, Any], said: dict[str, Any] | None, now: float) -> None:
        """Take a deal if it follows the last one: what a run writes that was not first any more is none."""
        if said is None:
            self._deal_keys.pop(key, None)
            return
        deal = Deal.parse(names, said)
        group = str(names["copied"]), deal.of
        self._deal_keys[key] = (*group, deal.number)
        last = self._deals.get(group)
        if last is None or deal.number > last[0].number:
            self._deals[group] = deal, now
