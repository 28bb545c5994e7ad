"""How a local run talks with its slots: a folder with a stop mark, and a file of reports for every lease and slot.

On AWS there is no such folder; a lease is ended by its time, and reports come back through Spark.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from mirrorless.copy.rows import Report

_STOP = "stop"
_TROUBLE = "trouble"


@dataclass(frozen=True, slots=True)
class Control:
    """The folder of one flow's run; without one, nothing stops a lease early and nobody watches it."""

    folder: str | None = None

    def ask_to_stop(self) -> None:
        """Let every lease end as soon as what is in flight has arrived."""
        if self.folder is not None:
            (Path(self.folder) / _STOP).touch()

    def begin(self) -> None:
        """Take a stop that was asked for back: another run begins."""
        if self.folder is not None:
            (Path(self.folder) / _STOP).unlink(missing_ok=True)

    def stopping(self) -> bool:
        """Whether a stop was asked for."""
        return self.folder is not None and (Path(self.folder) / _STOP).exists()

    def complain(self, text: str) -> None:
        """Leave one line about why no lease could be planned; an empty one takes it back."""
        if self.folder is not None:
            (Path(self.folder) / _TROUBLE).write_text(text)

    def complaint(self) -> str:
        """The line that was left, empty if there is none."""
        path = Path(self.folder or "") / _TROUBLE
        return path.read_text() if self.folder is not None and path.exists() else ""

    def publish(self, *, lease: int, slot: int, reports: list[Report]) -> None:
        """Leave a slot's reports for whoever watches."""
        if self.folder is not None:
            path = Path(self.folder) / f"{lease}-{slot}.json"
            scratch = path.with_suffix(".part")
            scratch.write_text(json.dumps([report.as_row() for report in reports]))
            scratch.replace(path)

    def collect(self) -> dict[tuple[int, int], list[Report]]:
        """The latest reports by lease and slot; leases before the newest are final, and their files are taken away."""
        found = {}
        for path in Path(self.folder).glob("*.json") if self.folder is not None else ():
            lease, _, slot = path.stem.partition("-")
            found[int(lease), int(slot)] = [Report(**row) for row in json.loads(path.read_text())]
        newest = max((number for number, _ in found), default=0)
        for number, slot_number in found:
            if number < newest:
                (Path(self.folder or "") / f"{number}-{slot_number}.json").unlink(missing_ok=True)
        return found
