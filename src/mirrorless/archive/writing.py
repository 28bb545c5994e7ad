"""Archives several flows at once, a thread for each."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING, Final

from mirrorless.archive.object_store import open_store
from mirrorless.archive.writer import ArchiveWriter
from mirrorless.errors import MirrorlessError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mirrorless.settings import Flow, Settings

_AGAIN_S: Final = 5.0


def write_all(
    settings: Settings,
    flows: Sequence[Flow],
    *,
    stopping: Callable[[], bool],
    caught_up: bool,
    say: Callable[[str, str], None],
) -> bool:
    """Archive flows until `stopping`, or until each is caught up; returns whether nothing halted or failed.

    `say` receives a flow's name and a line. A flow whose source or store does not answer is tried again, unless it is
    to end by itself.
    """
    fine: dict[str, bool] = {}

    def one(flow: Flow) -> None:
        fine[flow.name] = _write(settings, flow, stopping=stopping, caught_up=caught_up, say=say)

    threads = [threading.Thread(target=one, args=(flow,), name=f"archive-{flow.name}") for flow in flows]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.2)
    return all(fine.get(flow.name, False) for flow in flows)


def _write(
    settings: Settings, flow: Flow, *, stopping: Callable[[], bool], caught_up: bool, say: Callable[[str, str], None]
) -> bool:
    pause = threading.Event()
    while True:
        try:
            store = open_store(dict(settings.archives)[flow.target.alias])
            writer = ArchiveWriter(
                flow, store, object_s=flow.archive_object_seconds, say=lambda line: say(flow.name, line)
            )
            with closing(writer):
                report = writer.run(stopping, caught_up=caught_up)
        except MirrorlessError as error:
            say(flow.name, str(error))
            if caught_up or stopping():
                return False
            pause.wait(_AGAIN_S)
            continue
        objects = f"{report.objects:,} object{'' if report.objects == 1 else 's'}"
        say(flow.name, f"{objects}, {report.size_bytes / 1e6:,.1f} MB, {report.documents:,} seconds of state")
        return not report.halted
