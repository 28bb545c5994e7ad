"""Explains by its topic's configs why the target refuses a batch: too large, without keys, or fenced."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.configs import Origin, topic_configs
from mirrorless.errors import ClusterError
from mirrorless.metadata.fences import FENCED_BYTES, MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.configs import ConfigValue
    from mirrorless.settings import Cluster

_POLICY: Final = "cleanup.policy"
_RETENTION: Final = "retention.ms"
_COMPACT: Final = "compact"
_VALID_S: Final = 1.0


class _Read(NamedTuple):
    """The configs of a topic, empty if they may not be read, until the monotonic time at which they are read again."""

    configs: Mapping[str, ConfigValue]
    valid_until: float

    @property
    def limit(self) -> ConfigValue | None:
        return self.configs.get(MAX_BYTES)

    @property
    def is_fence(self) -> bool:
        return self.limit is not None and self.limit.value == FENCED_BYTES


class SizeLimits:
    """Reads the configs of remote topics that refused a batch from the target; each is valid for a second.

    Blocks the event loop, so it is used only for records that cannot be appended.
    """

    def __init__(self, target: Cluster) -> None:
        self._target = target
        self._admin: Admin | None = None
        self._known: dict[str, _Read] = {}

    def is_fenced(self, remote_topic: str, *, first: bool) -> bool:
        """Whether a topic has the fence of an operation now; `first`: also if it had none when it was read last."""
        known = self._known.get(remote_topic)
        if not first and (known is None or not known.is_fence):
            return False
        return self._read(remote_topic).is_fence

    def exceeds(self, remote_topic: str, size_bytes: int) -> bool | None:
        """Whether a batch of one record exceeds the limit, None if the limit may not be read."""
        limit = self._read(remote_topic).limit
        return None if limit is None or limit.value is None else size_bytes > int(limit.value)

    def too_large(self, remote_topic: str, size_bytes: int) -> str:
        """Return which limit a batch of one record exceeds, and what to change."""
        return text(remote_topic, size_bytes, self._read(remote_topic).limit)

    def keyless(self, remote_topic: str) -> str:
        """Return that a compacted topic takes no records without a key, and what to change; empty if it is another."""
        policy = self._read(remote_topic).configs.get(_POLICY)
        if policy is None or _COMPACT not in (policy.value or ""):
            return ""
        return (
            f"{_POLICY} of {remote_topic} is {policy.value}, with which brokers refuse records without a key: set it "
            f"to delete until these records are copied, with {_POLICY} in config.properties.exclude if configs are "
            "synchronized, or set errors.tolerance=all to leave out such records"
        )

    def is_kept_for_ever(self, remote_topic: str) -> bool:
        """Whether retention deletes nothing of a topic; false if its configs cannot be read."""
        kept = self._read(remote_topic).configs.get(_RETENTION)
        return kept is not None and kept.value == "-1"

    def _read(self, remote_topic: str) -> _Read:
        """Read all that are too old at once."""
        now = time.monotonic()
        known = self._known.get(remote_topic)
        if known is not None and now < known.valid_until:
            return known
        topics = {remote_topic, *(topic for topic, one in self._known.items() if now >= one.valid_until)}
        try:
            self._admin = self._admin or Admin(self._target)
            found, _ = topic_configs(self._admin, topics)
        except ClusterError:
            found = {}
        valid_until = time.monotonic() + _VALID_S
        self._known |= {topic: _Read(found.get(topic, {}), valid_until) for topic in topics}
        return self._known[remote_topic]


def fenced(remote_topic: str) -> str:
    """Return why a fenced topic refuses appends, and that nothing has to be done."""
    return (
        f"{remote_topic} has the fence of an operation ({MAX_BYTES}={FENCED_BYTES}); its copy waits, and continues "
        "when the fence is removed: `mirrorless operation` lists the operations"
    )


def text(remote_topic: str, size_bytes: int, limit: ConfigValue | None) -> str:
    """Return what the limit is, None where it may not be read, and what to change."""
    if limit is None:
        value = (
            "is smaller (to see it, grant DESCRIBE_CONFIGS on the topic; without it nothing is left out, since the "
            "limit may be the fence of an operation)"
        )
    else:
        by_default = "" if limit.origin == Origin.TOPIC else ", the default of the target's brokers (message.max.bytes)"
        value = f"is {limit.value}{by_default}"
    return (
        f"{MAX_BYTES} of {remote_topic} {value}; set it to {size_bytes} or more, on the source topic too if configs "
        "are synchronized, or set errors.tolerance=all to leave out such records"
    )
