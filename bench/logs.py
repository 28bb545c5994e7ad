"""What lies on the disk of a cluster's only broker: looking at it costs the broker nothing, which asking it would."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mirrorless.local.embedded_kafka import EmbeddedCluster

_FIRST_SEGMENT = f"{0:020}.log"
_PATIENCE_S = 120.0
_LOOK_S = 0.1


class FirstSegments:
    """The logs of topics, each of so many partitions, as long as none has begun a second segment (1 GiB)."""

    def __init__(self, cluster: EmbeddedCluster, partitions: Mapping[str, int]) -> None:
        folder = next(path for path in cluster.directory.glob("broker-*") if path.is_dir())
        self._paths = [
            str(folder / f"{topic}-{number}" / _FIRST_SEGMENT)
            for topic, count in partitions.items()
            for number in range(count)
        ]

    def size_bytes(self) -> int:
        """Bytes of all of them; those that are not there count as empty."""
        total = 0
        for path in self._paths:
            with suppress(FileNotFoundError):
                total += os.stat(path).st_size  # noqa: PTH116 -- thousands of them in a look
        return total


def until_made(cluster: EmbeddedCluster, topic: str, partitions: int) -> None:
    """Wait until a new topic's logs are all there: the broker makes them behind its answer, some hundreds a second."""
    _until(cluster, topic, partitions)


def until_gone(cluster: EmbeddedCluster, topic: str) -> None:
    """Wait until nothing of a deleted topic is left on the disk."""
    _until(cluster, topic, 0)


def _until(cluster: EmbeddedCluster, topic: str, folders: int) -> None:
    given_up = time.monotonic() + _PATIENCE_S
    while (found := sum(1 for _ in cluster.directory.glob(f"broker-*/{topic}-*"))) != folders:
        assert time.monotonic() < given_up, f"{topic}: {found} logs, not {folders}"
        time.sleep(_LOOK_S)


def stored_bytes(cluster: EmbeddedCluster, topic: str) -> int:
    """Bytes of a topic's logs."""
    return sum(log.st_size for log in _logs(cluster, topic))


def appended_at(cluster: EmbeddedCluster, topic: str) -> float:
    """Seconds since 1970 at which the broker last wrote to a topic's logs, as the file system has it."""
    return max(log.st_mtime for log in _logs(cluster, topic))


def _logs(cluster: EmbeddedCluster, topic: str) -> Iterator[os.stat_result]:
    for log in cluster.directory.glob(f"**/{topic}-*/*.log"):
        with suppress(FileNotFoundError):  # the cleaner has just replaced it
            yield log.stat()
