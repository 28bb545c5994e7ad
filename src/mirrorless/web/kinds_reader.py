"""Compares what the clusters of a flow have beside topics, and makes problems of what differs."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from mirrorless.clusters.topics import partition_counts
from mirrorless.metadata.kind import BothEnds
from mirrorless.metadata.kind_results import compare_kinds
from mirrorless.metadata.service_records import replicated_on
from mirrorless.operations.results import count_of
from mirrorless.web.problems import problem
from mirrorless.web.reader import RepeatingReader
from mirrorless.web.snapshot import Fix

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mirrorless.metadata.kind_results import KindResult
    from mirrorless.settings import Flow
    from mirrorless.web.cluster_reader import ClusterReader
    from mirrorless.web.snapshot import ProblemRow

_SHOWN = 3
_MANUAL = "rights-and-limits.md"


class KindsReader(RepeatingReader):
    """The `results` of the kinds of `flow`; both clusters have to answer."""

    def __init__(self, flow: Flow, *, source: ClusterReader, target: ClusterReader, every_s: float) -> None:
        super().__init__(f"web: kinds of {flow.name}", every_s=every_s, after=(source, target))
        self._flow = flow
        self._source, self._target = source, target
        self.results: Sequence[KindResult] = ()

    def read(self) -> None:
        """Compare all kinds; raises `MirrorlessError`."""
        source, target = self._source.admin, self._target.admin
        counts = partition_counts(source.metadata())
        ends = BothEnds(
            flow=self._flow,
            source=source,
            target=target,
            remote=replicated_on(self._flow, source, counts),
            source_topics=frozenset(counts),
            target_topics=frozenset(partition_counts(target.metadata())),
        )
        self.results = compare_kinds(ends, every=True)

    def problems(self, location: str) -> list[ProblemRow]:
        """Return a row for each kind that is synced and differs, and one for all that differs and is not moved."""
        return list(kind_problems(self._flow.name, self.results, location))


def kind_problems(flow: str, results: Sequence[KindResult], location: str) -> Iterator[ProblemRow]:
    """Yield the rows; `location` is that of the configuration."""
    file, option = shlex.quote(location), f"--flow {shlex.quote(flow)}"
    kept: list[str] = []
    for one in results:
        title = f"{one.kind.name} of {flow}"
        if one.is_synced and one.unread is not None:
            fix = Fix(text="If a right is missing, this names it.", command=f"mirrorless doctor {file}")
            yield problem("not readable", title, one.unread, _MANUAL, fix, flow=flow)
        late = [each for each in one.differences if each.change is not None]
        if late:
            more = f"; and {len(late) - _SHOWN:,} more" if len(late) > _SHOWN else ""
            text = f"{'; '.join(each.text for each in late[:_SHOWN])}{more}."
            fix = Fix(text="Or wait for the next sync of ACLs.", command=f"mirrorless apply {file} {option}")
            yield problem("rights and limits", title, text, _MANUAL, fix, flow=flow)
        if number := len(one.differences) - len(late):
            kept.append(f"{one.kind.name}: {count_of(number, 'difference')}")
    if kept:
        fix = Fix(text="Each is a line of the plan.", command=f"mirrorless plan {file} {option}")
        text = f"What differs and the flow does not move: {', '.join(kept)}."
        yield problem("rights and limits", f"not moved of {flow}", text, _MANUAL, fix, flow=flow)
