"""Settings of MirrorMaker 2 and Connect that have no counterpart here, and earlier ones of Mirrorless, and why.

`UnsupportedKey.severity`: a `note` does not change what is replicated, a `warning` may, an `error` certainly would.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Severity = Literal["note", "warning", "error"]


@dataclass(frozen=True, slots=True)
class UnsupportedKey:
    """Keys (a name that ends in `.` is a prefix) and the line that explains why they have no effect."""

    severity: Severity
    reason: str
    keys: tuple[str, ...]


FOREIGN: Final = (
    UnsupportedKey(
        "error",
        "records are copied unchanged, so no transformation can change or drop them; remove it, or leave this flow "
        "to MirrorMaker 2",
        ("transforms", "transforms.", "predicates", "predicates."),
    ),
    UnsupportedKey(
        "note",
        "there are no Connect workers that form a group",
        (
            "dedicated.mode.enable.internal.rest",
            "listeners",
            "rest.",
            "listeners.https.",
            "admin.listeners",
            "admin.listeners.https.",
            "response.http.headers.config",
            "inter.worker.",
            "connect.protocol",
            "group.id",
            "heartbeat.interval.ms",
            "rebalance.timeout.ms",
            "session.timeout.ms",
            "scheduled.rebalance.max.delay.ms",
            "worker.",
            "access.control.",
            "connector.client.config.override.policy",
        ),
    ),
    UnsupportedKey(
        "note",
        "of Connect's topics only the offsets topic is used",
        ("config.storage.", "status.storage.", "offset.storage."),
    ),
    UnsupportedKey(
        "note",
        "progress is written after acknowledgements, at most once per second",
        ("offset.flush.interval.ms", "offset.flush.timeout.ms"),
    ),
    UnsupportedKey(
        "note",
        "delivery is always exactly once, without transactions",
        ("exactly.once.support", "exactly.once.source.support", "transaction.boundary", "transaction.boundary."),
    ),
    UnsupportedKey(
        "note",
        "records are never converted",
        ("key.converter", "key.converter.", "value.converter", "value.converter.", "header.converter"),
    ),
    UnsupportedKey(
        "note",
        "Java classes are not loaded",
        (
            "plugin.path",
            "plugin.discovery",
            "forwarding.admin.class",
            "config.action.reload",
            "connector.class",
            "connector.plugin.version",
        ),
    ),
    UnsupportedKey(
        "note",
        "metrics have different names and always include the source",
        (
            "metric.reporters",
            "metric.names.formats",
            "metrics.",
            "auto.include.jmx.reporter",
            "add.source.alias.to.metrics",
        ),
    ),
    UnsupportedKey(
        "note",
        "topics are created by the replication itself, see replication.factor",
        ("topic.creation.", "topic.creation.enable", "topic.tracking."),
    ),
    UnsupportedKey(
        "note",
        "failed requests are always retried, and errors that stop a partition are always logged",
        (
            "errors.retry.timeout",
            "errors.retry.delay.max.ms",
            "errors.log.enable",
            "errors.log.include.messages",
            "errors.deadletterqueue.context.headers.enable",
        ),
    ),
    UnsupportedKey("note", "it is for Connect tasks, which do not exist here", ("task.", "tasks.max.enforce", "name")),
    UnsupportedKey("note", "calls have fixed timeouts", ("admin.timeout.ms", "consumer.poll.timeout.ms")),
    UnsupportedKey(
        "note",
        "topic configs are always changed incrementally (IncrementalAlterConfigs)",
        ("use.incremental.alter.configs",),
    ),
    UnsupportedKey("note", "config providers need no declaration", ("config.providers", "config.providers.")),
    UnsupportedKey("warning", "is not needed any more, has no effect", ("mirrorless.spark.start.growing.seconds",)),
)

_EXACT: Final = {key: foreign for foreign in FOREIGN for key in foreign.keys if not key.endswith(".")}
_PREFIXES: Final = {key: foreign for foreign in FOREIGN for key in foreign.keys if key.endswith(".")}
NAMES: Final = frozenset(_EXACT)


def foreign(key: str) -> UnsupportedKey | None:
    """Return why this key (without alias or flow) has no effect, None if it is not a key of MirrorMaker 2."""
    found = _EXACT.get(key)
    return found or next((reason for prefix, reason in _PREFIXES.items() if key.startswith(prefix)), None)
