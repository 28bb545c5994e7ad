"""The supervisor's choice of an engine in the progress topic, and Spark, which obeys it."""

from __future__ import annotations

from contextlib import closing, nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.spark.lease_source import LeaseReader
from mirrorless.copy.planning.run_order import RunOrder
from mirrorless.functions import job_supervisor
from mirrorless.functions.budget import TimeBudget
from mirrorless.functions.events import ScheduleEvent
from mirrorless.functions.invocation import Invocation
from mirrorless.functions.job_decision import JobRun, Patience
from mirrorless.functions.job_supervisor import supervise
from mirrorless.functions.runtime_context import RuntimeContext, within
from mirrorless.local.display_sink import DisplaySink
from mirrorless.local.lambda_context import LocalContext
from mirrorless.progress.engine_choice import EngineChoice
from mirrorless.progress.mark_reader import MarkReader
from mirrorless.progress.mark_writer import write_choice
from mirrorless.progress.run_marks import Work
from mirrorless.settings import load
from tests.support.heard import Heard

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mirrorless.progress.engine_choice import EngineName
    from mirrorless.settings import Flow
    from tests.support.world import World


class Jobs:
    """The runs of a copy job that a test starts and ends."""

    patience = Patience()
    ends_itself_s = 600.0
    missing = ""

    def __init__(self) -> None:
        self.runs: list[JobRun] = []
        self.stopped: list[str] = []

    def latest(self) -> list[JobRun]:
        return self.runs

    def stop(self, runs: Sequence[str]) -> None:
        self.stopped += runs

    def start(self, release: str | None = None) -> str:
        assert release is None
        self.runs.append(JobRun(id=f"jr_{len(self.runs)}", state="RUNNING", started=datetime.now(UTC)))
        return self.runs[-1].id


class Supervisor:
    """The function of a world's flow, with the choices that it wrote."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs = Jobs()
        self.written: list[str] = []
        self._world = world
        self._sink = DisplaySink(world.flow, "job_supervisor", Heard(), ended=lambda: False)

        def write(flow: Flow, choice: EngineChoice, deployment: str) -> None:
            self.written.append(choice.engine)
            write_choice(flow, choice, deployment)

        monkeypatch.setattr(job_supervisor, "write_choice", write)

    def look(self) -> dict[str, Any]:
        variables = {
            "MIRRORLESS_CONFIG": str(self._world.file),
            "MIRRORLESS_FLOW": self._world.flow,
            "MIRRORLESS_JOB": "copy",
        }
        settings = load(self._world.file)
        account: Any = SimpleNamespace(let_functions_copy=lambda _: None)
        invocation = Invocation(
            event=ScheduleEvent(at=datetime.now(UTC)),
            budget=TimeBudget(LocalContext(timeout_s=60.0, ended=lambda: False)),
            settings=settings,
            flow=settings.flow(self._world.flow),
            sink=self._sink,
            name="job_supervisor",
        )
        given = RuntimeContext(
            variables=variables, sink=self._sink, jobs=lambda _: nullcontext(self.jobs), copy=account
        )
        with within(given):
            return supervise(invocation)


def test_the_choice_is_written_when_it_changes_and_not_at_each_look(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.topic()
    world.write_settings(
        **{"mirrorless.spark.start.backlog.seconds": "0.1", "mirrorless.spark.stop.caught.up.seconds": "0.1"}
    )
    world.discover()
    flow = world.place().load()
    supervisor = Supervisor(world, monkeypatch)
    work = Work(lag_records=0, lag_bytes=0, bytes_per_s=0.0)
    with closing(MarkReader(flow)) as marks:
        with closing(RunOrder(flow, engine="functions", work=lambda: work)) as functions:
            functions.claim()
            for _ in range(3):
                assert supervisor.look()["engine"] == "functions"
            assert supervisor.written == ["functions"]
            assert supervisor.jobs.runs == []

            work = Work(lag_records=10**6, lag_bytes=10**9, bytes_per_s=10**6)
            functions.be_ready()
            supervisor.look()
            answer = supervisor.look()
        assert (answer["engine"], answer["started_run"]) == ("spark", "jr_0")
        choice = marks.read().chosen(flow, world.place().deployment)
        assert choice is not None
        assert choice.reason == "without Spark the backlog of about 1.0 GB would take 17 minutes"
        assert choice.functions_bytes_per_s == 10**6

        written = len(supervisor.written)
        work = Work(lag_records=0, lag_bytes=0, bytes_per_s=10**5)
        with closing(RunOrder(flow, engine="spark", work=lambda: work)) as spark:
            spark.claim()
            assert supervisor.look()["engine"] == "spark"
            answer = supervisor.look()
            while answer["engine"] == "spark":
                answer = supervisor.look()
        assert supervisor.written[written:] == ["spark", "functions"]
        # The run ends itself when a function waits for that.
        assert (answer["running"], supervisor.jobs.stopped) == (True, [])
        chosen = marks.read().chosen(flow, world.place().deployment)
        assert chosen is not None
        assert chosen.engine == "functions"


@pytest.mark.parametrize(("engine", "yields"), [("functions", True), ("spark", False)])
def test_spark_ends_when_functions_are_chosen_and_one_waits(
    world: World, tmp_path: Path, engine: EngineName, *, yields: bool
) -> None:
    world.topic()
    world.discover()
    flow = world.place().load()
    folder = tmp_path / "control"
    folder.mkdir()
    control = Control(str(folder))
    reader = LeaseReader(world.place(bounded=False), control)

    def leases(number: int) -> int:
        return len(reader.partitions({"lease": number}, {"lease": number + 1}))

    try:
        assert leases(0) == 1
        write_choice(flow, EngineChoice(engine=engine, since_ms=0, reason="as the test says"), world.place().deployment)
        assert leases(1) == 1
        assert not control.stopping()
        with closing(RunOrder(flow, engine="functions")) as functions:
            functions.claim()
            (spark,) = functions.earlier()
            assert (spark.engine, spark.is_ready) == ("spark", True)
            assert leases(2) == (0 if yields else 1)
            assert control.stopping() is yields
            reader.stop()
            functions.look()
            assert functions.earlier() == []
    finally:
        reader.stop()
