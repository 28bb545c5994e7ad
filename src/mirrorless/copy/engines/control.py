"""Communication of a local run with its slots: a folder with a stop mark, and a file of reports per lease and slot.

On AWS only the driver has such a folder, for its own processes: slots may run on other
machines, their leases are ended by time, and their reports come back through Spark.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from mirrorless.copy.partition.lease_rows import Report
from mirrorless.progress.run_marks import Work

_STOP = "stop"
_HELD = "held-"
_LEFT = ".left"
_SLOTS = "slots"
_WORK = "work"
_TROUBLE = "trouble"
_UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Control:
    """The folder of one flow's run; without one, nothing ends a lease early and reports are not displayed.

    `for_slots` is false if the slots do not have the folder.
    """

    folder: str | None = None
    for_slots: bool = True

    def ask_to_stop(self) -> None:
        """Let every lease end as soon as in-flight work is finished."""
        if self.folder is not None:
            (Path(self.folder) / _STOP).touch()

    def begin(self) -> None:
        """Remove an earlier stop request: another run begins."""
        for path in self._paths(_STOP, f"{_HELD}*"):
            path.unlink(missing_ok=True)

    def stopping(self) -> bool:
        """Whether a stop was requested."""
        return self.folder is not None and (Path(self.folder) / _STOP).exists()

    def complain(self, text: str, *, unreachable: bool = False) -> None:
        """Set the line that says why no lease could be planned; an empty one removes it.

        `unreachable` says that this is a failure: a cluster does not answer.
        """
        if self.folder is not None:
            mark = Path(self.folder) / _UNREACHABLE
            if unreachable:
                mark.touch()
            else:
                mark.unlink(missing_ok=True)
            _write(Path(self.folder) / _TROUBLE, text)

    def complaint(self) -> str:
        """The line that was set, empty if there is none."""
        path = Path(self.folder or "") / _TROUBLE
        return path.read_text() if self.folder is not None and path.exists() else ""

    def offer_slots(self, slots: int | None) -> None:
        """Store the maximum number of slots of the next lease; None if only `tasks.max` limits it."""
        if self.folder is not None and slots is not None:
            _write(Path(self.folder) / _SLOTS, str(slots))

    def slots(self) -> int | None:
        """The maximum number of slots of the next lease, None if there is none."""
        path = Path(self.folder or "") / _SLOTS
        return int(path.read_text()) if self.folder is not None and path.exists() else None

    def note_work(self, work: Work | None) -> None:
        """Store what the mark of the run is to say of the copy."""
        if self.folder is not None and work is not None:
            _write(Path(self.folder) / _WORK, json.dumps(asdict(work)))

    def work(self) -> Work | None:
        """What was stored last, None if nothing was."""
        path = Path(self.folder or "") / _WORK
        return Work(**json.loads(path.read_text())) if self.folder is not None and path.exists() else None

    def planned(self) -> bool:
        """Whether a lease was planned, or a complaint says why none could be."""
        return self.folder is not None and (Path(self.folder) / _TROUBLE).exists()

    def unreachable(self) -> bool:
        """Whether the complaint is about an unavailable cluster."""
        return self.folder is not None and (Path(self.folder) / _UNREACHABLE).exists()

    def of(self, lease: int, slot: int) -> SlotControl:
        """The part of one slot in one lease."""
        return SlotControl(self, lease, slot)

    def hold(self, held: bool, *, lease: int, slot: int) -> None:
        """Set a mark while a slot continues to copy after its lease."""
        if self.folder is not None:
            path = Path(self.folder) / f"{_HELD}{lease}-{slot}"
            if held:
                path.touch()
            else:
                path.unlink(missing_ok=True)

    def held(self) -> bool:
        """Whether a slot continues to copy after its lease."""
        return bool(self._paths(f"{_HELD}*"))

    def leave(self, *, lease: int, slot: int, reports: list[Report]) -> None:
        """Store reports of what was copied after a lease's end; see `left`."""
        if self.folder is not None:
            _write(Path(self.folder) / f"{lease}-{slot}{_LEFT}", _packed(reports))

    def left(self) -> list[list[Report]]:
        """Take the reports that were stored since the last call."""
        found = [(path, _read(path)) for path in self._paths(f"*{_LEFT}")]
        for path, _ in found:
            path.unlink(missing_ok=True)
        return [reports for _, reports in found]

    def publish(self, *, lease: int, slot: int, reports: list[Report]) -> None:
        """Store a slot's reports for the display."""
        if self.folder is not None:
            _write(Path(self.folder) / f"{lease}-{slot}.json", _packed(reports))

    def collect(self) -> dict[tuple[int, int], list[Report]]:
        """The latest reports by lease and slot; leases before the newest are final, and their files are removed."""
        found = {}
        for path in self._paths("*.json"):
            lease, _, slot = path.stem.partition("-")
            found[int(lease), int(slot)] = _read(path)
        newest = max((number for number, _ in found), default=0)
        for number, slot_number in found:
            if number < newest:
                (Path(self.folder or "") / f"{number}-{slot_number}.json").unlink(missing_ok=True)
        return found

    def _paths(self, *patterns: str) -> list[Path]:
        folder = self.folder
        return [] if folder is None else [path for pattern in patterns for path in Path(folder).glob(pattern)]


@dataclass(frozen=True, slots=True)
class SlotControl:
    """`lease.Watch` of one slot in one lease."""

    control: Control
    lease: int
    slot: int

    @property
    def watched(self) -> bool:
        """Whether there is a folder for reports."""
        return self.control.folder is not None

    def stopping(self) -> bool:
        """Whether a stop was requested."""
        return self.control.stopping()

    def observe(self, reports: list[Report]) -> None:
        """Store the slot's reports for the display."""
        self.control.publish(lease=self.lease, slot=self.slot, reports=reports)

    def holding(self) -> None:
        """Set the mark that the slot continues to copy after its lease."""
        self.control.hold(True, lease=self.lease, slot=self.slot)

    def handed_over(self) -> None:
        """Remove the mark: the next lease has taken over."""
        self.control.hold(False, lease=self.lease, slot=self.slot)

    def landed(self, reports: list[Report]) -> None:
        """Store reports of what was copied after the lease, and remove the mark."""
        if any(report.records for report in reports):
            self.control.leave(lease=self.lease, slot=self.slot, reports=reports)
        self.control.hold(False, lease=self.lease, slot=self.slot)


def _write(path: Path, text: str) -> None:
    """Write a file atomically."""
    scratch = path.with_suffix(".part")
    scratch.write_text(text)
    scratch.replace(path)


def _packed(reports: list[Report]) -> str:
    return json.dumps([report.as_row() for report in reports])


def _read(path: Path) -> list[Report]:
    return [Report(**row) for row in json.loads(path.read_text())]
