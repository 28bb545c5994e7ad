"""The live page over a snapshot that no cluster has: thousands of topics, hostile names, clusters in trouble."""

from __future__ import annotations

import http.client
import json
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast

from mirrorless.clusters.target_state import TargetState
from mirrorless.operations.drill.stored import Form
from mirrorless.web.feed import Feed
from mirrorless.web.problems import problems
from mirrorless.web.server import ServerTerms, WebServer
from mirrorless.web.snapshot import (
    ClusterRow,
    ClusterState,
    CopierRow,
    DrillCheckRow,
    DrillRow,
    FlowRow,
    FlowState,
    GroupRow,
    HaltedRow,
    OperationRow,
    OperationStepRow,
    PartitionRow,
    PositionRow,
    SettingRow,
    SettingsOf,
    Snapshot,
    TopicRow,
    TopicState,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mirrorless.web.gather import Gatherer


def topic(name: str = "orders", flow: str = "A->B", **fields: object) -> TopicRow:
    """A topic that is caught up, but for `fields`."""
    row = TopicRow(
        flow=flow,
        topic=name,
        remote_topic=f"A.{name}",
        partitions=5,
        halted=0,
        state=TopicState.CAUGHT_UP,
        records_per_s=0.0,
        bytes_per_s=None,
        unknown_partitions=0,
        lag_records=0,
        lag_s=0.0,
        lag_is_minimum=False,
        lag_per_s=0.0,
        catch_up_s=0.0,
        latency_ms=None,
        error=None,
    )
    return replace(row, **fields)  # type: ignore[arg-type]


def cluster(alias: str, **fields: object) -> ClusterRow:
    """A cluster that answers, but for `fields`."""
    row = ClusterRow(
        kafka="4.3",
        alias=alias,
        bootstrap_servers=f"{alias.lower()}.example:9092",
        state=ClusterState.AVAILABLE,
        brokers=3,
        answer_ms=2,
        answered_ms=1,
        error=None,
    )
    return replace(row, **fields)  # type: ignore[arg-type]


def flow(name: str = "A->B", **fields: object) -> FlowRow:
    """A flow that is caught up, but for `fields`."""
    source, _, target = name.partition("->")
    row = FlowRow(
        name=name,
        source=source,
        target=target,
        state=FlowState.RUNNING,
        engine="functions",
        engine_reason="mirrorless.engine is functions",
        copiers=(CopierRow(engine="functions", share=None, bytes_per_s=1e6),),
        topics=1,
        partitions=5,
        started=5,
        halted=0,
        unknown_partitions=0,
        lag_records=0,
        last_lag_records=0,
        lag_s=0.0,
        lag_is_minimum=False,
        lag_per_s=0.0,
        catch_up_s=0.0,
        rpo_s=None,
        records_per_s=0.0,
        bytes_per_s=None,
        limit_bytes_per_s=None,
        latency_ms=None,
        groups_age_ms=None,
        has_heartbeat=False,
        heartbeat_ms=None,
        waiting="",
        error=None,
        problems=(),
        read_ms=1,
    )
    return replace(row, **fields)  # type: ignore[arg-type]


def group(name: str, **fields: object) -> GroupRow:
    """A group that reads nothing again, but for `fields`."""
    row = GroupRow(
        flow="A->B",
        group=name,
        state="no members",
        partitions=5,
        lag_records=0,
        read_again=0,
        skipped=0,
        untranslated=0,
        why="",
        error=None,
    )
    return replace(row, **fields)  # type: ignore[arg-type]


def halted(name: str = "orders", **fields: object) -> HaltedRow:
    """A partition that halted at a gap, but for `fields`."""
    row = HaltedRow(
        flow="A->B",
        topic=name,
        partition=0,
        offset=120,
        gap="RETENTION",
        records=30,
        reason="retention deleted 30 records before they were copied",
    )
    return replace(row, **fields)  # type: ignore[arg-type]


def drill(began_ms: int = 1_790_000_000_000, **fields: object) -> DrillRow:
    """A drill with a failed check, but for `fields`."""
    row = DrillRow(
        flow="A->B",
        began_ms=began_ms,
        ended_ms=began_ms + 4_000,
        status="failed",
        rpo_records=12,
        rpo_exact=True,
        rpo_seconds=3.5,
        rto_seconds=1.2,
        problems=(DrillCheckRow(status="failed", check="lag", text="the oldest record is 3.5 s old"),),
    )
    return replace(row, **fields)  # type: ignore[arg-type]


def operation(**fields: object) -> OperationRow:
    """A switchover that has begun its fence, but for `fields`."""
    now = int(time.time() * 1000)
    step = OperationStepRow(step="fence", state="done", began_ms=now - 9_000, ended_ms=now - 7_000, result="3 topics")
    row = OperationRow(
        id="1",
        kind="switchover",
        source="A",
        target="B",
        outcome="running",
        owner="admin",
        began_ms=now - 9_000,
        ended_ms=None,
        blocked_s=None,
        reason="",
        notes=(),
        next_step="run `mirrorless operation mm2.properties continue`, or `abort`",
        next_command="mirrorless operation mm2.properties continue",
        steps=(step,),
    )
    return replace(row, **fields)  # type: ignore[arg-type]


def snapshot(**fields: object) -> Snapshot:
    """One flow with one topic, but for `fields`."""
    row = Snapshot(
        at_ms=int(time.time() * 1000),
        copies_here=False,
        clusters=(cluster("A"), cluster("B")),
        flows=(flow(),),
        applications=(),
        fences=(),
        readings=(),
        problems=(),
        topics=(topic(),),
        halted=(),
        groups=(),
        operations=(),
        drills=(),
        notes=(),
    )
    return replace(row, **fields)  # type: ignore[arg-type]


@dataclass
class FakeGatherer:
    """Knows what it is given; keeps the states that are written."""

    known: Snapshot = field(default_factory=snapshot)
    missing: dict[str, str] = field(default_factory=dict)
    written: list[tuple[str, str]] = field(default_factory=list)
    location: str = "mm2.properties"

    @property
    def flow_names(self) -> list[str]:
        """As of `Gatherer`."""
        return [one.name for one in self.known.flows]

    def snapshot(self) -> Snapshot:
        """Return it as of now."""
        return replace(self.known, at_ms=int(time.time() * 1000), problems=problems(self.known, self.location))

    def settings(self) -> tuple[SettingsOf, ...]:
        """Return one setting of each flow."""
        row = SettingRow(key="tasks.max", value="1", is_default=True, origin="", meaning="Slots.")
        own = replace(row, key="topics", value="orders", is_default=False, origin="mm2.properties:5")
        return tuple(SettingsOf(name=name, kind="flow", settings=(row, own)) for name in self.flow_names)

    def unread(self) -> dict[str, str]:
        """Return what was given."""
        return self.missing

    def partitions(self, flow: str, topic: str) -> list[PartitionRow] | None:
        """Return the partitions of a topic, all alike."""
        found = next((one for one in self.known.topics if (one.flow, one.topic) == (flow, topic)), None)
        if found is None:
            return None
        return [
            PartitionRow(
                partition=number,
                state=found.state,
                next_offset=1_000 * number,
                source_end=1_000 * number + (found.lag_records or 0),
                lag_records=found.lag_records,
                lag_s=found.lag_s,
                reason=None,
            )
            for number in range(found.partitions)
        ]

    def positions(self, flow: str, group: str) -> list[PositionRow] | None:
        """Return one position of a group."""
        if not any((one.flow, one.group) == (flow, group) for one in self.known.groups):
            return None
        position = PositionRow(
            topic="orders",
            remote_topic="A.orders",
            partition=0,
            source_offset=10,
            source_lag=0,
            target_offset=10,
            continues_at=10,
            read_again=0,
            skipped=0,
            how="exact",
        )
        return [position]

    def drill_report(self, flow: str, began_ms: str, form: Form) -> bytes | None:
        """Return a hostile report of a drill that is known."""
        if not any((one.flow, str(one.began_ms)) == (flow, began_ms) for one in self.known.drills):
            return None
        return HOSTILE_REPORT if form is Form.HTML else b"{}"

    def operation(self, number: str) -> None:
        """There is none."""

    def set_state(self, flow: str, state: TargetState) -> TargetState:
        """Keep it, and show it; a flow that is stopped stays it, as one that waits for its turn."""
        if any(one.name == flow and one.state is FlowState.STOPPED for one in self.known.flows):
            return TargetState.STOPPED
        self.written.append((flow, state.value))
        now = FlowState.RUNNING if state == "STARTED" else FlowState.PAUSED
        flows = tuple(replace(one, state=now) if one.name == flow else one for one in self.known.flows)
        self.known = replace(self.known, flows=flows)
        return state


HOSTILE_REPORT: Final = b"""<!doctype html><title>report</title><script>document.title = "owned"</script>
<img src=x onerror='document.title = "owned"'><meta http-equiv="refresh" content="0;url=/healthz">
<form action="/api/session" method="post"><button>x</button></form><p id="content">a report</p>"""
"""A report of a drill by somebody who may write to the folder of reports."""


@contextmanager
def served_page(
    gatherer: FakeGatherer,
    *,
    every_s: float = 0.2,
    **terms: Any,  # noqa: ANN401 -- as ServerTerms
) -> Iterator[WebServer]:
    """Serve the page over what `gatherer` knows."""
    feed = Feed(gatherer.snapshot, every_s=every_s)
    server = WebServer(feed, cast("Gatherer", gatherer), ServerTerms(**terms))
    with feed:
        server.start()
        try:
            yield server
        finally:
            feed.close()
            server.end()


@dataclass(frozen=True)
class Answer:
    """An answer of the server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:  # noqa: ANN401 -- whatever JSON can hold
        """Return the body as JSON."""
        return json.loads(self.body)


def ask(server: WebServer | int, path: str, *, method: str = "GET", body: object = None, **headers: str) -> Answer:
    """Send one request; `headers` with `_` for `-`, of which `Host` replaces the usual one."""
    port = server if isinstance(server, int) else server.port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        content = None if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, content, named)
        answer = connection.getresponse()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def wait_until_read(server: WebServer, path: str = "/api/snapshot", *, seconds: float = 20) -> Any:  # noqa: ANN401
    """Return what a path answers once there is a snapshot."""
    until = time.monotonic() + seconds
    while (answer := ask(server, path)).status == 503:
        assert time.monotonic() < until, answer
        time.sleep(0.02)
    return answer.json()
