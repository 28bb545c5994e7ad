"""One sync run of a flow's metadata: plan, apply, wait until brokers show it. All commands and functions use it."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.topics import partition_counts
from mirrorless.errors import ClusterUnavailable
from mirrorless.metadata.actions import CreateTopic, GrowTopic, as_fields
from mirrorless.metadata.apply import Applied, apply, batches
from mirrorless.metadata.planning import Admins, MetadataPlanner, Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.identity import Ends
    from mirrorless.metadata.actions import Action, LeftOutTopic, Problem
    from mirrorless.metadata.recreated_topics import Copied
    from mirrorless.settings import Flow

_VISIBLE_S: Final = 30.0
_LOOK_EVERY_S: Final = (0.05, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPass:
    """What one sync run found and did; `ends` are the two clusters' ids, `notes` and `warnings` are to be logged once.

    `left` are actions that were planned and not begun, because the run was asked to stop.
    """

    ends: Ends
    applied: tuple[Applied, ...]
    left_out: tuple[LeftOutTopic, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    left: tuple[Action, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def failures(self) -> list[Applied]:
        """Actions that failed."""
        return [one for one in self.applied if one.error is not None]

    @property
    def went_well(self) -> bool:
        """Whether everything was planned and done: no problems, no failures, no action left."""
        return not self.failures and not self.problems and not self.left

    @property
    def topics_are_there(self) -> bool:
        """Whether every topic that the flow replicates can be copied completely."""
        undone = [*(one.action for one in self.failures), *self.left]
        uncopied = any(one.uncopied for one in self.problems)
        return not uncopied and not any(isinstance(one, CreateTopic | GrowTopic) for one in undone)

    def reported(self) -> list[Applied]:
        """The results; of topics that cannot be created for the same reason only the first, with a count."""
        alike = Counter(one.error for one in self.failures if isinstance(one.action, CreateTopic))
        found: list[Applied] = []
        for one in self.applied:
            if one.error is None or not isinstance(one.action, CreateTopic):
                found.append(one)
            elif (count := alike.pop(one.error, 0)) > 1:
                more = f"{count - 1} more topic{'' if count == 2 else 's'}"
                found.append(replace(one, error=f"{one.error} (and {more})"))
            elif count:
                found.append(one)
        return found

    def lines(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield every action and problem for a log: its text and its fields; a failure has an `error`."""
        for one in self.reported():
            fields = as_fields(one.action) | {"error": one.error, "note": one.note}
            yield fields.pop("action"), {name: value for name, value in fields.items() if value is not None}
        for problem in self.problems:
            yield "Problem", {"topic": problem.topic, "error": problem.reason}


def one_pass(
    flow: Flow,
    parts: Iterable[Part],
    *,
    admins: Admins | None = None,
    copied: Copied | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> SyncPass:
    """Sync these parts of a flow's target with its source; may run at any time, and concurrently.

    Nothing is written if both ends are one cluster (`SameClusterError`). Raises `ClusterError` if an end does not
    answer; what fails for one topic is among the failures or problems and does not stop the others.
    Once `stopping` returns true no further batch of actions is begun. `copied` is as for `MetadataPlanner`.
    """
    admins = admins or Admins.of(flow)
    planner = MetadataPlanner(flow, admins, copied=copied)
    plan = planner.plan(parts)
    on_source = [one for one in plan.actions if isinstance(one, CreateTopic) and one.on_source]
    on_target = [one for one in plan.actions if not (isinstance(one, CreateTopic) and one.on_source)]
    applied: list[Applied] = []
    left: list[Action] = []
    for admin, actions in ((admins.target, on_target), (admins.source, on_source)):
        done: list[Applied] = []
        for batch in batches(actions):
            if stopping():
                left += batch
            else:
                done += apply(admin, batch, record=planner.record, ends=planner.both_ends)
        applied += _seen(admin, done, stopping)
    return SyncPass(
        ends=planner.ends,
        applied=tuple(applied),
        left_out=plan.left_out,
        problems=plan.problems,
        notes=plan.notes,
        left=tuple(left),
        warnings=plan.warnings,
    )


def _seen(target: Admin, applied: Sequence[Applied], stopping: Callable[[], bool]) -> tuple[Applied, ...]:
    """Wait until brokers show topics that the controller created; otherwise the copy would treat them as missing.

    Brokers may take half a minute for ten thousand partitions, and do not answer while a quota on such changes
    throttles this client; the wait ends when no topic has appeared for that long. A stopping process does not wait.
    """
    counts = {
        one.action.topic: one.action.partitions
        for one in applied
        if one.error is None and isinstance(one.action, CreateTopic | GrowTopic)
    }
    late = f"not visible on {target.alias} after {_VISIBLE_S:.0f} s"
    until, pause = time.monotonic() + _VISIBLE_S, _LOOK_EVERY_S[0]
    while counts and time.monotonic() < until:
        if stopping():
            return tuple(applied)
        try:
            there = partition_counts(target.metadata())
        except ClusterUnavailable as error:
            late = f"not known whether it is visible: {error}"
            continue
        left = {topic: count for topic, count in counts.items() if there.get(topic, 0) < count}
        if len(left) < len(counts):
            until = time.monotonic() + _VISIBLE_S
        counts = left
        if counts:
            time.sleep(pause)
            pause = min(pause * 2, _LOOK_EVERY_S[1])
    return tuple(
        replace(one, error=late)
        if one.error is None and isinstance(one.action, CreateTopic | GrowTopic) and one.action.topic in counts
        else one
        for one in applied
    )
