"""Runs one command and suspends itself before one of its writes, as a laptop whose lid is closed.

Arguments: the number of the write or its label (0 for none), the seconds by which the machine's clock is ahead, then
the command's.
Every write is a line on standard error: `write N LABEL`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka.admin import AdminClient
from kafka.net.connection import KafkaConnection

from mirrorless import cli
from mirrorless.clusters.producer import TopicProducer
from mirrorless.operations import fences, switches

if TYPE_CHECKING:
    from collections.abc import Callable

ADMIN: Final = ("create_topics", "create_partitions", "incremental_alter_configs", "create_acls", "delete_acls")
REQUESTS: Final = (
    "DeleteTopicsRequest",
    "DeleteRecordsRequest",
    "DeleteGroupsRequest",
    "OffsetCommitRequest",
    "OffsetDeleteRequest",
    "IncrementalAlterConfigsRequest",
    "ProduceRequest",
    "WriteTxnMarkersRequest",
)
_EACH: Final = 2
"""Of alike writes, such as the batches of a copy, so many count."""


class Gate:
    """Counts writes, and suspends the process before number `at`, or the first with that label."""

    def __init__(self, at: str) -> None:
        self._at = at
        self._count = 0
        self._alike: Counter[str] = Counter()
        self._lock = threading.Lock()

    def before(self, label: str) -> None:
        """Suspend the process if this is the write; renewals of the ownership do not count."""
        if threading.current_thread().name in ("operation owner", "run mark"):
            return
        with self._lock:
            self._alike[label] += 1
            if self._alike[label] > _EACH:
                return
            self._count += 1
            sys.stderr.write(f"write {self._count} {label}\n")
            sys.stderr.flush()
            if self._at == str(self._count) or (self._at == label and self._alike[label] == 1):
                os.kill(os.getpid(), signal.SIGSTOP)

    def around(self, owner: Any, name: str, label: Callable[..., str]) -> None:  # noqa: ANN401 -- anything with methods
        """Let a function of `owner` come through here."""
        real = getattr(owner, name)

        def call(*args: Any, **named: Any) -> Any:  # noqa: ANN401
            if said := label(*args, **named):
                self.before(said)
            return real(*args, **named)

        setattr(owner, name, call)


def request_label(_: object, request: object, *__: object, **___: object) -> str:
    """Label a request of kafka-python; empty for one that only reads."""
    name = type(request).__name__
    return name if name in REQUESTS else ""


def record_label(_: object, topic: str, *, key: bytes | None = None, **__: object) -> str:
    """Label a record: its topic, and in the log of operations what it says."""
    kind = (key or b"").partition(b'"record":"')[2].partition(b'"')[0].decode()
    step = (key or b"").partition(b'"step":"')[2].partition(b'"')[0].decode()
    state = (key or b"").partition(b'"state":"')[2].partition(b'"')[0].decode()
    return " ".join(filter(None, ["record", topic, kind, step, state]))


def main() -> None:
    """Run the command of `sys.argv`."""
    at, ahead_s, *command = sys.argv[1:]
    gate = Gate(at)
    real_time = time.time
    time.time = lambda: real_time() + float(ahead_s)
    gate.around(TopicProducer, "send", record_label)
    gate.around(KafkaConnection, "send_request", request_label)
    for name in ADMIN:
        gate.around(AdminClient, name, lambda *_, named=name, **__: named)
    gate.around(switches, "_replace", lambda *_, dry_run: "" if dry_run else "switch file")
    gate.around(fences, "run_command", lambda *_: "command")
    sys.argv = ["mirrorless", *command]
    cli.main()


if __name__ == "__main__":
    main()
