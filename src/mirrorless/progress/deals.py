"""Deals: which function copies which partition, as records beside the marks of runs (`run_marks`).

Without a deal, and for a partition that it does not name, the hash decides. A deal also has what it moved and from
which share: the new owner copies a moved partition once no run of the former one shows an earlier deal in its mark.

Deals of one number of shares count upwards, and the first record with a number is that deal: every reader gets the same
one, since all are in one partition. So each record has a key of its own, or compaction would keep the last.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.topic_partition import TopicPartition

MOST_SHARES: Final = 36
"""Of a deal: a share is one digit."""
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_NONE: Final = "-"


def hash_share(place: TopicPartition, of: int) -> int:
    """Return the share of a partition without a deal; every process gives the same answer."""
    return zlib.crc32(f"{place[0]}-{place[1]}".encode()) % of


@dataclass(frozen=True, slots=True, kw_only=True)
class Deal:
    """Deal `number` among `of` shares; `moved` has the former share of each partition that it moved."""

    number: int
    of: int
    shares: Mapping[TopicPartition, int] = field(default_factory=dict)
    moved: Mapping[TopicPartition, int] = field(default_factory=dict)

    def share_of(self, place: TopicPartition) -> int:
        """Return the share that copies a partition."""
        share = self.shares.get(place)
        return hash_share(place, self.of) if share is None else share

    def moved_to(self, share: int) -> dict[TopicPartition, int]:
        """Return the partitions that it moved to a share, with their former shares."""
        return {place: former for place, former in self.moved.items() if self.share_of(place) == share}

    def takes_from(self, share: int) -> bool:
        """Whether it moved a partition away from a share."""
        return share in self.moved.values()

    @classmethod
    def parse(cls, names: dict[str, Any], said: dict[str, Any]) -> Deal:
        """Read a record; raises KeyError, TypeError or ValueError."""
        try:
            content = json.loads(zlib.decompress(base64.b64decode(said["dealt"], validate=True)))
        except zlib.error as error:
            raise ValueError from error
        of = int(names["of"])
        return cls(
            number=int(names["deal"]),
            of=of,
            shares=_partitions(content["shares"], of),
            moved=_partitions(content["moved"], of),
        )

    def to_json(self) -> bytes:
        """Return the record's value: a digit a partition, compressed."""
        content = {"shares": _by_topic(self.shares), "moved": _by_topic(self.moved)}
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        return json.dumps({"dealt": base64.b64encode(zlib.compress(text.encode(), 9)).decode()}).encode()


def _by_topic(shares: Mapping[TopicPartition, int]) -> dict[str, str]:
    topics: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for (topic, partition), share in shares.items():
        topics[topic][partition] = share
    return {
        topic: "".join(_DIGITS[found[one]] if one in found else _NONE for one in range(max(found) + 1))
        for topic, found in sorted(topics.items())
    }


def _partitions(topics: dict[str, str], of: int) -> dict[TopicPartition, int]:
    found = {
        (topic, partition): int(digit, MOST_SHARES)
        for topic, digits in topics.items()
        for partition, digit in enumerate(digits)
        if digit != _NONE
    }
    if any(share >= of for share in found.values()):
        raise ValueError(of)
    return found
