"""Remote topics that are the copy of another source topic than there is now: they are left alone. No I/O.

A topic that is deleted and created again is another topic (KIP-516). Until the copy begins with it, its configs would
change, and its retention delete, what was copied of the topic before.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

from mirrorless.metadata.actions import AddAcl, AlterConfigs, GrowTopic, RemoveAcl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.metadata.actions import Action, Plan

UNCHECKED: Final = "it is not checked whether topics were created again since they were copied"
"""Where the progress topic may not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedAgain:
    """Source topics that are not the ones that the flow has copied, each with a line that says so.

    `unknown` says why that cannot be known.
    """

    topics: Mapping[str, str] = field(default_factory=dict)
    unknown: str | None = None


class Copied(Protocol):
    """Whoever knows which source topics a flow has copied."""

    def created_again(self, partitions: Mapping[str, int]) -> CreatedAgain:
        """Return which of the source topics in `partitions` (how many each has) are not the copied ones."""


def changes_topic(action: Action) -> bool:
    """Whether an action changes a remote topic that is there, or who may use it; an ACL on a prefix is about names."""
    match action:
        case GrowTopic() | AlterConfigs():
            return True
        case AddAcl(acl=acl) | RemoveAcl(acl=acl):
            return acl.pattern == "LITERAL"
    return False


def left_alone(remote_topic: str, reason: str) -> str:
    """Say that a remote topic is the copy of another source topic than there is now, and what to do."""
    return (
        f"{remote_topic} is left alone (configs, partitions, ACLs, group offsets): {reason}; set mirrorless.on.gap="
        "continue to copy the new topic behind the old copy, or run `mirrorless offsets reset`"
    )


def without_other_copies(plan: Plan, found: CreatedAgain, *, remote: Mapping[str, str]) -> Plan:
    """Take back what would change the copies of other topics, with a note on each; `remote` is by source topic."""
    if found.unknown is not None:
        return replace(plan, notes=(*plan.notes, f"{UNCHECKED}: {found.unknown}"))
    alone = {remote[topic]: reason for topic, reason in found.topics.items()}
    kept = [one for one in plan.actions if one.topic not in alone or not changes_topic(one)]
    notes = [left_alone(name, reason) for name, reason in sorted(alone.items())]
    return replace(plan, actions=tuple(kept), notes=(*plan.notes, *notes))
