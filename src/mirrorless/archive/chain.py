"""The objects of one partition in their order: each begins where its predecessor ends.

Nothing else says what an archive has of a partition, so a writer that stopped anywhere continues at the end of the
chain. An object is named after its first offset and its branch. The first object of a higher branch begins where the
source's log was truncated, or was restored to: it replaces what the branches before it have from there on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from mirrorless.archive.segment import read_footer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mirrorless.archive.object_store import ObjectStore, Stored
    from mirrorless.archive.segment import Footer

TOPICS: Final = "topics/"
_OBJECT: Final = re.compile(r"(\d{20})-(\d{6})\.log")
_FLOOR: Final = re.compile(r"floor-(\d{20})")


@dataclass(frozen=True, slots=True, order=True)
class LogId:
    """One partition of a topic with one id; a topic that is created again has another."""

    topic: str
    topic_id: str
    partition: int

    @property
    def prefix(self) -> str:
        """Where its objects lie."""
        return f"{TOPICS}{quote(self.topic, safe='')}/{self.topic_id}/{self.partition}/"

    def object(self, first: int, branch: int) -> str:
        """The name of the object that begins at an offset of a branch."""
        return f"{self.prefix}{first:020}-{branch:06}.log"

    def floor(self, offset: int) -> str:
        """The name of the object that says that nothing below an offset counts."""
        return f"{self.prefix}floor-{offset:020}"


@dataclass(frozen=True, slots=True)
class Link:
    """An object of a chain: `until` is where its successor begins, None for the last one."""

    name: str
    first: int
    branch: int
    size_bytes: int
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Chain:
    """The objects that count, in order; `replaced` are those of which a later branch has everything.

    Below `floor` nothing counts: `stale` are objects that lie there, because they are being deleted or came too late.
    """

    log: LogId
    links: tuple[Link, ...]
    floor: int = 0
    replaced: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()

    @property
    def branch(self) -> int:
        """The newest branch."""
        return max((one.branch for one in self.links), default=0)

    @property
    def start(self) -> int | None:
        """The first offset, None if there is no object."""
        return self.links[0].first if self.links else None


def chain_of(log: LogId, objects: Iterable[Stored]) -> Chain:
    """Return the chain of one log from the names below its prefix."""
    found: list[Link] = []
    floor = 0
    for one in objects:
        name = one.name.removeprefix(log.prefix)
        if match := _OBJECT.fullmatch(name):
            found.append(Link(one.name, int(match[1]), int(match[2]), one.size_bytes))
        elif match := _FLOOR.fullmatch(name):
            floor = max(floor, int(match[1]))
    stale = tuple(one.name for one in found if one.first < floor)
    chained: list[Link] = []
    replaced: list[str] = []
    branches: dict[int, list[Link]] = {}
    for link in sorted(found, key=lambda link: (link.branch, link.first)):
        if link.first >= floor:
            branches.setdefault(link.branch, []).append(link)
    for links in branches.values():
        begins = links[0].first
        replaced += [one.name for one in chained if one.first >= begins]
        chained = [one for one in chained if one.first < begins] + links
    ends = [one.first for one in chained[1:]]
    linked = tuple(replace(one, until=until) for one, until in zip(chained, [*ends, None], strict=False))
    return Chain(log, linked, floor, tuple(replaced), stale)


def read_chain(store: ObjectStore, log: LogId) -> Chain:
    """List the objects of one log; raises `ArchiveError`."""
    return chain_of(log, store.names(log.prefix))


def logs_of(store: ObjectStore, topic: str | None = None) -> dict[LogId, list[Stored]]:
    """Return the objects of every log of an archive, or of one topic; raises `ArchiveError`."""
    found: dict[LogId, list[Stored]] = {}
    for one in store.names(TOPICS if topic is None else f"{TOPICS}{quote(topic, safe='')}/"):
        parts = one.name.split("/")
        if len(parts) == 5 and parts[3].isdecimal():
            found.setdefault(LogId(unquote(parts[1]), parts[2], int(parts[3])), []).append(one)
    return found


def broken(link: Link, footer: Footer, before: tuple[Link, Footer] | None) -> str | None:
    """Return in one line why an object cannot follow its predecessor, None if it does; `before` is the one before."""
    if footer.first != link.first:
        return f"its footer begins at offset {footer.first}"
    if before is None or footer.gap_from == before[1].end:
        return None
    end = before[1].end
    if link.first == end or (link.first < end and link.branch > before[0].branch):
        return None
    return f"it begins at offset {link.first}, and its predecessor ends at {end}"


def footers(store: ObjectStore, chain: Chain) -> Iterator[tuple[Link, Footer]]:
    """Yield each object of a chain with its footer; raises `ArchiveError` for one that is damaged."""
    for link in chain.links:
        yield link, read_footer(store, link.name)
