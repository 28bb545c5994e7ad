"""Looks for fences that no operation explains: writers would be blocked without a reason."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mirrorless.metadata.fences import unexplained_fences
from mirrorless.web.reader import RepeatingReader
from mirrorless.web.snapshot import FenceRow, Fix

if TYPE_CHECKING:
    from mirrorless.settings import Flow
    from mirrorless.web.cluster_reader import ClusterReader

_LINE: Final = re.compile(r"(?P<topic>\S+) on (?P<cluster>\S+) has .*?`(?P<command>[^`]+)`")


class FencesReader(RepeatingReader):
    """The fences on topics of `flow` that no operation explains; both clusters have to answer."""

    def __init__(self, flow: Flow, *, source: ClusterReader, target: ClusterReader, every_s: float) -> None:
        super().__init__(f"web: fences of {flow.name}", every_s=every_s, after=(source, target))
        self.flow = flow
        self._source, self._target = source, target
        self.rows: tuple[FenceRow, ...] = ()

    def read(self) -> None:
        """Read topic configs, ACLs and operations of both clusters; raises `ClusterError`."""
        ends = {self.flow.source.alias: self._source.admin, self.flow.target.alias: self._target.admin}
        self.rows = tuple(map(_row, unexplained_fences(self.flow, ends)))


def _row(line: str) -> FenceRow:
    found = _LINE.match(line)
    return FenceRow(
        cluster="" if found is None else found["cluster"],
        operation=None,
        topics=() if found is None else (found["topic"],),
        count=1,
        text=line,
        fix=Fix(text="Remove it, or set the value of before.", command=None if found is None else found["command"]),
    )
