"""Changes to a target: frozen actions, each with its reason, and the plan that consists of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.acls import Acl
    from mirrorless.selection import LeftOut


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic:
    """Create a topic on the target, or `on_source`; `replication_factor` -1 is the broker's default.

    `factor_key` is the setting of the replication factor, `factor_is_default` says that it is not set.
    """

    topic: str
    partitions: int
    replication_factor: int
    reason: str
    config: Mapping[str, str] = field(default_factory=dict)
    on_source: bool = False
    factor_key: str = "replication.factor"
    factor_is_default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowTopic:
    """Raise a topic's partition count on the target."""

    topic: str
    partitions: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDifference:
    """A config to set on the target's topic, or with `delete` to delete.

    `upstream` is the source's value, `downstream` the target's current value.
    """

    name: str
    upstream: str | None
    downstream: str | None
    delete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigs:
    """Set and delete configs of one topic on the target; all others are unchanged."""

    topic: str
    differences: tuple[ConfigDifference, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _AclAction:
    acl: Acl
    reason: str

    @property
    def topic(self) -> str:
        """The resource of the ACL."""
        return self.acl.topic


@dataclass(frozen=True, slots=True, kw_only=True)
class AddAcl(_AclAction):
    """Add an ACL on the target; `recorded` says to record that this flow added it."""

    recorded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveAcl(_AclAction):
    """Remove from the target an ACL that this flow added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetAcl(_AclAction):
    """Delete the record that this flow added an ACL, which was removed by others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDifference:
    """What the target has otherwise than the source, beside topics: `kind` is the name of a kind, `on` the object.

    `text` says in one line what would make both the same. `change` is what the kind applies, None if nothing does;
    then `reason` says why.
    """

    kind: str
    on: str
    what: str
    source_has: str
    target_has: str
    text: str
    reason: str
    change: Mapping[str, Any] | None = None

    @property
    def topic(self) -> str:
        """The object, which is a topic only for some kinds."""
        return self.on


Action = CreateTopic | GrowTopic | AlterConfigs | AddAcl | RemoveAcl | ForgetAcl | ClusterDifference


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutTopic:
    """A topic of the source that is not replicated."""

    topic: str
    kind: LeftOut
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A topic (or the resource of an ACL, `*` for all) for which no action could be planned.

    `uncopied` says that the topic may therefore lack partitions on the target.
    """

    topic: str
    reason: str
    uncopied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Actions that make a flow's target match its source; `notes` are lines about what was not checked, and why.

    `warnings` are lines about settings that could not be followed exactly; `not_moved` is what differs between the
    clusters and is not changed by the flow.
    """

    actions: tuple[Action, ...] = ()
    left_out: tuple[LeftOutTopic, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    not_moved: tuple[ClusterDifference, ...] = ()


def as_fields(action: Action) -> dict[str, Any]:
    """Return an action as JSON values: its kind under `action`, then its fields."""
    fields = asdict(action)
    for one in ("factor_key", "factor_is_default"):
        fields.pop(one, None)
    return {"action": type(action).__name__} | fields
