"""Reports of leases that no lease has made."""

from __future__ import annotations

from mirrorless.copy.partition.lease_rows import Report


def report(topic: str = "t", partition: int = 0, **fields: object) -> Report:
    """A report of a partition of which nothing was copied, but for `fields`."""
    known = {
        "topic": topic,
        "partition": partition,
        "remote_topic": f"a.{topic}",
        "state": "caught up",
        "records": 0,
        "copied_bytes": 0,
        "first_offset": None,
        "next_offset": None,
        "lag_records": 0,
        "latency_ms": None,
        "began_ms": None,
        "ended_ms": None,
    }
    return Report(**(known | fields))  # type: ignore[arg-type]
