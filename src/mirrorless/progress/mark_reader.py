"""Follows the marks of runs in the progress topic: one partition, read once and then as records arrive."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from mirrorless.clusters.client_settings import SOON_RECONNECTED
from mirrorless.clusters.connection_errors import grant
from mirrorless.clusters.consumers import reader, waiting
from mirrorless.errors import ClusterUnavailable
from mirrorless.progress.run_marks import MARKS_PARTITION, RunMarks

if TYPE_CHECKING:
    from confluent_kafka import Message

    from mirrorless.settings import Flow

_SILENCE_S: Final = 60.0
_WAIT_S: Final = 0.2
_A_TIME: Final = 10_000
_BUFFER_KB: Final = 2_048
_FETCH_WAIT_MS: Final = 100
"""The request for the partition's end waits for the fetch before it."""
_LOST: Final = frozenset({KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET})
"""The topic was truncated, or deleted and recreated."""
_PASSING: Final = frozenset(
    {
        KafkaError.GROUP_AUTHORIZATION_FAILED,  # no offset is committed with this group
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._RESOLVE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
    }
)
"""Errors after which librdkafka retries by itself; the silence that follows is bounded."""


class MarkReader:
    """The marks of the flow's runs, and the choice of its engine, as `marks`, which the calls below update.

    While the topic is read from its beginning again, as after an error, `marks` are those of before. A cluster that
    does not answer for `patience_s` is unavailable. `is_missing` says that topic discovery has not created the topic
    yet; then there are no marks.
    """

    def __init__(self, flow: Flow, *, patience_s: float = _SILENCE_S) -> None:
        self._patience_s = patience_s
        self.is_missing = False
        self._alias = flow.source.alias
        self.marks, self._read_anew = RunMarks(self._alias), RunMarks(self._alias)
        self._topic = flow.offset_storage_topic
        self._place = TopicPartition(self._topic, MARKS_PARTITION, OFFSET_BEGINNING)
        self._cluster = flow.target
        self._consumer: Consumer | None = None
        self._read_to = 0
        self._was_read = False

    def read(self) -> RunMarks:
        """Read to the partition's current end; raises `ClusterUnavailable`."""
        if not self._was_read:
            return self._read_to_the_end()
        assert self._consumer is not None
        try:
            _, end = self._consumer.get_watermark_offsets(self._place, timeout=self._patience_s)
        except KafkaException as error:
            raise self._unavailable(error.args[0]) from error
        if end < self._read_to:  # the topic was deleted and recreated
            self.close()
        silent_at = time.monotonic() + self._patience_s
        while self._was_read and self._read_to < end:
            self._take(_WAIT_S)
            self._refuse_silence(silent_at)
        return self.marks if self._was_read else self._read_to_the_end(exists=True)

    def _read_to_the_end(self, *, exists: bool = False) -> RunMarks:
        """Read from the beginning; `exists` says that the topic does, though the broker may not know it yet."""
        silent_at = time.monotonic() + self._patience_s
        while not self._take(_WAIT_S):
            if self.is_missing and not exists:
                return self.marks
            self._refuse_silence(silent_at)
        return self.marks

    def _refuse_silence(self, silent_at: float) -> None:
        if time.monotonic() > silent_at:
            self.close()
            reason = f"{self._topic} could not be read to its end in {self._patience_s:.0f} s"
            raise ClusterUnavailable(reason, cluster=self._cluster.alias)

    def wait(self, seconds: float) -> RunMarks:
        """Take what arrives within so many seconds, returning after the first; raises `ClusterUnavailable`."""
        self._take(seconds)
        return self.marks

    def close(self) -> None:
        """Close the connection; the next read begins from scratch."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
        self._read_anew = RunMarks(self._alias)
        self._was_read = False
        self._read_to = 0

    def _take(self, seconds: float) -> bool:
        """Take available messages; returns whether the partition's end was reported."""
        ended = False
        consumer = self._consumer or self._open()
        if consumer is None:
            time.sleep(seconds)
            return False
        for message in waiting(consumer, _A_TIME, seconds=seconds):
            error = message.error()
            if error is None:
                self._take_record(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._read_to = max(self._read_to, message.offset() or 0)
                ended = True
                if not self._was_read:  # from here on, marks are new ones
                    self.marks, self._was_read = self._read_anew, True
            elif error.code() in _LOST:
                self.close()
                return False
            elif error.code() not in _PASSING:
                raise self._unavailable(error)
        return ended

    def _unavailable(self, error: KafkaError) -> ClusterUnavailable:
        """Return the error of a call; closes the connection."""
        self.close()
        reason = f"{self._topic}: {error.str()}{grant(error.code(), 'READ on it')}"
        return ClusterUnavailable(reason, cluster=self._cluster.alias)

    def _take_record(self, message: Message) -> None:
        offset = message.offset() or 0
        self._read_to = offset + 1
        marks = self.marks if self._was_read else self._read_anew
        marks.take(message.key(), message.value(), offset, now=time.monotonic(), is_news=self._was_read)

    def _open(self) -> Consumer | None:
        """Connect; returns None if the topic does not exist."""
        self._consumer = reader(
            self._cluster,
            queued_max_messages_kbytes=_BUFFER_KB,
            fetch_wait_max_ms=_FETCH_WAIT_MS,
            **SOON_RECONNECTED,
        )
        # Otherwise the partition waits for the library's next metadata refresh.
        try:
            topic = self._consumer.list_topics(self._topic, timeout=self._patience_s).topics[self._topic]
        except KafkaException as error:
            raise self._unavailable(error.args[0]) from error
        self.is_missing = topic.error is not None and topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        if self.is_missing:
            self.close()
            self.marks = RunMarks(self._alias)
            return None
        self._consumer.assign([self._place])
        return self._consumer
