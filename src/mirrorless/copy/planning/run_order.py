"""The place of one run of a flow's copy among all runs, by their marks."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, TypedDict

from mirrorless.progress.mark_reader import MarkReader
from mirrorless.progress.mark_writer import RENEW_S, MarkWriter
from mirrorless.progress.run_marks import WHOLE, RunMark, Share, Work, key_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.progress.deals import Deal
    from mirrorless.progress.engine_choice import EngineChoice, EngineName
    from mirrorless.settings import Flow


class _Now(TypedDict):
    now_ms: int
    now: float
    deployment: str


class RunOrder:
    """Keeps the mark of a run, and compares it with those of other runs that copy a part of its share.

    `run` is the run's name, a new one if it is None. Every method raises `ClusterUnavailable`.
    """

    def __init__(
        self,
        flow: Flow,
        *,
        run: str | None = None,
        engine: EngineName = "spark",
        share: Share = WHOLE,
        deployment: str = "",
        stopping: Callable[[], bool] = lambda: False,
        work: Callable[[], Work | None] = lambda: None,
    ) -> None:
        self._flow = flow
        self._run = run or str(uuid.uuid4())
        self._share = share
        self._deployment = deployment
        self._reader = MarkReader(flow)
        self._writer = MarkWriter(flow, engine=engine, share=share, deployment=deployment, stopping=stopping, work=work)

    def follow(self, flow: Flow) -> None:
        """Take the current configuration of the flow, with the same connections."""
        self._flow = self._writer.flow = flow

    @property
    def claimed(self) -> int | None:
        """The offset of the run's first mark; None without one."""
        return self._writer.claimed

    @property
    def is_stale(self) -> bool:
        """Whether other runs may soon take this one for dead, because its mark could not be renewed."""
        return self._writer.is_stale

    def look(self) -> EngineChoice | None:
        """Read all marks; returns the choice of the flow's engine."""
        return self._reader.read().chosen(self._flow, self._deployment)

    def others(self) -> list[RunMark]:
        """The valid marks of other runs that copy a part of the share, as read last; the earliest claim first."""
        return [mark for mark in self._valid() if mark.share.overlaps(self._share)]

    def earlier(self) -> list[RunMark]:
        """Those of `others` that claimed before this run."""
        claimed = self._writer.claimed
        return [mark for mark in self.others() if claimed is None or mark.claim < claimed]

    def later(self) -> list[RunMark]:
        """Those of `others` that claimed after this run."""
        claimed = self._writer.claimed
        return [mark for mark in self.others() if claimed is not None and mark.claim > claimed]

    def successor(self) -> RunMark | None:
        """The mark of a run that is ready to take over from this one, None if there is none."""
        return next((mark for mark in self.later() if mark.is_ready), None)

    def claim(self, *, ready: bool = True, another: bool = False) -> None:
        """Write the mark of the run, with `another` of a new run, and read those before it.

        Marks that have expired by their clocks only are waited for once, and deleted if they are not renewed.
        """
        if another:
            self._run = str(uuid.uuid4())
        self._writer.claim(self._run, ready=ready)
        marks = self._reader.read()
        if suspects := marks.suspects(self._flow, **self._now()):
            time.sleep(1 + max(RENEW_S[mark.engine] for mark in suspects))
            marks = self._reader.read()
        self._writer.delete(marks.expired(self._flow, **self._now()))

    def is_first(self) -> bool:
        """Whether no other run began to copy before this one, whose mark is written if it does not exist.

        Another run deletes the mark of a run that was cut off from the target for longer than it is valid. False for a
        run whose own mark has expired, since it cannot be renewed.
        """
        key = key_of(self._flow, self._run)
        if self._writer.key != key or not self._reader.read().has(key):
            self.claim()
        first = self._reader.marks.first(self._flow, share=self._share, **self._now())
        return first is not None and first.run == self._run

    def is_to_yield(self) -> bool:
        """Whether functions are to copy, and one waits for this run to end; as read last."""
        choice = self._reader.marks.chosen(self._flow, self._deployment)
        chosen = choice is not None and self._flow.engine == "auto" and choice.engine == "functions"
        return (chosen or self._flow.engine == "functions") and any(mark.engine == "functions" for mark in self.later())

    def be_ready(self) -> None:
        """Let the run before this one end."""
        self._writer.be_ready()

    @property
    def deal(self) -> Deal | None:
        """The last deal among as many shares as the run's, as read last."""
        return self._reader.marks.deal(self._deployment, self._share.of)

    @property
    def dealt_at(self) -> float | None:
        """When (monotonic seconds) this process read that deal."""
        return self._reader.marks.dealt_at(self._deployment, self._share.of)

    def adopt(self, deal: Deal | None) -> None:
        """Show in the mark that the run copies by a deal, or by hash: nothing that it took from the share."""
        self._writer.adopt(deal.number if deal else 0)

    def unreleased(self, deal: Deal) -> set[int]:
        """The shares of which a run may still copy what the deal took from them, as read last."""
        return {mark.share.number for mark in self._valid() if mark.share.of == deal.of and mark.deal < deal.number}

    def may_deal(self) -> bool:
        """Whether this run, of share 0, may deal: it is first, and all other shares have runs, by the last deal.

        So no deal follows before that one was carried out.
        """
        last = self.deal.number if self.deal else 0
        if self._share.number != 0 or not self.is_first():
            return False
        others, own = self._valid(), (self._share.of, self._deployment, last)
        as_dealt = all((mark.share.of, mark.deployment, mark.deal) == own for mark in others)
        present = {mark.share.number for mark in others}
        return as_dealt and present >= set(range(1, self._share.of))

    def write_deal(self, deal: Deal) -> None:
        """Write a deal; it counts once it is read, if no other one has its number."""
        earlier = self._reader.marks.earlier_deals(self._deployment, self._share.of)
        self._writer.write_deal(deal, earlier)

    def wait(self, seconds: float) -> None:
        """Take the marks that arrive within so many seconds, returning after the first."""
        self._reader.wait(seconds)

    def log_in_again(self) -> None:
        """Use new clients: a client keeps the login that it was created with. Raises `MirrorlessError`."""
        self._writer.log_in_again()
        self._reader.close()

    def release(self) -> None:
        """Delete the run's mark; another one may be claimed."""
        self._writer.release()

    def close(self) -> None:
        """Delete the run's mark, and close the connections."""
        self._writer.release()
        self._reader.close()

    def _valid(self) -> list[RunMark]:
        """The valid marks of other runs, as read last; the earliest claim first."""
        marks = self._reader.marks.valid(self._flow, **self._now())
        return [mark for mark in marks if mark.run != self._run]

    def _now(self) -> _Now:
        return {"now_ms": int(time.time() * 1000), "now": time.monotonic(), "deployment": self._deployment}
