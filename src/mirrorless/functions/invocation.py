"""The frame of every function: environment, configuration, log, metrics, failure destination."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mirrorless import client_logs
from mirrorless.errors import ConfigurationError, FlowNotEnabled, MirrorlessError
from mirrorless.functions.budget import Context, TimeBudget
from mirrorless.functions.environment import environment
from mirrorless.functions.events import parse
from mirrorless.functions.failures import send
from mirrorless.functions.foreign_records import ForeignRecords
from mirrorless.functions.runtime_context import runtime_context
from mirrorless.metrics import BY_NAME
from mirrorless.settings import load
from mirrorless.settings.locations import version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mirrorless.functions.events import Event, Refused
    from mirrorless.functions.runtime_context import Sink
    from mirrorless.settings import Flow, Settings

_FRESH_S: Final = 60.0
_foreign: Final = ForeignRecords()


@dataclass(slots=True)
class Invocation:
    """One invocation of a function; `settings` is the whole configuration, `flow` the flow of this stack.

    `continues` says that another one does the same work at once, so that nothing is left.
    """

    event: Event
    budget: TimeBudget
    settings: Settings
    flow: Flow
    sink: Sink
    name: str
    measured: dict[str, list[float]] = field(default_factory=dict)
    continues: bool = False

    def measure(self, name: str, *values: float) -> None:
        """Emit values of a metric of the flow, which must be one of `metrics.METRICS`."""
        self.measured.setdefault(BY_NAME[name].name, []).extend(values)

    def refuse(self, refused: Sequence[Refused]) -> None:
        """Send records that cannot be processed to the failure destination; raises `AwsError` if that fails.

        Without a destination they are only in the log, as a count per topic. In both cases the trigger continues after
        them.
        """
        if not refused:
            return
        by_topic: dict[str, list[Refused]] = {}
        for one in refused:
            by_topic.setdefault(str(_field(one, "topic")), []).append(one)
        for topic, some in by_topic.items():
            if count := _foreign.due(f"{self.flow.name} {topic}", len(some)):
                many = f"{count} records cannot be processed, the last one"
                what = "a record cannot be processed" if count == 1 else many
                where = {f"record_{name}": _field(some[-1], name) for name in ("topic", "partition", "offset")}
                self.sink.tell("error", what, **where, reason=some[-1].reason)
        self.measure("records-refused", len(refused))
        if (queue := environment().failures) is not None:
            send(queue, refused, flow=self.flow.name, function=self.name)

    def leave(self, what: Sequence[str]) -> dict[str, list[str]]:
        """Log which units of work are left to the next invocation; returns them as fields of the answer."""
        if self.continues:
            return {}
        self.measure("units-left", len(what))
        if what:
            self.sink.tell("warning", "the timeout is near; the next invocation continues", left=list(what))
        return {"left": list(what)} if what else {}


def _lambda_sink() -> Sink:
    from mirrorless.functions.powertools import powertools  # noqa: PLC0415 -- Powertools is in Lambda's layer only

    return powertools()


def _field(refused: Refused, name: str) -> object:
    return refused.raw.get(name) if isinstance(refused.raw, dict) else None


class FunctionHandler:
    """Makes a Lambda handler of a work function; `name` is the function's, as in `functions/<name>/app.py`.

    If the flow does not exist in the configuration or is disabled, `not_enabled` is called before the error is raised.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[Invocation], Mapping[str, Any]],
        *,
        reserve_s: float = 10.0,
        not_enabled: Callable[[Sink], None] | None = None,
    ) -> None:
        self._name = name
        self._work = work
        self._not_enabled = not_enabled
        self._reserve_s = reserve_s
        self._settings: Settings | None = None
        self._version: str | None = None
        self._read_at = 0.0

    def __call__(self, event: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Handle one event; returns what was done. A `MirrorlessError` is logged in one line and raised."""
        client_logs.set_up()
        given = runtime_context()
        sink = _lambda_sink() if given is None else given.sink
        invocation: Invocation | None = None
        try:
            settings = self._load(sink)
            flow = settings.flow(environment().flow)
            sink.begin(flow=flow.name, request=context.aws_request_id)
            budget = TimeBudget(context, self._reserve_s)
            invocation = Invocation(parse(event), budget, settings, flow, sink, self._name)
            done = {"flow": flow.name, **self._work(invocation)}
            sink.done(self._name, done)
        except MirrorlessError as error:
            if isinstance(error, FlowNotEnabled) and self._not_enabled is not None:
                self._not_enabled(sink)
            sink.failed(error)
            raise
        else:
            return done
        finally:
            if invocation is not None and invocation.measured:
                sink.measured(invocation.flow, invocation.measured)

    def _load(self, sink: Sink) -> Settings:
        """Read the configuration, again after a minute; if it cannot be read then, the previous one is kept.

        But not if it can be read and the flow is not enabled in it any more, which raises `FlowNotEnabled`.
        """
        if self._settings is None or time.monotonic() >= self._read_at + _FRESH_S:
            try:
                self._settings = load(environment().config)
            except ConfigurationError as error:
                if self._settings is None or isinstance(error, FlowNotEnabled):
                    raise
                sink.tell("error", f"configuration could not be reloaded, keeping the previous one: {error}")
            else:
                self._log_version(sink)
            self._read_at = time.monotonic()
        return self._settings

    def _log_version(self, sink: Sink) -> None:
        """Log the version of the configuration where its store has versions: at the start, and with each new one."""
        version = version_of(environment().config)
        if version is not None and version != self._version:
            sink.tell("info", "configuration read", configuration_version=version)
        self._version = version
