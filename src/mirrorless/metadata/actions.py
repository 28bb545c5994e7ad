"""What can be changed on a target: frozen actions, each with its reason, and the plan they make up."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.acls import Acl
    from mirrorless.policy import LeftOut


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic:
    """Create a topic on the target, or `on_source`; `replication_factor` -1 leaves it to the brokers.

    `factor_key` is the setting that it is from, `factor_is_default` says that nothing sets it.
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
    """A config whose value the target's topic shall get, or with `delete` lose.

    `upstream` is the source's value, `downstream` the target's as it is now.
    """

    name: str
    upstream: str | None
    downstream: str | None
    delete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigs:
    """Set and delete configs of one topic on the target; all others stay as they are."""

    topic: str
    differences: tuple[ConfigDifference, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _AclAction:
    acl: Acl
    reason: str

    @property
    def topic(self) -> str:
        """What the ACL is about."""
        return self.acl.topic


@dataclass(frozen=True, slots=True, kw_only=True)
class AddAcl(_AclAction):
    """Add an ACL on the target; `recorded` says to remember that this flow did."""

    recorded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveAcl(_AclAction):
    """Remove from the target an ACL that this flow had added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetAcl(_AclAction):
    """Remember no longer that this flow had added an ACL, which somebody else has removed."""


Action = CreateTopic | GrowTopic | AlterConfigs | AddAcl | RemoveAcl | ForgetAcl


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutTopic:
    """A topic of the source that is not replicated."""

    topic: str
    kind: LeftOut
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A topic (or what an ACL is about, `*` for all) for which it could not be found out what to do.

    `uncopied` says that the topic may lack partitions on the target for it.
    """

    topic: str
    reason: str
    uncopied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a flow's target lacks; `notes` are lines about what was not looked at, and why.

    `warnings` are lines about what is done otherwise than it is set.
    """

    actions: tuple[Action, ...] = ()
    left_out: tuple[LeftOutTopic, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def as_fields(action: Action) -> dict[str, Any]:
    """Return an action as JSON has it: its kind under `action`, then its fields."""
    fields = asdict(action)
    for one in ("factor_key", "factor_is_default"):
        fields.pop(one, None)
    return {"action": type(action).__name__} | fields
