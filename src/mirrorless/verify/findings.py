"""Results of a comparison: differences with their offsets, the result of each partition, and of the flow."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

IDENTICAL: Final = 0
DIFFERENT: Final = 1
NOT_COMPARED: Final = 2


class DifferenceKind(StrEnum):
    """What differs."""

    MISSING = "missing"
    EXTRA = "extra"
    DOUBLED = "doubled"
    CHANGED = "changed"
    OUT_OF_ORDER = "out of order"
    MOVED = "at other offsets"
    SHORT = "short"
    UNLIKE = "unlike"
    TOPIC = "topic"
    PARTITIONS = "partitions"
    CONFIG = "config"
    ACL = "ACL"
    GROUP_OFFSET = "group offset"
    KIND = "rights and limits"


OF_RECORDS: Final = frozenset(
    {
        DifferenceKind.MISSING,
        DifferenceKind.EXTRA,
        DifferenceKind.DOUBLED,
        DifferenceKind.CHANGED,
        DifferenceKind.OUT_OF_ORDER,
        DifferenceKind.MOVED,
        DifferenceKind.SHORT,
        DifferenceKind.UNLIKE,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference; `upstream` and `downstream` are the offsets of its first record, None if a side has none.

    `records` is the number of records. `fields` are those of a record that differ: key, value, headers, timestamp.
    `what` names the group, the config or the ACL; `translated` is a group's exact offset on the target. `source_has`
    and `target_has` are the two sides' values, never those of records.
    """

    kind: DifferenceKind
    topic: str
    remote_topic: str
    partition: int | None = None
    upstream: int | None = None
    downstream: int | None = None
    records: int | None = None
    fields: tuple[str, ...] = ()
    what: str = ""
    translated: int | None = None
    source_has: str | None = None
    target_has: str | None = None

    @property
    def place(self) -> str:
        """Topic and partition of the source, in one word."""
        return self.topic if self.partition is None else f"{self.topic}-{self.partition}"

    @property
    def text(self) -> str:
        """The difference in one line, without topic and partition."""
        match self.kind:
            case DifferenceKind.CHANGED:
                return f"changed in {', '.join(self.fields)}"
            case DifferenceKind.UNLIKE:
                return f"{self.what}"
            case DifferenceKind.SHORT:
                return f"short: {_records(self.records)} that were copied no longer exist"
            case DifferenceKind.KIND:
                return f"{self.what}: source {self.source_has}, target {self.target_has}"
            case (
                DifferenceKind.TOPIC
                | DifferenceKind.PARTITIONS
                | DifferenceKind.CONFIG
                | DifferenceKind.ACL
                | DifferenceKind.GROUP_OFFSET
            ):
                sides = f"source {self.source_has}, target {self.target_has}"
                return f"{self.kind} {self.what}: {sides}".replace(" : ", ": ")
            case _:
                return f"{self.kind}: {_records(self.records)}"


def _records(number: int | None) -> str:
    return f"{number if number is not None else 'some'} record{'' if number == 1 else 's'}"


class Method(StrEnum):
    """How a partition was compared."""

    WINDOWS = "windows"
    LATEST = "latest of each key"
    NONE = "not compared"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionResult:
    """One partition after the comparison.

    `records` of the source were compared, `size_bytes` are the keys and values read of both sides together. `windows`
    is the number of windows, or keys; `different` how many of them differ. `not_copied` is what the source has
    beyond the target. Offsets are the first and the end of what was compared on each side. `notes` are about
    what was not compared and is no difference; `trouble` says why there is no result. `more` is set if not every
    difference is shown.
    """

    topic: str
    partition: int
    remote_topic: str
    method: Method
    records: int = 0
    size_bytes: int = 0
    windows: int = 0
    different: int = 0
    not_copied: int = 0
    first_upstream: int | None = None
    end_upstream: int | None = None
    first_downstream: int | None = None
    end_downstream: int | None = None
    expired_on_target: bool = False
    notes: tuple[str, ...] = ()
    trouble: str | None = None
    more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationResult:
    """The result for one flow; times are ms since 1970. `troubles` are what could not be compared, one line each."""

    flow: str
    began_ms: int
    ended_ms: int
    partitions: tuple[PartitionResult, ...] = ()
    differences: tuple[Difference, ...] = ()
    troubles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """Exit status: a difference takes precedence over what could not be compared."""
        if self.differences or any(one.more for one in self.partitions):
            return DIFFERENT
        return NOT_COMPARED if self.troubles else IDENTICAL

    @property
    def records(self) -> int:
        """Records of the source that were compared."""
        return sum(one.records for one in self.partitions)

    @property
    def size_bytes(self) -> int:
        """Bytes of keys and values read, of both sides."""
        return sum(one.size_bytes for one in self.partitions)

    @property
    def not_copied(self) -> int:
        """Records that the target does not have yet."""
        return sum(one.not_copied for one in self.partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicResult:
    """The sums of one topic's partitions."""

    topic: str
    remote_topic: str
    partitions: int
    records: int
    windows: int
    different: int
    not_copied: int
    differences: int


def by_topic(verdict: VerificationResult) -> list[TopicResult]:
    """Add up partitions by topic, in the order of their names."""
    found: dict[str, list[PartitionResult]] = {}
    for one in verdict.partitions:
        found.setdefault(one.topic, []).append(one)
    return [
        TopicResult(
            topic=topic,
            remote_topic=some[0].remote_topic,
            partitions=len(some),
            records=sum(one.records for one in some),
            windows=sum(one.windows for one in some),
            different=sum(one.different for one in some),
            not_copied=sum(one.not_copied for one in some),
            differences=_of(topic, verdict.differences),
        )
        for topic, some in sorted(found.items())
    ]


def _of(topic: str, differences: Iterable[Difference]) -> int:
    return sum(one.topic == topic and one.kind in OF_RECORDS for one in differences)
