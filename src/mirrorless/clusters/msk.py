"""Recognises clusters of Amazon MSK by the names of their brokers.

MSK Serverless has logins by IAM only and no ACLs of Kafka; topics have few configs ("Configuration properties for MSK
Serverless clusters" in the MSK developer guide), and 120 partitions of all compacted topics together ("Quota for
serverless clusters").
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mirrorless.settings import Cluster

_NAME: Final = re.compile(
    r"\.kafka(?P<serverless>-serverless)?\.(?P<region>[a-z0-9-]+)\.(?:amazonaws|api\.aws)", re.IGNORECASE
)
COMPACTED_PARTITIONS: Final = 120
_ON_CREATION: Final = frozenset({"cleanup.policy"})
_CONFIGS: Final = frozenset(
    {
        "compression.type",
        "max.message.bytes",
        "message.timestamp.difference.max.ms",
        "message.timestamp.type",
        "retention.bytes",
        "retention.ms",
    }
)


def region_of(servers: str) -> str | None:
    """Return the region of brokers of MSK, None for others."""
    found = _NAME.search(servers)
    return found["region"].lower() if found else None


def regions_in(text: str) -> frozenset[str]:
    """Return the regions of all brokers of MSK that a text names, such as a configuration."""
    return frozenset(found["region"].lower() for found in _NAME.finditer(text))


def is_serverless(cluster: Cluster) -> bool:
    """Whether a cluster is MSK Serverless."""
    found = _NAME.search(cluster.bootstrap_servers)
    return found is not None and found["serverless"] is not None


def accepts(name: str, *, on_creation: bool) -> bool:
    """Whether MSK Serverless lets a topic have a config."""
    return name in _CONFIGS or (on_creation and name in _ON_CREATION)
