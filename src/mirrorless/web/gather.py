"""Starts the readers of a configuration, and puts what they know together as one snapshot."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mirrorless import client_logs
from mirrorless.clusters.target_state import set_target_state
from mirrorless.metadata.fences import unexplained_fences
from mirrorless.progress.run_marks import deployment_of
from mirrorless.web.cluster_reader import ClusterReader
from mirrorless.web.drills_reader import DrillsReader
from mirrorless.web.effective_settings import effective_settings
from mirrorless.web.flow_reader import FlowReader
from mirrorless.web.groups_reader import GroupsReader
from mirrorless.web.kinds_reader import KindsReader
from mirrorless.web.operations_reader import OperationsReader
from mirrorless.web.problems import problems
from mirrorless.web.reader import RepeatingReader
from mirrorless.web.snapshot import FenceRow, Fix, ReadingRow, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mirrorless.clusters.target_state import TargetState
    from mirrorless.local.progress_view import TopicView
    from mirrorless.operations.drill.stored import Form
    from mirrorless.operations.run import Ended
    from mirrorless.settings import Flow, Settings
    from mirrorless.web.snapshot import PartitionRow, PositionRow, SettingsOf

_ENDING_S: Final = 0.5
_GROUPS_PER_INTERVAL: Final = 5
_OPERATIONS_PER_INTERVAL: Final = 2
_DRILLS_PER_INTERVAL: Final = 10
_FENCES_PER_INTERVAL: Final = 15
_KINDS_PER_INTERVAL: Final = 150
_LINE: Final = re.compile(r"(?P<topic>\S+) on (?P<cluster>\S+) has .*?`(?P<command>[^`]+)`")


class Gatherer:
    """Reads `settings`' clusters and flows every `every_s` seconds; `copies_here` is as in `Snapshot`."""

    def __init__(self, settings: Settings, *, copies_here: bool = False, every_s: float = 2.0) -> None:
        client_logs.set_up()
        self._settings = settings
        self._copies_here = copies_here
        clusters = {one.alias: one for flow in settings.flows for one in (flow.source, flow.target)}
        self._clusters = {alias: ClusterReader(one, every_s=every_s) for alias, one in clusters.items()}
        self._flows = {
            flow.name: FlowReader(
                flow,
                source=self._clusters[flow.source.alias],
                target=self._clusters[flow.target.alias],
                deployment=deployment_of(settings.file, flow.name),
                every_s=every_s,
            )
            for flow in settings.flows
        }
        self._groups = {
            flow.name: GroupsReader(
                flow,
                source=self._clusters[flow.source.alias],
                target=self._clusters[flow.target.alias],
                reader=self._flows[flow.name],
                every_s=_GROUPS_PER_INTERVAL * every_s,
            )
            for flow in settings.flows
        }
        self._fences = {
            flow.name: FencesReader(
                flow,
                source=self._clusters[flow.source.alias],
                target=self._clusters[flow.target.alias],
                every_s=_FENCES_PER_INTERVAL * every_s,
            )
            for flow in settings.flows
        }
        self._kinds = {
            flow.name: KindsReader(
                flow,
                source=self._clusters[flow.source.alias],
                target=self._clusters[flow.target.alias],
                every_s=_KINDS_PER_INTERVAL * every_s,
            )
            for flow in settings.flows
        }
        self._operations = OperationsReader(
            settings, after=tuple(self._clusters.values()), every_s=_OPERATIONS_PER_INTERVAL * every_s
        )
        self._drills = DrillsReader(settings, every_s=_DRILLS_PER_INTERVAL * every_s)

    def __enter__(self) -> Gatherer:
        for one in self._readers():
            one.start()
        return self

    def __exit__(self, *_: object) -> None:
        readers = self._readers()
        for one in readers:
            one.end()
        until = time.monotonic() + _ENDING_S
        for one in readers:
            one.join(max(0.0, until - time.monotonic()))

    @property
    def location(self) -> str:
        """The file of the configuration."""
        return self._settings.file

    @property
    def flow_names(self) -> list[str]:
        """The flows, in the order of the configuration."""
        return list(self._flows)

    def settings(self) -> tuple[SettingsOf, ...]:
        """Return the settings in effect."""
        return effective_settings(self._settings)

    def snapshot(self) -> Snapshot:
        """Return what is known now; asks no cluster."""
        topics = {name: reader.topics() for name, reader in self._flows.items()}
        unexplained = {row.text: row for one in self._fences.values() for row in one.rows}
        found = Snapshot(
            at_ms=int(time.time() * 1000),
            copies_here=self._copies_here,
            clusters=tuple(one.row() for one in self._clusters.values()),
            flows=tuple(reader.row(topics[name]) for name, reader in self._flows.items()),
            applications=self._operations.applications,
            fences=(*self._operations.fences, *unexplained.values()),
            readings=tuple(self._readings()),
            problems=(),
            topics=tuple(row for some in topics.values() for row in some),
            halted=tuple(row for reader in self._flows.values() for row in reader.halted()),
            groups=tuple(row for reader in self._groups.values() for row in reader.rows),
            operations=self._operations.rows,
            drills=self._drills.rows,
            notes=tuple(self._drills.notes),
        )
        file = self._settings.file
        kinds = [row for one in self._kinds.values() for row in one.problems(file)]
        return replace(found, problems=problems(found, file, kinds))

    def _readings(self) -> Iterator[ReadingRow]:
        """Yield when each table but that of the flows was read, and why it may be empty."""
        for name, readers in (("groups", self._groups), ("fences", self._fences)):
            for flow, one in readers.items():
                yield ReadingRow(table=name, flow=flow, read_ms=one.read_ms, error=one.error, note="")
        operations, drills = self._operations, self._drills
        yield ReadingRow(table="operations", flow="", read_ms=operations.read_ms, error=operations.error, note="")
        note = "" if self._drills.is_set else "mirrorless.drill.reports is not set, so that no report is stored."
        yield ReadingRow(table="drills", flow="", read_ms=drills.read_ms, error=drills.error, note=note)

    def unread(self) -> dict[str, str]:
        """Return why flows were never read, by name; empty once each was read."""
        return {name: reader.error or "not read yet" for name, reader in self._flows.items() if reader.read_ms is None}

    def partitions(self, flow: str, topic: str) -> list[PartitionRow] | None:
        """Return the partitions of a topic; None if there is no such flow or topic."""
        return self._flows[flow].partitions(topic) if flow in self._flows else None

    def positions(self, flow: str, group: str) -> list[PositionRow] | None:
        """Return the positions of a group; None if there is no such flow or group."""
        return self._groups[flow].positions(group) if flow in self._groups else None

    def operation(self, number: str) -> Ended | None:
        """Return an operation as its report is made of; None if there is none of this id."""
        return self._operations.find(number)

    def drill_report(self, flow: str, began_ms: str, form: Form) -> bytes | None:
        """Read a stored report of a drill that is listed; None if there is none. Raises `OSError`."""
        return self._drills.content(flow, began_ms, form)

    def set_live(self, flow: str, topics: Sequence[TopicView]) -> None:
        """Take the progress that this process itself makes."""
        self._flows[flow].set_live(topics)

    def set_groups_age(self, flow: str, age_ms: float) -> None:
        """Take how long the oldest group offset of a flow of this process waited for its place on the target."""
        self._flows[flow].groups_age_ms = round(age_ms)

    def set_waiting(self, flow: str, text: str) -> None:
        """Take what a flow of this process waits for; empty for nothing."""
        self._flows[flow].waiting = text

    def set_state(self, flow: str, state: TargetState) -> TargetState:
        """Write the target state of a flow, as `mirrorless pause` does; returns it, and raises, as `set_target_state`.

        Raises KeyError for another flow.
        """
        reader = self._flows[flow]
        found = set_target_state(reader.flow, state)
        reader.note_state(found)
        return found

    def _readers(self) -> list[RepeatingReader]:
        by_flow = (self._flows, self._groups, self._fences, self._kinds)
        return [
            *self._clusters.values(),
            *(one for readers in by_flow for one in readers.values()),
            self._operations,
            self._drills,
        ]


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
