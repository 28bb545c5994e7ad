"""Which topics may be read from followers, with `client.rack` (KIP-392): those that are not compacted."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.client_settings import client_rack
from mirrorless.clusters.compaction import CLEANUP_POLICY, COMPACT
from mirrorless.clusters.configs import topic_configs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Set

    from mirrorless.clusters.admin import Admin, Refusal
    from mirrorless.settings import Flow

_KNOWN_FOR_S: Final = 600.0
_log = logging.getLogger(__name__)


class FollowableTopics:
    """Knows `cleanup.policy` of the source's topics for ten minutes; asks nothing without `client.rack`.

    Brokers compact their replicas independently. After a crash the copy counts the leader's records to find its
    position, and so does the translation of offsets: of a compacted topic a follower may have sent fewer.
    """

    def __init__(self, flow: Flow, admin: Admin, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rack = client_rack(flow.source)
        self._admin = admin
        self._clock = clock
        self._until = 0.0
        self._compacted: dict[str, bool] = {}
        self._name = flow.name
        self._told = False

    def among(self, topics: Iterable[str]) -> Set[str]:
        """Return those that may be read from followers; raises `ClusterUnavailable`.

        A topic whose configs may not be described is read from leaders, which is logged.
        """
        if self._rack is None:
            return frozenset()
        if self._clock() >= self._until:
            self._compacted.clear()
            self._until = self._clock() + _KNOWN_FOR_S
        wanted = set(topics)
        if missing := sorted(wanted - self._compacted.keys()):
            configs, refused = topic_configs(self._admin, missing)
            for topic in missing:
                policy = configs[topic].get(CLEANUP_POLICY) if topic in configs else None
                self._compacted[topic] = policy is None or COMPACT in (policy.value or COMPACT)
            self._note(refused)
        return {topic for topic in wanted if not self._compacted[topic]}

    def _note(self, refused: Mapping[str, Refusal]) -> None:
        if refused and not self._told:
            self._told = True
            topic, refusal = next(iter(refused.items()))
            _log.warning(
                "%s: %d topics are read from their leaders, because their cleanup.policy is not visible, among them "
                "%s: %s; grant DESCRIBE_CONFIGS on them",
                self._name,
                len(refused),
                topic,
                refusal.text,
            )
