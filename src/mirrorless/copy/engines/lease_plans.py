"""Plans one lease after the other, for either engine: what passes is retried and reported as the run's trouble."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mirrorless.errors import (
    ClusterUnavailable,
    ConfigurationError,
    FlowNotEnabled,
    FlowPaused,
    LoopError,
    MirrorlessError,
    MirrorMaker2MayRun,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.copy.engines.control import Control
    from mirrorless.copy.flow.reference import FlowRef
    from mirrorless.copy.partition.lease_rows import LeaseRow
    from mirrorless.copy.planning.lease_planner import LeasePlanner
    from mirrorless.copy.planning.run_order import RunOrder
    from mirrorless.settings import Flow

_ATTEMPTS: Final = 5
_RETRY_S: Final = 2.0


class LeasePlans:
    """The plans of one run; keeps the planner, whose place among other runs is what `order` returns for a flow.

    `complaint` is the line that `control` has, `idle` why the last call had nothing to plan: the flow is paused, is not
    enabled any more, or would replicate in a loop.
    """

    def __init__(self, place: FlowRef, control: Control, order: Callable[[Flow], RunOrder]) -> None:
        self._place = place
        self._control = control
        self._new_order = order
        self._planner: LeasePlanner | None = None
        self._mistake = self._waiting = self._news = ""
        self.complaint = self.idle = ""
        self._asked_state = False

    def next(self, *, stopping: Callable[[], bool], slots: int | None = None) -> list[list[LeaseRow]] | None:
        """Return one list of rows per slot, at most so many; None if no lease could be planned.

        An unavailable cluster is retried a few times. Then a bounded copy fails, since an empty plan would mean that
        everything is copied; any other has no lease, and the next one retries. The same holds if the flow is paused, is
        not enabled any more, or would replicate in a loop. For errors that pass within minutes, a bounded copy waits.
        """
        attempts = 0
        self.idle = ""
        while attempts < _ATTEMPTS and not stopping():
            try:
                piles = self._plan(slots)
            except (FlowPaused, FlowNotEnabled, LoopError) as idle:
                if self._place.bounded or self._planner is None:
                    raise  # an empty plan would look like everything copied
                self.idle = str(idle)
                self._complain(self.idle)
                time.sleep(_RETRY_S)
                return None
            except MirrorlessError as error:
                attempts += not (self._place.bounded and isinstance(error, MirrorMaker2MayRun))
                if not error.retriable or (self._place.bounded and attempts == _ATTEMPTS):
                    raise
                self._complain(str(error), unreachable=True)
                if attempts == _ATTEMPTS and isinstance(error, ClusterUnavailable):
                    self._log_in_again()
                time.sleep(_RETRY_S)
            else:
                self._complain(self._mistake or self._waiting or self._news)
                if not piles and not self._place.bounded:
                    time.sleep(_RETRY_S)  # nothing to copy yet: avoids a busy loop of leases
                return piles
        return None

    def refuse_paused(self, flow: Flow) -> None:
        """Raise `FlowPaused` if the flow is paused, `ClusterUnavailable` if that is not known.

        The next plan does not ask again.
        """
        self._planner_of(flow).refuse_paused()
        self._asked_state = True

    def prepare(self, flow: Flow) -> bool:
        """Connect to both ends ahead of the first plan; returns whether the progress it needs could be read."""
        return self._planner_of(flow).prepare()

    def _complain(self, text: str, *, unreachable: bool = False) -> None:
        self.complaint = text
        self._control.complain(text, unreachable=unreachable)

    @property
    def planner(self) -> LeasePlanner | None:
        """The planner, None before the first plan and after `close`."""
        return self._planner

    def close(self) -> None:
        """Close the connections, and delete the run's mark."""
        if self._planner is not None:
            self._planner.close()
            self._planner = None

    def _plan(self, slots: int | None) -> list[list[LeaseRow]]:
        self._mistake = ""
        try:
            flow = self._place.load()
        except FlowNotEnabled:
            raise
        except ConfigurationError as error:
            if self._planner is None:
                raise
            # The file is being edited: the last valid configuration is used until it is valid again.
            flow = self._planner.flow
            self._mistake = str(error)
        if self._planner is not None and self._planner.missing:
            self._log_in_again()
        planner = self._planner_of(flow)
        if not self._asked_state:
            planner.refuse_paused()
        self._asked_state = False
        piles = planner.plan(flow, slots=slots or self._control.slots())
        self._waiting, self._news = planner.waiting, planner.news
        return piles

    def _planner_of(self, flow: Flow) -> LeasePlanner:
        if self._planner is not None and self._planner.flow.connections != flow.connections:
            self.close()
        if self._planner is None:
            # Imported only to plan leases: other processes that use this class would load all clients.
            from mirrorless.copy.planning.lease_planner import LeasePlanner  # noqa: PLC0415

            self._planner = LeasePlanner(flow, bounded=self._place.bounded, order=self._new_order(flow))
        return self._planner

    def _log_in_again(self) -> None:
        if self._planner is not None:
            with suppress(MirrorlessError):
                self._planner = self._planner.with_new_clients()
