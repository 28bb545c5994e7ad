"""Finds source topics that were deleted and recreated since the flow copied them; asks both clusters."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from mirrorless.clusters.topics import topic_ids
from mirrorless.errors import ClusterUnavailable
from mirrorless.metadata.recreated_topics import CreatedAgain
from mirrorless.progress.own_copies import own_copies
from mirrorless.progress.topic import ProgressTopic
from mirrorless.progress.topic_ids import copied_id, created_again

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.metadata.planning import Admins
    from mirrorless.metadata.recreated_topics import OwnCopy
    from mirrorless.progress.records import Known
    from mirrorless.settings import Flow


class CopiedTopics:
    """The source topics that a flow has copied, from the progress topic; a kept instance reads only new records."""

    def __init__(self, flow: Flow, admins: Admins) -> None:
        self._flow = flow
        self._admins = admins
        self._progress: ProgressTopic | None = None

    def prepare(self) -> None:
        """Read the progress ahead of `created_again`, which reports what fails."""
        with suppress(ClusterUnavailable):
            self._topic().read()
            learn_renamed(self._flow, self._admins.source)

    def known(self) -> Mapping[TopicPartition, Known]:
        """Return the progress of all partitions; nothing where it may not be read. Raises `ClusterUnavailable`."""
        try:
            return self._topic().read()
        except ClusterUnavailable as error:
            if not _is_refused(error):
                raise
            return {}

    def created_again(self, partitions: Mapping[str, int] | None) -> CreatedAgain:
        """Return which of the source topics in `partitions` (topic and partition count) were recreated.

        None is for an unavailable source: then only those are known at which the copy has halted. Raises
        `ClusterUnavailable`; a progress topic that may not be read is a result.
        """
        topic = self._topic()
        try:
            progress = topic.read()
        except ClusterUnavailable as error:
            if not _is_refused(error):
                raise
            return CreatedAgain(unknown=str(error))
        if topic.refused is not None:
            return CreatedAgain(unknown=topic.refused)
        ids: Mapping[str, str] = {}
        if partitions is not None:
            copied = {topic for (topic, _), known in progress.items() if topic in partitions and copied_id(known)}
            ids, _ = topic_ids(self._admins.source, copied)
        alias = self._flow.source.alias
        return CreatedAgain(topics=created_again(progress, ids=ids, partitions=partitions, alias=alias))

    def topics(self) -> frozenset[str]:
        """Return the source topics with progress; none if it may not be read. Raises `ClusterUnavailable`."""
        return frozenset(topic for topic, _ in self.known())

    def own_copies(self, remote: Mapping[str, str]) -> Mapping[str, OwnCopy | str]:
        """Return the remote topics that provably have no records of others, or why that is not known.

        `remote` is by source topic, and so is the result. Raises `ClusterError`.
        """
        return own_copies(self._flow, self._admins, remote, self.known())

    def _topic(self) -> ProgressTopic:
        if self._progress is None:
            self._progress = ProgressTopic(self._flow, self._admins.target, must_exist=False)
        return self._progress

    def close(self) -> None:
        """Close the connection."""
        if self._progress is not None:
            self._progress.close()


def learn_renamed(flow: Flow, source: Admin) -> None:
    """Read which topics the opposite flow has copied, if this one gives them their names back.

    Raises `ClusterUnavailable`.
    """
    if flow.inverts is not None:
        with closing(ProgressTopic(flow.inverts, source, must_exist=False)) as opposite:
            opposite.read()


def _is_refused(error: ClusterUnavailable) -> bool:
    cause = error.__cause__
    return isinstance(cause, KafkaException) and cause.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
