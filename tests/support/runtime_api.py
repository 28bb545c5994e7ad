"""Lambda's runtime API, as small as can be: the real runtime client (awslambdaric) runs a function against it."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

FUNCTIONS = Path(__file__).parents[2] / "functions"
_PREFIX = "/2018-06-01/runtime/"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the runtime client posted: the handler's result, or its error."""

    result: Any
    error: dict[str, Any] | None


class Function:
    """`functions/<name>/app.py` in a process of its own, under the real runtime client; `environment` is all it has."""

    def __init__(self, name: str, folder: Path, environment: Mapping[str, str]) -> None:
        self._events: queue.Queue[tuple[str, bytes, int]] = queue.Queue()
        self._answers: queue.Queue[Answer] = queue.Queue()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._number = 0
        self.output = folder / f"{name}.{time.monotonic_ns()}.log"
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "awslambdaric", "app.handler"],
                cwd=FUNCTIONS / name,
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={
                    "PATH": os.environ["PATH"],
                    "HOME": str(folder),
                    "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self._server.server_port}",
                    "AWS_LAMBDA_FUNCTION_NAME": name,
                    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
                    "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
                    "LAMBDA_TASK_ROOT": str(FUNCTIONS / name),
                    "POWERTOOLS_SERVICE_NAME": name,
                    "POWERTOOLS_METRICS_NAMESPACE": "Mirrorless",
                    "LOG_LEVEL": "INFO",
                    **environment,
                },
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        self._server.shutdown()
        self._server.server_close()

    def begin(self, event: Mapping[str, Any], *, timeout_s: float = 300) -> None:
        """Hand an event to the function, with so much time until its limit."""
        self._number += 1
        deadline_ms = int((time.time() + timeout_s) * 1000)
        self._events.put((f"request-{self._number}", json.dumps(event).encode(), deadline_ms))

    def end(self, *, within_s: float = 120) -> Answer:
        """Wait for the answer to the oldest event that has none yet."""
        until = time.monotonic() + within_s
        while True:
            try:
                return self._answers.get(timeout=0.2)
            except queue.Empty:
                assert self.process.poll() is None, f"the runtime client ended:\n{self.output.read_text()}"
                assert time.monotonic() < until, f"no answer:\n{self.output.read_text()}"

    def invoke(self, event: Mapping[str, Any], *, timeout_s: float = 300) -> Any:  # noqa: ANN401 -- the handler's
        """Hand an event to the function and return its result; an error fails the test."""
        self.begin(event, timeout_s=timeout_s)
        answer = self.end()
        assert answer.error is None, f"{answer.error}\n{self.output.read_text()}"
        return answer.result

    def lines(self) -> list[dict[str, Any]]:
        """Every line of JSON that it printed."""
        return [json.loads(line) for line in self.output.read_text().splitlines() if line.startswith("{")]

    def metrics(self) -> dict[str, list[float]]:
        """Values of every metric it emitted in the embedded metric format, in order."""
        found: dict[str, list[float]] = {}
        for line in self.lines():
            for directive in line.get("_aws", {}).get("CloudWatchMetrics", ()):
                for metric in directive["Metrics"]:
                    found.setdefault(metric["Name"], []).extend(line[metric["Name"]])
        return found

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        events, answers = self._events, self._answers

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                assert self.path == _PREFIX + "invocation/next"
                request, body, deadline_ms = events.get()
                self.send_response(200)
                self.send_header("Lambda-Runtime-Aws-Request-Id", request)
                self.send_header("Lambda-Runtime-Deadline-Ms", str(deadline_ms))
                self.send_header(
                    "Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-west-1:123456789012:function:f"
                )
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"null")
                if self.path.endswith("/response"):
                    answers.put(Answer(body, None))
                else:
                    answers.put(Answer(None, body))
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing."""

        return Handler
