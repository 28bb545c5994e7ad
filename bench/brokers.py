"""The two clusters that engines are measured on: a broker each, with the JVM settings of Kafka's own scripts."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final

from mirrorless.local.broker import SHIPPED_JVM, SecureListener
from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

LINKED: Final = "LINKED"
"""The listener that a link is before; it advertises the link's port."""

_SETTINGS: Final = {
    # Otherwise the cleaner looks for work every 15 s only.
    "log.cleaner.backoff.ms": "500",
    # Indexes of 10 MB are set aside for every partition otherwise, and a thousand partitions have many.
    "log.index.size.max.bytes": "1048576",
    # The files of what one engine wrote are otherwise deleted a minute later, while the next one copies.
    "log.segment.delete.delay.ms": "1000",
}


def source_and_target(
    link_ports: Mapping[str, int] | None = None, *, source: Mapping[str, str] | None = None
) -> AbstractContextManager[dict[str, EmbeddedCluster]]:
    """Start both; they end with the benchmark.

    Clusters that are named in `link_ports` have the listener `LINKED` beside the plain one. `source` are settings
    of the source's broker.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    listeners = {
        name: (SecureListener(name=LINKED, protocol="PLAINTEXT", settings={}, advertised=(port,)),)
        for name, port in (link_ports or {}).items()
    }
    own = {"source": dict(source or {}), "target": {}}
    return start_clusters(
        [
            ClusterSpec(name=name, settings=_SETTINGS | own[name], jvm=SHIPPED_JVM, secure=listeners.get(name, ()))
            for name in ("source", "target")
        ]
    )
