"""heartbeat_monitor: measures heartbeats of the source on the target: their latency, and the age of the last one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.internal_topics import replicated_heartbeats
from mirrorless.formats import Heartbeat, Malformed
from mirrorless.functions.events import LOG_APPEND_TIME, TopicRecords, refusal
from mirrorless.heartbeats import last_records

if TYPE_CHECKING:
    from mirrorless.functions.invocation import Invocation

_logged: Final[set[str]] = set()
"""Topics for which it was logged that they have another use."""


def monitor(invocation: Invocation) -> dict[str, Any]:
    """Measure the latency of the heartbeats in a trigger's event; on a schedule, the age of the last one."""
    if isinstance(invocation.event, TopicRecords):
        return _measure(invocation, invocation.event)
    found = last_records(invocation.flow)
    topic = replicated_heartbeats(invocation.flow)
    if not found.foreign:
        _logged.discard(topic)
    elif topic not in _logged:
        _logged.add(topic)
        text = f"{topic}: {found.foreign} of its last {found.records} records are not heartbeats"
        invocation.sink.tell("error", text)
    if (last := found.last) is None:
        switches = "emit.heartbeats.enabled and heartbeats.replication.enabled"
        return {"note": f"no heartbeat was replicated yet; {switches} must be true"}
    return {"last_seen_ms": last.timestamp_ms, "age_s": _age(invocation, last.timestamp_ms)}


def _measure(invocation: Invocation, event: TopicRecords) -> dict[str, Any]:
    now_ms = int(time.time() * 1000)
    refused = list(event.refused)
    seen: dict[str, int] = {}
    newest_ms = 0
    appended: list[int] = []
    for record in event.records:
        if record.value is None:
            continue  # a tombstone
        heartbeat = Heartbeat.parse(record.key, record.value)
        if isinstance(heartbeat, Malformed):
            refused.append(refusal(record, heartbeat.reason))
            continue
        if record.timestamp_type == LOG_APPEND_TIME:
            appended.append(max(0, record.timestamp_ms - heartbeat.timestamp_ms))
        else:
            newest_ms = max(newest_ms, heartbeat.timestamp_ms)
        pair = f"{heartbeat.source}->{heartbeat.target}"
        seen[pair] = max(seen.get(pair, 0), heartbeat.timestamp_ms)
    if newest_ms:  # the trigger gathers records for some seconds: older ones have waited for it
        invocation.measure("heartbeat-latency-ms", max(0, now_ms - newest_ms))
    if appended:
        invocation.measure("heartbeat-latency-ms", *appended)
    if seen:
        _age(invocation, max(seen.values()))
    invocation.refuse(refused)
    return {"records": len(event.records), "refused": len(refused), "last_seen_ms": seen}


def _age(invocation: Invocation, timestamp_ms: int) -> float:
    age_s = max(0.0, time.time() - timestamp_ms / 1000)
    invocation.measure("heartbeat-age-seconds", age_s)
    return round(age_s, 3)
