"""Protects remote topics whose source topic was deleted and recreated since it was copied. No I/O.

A recreated topic is another topic (KIP-516). Until the copy begins with it, syncing its configs would change, and its
retention delete, the records of the topic before.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

from mirrorless.metadata.actions import AddAcl, AlterConfigs, GrowTopic, RemoveAcl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.metadata.actions import Action, Plan

UNCHECKED: Final = "not checked whether topics were recreated since they were copied"
"""If the progress topic may not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedAgain:
    """Source topics that were recreated since the flow copied them, each with a line that says so.

    `unknown` says why this cannot be determined.
    """

    topics: Mapping[str, str] = field(default_factory=dict)
    unknown: str | None = None


@dataclass(frozen=True, slots=True)
class OwnCopy:
    """A remote topic that has only records that the flow copied to it: its id, and that of its source topic."""

    source_id: str
    remote_id: str


class Copied(Protocol):
    """Knows which source topics a flow copied."""

    def prepare(self) -> None:
        """Read which these are ahead of the first question; what fails is reported later."""

    def created_again(self, partitions: Mapping[str, int]) -> CreatedAgain:
        """Return which of the source topics in `partitions` (topic and partition count) were recreated."""

    def topics(self) -> frozenset[str]:
        """Return the source topics with progress; raises `ClusterUnavailable`."""

    def own_copies(self, remote: Mapping[str, str]) -> Mapping[str, OwnCopy | str]:
        """Prove of remote topics that no one else wrote to them; `remote` is by source topic, and so is the result.

        Returns for one without proof why there is none. Raises `ClusterError`.
        """


def changes_topic(action: Action) -> bool:
    """Whether an action changes an existing remote topic, or access to it; an ACL on a prefix is about names."""
    match action:
        case GrowTopic() | AlterConfigs():
            return True
        case AddAcl(acl=acl) | RemoveAcl(acl=acl):
            return acl.pattern == "LITERAL"
    return False


def left_alone(flow: str, topic: str, remote_topic: str, reason: str) -> str:
    """Return the line that a remote topic is a copy of the source topic before it was recreated, and what to do."""
    return (
        f"{reason}: nothing of the new topic is copied, and {remote_topic} stays as it is (configs, partitions, ACLs, "
        f"group offsets); `mirrorless offsets reset FILE --flow '{flow}' --topic {topic}` copies the new topic after "
        "the records of the old one; with mirrorless.on.gap=continue the copy does that by itself, for every topic"
    )


def without_other_copies(plan: Plan, found: CreatedAgain, *, flow: str, remote: Mapping[str, str]) -> Plan:
    """Remove actions on remote topics of recreated topics, with a note on each; `remote` is by source topic."""
    if found.unknown is not None:
        return replace(plan, notes=(*plan.notes, f"{UNCHECKED}: {found.unknown}"))
    alone = {remote[topic] for topic in found.topics}
    kept = [one for one in plan.actions if one.topic not in alone or not changes_topic(one)]
    notes = [left_alone(flow, topic, remote[topic], reason) for topic, reason in sorted(found.topics.items())]
    return replace(plan, actions=tuple(kept), notes=(*plan.notes, *notes))
