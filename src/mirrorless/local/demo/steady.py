"""The demo's second part: a steady flow, copied by functions while it is written."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.local.demo.workload import DemoTopic
from mirrorless.local.runner import StopRequest, run_flows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.copy.api import Report
    from mirrorless.local.progress_view import TopicView
    from mirrorless.metadata.sync_pass import SyncPass
    from mirrorless.settings import Settings

_SECONDS: Final = 5
_A_SECOND: Final = 1_000
STEADY_TOPIC: Final = DemoTopic(
    name="positions", partitions=2, codec="lz4", records=_SECONDS * _A_SECOND, value_bytes=200
)


class SteadyFlow:
    """`local.displays.Display` of the run of a steady flow, which it ends when all records are copied.

    `latencies_ms` are those of the looks at the copy, `seconds` is the time from the start of the run to its first
    record on the target.
    """

    def __init__(self, bootstrap_servers: str, asked: StopRequest) -> None:
        self.latencies_ms: list[int] = []
        self.seconds: float | None = None
        self.troubles: list[str] = []
        self._servers = bootstrap_servers
        self._asked = asked
        self._stop = StopRequest()
        self._began = 0.0

    def make(self) -> None:
        """Create the topic."""
        admin = AdminClient({"bootstrap.servers": self._servers, "log_level": 0})
        topic = STEADY_TOPIC
        admin.create_topics([NewTopic(topic.name, topic.partitions, 1)])[topic.name].result()

    def run(self, settings: Settings) -> bool:
        """Write for some seconds, and copy meanwhile; returns whether there were no errors."""
        writer = threading.Thread(target=self._write, name="steady", daemon=True)
        self._began = time.monotonic()
        writer.start()
        went_well = run_flows(settings, bounded=False, display=self, stop=self._stop)
        writer.join()
        return went_well

    def _write(self) -> None:
        topic = STEADY_TOPIC
        client = Producer({"bootstrap.servers": self._servers, "compression.type": topic.codec, "linger.ms": 5})
        due = time.monotonic()
        for number in range(topic.records):
            client.produce(
                topic.name, key=b"%d" % number, value=b"." * topic.value_bytes, partition=number % topic.partitions
            )
            client.poll(0)
            due += 1 / _A_SECOND
            if (pause_s := due - time.monotonic()) > 0:
                time.sleep(pause_s)
        client.flush()

    def show(self, flow: str, topics: Sequence[TopicView]) -> None:  # noqa: ARG002
        """Note the latency; end the run when all records are copied, or the demo is to end."""
        for topic in topics:
            if topic.topic != STEADY_TOPIC.name:
                continue
            if topic.records and self.seconds is None:
                self.seconds = time.monotonic() - self._began
            if topic.latency_ms is not None:
                self.latencies_ms.append(topic.latency_ms)
            if topic.records >= STEADY_TOPIC.records:
                self._stop.ask()
        if self._asked.event.is_set():
            self._stop.ask()

    def trouble(self, flow: str, text: str) -> None:  # noqa: ARG002
        """Keep an error."""
        self.troubles.append(text)

    def discovered(self, flow: str, found: SyncPass) -> None:
        """Show nothing."""

    def note(self, flow: str, text: str) -> None:
        """Show nothing."""

    def warning(self, flow: str, text: str) -> None:
        """Show nothing."""

    def waiting(self, flow: str, text: str) -> None:  # noqa: ARG002
        """End the run if the demo is to end."""
        if self._asked.event.is_set():
            self._stop.ask()

    def leased(self, flow: str, reports: list[Report], *, faulty: bool) -> None:
        """Show nothing."""

    def checkpointed(self, flow: str, fields: dict[str, Any]) -> None:
        """Show nothing."""

    def measured(self, flow: str, metric: str, values: Sequence[float]) -> None:
        """Show nothing."""

    def finished(self, flow: str, *, records: int, copied_bytes: int, complete: bool) -> None:
        """Show nothing."""
