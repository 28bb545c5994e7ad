"""Explains why the target refuses a batch that is too large, with the limit where it may be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.configs import Origin, topic_configs
from mirrorless.errors import ClusterError

if TYPE_CHECKING:
    from mirrorless.clusters.configs import ConfigValue
    from mirrorless.settings import Cluster

_KEY: Final = "max.message.bytes"


class SizeLimits:
    """Reads the limits of remote topics from the target, each once; after a failure, none.

    Blocks the event loop, so it is used only for records that cannot be appended.
    """

    def __init__(self, target: Cluster) -> None:
        self._target = target
        self._admin: Admin | None = None
        self._known: dict[str, ConfigValue | None] = {}
        self._silent = False

    def too_large(self, remote_topic: str, size_bytes: int) -> str:
        """Return which limit a batch of one record exceeds, and what to change."""
        if remote_topic not in self._known and not self._silent:
            self._known[remote_topic] = self._ask(remote_topic)
        return text(remote_topic, size_bytes, self._known.get(remote_topic))

    def _ask(self, remote_topic: str) -> ConfigValue | None:
        try:
            self._admin = self._admin or Admin(self._target)
            found, _ = topic_configs(self._admin, [remote_topic])
        except ClusterError:
            self._silent = True
            return None
        return found.get(remote_topic, {}).get(_KEY)


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
