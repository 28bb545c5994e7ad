"""A warm function whose login has become an old one gets in again with the next invocation, settings being equal."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.clusters.identity import Ends
from mirrorless.clusters.target_state import TargetState
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.functions import checkpoint, job_supervisor, metadata
from mirrorless.functions.budget import TimeBudget
from mirrorless.functions.client_cache import ClientCache
from mirrorless.functions.events import ScheduleEvent, TopicRecords, parse
from mirrorless.functions.invocation import Invocation
from mirrorless.functions.job_decision import Patience
from mirrorless.functions.runtime_context import RuntimeContext, within
from mirrorless.local.display_sink import DisplaySink
from mirrorless.local.lambda_context import LocalContext
from mirrorless.metadata.actions import GrowTopic, Problem
from mirrorless.metadata.apply import Applied
from mirrorless.metadata.planning import Admins, Part
from mirrorless.metadata.sync_pass import SyncPass
from mirrorless.offsets.checkpoint_pass import PassReport
from mirrorless.settings import Cluster, Flow, Settings
from tests.support.heard import Heard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mirrorless.functions.events import Event
    from mirrorless.functions.job_decision import JobRun
    from mirrorless.functions.runtime_context import CopyAccount

FLOW = Flow(
    source=Cluster(alias="a", bootstrap_servers="a:9092"),
    target=Cluster(alias="b", bootstrap_servers="b:9092"),
    engine="spark",
)
SETTINGS = Settings(file="mm2.properties", clusters=(FLOW.source, FLOW.target), flows=(FLOW,))
ENDS = Ends("a-id", "b-id")
REFUSED = "the login was refused"


class Login:
    """The password as it is now; clients keep the one that they were made with."""

    def __init__(self) -> None:
        self.now = 1
        self.made = 0
        self.closed = 0

    def client(self) -> Client:
        self.made += 1
        return Client(self)


class Client:
    """Every client of a function in one."""

    def __init__(self, login: Login) -> None:
        self._login, self._made_with = login, login.now

    @property
    def is_refused(self) -> bool:
        return self._made_with != self._login.now

    def close(self) -> None:
        self._login.closed += 1

    def read(self) -> TargetState:
        if self.is_refused:
            raise ClusterUnavailable(REFUSED, cluster="b")
        return TargetState.STARTED


class NoRuns:
    patience = Patience()
    ends_itself_s = 0.0
    missing = ""

    def latest(self) -> list[JobRun]:
        return []

    def stop(self, runs: object) -> None:  # noqa: ARG002
        raise AssertionError

    def start(self, release: str | None = None) -> str:  # noqa: ARG002 -- the protocol
        return "jr_1"


class Called:
    """Calls functions for the flow, as a run on one machine does."""

    def __init__(self) -> None:
        self.heard = Heard()
        self._sink = DisplaySink(FLOW.name, "function", self.heard, ended=lambda: False)
        variables = {"MIRRORLESS_CONFIG": "c", "MIRRORLESS_FLOW": FLOW.name, "MIRRORLESS_JOB": "copy"}
        self._given = RuntimeContext(
            variables=variables,
            sink=self._sink,
            jobs=lambda _job: nullcontext(NoRuns()),
            copy=cast("CopyAccount", SimpleNamespace(let_functions_copy=lambda _: None)),
        )

    def __call__(self, work: Callable[[Invocation], dict[str, Any]], event: Event | None = None) -> dict[str, Any]:
        budget = TimeBudget(LocalContext(timeout_s=60, ended=lambda: False))
        with within(self._given):
            return work(Invocation(event or parse({}), budget, SETTINGS, FLOW, self._sink, "function"))


@pytest.fixture
def login() -> Login:
    return Login()


@pytest.fixture
def call() -> Iterator[Called]:
    yield Called()
    checkpoint._groups_at.clear()


def test_of_the_supervisor(monkeypatch: pytest.MonkeyPatch, login: Login, call: Called) -> None:
    monkeypatch.setattr(job_supervisor, "TargetStates", lambda _flow: login.client())
    monkeypatch.setattr(job_supervisor, "_states", ClientCache(Client.close))
    assert [call(job_supervisor.supervise)["started_run"] for _ in range(2)] == ["jr_1", "jr_1"]
    assert login.made == 1
    login.now += 1
    with pytest.raises(ClusterUnavailable, match=REFUSED):
        call(job_supervisor.supervise)
    assert call(job_supervisor.supervise)["started_run"] == "jr_1"
    assert (login.made, login.closed) == (2, 1)


@pytest.mark.parametrize("how", ["raised", "of each action", "of each topic"])
def test_of_the_metadata(how: str, monkeypatch: pytest.MonkeyPatch, login: Login, call: Called) -> None:
    action = GrowTopic(topic="t", partitions=2, reason="r")

    def one_pass(_flow: Flow, _parts: list[Part], *, admins: Client, **_: object) -> SyncPass:
        if admins.is_refused and how == "raised":
            raise ClusterUnavailable(REFUSED, cluster="b")
        refused = admins.is_refused and how == "of each action"
        problems = (Problem(topic="t", reason=REFUSED),) if admins.is_refused and how == "of each topic" else ()
        done = Applied(action, REFUSED if refused else None)
        return SyncPass(ends=ENDS, applied=(done,), left_out=(), problems=problems, notes=())

    monkeypatch.setattr(metadata, "one_pass", one_pass)
    monkeypatch.setattr(Admins, "of", lambda _flow: login.client())
    monkeypatch.setattr(metadata, "_clients", {part: ClientCache() for part in Part})
    works = (metadata.discover_topics, metadata.sync_configs)
    for work in (*works, *works):
        assert call(work)["failed"] == 0
    assert login.made == 2  # one function's error is none of the other's
    login.now += 1
    with suppress(ClusterError):
        call(metadata.discover_topics)
    assert call(metadata.discover_topics) == {"changed": 1, "failed": 0, "problems": 0}
    assert login.made == 3


@pytest.mark.parametrize("how", ["raised", "of the producer", "of the groups"])
@pytest.mark.parametrize("event", [ScheduleEvent(at=datetime.now(UTC)), TopicRecords(records=(), refused=())])
def test_of_the_checkpoints(
    how: str, event: Event, monkeypatch: pytest.MonkeyPatch, login: Login, call: Called
) -> None:
    class Checkpoints(Client):
        def stopped(self) -> None:
            """It is not."""

        def emit(self, **_: object) -> PassReport:
            if not self.is_refused:
                return PassReport(groups=2, emitted=2, latencies_ms=[1, 1])
            if how == "raised":
                raise ClusterUnavailable(REFUSED, cluster="b")
            if how == "of the producer":
                return PassReport(groups=2, emitted=2, latencies_ms=[1], troubles=[REFUSED])
            return PassReport(troubles=[REFUSED])

    def made(_flow: Flow) -> Checkpoints:
        login.made += 1
        return Checkpoints(login)

    monkeypatch.setattr(checkpoint, "Checkpoints", made)
    monkeypatch.setattr(checkpoint, "_warm", ClientCache(Client.close))
    for _ in range(2):
        assert call(checkpoint.checkpoint, event)["emitted"] == 2
    assert login.made == 1
    login.now += 1
    with suppress(ClusterError):
        call(checkpoint.checkpoint, event)
    assert any(REFUSED in text for _, text in call.heard.troubles) or (
        how == "raised" and isinstance(event, ScheduleEvent)
    )
    assert call(checkpoint.checkpoint, event)["emitted"] == 2
    assert (login.made, login.closed) == (2, 1)
