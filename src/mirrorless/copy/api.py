"""What other packages may import of the copier.

| name | what it does |
|---|---|
| `FunctionsEngine`, `RunResult` | copy in a function's invocation, and what that came to |
| `copy_once` | copy what the source has now, in this process |
| `Control`, `FlowRef`, `MemoryLimits` | what a run of the copy is given: its folder, its flow, its limits |
| `CopyOutcome`, `GAVE_UP`, `LANDING_S` | how a run of the copy ends |
| `Report`, `Summary`, `summary`, `PartitionState` | what was copied, by partition and in all |
| `status_of`, `FlowStatus`, `line_on_gone` | how far a flow is, from its topics |
| `Resetter`, `Reset`, `flow_of` | have partitions copied from another position |
| `StartPositions` | fix where partitions begin that topic discovery finds |
| `first_copy`, `backfill_note`, `identical_outlook` | what a plan says of records before any is copied |

The Spark job is apart, in `copy.engines.spark.job`: it needs PySpark, and only the job's script starts it.
"""

from __future__ import annotations

from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.copy_once import copy_once
from mirrorless.copy.engines.functions.engine import FunctionsEngine
from mirrorless.copy.engines.functions.run_result import RunResult
from mirrorless.copy.engines.outcome import GAVE_UP, LANDING_S, CopyOutcome
from mirrorless.copy.flow.memory_limits import MemoryLimits
from mirrorless.copy.flow.reference import FlowRef
from mirrorless.copy.flow.status import FlowStatus, line_on_gone, status_of
from mirrorless.copy.partition.lease_rows import Report, Summary, summary
from mirrorless.copy.partition.lifecycle import PartitionState
from mirrorless.copy.planning.backfill_note import backfill_note, distance_of
from mirrorless.copy.planning.identical_note import IdenticalOutlook, identical_outlook
from mirrorless.copy.planning.records_there import first_copy
from mirrorless.copy.resume.reset import Reset, Resetter, flow_of
from mirrorless.copy.resume.start_positions import StartPositions

__all__ = [
    "GAVE_UP",
    "LANDING_S",
    "Control",
    "CopyOutcome",
    "FlowRef",
    "FlowStatus",
    "FunctionsEngine",
    "IdenticalOutlook",
    "MemoryLimits",
    "PartitionState",
    "Report",
    "Reset",
    "Resetter",
    "RunResult",
    "StartPositions",
    "Summary",
    "backfill_note",
    "copy_once",
    "distance_of",
    "first_copy",
    "flow_of",
    "identical_outlook",
    "line_on_gone",
    "status_of",
    "summary",
]
