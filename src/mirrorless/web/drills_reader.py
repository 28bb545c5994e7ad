"""Reads the stored reports of drills of a configuration's flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.operations.drill.stored import Form, content, parsed, stored
from mirrorless.web.reader import RepeatingReader
from mirrorless.web.snapshot import DrillCheckRow, DrillRow

if TYPE_CHECKING:
    from mirrorless.operations.drill.stored import StoredDrill
    from mirrorless.settings import Settings


class DrillsReader(RepeatingReader):
    """The drills in `mirrorless.drill.reports` of the flows of `settings`, and `notes` about those that cannot be read.

    A report that was read is not read again.
    """

    def __init__(self, settings: Settings, *, every_s: float) -> None:
        super().__init__("web: drills", every_s=every_s)
        self._folders = {flow.name: flow.drill_reports for flow in settings.flows if flow.drill_reports is not None}
        self._known: dict[tuple[str, int], DrillRow | str | None] = {}
        self._unlisted: dict[str, str] = {}

    @property
    def is_set(self) -> bool:
        """Whether a flow has a place for its reports."""
        return bool(self._folders)

    @property
    def rows(self) -> tuple[DrillRow, ...]:
        """A row for each drill, the newest first."""
        found = [one for one in self._known.copy().values() if isinstance(one, DrillRow)]
        return tuple(sorted(found, key=lambda one: -one.began_ms))

    @property
    def notes(self) -> list[str]:
        """Lines about folders and reports that cannot be read."""
        broken = [one for one in self._known.copy().values() if isinstance(one, str)]
        return [*self._unlisted.values(), *broken]

    def read(self) -> None:
        """Read the reports that are new."""
        known: dict[tuple[str, int], DrillRow | str | None] = {}
        unlisted: dict[str, str] = {}
        for flow, folder in self._folders.items():
            try:
                numbers = stored(folder, flow)
            except OSError as error:
                unlisted[flow] = f"drills of {flow}: {error}"
                known |= {key: one for key, one in self._known.items() if key[0] == flow}
                continue
            for number in numbers:
                key = flow, number
                found = self._known.get(key, "")
                # Also a file that is only half written.
                known[key] = _row_or_reason(folder, flow, number) if isinstance(found, str) else found
        self._known, self._unlisted = known, unlisted

    def content(self, flow: str, began_ms: str, form: Form) -> bytes | None:
        """Return a report that is listed as it is stored; None if it is not listed. Raises `OSError`."""
        number = int(began_ms) if began_ms.isascii() and began_ms.isdecimal() and len(began_ms) == 13 else 0
        if not isinstance(self._known.get((flow, number)), DrillRow):
            return None
        return content(self._folders[flow], flow, number, form)


def _row_or_reason(folder: str, flow: str, number: int) -> DrillRow | str | None:
    """Return the row of a report, or a line that says why there is none; None if it is another flow's."""
    try:
        found = parsed(content(folder, flow, number, Form.JSON), flow=flow, began_ms=number)
    except (OSError, ValueError) as error:
        return f"drill {number} of {flow}: {error}"
    return None if found is None else _row(found)


def _row(one: StoredDrill) -> DrillRow:
    return DrillRow(
        flow=one.flow,
        began_ms=one.began_ms,
        ended_ms=one.ended_ms,
        status=one.status.value,
        rpo_records=one.rpo_records,
        rpo_exact=one.rpo_exact,
        rpo_seconds=one.rpo_seconds,
        rto_seconds=one.rto_seconds,
        problems=tuple(
            DrillCheckRow(status=status.value, check=check, text=text) for status, check, text in one.problems
        ),
    )
