"""The log of the copy job: lines of JSON on standard output, and metrics to CloudWatch if it is enabled."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mirrorless.copy.api import summary

if TYPE_CHECKING:
    from mirrorless.copy.api import Report
    from mirrorless.publishing.cloudwatch import CloudWatch


class JobLog:
    """Logs one flow, `A->B`; each line has `flow` and `event`: `Start`, `Lease` with totals, `Trouble`, `Note`."""

    def __init__(self, flow: str, cloudwatch: CloudWatch | None) -> None:
        self._flow = flow
        self._cloudwatch = cloudwatch

    def started(self, release: str, *, version: str | None) -> None:
        """Tell what runs: the release, and the version of the configuration where its store has versions."""
        self._line("Start", release=release, **({} if version is None else {"configuration_version": version}))

    def lease_ended(self, reports: list[Report]) -> None:
        """Log the totals of a lease; for `copy_flow`'s `on_lease`."""
        self._line("Lease", **summary(reports).as_fields())
        if self._cloudwatch is not None:
            self._cloudwatch.lease_ended(reports)

    def trouble(self, text: str) -> None:
        """Log an error; for `copy_flow`'s `on_trouble`."""
        self._line("Trouble", error=text)

    def noted(self, level: str, text: str) -> None:
        """Log an event beside the copy; `level` is `info`, `warning` or `error`."""
        self._line("Note", **{level: text})

    def _line(self, event: str, **fields: object) -> None:
        print(json.dumps({"flow": self._flow, "event": event} | fields), flush=True)  # noqa: T201 -- Glue's log
