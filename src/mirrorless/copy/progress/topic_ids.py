"""Tells a source topic from an earlier one of the same name that its remote topic is a copy of (KIP-516). No I/O.

A topic that is deleted and created again is another topic. Its offsets, configs and ACLs say nothing about the copy of
the topic before it, until the copy announces an epoch of the new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.errors import GapKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.topics import Place
    from mirrorless.copy.progress.records import Known

NOT_COPIED: Final = "the source topic was deleted and created again, and nothing of the new topic was copied"
NOT_KNOWN: Final = "the source does not say at the moment whether the topic was created again"


def copied_id(known: Known | None) -> str | None:
    """Id of the source topic that a partition's newest epoch is a copy of, None where it is not known."""
    if known is None or not known.announced:
        return None
    newest = known.announced[max(known.announced)]
    progress = known.progress
    if progress is None:
        return newest.topic_id
    if progress.epoch is None:  # MirrorMaker 2's, which keeps no ids
        return newest.topic_id if newest.goes_on_from(progress.last_offset + 1) else None
    return newest.topic_id if progress.epoch <= newest.epoch else None


def is_another(known: Known | None, topic_id: str | None) -> bool:
    """Whether the source topic, whose id is `topic_id` now, is not the copied one; False where an id is not known.

    Without `topic_id` the copy's own finding counts: that it halted at a topic that was created again.
    """
    if topic_id is None:
        halt = None if known is None else known.standing_halt
        return halt is not None and halt.kind is GapKind.CREATED_AGAIN
    was = copied_id(known)
    return was is not None and was != topic_id


def created_again(
    progress: Mapping[Place, Known], *, ids: Mapping[str, str], partitions: Mapping[str, int] | None, alias: str
) -> dict[str, str]:
    """Those of the topics in `partitions` that are not the copied ones, each with a line that says so.

    `ids` are the topics' ids now, where they are known, `partitions` how many they have, None where the source does not
    answer: what is known of partitions that the new topic does not have counts no longer. `alias` is the source's.
    """
    found: dict[str, str] = {}
    for (topic, partition), known in progress.items():
        if topic in found or (partitions is not None and partition >= partitions.get(topic, 0)):
            continue
        if not is_another(known, ids.get(topic)):
            continue
        which = f": its id is {ids[topic]}, the copied topic has the id {copied_id(known)}" if topic in ids else ""
        found[topic] = f"{topic} was deleted and created again on {alias}{which}"
    return found
