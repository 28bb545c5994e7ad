"""What a leader remembers of our fetches: a request names only what changed, an answer only what is new.

Source of the rules: KIP-227 and the Java client's `FetchSessionHandler`. Without it every fetch names every partition
and hears of every one (docs/decisions/0008).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mirrorless.kafka_python import errors as kafka_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from mirrorless.clusters.topic_partition import TopicPartition

    Position = tuple[TopicPartition, int, int]
    Ids = dict[str, UUID]
    """Topic ids by name."""

_NO_SESSION = 0
_EVERYTHING, _LAST = 0, -1
"""Epochs of requests that are not about what changed: the first of a session, and one that no session follows."""
_GREATEST_EPOCH = (1 << 31) - 1
_FAIR_SINCE = 13
"""Version of Fetch that every leader speaks which lets all partitions of a session take turns (KAFKA-12330)."""
NOT_KNOWN = frozenset(
    error.errno
    for error in (
        kafka_errors.FetchSessionIdNotFoundError,
        kafka_errors.InvalidFetchSessionEpochError,
        kafka_errors.FetchSessionTopicIdError,
    )
)
"""Error codes of a leader that forgot the session, or knows another state of it: everything has to be named again."""


class Asked(NamedTuple):
    """One request's part of a session: what is named in it, each with offset and leader epoch, and what is forgotten.

    `ids` are those of all topics of the session, None if the request is by name.
    """

    positions: Sequence[Position]
    ids: Ids | None
    session_id: int = _NO_SESSION
    epoch: int = _LAST
    forgotten: Iterable[TopicPartition] = ()

    @property
    def names_changes(self) -> bool:
        """Whether what is not named stays as it is."""
        return self.epoch > _EVERYTHING


class FetchSession:
    """The session with one leader, for one request at a time: `ask`, and `answered` if there was an answer.

    An answer to a request that did not name everything leaves out partitions that have no new records, no error, and
    the high watermark that was told last. The leader serves those first that waited longest; older ones serve the same
    partitions again and again where there is more than fits an answer, so with them there is no session.
    """

    def __init__(self) -> None:
        self._id = _NO_SESSION
        self._epoch = self._next_epoch = _EVERYTHING
        self._known: dict[TopicPartition, tuple[int, int]] = {}
        self._ids: Ids | None = None
        self._renewed = False
        self._alone = False

    def ask(self, wanted: Sequence[Position], ids: Ids | None) -> Asked:
        """Return what to send to fetch `wanted`, all of it; `ids` are its topics'."""
        if self._alone:
            session_id, self._id = self._id, _NO_SESSION
            return Asked(wanted, ids, session_id, _LAST)
        self._epoch, self._next_epoch = self._next_epoch, _EVERYTHING  # which it stays if there is no answer
        known, self._known = self._known, {place: (offset, epoch) for place, offset, epoch in wanted}
        if self._epoch == _EVERYTHING or self._renewed or not self._has(ids):
            self._renewed = False
            self._epoch, self._ids = _EVERYTHING, None if ids is None else dict(ids)
            return Asked(wanted, self._ids, self._id, _EVERYTHING)
        if self._ids is not None and ids is not None:
            self._ids.update(ids)
        changed = [position for position in wanted if known.get(position[0]) != position[1:]]
        return Asked(changed, self._ids, self._id, self._epoch, known.keys() - self._known.keys())

    def answered(self, session_id: int, *, version: int) -> None:
        """Continue the session that the answer names; a leader that has no room for another one names none.

        `version` is that of the answer.
        """
        self._alone = version < _FAIR_SINCE
        if session_id <= _NO_SESSION or (self._epoch != _EVERYTHING and session_id != self._id):
            self._id = _NO_SESSION
            return
        self._id = session_id
        self._next_epoch = 1 if self._epoch == _GREATEST_EPOCH else self._epoch + 1

    def renew(self, place: TopicPartition) -> None:
        """Have the next request's answer tell of this partition whatever is new; of all others too."""
        self._renewed = self._renewed or place in self._known

    def close(self) -> Asked | None:
        """Return what to send so that the leader need not remember the session, None if it may not be there."""
        there = self._id != _NO_SESSION and self._next_epoch != _EVERYTHING
        return Asked((), None, self._id, _LAST) if there else None

    def _has(self, ids: Ids | None) -> bool:
        """Whether the topics are those of the session: one that was created again is another topic."""
        if ids is None or self._ids is None:
            return ids is self._ids
        return all(self._ids.get(topic, known) == known for topic, known in ids.items())
