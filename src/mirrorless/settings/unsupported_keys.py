"""Settings of MirrorMaker 2 and Connect that have no counterpart here, and why.

`UnsupportedKey.severity`: a `note` changes nothing about what is replicated, a `warning` may, and what would certainly
change it is an `error`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Severity = Literal["note", "warning", "error"]


@dataclass(frozen=True, slots=True)
class UnsupportedKey:
    """Keys (a name that ends in `.` is a prefix) and the one line that says why they have no effect."""

    severity: Severity
    reason: str
    keys: tuple[str, ...]


FOREIGN: Final = (
    UnsupportedKey(
        "error",
        "records are copied as they are, so nothing can change or drop them on the way; remove it, or leave this flow "
        "to MirrorMaker 2",
        ("transforms", "transforms.", "predicates", "predicates."),
    ),
    UnsupportedKey(
        "note",
        "there are no Connect workers that have to find and talk to each other",
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
        "of Connect's topics only the one for progress is in use",
        ("config.storage.", "status.storage.", "offset.storage."),
    ),
    UnsupportedKey(
        "note",
        "progress is written with every acknowledgement, at most once a second",
        ("offset.flush.interval.ms", "offset.flush.timeout.ms"),
    ),
    UnsupportedKey(
        "note",
        "every copy is exactly once, without transactions",
        ("exactly.once.support", "exactly.once.source.support", "transaction.boundary", "transaction.boundary."),
    ),
    UnsupportedKey(
        "note",
        "records are never converted",
        ("key.converter", "key.converter.", "value.converter", "value.converter.", "header.converter"),
    ),
    UnsupportedKey(
        "note",
        "no Java class is loaded",
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
        "metrics have names of their own and always say the source",
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
        "a failed request is always tried again, and what stops a partition is always logged",
        (
            "errors.retry.timeout",
            "errors.retry.delay.max.ms",
            "errors.log.enable",
            "errors.log.include.messages",
            "errors.deadletterqueue.context.headers.enable",
        ),
    ),
    UnsupportedKey(
        "note", "it is given to tasks of Connect, of which there are none", ("task.", "tasks.max.enforce", "name")
    ),
    UnsupportedKey("note", "calls have a time limit of their own", ("admin.timeout.ms", "consumer.poll.timeout.ms")),
    UnsupportedKey(
        "note",
        "topic settings are always changed one by one (IncrementalAlterConfigs)",
        ("use.incremental.alter.configs",),
    ),
    UnsupportedKey(
        "note", "which provider a reference names is known without it", ("config.providers", "config.providers.")
    ),
)

_EXACT: Final = {key: foreign for foreign in FOREIGN for key in foreign.keys if not key.endswith(".")}
_PREFIXES: Final = {key: foreign for foreign in FOREIGN for key in foreign.keys if key.endswith(".")}
NAMES: Final = frozenset(_EXACT)


def foreign(key: str) -> UnsupportedKey | None:
    """Return why this key (without alias or flow) has no effect, None if it is none of MirrorMaker 2's."""
    found = _EXACT.get(key)
    return found or next((reason for prefix, reason in _PREFIXES.items() if key.startswith(prefix)), None)
