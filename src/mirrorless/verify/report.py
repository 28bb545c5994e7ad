"""The result for machines, as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from mirrorless.verify.findings import by_topic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.verify.findings import VerificationResult
    from mirrorless.verify.repair import Step

RESULTS: Final = ("identical", "differences", "could not compare")
"""By exit status."""
METRICS: Final = ("records-compared", "differences", "not-compared")
"""Values of `summary` that are metrics."""


def as_fields(verdict: VerificationResult) -> dict[str, Any]:
    """Return a result as plain values."""
    return {
        "flow": verdict.flow,
        "result": RESULTS[verdict.status],
        "status": verdict.status,
        "began_ms": verdict.began_ms,
        "ended_ms": verdict.ended_ms,
        "records-compared": verdict.records,
        "bytes-read": verdict.size_bytes,
        "not-copied": verdict.not_copied,
        "differences": [asdict(one) | {"text": one.text} for one in verdict.differences],
        "troubles": list(verdict.troubles),
        "notes": list(verdict.notes),
        "topics": [asdict(one) for one in by_topic(verdict)],
        "partitions": [asdict(one) for one in verdict.partitions],
    }


def summary(verdict: VerificationResult) -> dict[str, Any]:
    """Return the fields of a log line for a result; those that are metrics are in `METRICS`."""
    return {
        "flow": verdict.flow,
        "event": "Verified",
        "result": RESULTS[verdict.status],
        "records-compared": verdict.records,
        "differences": len(verdict.differences),
        "not-compared": len(verdict.troubles),
        "bytes-read": verdict.size_bytes,
        "seconds": (verdict.ended_ms - verdict.began_ms) / 1000,
    }


def to_json(verdicts: Sequence[VerificationResult], plans: Sequence[Sequence[Step]] = ()) -> str:
    """Return all results as one JSON object; `plans` are repair plans, one for each result, or none."""
    flows = [as_fields(one) for one in verdicts]
    for fields, steps in zip(flows, plans, strict=False):
        fields["repair"] = [asdict(step) for step in steps]
    return json.dumps({"flows": flows}, indent=2) + "\n"
