"""The two clusters that engines are measured on: a broker each, with the JVM settings of Kafka's own scripts."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final

from mirrorless.local.broker import SHIPPED_JVM
from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

_SETTINGS: Final = {
    # Otherwise the cleaner looks for work every 15 s only.
    "log.cleaner.backoff.ms": "500",
    # Indexes of 10 MB are set aside for every partition otherwise, and a thousand partitions have many.
    "log.index.size.max.bytes": "1048576",
    # The files of what one engine wrote are otherwise deleted a minute later, while the next one copies.
    "log.segment.delete.delay.ms": "1000",
}


def source_and_target() -> AbstractContextManager[dict[str, EmbeddedCluster]]:
    """Start both; where the benchmark is told to end, they do so too."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return start_clusters(
        [ClusterSpec(name=name, settings=_SETTINGS, jvm=SHIPPED_JVM) for name in ("source", "target")]
    )
