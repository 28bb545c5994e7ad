"""What a run of the functions engine did."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What a run did: `note` is why it ended, or why it copied nothing; `waited_s` how long for the run before it.

    `over`, `complete` and `stuck` are as in `BoundedEnd`. `lag_records` is what is left, `trouble` the last line on why
    a lease could not be planned, or not all of it. `paused` says that the flow is, `cut_off` that the run's mark could
    not be renewed, because the target did not answer, `cluster_away` that all connections are to be made again once
    both ends answer.
    """

    note: str
    copied: bool = False
    records: int = 0
    copied_bytes: int = 0
    lag_records: int = 0
    waited_s: float = 0.0
    over: bool = False
    complete: bool = False
    stuck: bool = False
    paused: bool = False
    cut_off: bool = False
    cluster_away: bool = False
    trouble: str = ""

    def after(self, before: RunResult) -> RunResult:
        """Return this result with what the run before it has copied."""
        return replace(
            self,
            copied=self.copied or before.copied,
            records=self.records + before.records,
            copied_bytes=self.copied_bytes + before.copied_bytes,
            lag_records=self.lag_records if self.copied else before.lag_records,
            waited_s=before.waited_s,
        )
