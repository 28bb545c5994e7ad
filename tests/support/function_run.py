"""A run of the functions engine in a process of its own, as an invocation on Lambda has one."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.functions.engine import FunctionsEngine
from mirrorless.copy.flow.memory_limits import MemoryLimits
from mirrorless.copy.flow.reference import FlowRef
from mirrorless.copy.planning import dealing
from mirrorless.progress import mark_writer
from mirrorless.progress.run_marks import WHOLE, Share

if TYPE_CHECKING:
    from types import TracebackType

    from tests.support.world import World

_WITHIN_S = 60.0


@dataclass(slots=True)
class Deadline:
    """The time of a run, which a test may end."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds)

    @property
    def left_s(self) -> float:
        return max(0.0, self.at - time.monotonic())

    def end(self) -> None:
        self.at = 0.0


class FunctionRun:
    """One run of the flow of a world; leaving the context kills it.

    `valid_ms` is how long its mark is valid, `deal_s` how long a deal lasts at least; rates are over half of it.
    """

    def __init__(
        self,
        world: World,
        *,
        seconds: float,
        share: Share = WHOLE,
        valid_ms: int = 15_000,
        deal_s: float = dealing.EVERY_S,
    ) -> None:
        number = time.monotonic_ns()
        self.output = world.folder / f"run-{number}.log"
        folder = world.folder / f"run-{number}"
        folder.mkdir()
        self.control = Control(str(folder))
        given = {
            "location": str(world.file),
            "flow": world.flow,
            "folder": str(folder),
            "seconds": seconds,
            "share": list(share),
            "valid_ms": valid_ms,
            "deal_s": deal_s,
        }
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", __name__, json.dumps(given)],
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """End it as Lambda's time limit does: it finishes nothing, and its mark remains."""
        self.process.kill()
        self.process.wait()

    def begun(self) -> FunctionRun:
        """Wait until it is its turn to copy."""
        self._line("begins")
        return self

    def result(self) -> dict[str, Any]:
        """Wait for the fields of its `RunResult`."""
        found: dict[str, Any] = self._line("result")
        return found

    def _line(self, name: str) -> Any:  # noqa: ANN401 -- JSON
        until = time.monotonic() + _WITHIN_S
        while True:
            ended = self.process.poll() is not None
            for line in self.output.read_text().splitlines():
                if line.startswith("{") and name in (found := json.loads(line)):
                    return found[name]
            assert not ended, f"the run ended without {name}:\n{self.output.read_text()}"
            assert time.monotonic() < until, f"no {name}:\n{self.output.read_text()}"
            time.sleep(0.02)


def engine_of(world: World, *, bounded: bool = False) -> FunctionsEngine:
    """The engine of a world's flow in this process, with the memory of the smallest function; close it."""
    return FunctionsEngine(world.place(bounded=bounded), control=Control(), memory=MemoryLimits.within(256))


def main(given: dict[str, Any]) -> None:
    mark_writer._FUNCTION_MS = given["valid_ms"]  # type: ignore[misc]
    dealing.EVERY_S = given["deal_s"]  # type: ignore[misc]
    dealing._RATE_S = min(dealing._RATE_S, given["deal_s"] / 2)  # type: ignore[misc]
    engine = FunctionsEngine(
        FlowRef(location=given["location"], flow=given["flow"], bounded=False),
        control=Control(given["folder"]),
        memory=MemoryLimits.within(256),
        share=Share(*given["share"]),
    )
    with closing(engine):
        result = engine.run(Deadline.after(given["seconds"]), lambda _: None, begins=lambda: _say(begins=True))
        _say(result=asdict(result))


def _say(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
