"""Whether invocations of `copy` copy a flow at the moment, for the functions whose work they do meanwhile."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from mirrorless.errors import ClusterError
from mirrorless.functions.client_cache import ClientCache
from mirrorless.functions.environment import environment
from mirrorless.functions.runtime_context import runtime_context
from mirrorless.progress.mark_reader import MarkReader
from mirrorless.progress.run_marks import deployment_of

if TYPE_CHECKING:
    from mirrorless.settings import Flow

EMITTED_BY_COPY: Final = {"note": "the copy function does this while it copies"}

_PATIENCE_S: Final = 5.0
"""The caller's own work waits meanwhile, and may not need the target."""

_readers: Final = ClientCache(MarkReader.close)


def copied_by_functions(flow: Flow) -> bool:
    """Whether the function `copy` copies the flow; always False on one machine, where it does nothing else.

    Also False if that cannot be read: then this function does its work itself. With `mirrorless.copy.idle.exit` it
    suffices that functions are to copy: `copy` then emits heartbeats also while the flow is paused.
    """
    if runtime_context() is not None or flow.engine == "spark":
        return False
    try:
        with _readers.kept(flow.name, flow.connections, lambda: MarkReader(flow, patience_s=_PATIENCE_S)) as reader:
            marks = reader.read()
    except ClusterError:
        return False
    deployment = deployment_of(environment().config, flow.name)
    first = marks.first(flow, now_ms=int(time.time() * 1000), now=time.monotonic(), deployment=deployment)
    if first is None and flow.copy_idle_exit:
        # Its invocations are short, and there is no mark between them.
        choice = marks.chosen(flow, deployment)
        return flow.engine == "functions" or choice is None or choice.engine == "functions"
    return first is not None and first.engine == "functions"
