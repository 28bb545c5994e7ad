"""Explains why the target refuses a batch as too large: by the limit of the topic, or by the fence of an operation."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.configs import Origin, topic_configs
from mirrorless.errors import ClusterError
from mirrorless.metadata.fences import FENCED_BYTES, MAX_BYTES

if TYPE_CHECKING:
    from mirrorless.clusters.configs import ConfigValue
    from mirrorless.settings import Cluster

_VALID_S: Final = 1.0


class _Read(NamedTuple):
    """A limit, None if it may not be read, until the monotonic time at which it is read again."""

    limit: ConfigValue | None
    valid_until: float

    @property
    def is_fence(self) -> bool:
        return self.limit is not None and self.limit.value == FENCED_BYTES


class SizeLimits:
    """Reads the limits of remote topics that refused a batch from the target; each is valid for a second.

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
        self._known |= {topic: _Read(found.get(topic, {}).get(MAX_BYTES), valid_until) for topic in topics}
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
