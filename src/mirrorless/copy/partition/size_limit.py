"""Explains by the configs of its topic why the target refuses a batch: it is too large, or has no keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.configs import Origin, topic_configs
from mirrorless.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.configs import ConfigValue
    from mirrorless.settings import Cluster

_KEY: Final = "max.message.bytes"
_POLICY: Final = "cleanup.policy"
_RETENTION: Final = "retention.ms"
_COMPACT: Final = "compact"


class SizeLimits:
    """Reads the configs of remote topics from the target; after a failure, none.

    Blocks the event loop, so it is used only for records that cannot be appended.
    """

    def __init__(self, target: Cluster) -> None:
        self._target = target
        self._admin: Admin | None = None
        self._known: dict[str, Mapping[str, ConfigValue]] = {}
        self._silent = False

    def too_large(self, remote_topic: str, size_bytes: int) -> str:
        """Return which limit a batch of one record exceeds, and what to change."""
        return text(remote_topic, size_bytes, self._configs(remote_topic).get(_KEY))

    def keyless(self, remote_topic: str) -> str:
        """Return that a compacted topic takes no records without a key, and what to change; empty if it is another."""
        policy = self._configs(remote_topic).get(_POLICY)
        if policy is None or _COMPACT not in (policy.value or ""):
            return ""
        return (
            f"{_POLICY} of {remote_topic} is {policy.value}, with which brokers refuse records without a key: set it "
            f"to delete until these records are copied, with {_POLICY} in config.properties.exclude if configs are "
            "synchronized, or set errors.tolerance=all to leave out such records"
        )

    def is_kept_for_ever(self, remote_topic: str) -> bool:
        """Whether retention deletes nothing of a topic; false if its configs cannot be read."""
        kept = self._configs(remote_topic).get(_RETENTION)
        return kept is not None and kept.value == "-1"

    def _configs(self, remote_topic: str) -> Mapping[str, ConfigValue]:
        """The configs of a topic, read once; empty if they cannot be read."""
        if remote_topic not in self._known and not self._silent:
            self._known[remote_topic] = self._ask(remote_topic)
        return self._known.get(remote_topic, {})

    def _ask(self, remote_topic: str) -> Mapping[str, ConfigValue]:
        try:
            self._admin = self._admin or Admin(self._target)
            found, _ = topic_configs(self._admin, [remote_topic])
        except ClusterError:
            self._silent = True
            return {}
        return found.get(remote_topic, {})


def text(remote_topic: str, size_bytes: int, limit: ConfigValue | None) -> str:
    """Return what the limit is, None where it may not be read, and what to change."""
    if limit is None:
        value = "is smaller (to see it, grant DESCRIBE_CONFIGS on the topic)"
    else:
        by_default = "" if limit.origin == Origin.TOPIC else ", the default of the target's brokers (message.max.bytes)"
        value = f"is {limit.value}{by_default}"
    return (
        f"{_KEY} of {remote_topic} {value}; set it to {size_bytes} or more, on the source topic too if configs are "
        "synchronized, or set errors.tolerance=all to leave out such records"
    )
