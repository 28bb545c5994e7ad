"""Distinguishes a source topic from an earlier topic of the same name that was copied (KIP-516). No I/O.

A recreated topic is another topic. Its offsets, configs and ACLs are unrelated to the copy of the topic before,
until the copy announces an epoch of the new topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.errors import GapKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.progress.records import Known

NOT_COPIED: Final = "the source topic was deleted and recreated, and nothing of the new topic was copied"
NOT_KNOWN: Final = "it is not known at the moment whether the source topic was recreated"


def copied_id(known: Known | None) -> str | None:
    """Id of the source topic of a partition's newest epoch, None if unknown."""
    if known is None or not known.announced:
        return None
    newest = known.announced[max(known.announced)]
    progress = known.progress
    if progress is None:
        return newest.topic_id
    if progress.epoch is None:  # MirrorMaker 2's, which stores no ids
        return newest.topic_id if newest.goes_on_from(progress.last_offset + 1) else None
    return newest.topic_id if progress.epoch <= newest.epoch else None


def remote_id(known: Known | None) -> str | None:
    """Id of the remote topic that a partition's newest epoch was announced for, None if unknown."""
    return None if known is None or not known.announced else known.announced[max(known.announced)].remote_id


def is_another(known: Known | None, topic_id: str | None) -> bool:
    """Whether the source topic, whose id is `topic_id` now, is not the copied one; False if an id is unknown.

    Without `topic_id` the state of the copy decides: whether it halted at a recreated topic.
    """
    if topic_id is None:
        halt = None if known is None else known.standing_halt
        return halt is not None and halt.kind is GapKind.CREATED_AGAIN
    was = copied_id(known)
    return was is not None and was != topic_id


def created_again(
    progress: Mapping[TopicPartition, Known],
    *,
    ids: Mapping[str, str],
    partitions: Mapping[str, int] | None,
    alias: str,
) -> dict[str, str]:
    """Those of the topics in `partitions` that were recreated, each with a line that says so.

    `ids` are the topics' current ids, if known, `partitions` their partition counts, None if the source does not
    answer: records of partitions that the new topic does not have are ignored. `alias` is the source's.
    """
    found: dict[str, str] = {}
    for (topic, partition), known in progress.items():
        if topic in found or (partitions is not None and partition >= partitions.get(topic, 0)):
            continue
        if not is_another(known, ids.get(topic)):
            continue
        which = f" (its id is {ids[topic]}, the copied one had {copied_id(known)})" if topic in ids else ""
        found[topic] = f"{topic} was deleted and recreated on {alias}{which}"
    return found
