"""Compares the runs that copy a flow at present, by their marks in the progress topic.

Of N functions that copy a flow each has one share of N. While runs have different numbers, as after a change of
`CopyFunctions`, some of them wait for others to end, and a share without a run is not copied.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from mirrorless.doctor.findings import Finding, Status, some_of
from mirrorless.errors import ClusterError
from mirrorless.progress.mark_reader import MarkReader

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from mirrorless.progress.run_marks import RunMark
    from mirrorless.settings import Flow

RUNNING: Final = "running copies"


def running_copies(flow: Flow, topics: Set[str]) -> Finding:
    """Check the runs that have marks; `topics` are those of the target that are visible."""
    alias = flow.target.alias
    if flow.offset_storage_topic not in topics:
        return Finding(check=RUNNING, status=Status.OK, text="nothing has copied yet", cluster=alias)
    reader = MarkReader(flow)
    try:
        marks = reader.read().valid(flow, now_ms=int(time.time() * 1000), now=time.monotonic())
    except ClusterError as error:
        return Finding(check=RUNNING, status=Status.NOT_CHECKED, text=str(error), cluster=alias)
    finally:
        reader.close()
    return compared(flow, marks)


def compared(flow: Flow, marks: Sequence[RunMark]) -> Finding:
    """Compare the shares of valid marks."""
    alias = flow.target.alias
    functions = [mark.share for mark in marks if mark.engine == "functions"]
    numbers = sorted({share.of for share in functions})
    if len(numbers) > 1:
        text = f"functions copy with different CopyFunctions: {' and '.join(map(str, numbers))}"
        fix = "wait two minutes after a change of CopyFunctions; otherwise remove one of the deployments of this flow"
        return Finding(check=RUNNING, status=Status.WARNING, text=text, cluster=alias, fix=fix)
    has_spark = len(functions) < len(marks)
    missing = sorted(set(range(numbers[0])) - {share.number for share in functions}) if numbers else []
    # An idle flow's invocations end, and Spark copies every share.
    if missing and not has_spark and not flow.copy_idle_exit:
        which = some_of([str(number) for number in missing])
        text = f"no function copies share {which} of {numbers[0]}"
        fix = "check the log of copy for invocations that fail, and whether Lambda throttles them"
        return Finding(check=RUNNING, status=Status.WARNING, text=text, cluster=alias, fix=fix)
    engines = [*([f"functions ({numbers[0]})"] if numbers else []), *(["Spark"] if has_spark else [])]
    text = f"copied by {' and '.join(engines)}" if engines else "nothing copies at present"
    return Finding(check=RUNNING, status=Status.OK, text=text, cluster=alias)
