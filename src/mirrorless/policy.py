"""Names remote topics, finds the origin of a topic, and decides which topics are never replicated.

Rules: MirrorMaker 2 4.x, `DefaultReplicationPolicy`, `IdentityReplicationPolicy` and `MirrorSourceConnector`. A policy
works on names only and does no I/O.
"""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Final, Protocol, Self

from mirrorless.errors import ConfigurationError
from mirrorless.renaming import Renaming
from mirrorless.service_topics import service_of
from mirrorless.settings.classes import build
from mirrorless.settings.rename_rules import why_illegal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.settings import Flow

__all__ = ["DefaultReplicationPolicy", "IdentityReplicationPolicy", "ReplicationPolicy", "policy_for"]

HEARTBEATS: Final = "heartbeats"
_EVERY_TOPIC: Final = "*"
"""The name in an ACL, which is no topic's."""
OWN_TOPICS: Final = ("mirrorless-", "mirrorless.")
"""How topics begin that this program makes for itself on the source, to be copied."""


class _Buildable(Protocol):
    """A policy's class, as named by `replication.policy.class`."""

    def of(self, flow: Flow) -> ReplicationPolicy: ...


class ReplicationPolicy(Protocol):
    """The interface of replication policies."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the name that a topic of this source has on the target."""
        ...

    def topic_source(self, topic: str) -> str | None:
        """Return the alias that a remote topic was replicated from, None for a topic of this cluster."""
        ...

    def upstream_topic(self, topic: str) -> str | None:
        """Return the name one hop up, on the cluster `topic_source` returns; None for a topic of this cluster."""
        ...

    def original_topic(self, topic: str) -> str:
        """Return the name on the cluster where the topic was first written."""
        ...

    def heartbeats_topic(self) -> str:
        """Return the name of the heartbeats topic, on every cluster."""
        ...

    def offset_syncs_topic(self, alias: str) -> str:
        """Return the offset syncs topic; the alias is that of the cluster that does not hold it."""
        ...

    def checkpoints_topic(self, alias: str) -> str:
        """Return the topic of checkpoints on the target; the alias is the source's."""
        ...

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Whether this is the heartbeats topic of some cluster, after any number of hops."""
        ...

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Whether this is a checkpoints topic of some source."""
        ...

    def is_internal_topic(self, topic: str) -> bool:
        """Whether the topic belongs to MirrorMaker, Connect or Kafka and is never replicated."""
        ...

    def is_cycle(self, topic: str, target_alias: str) -> bool:
        """Whether the topic already passed through the target."""
        ...


@dataclass(frozen=True, slots=True)
class DefaultReplicationPolicy:
    """Remote topics begin with the alias of their source: `t` of A is `A.t`. Any name with a separator looks remote.

    `internal_separator` is the separator in names of internal topics (KIP-949). `aliases` are known aliases that
    contain the separator: a name that begins with one is read as a topic of that cluster, where MirrorMaker 2 ends the
    alias at its first separator.
    """

    _: KW_ONLY
    separator: str = "."
    internal_separator: str = "."
    aliases: tuple[str, ...] = ()

    @classmethod
    def of(cls, flow: Flow) -> Self:
        """Build the policy from `replication.policy.separator`, the internal separator and the file's aliases."""
        return cls(aliases=_with_separator(flow), **_separators(flow))

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Prepend the alias and the separator."""
        return f"{source_alias}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """Return the longest known alias that the name begins with, else the part before the first separator.

        None for `a.`, empty for `.b`, as Java's split returns it.
        """
        known = [alias for alias in self.aliases if self._begins_with(alias, topic)]
        if known:
            return max(known, key=len)
        # With an empty separator Java's split returns single characters.
        parts = topic.split(self.separator) if self.separator else list(topic)
        while parts and not parts[-1]:  # Java drops empty strings at the end
            parts.pop()
        return parts[0] if len(parts) > 1 else None

    def upstream_topic(self, topic: str) -> str | None:
        """Return the part after the first separator."""
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def original_topic(self, topic: str) -> str:
        """Follow the hops to the first cluster, or until a name stays the same."""
        while (upstream := self.upstream_topic(topic)) is not None and upstream != topic:
            topic = upstream
        return topic

    def heartbeats_topic(self) -> str:
        """Return `heartbeats`, with any separator."""
        return HEARTBEATS

    def offset_syncs_topic(self, alias: str) -> str:
        """Return `mm2-offset-syncs.<alias>.internal`."""
        return f"mm2-offset-syncs{self.internal_separator}{alias}{self._internal_suffix()}"

    def checkpoints_topic(self, alias: str) -> str:
        """Return `<alias>.checkpoints.internal`."""
        return f"{alias}{self._checkpoints_suffix()}"

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Whether the original topic is `heartbeats`."""
        return self.original_topic(topic) == HEARTBEATS

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Whether the name ends as checkpoints topics do."""
        return topic.endswith(self._checkpoints_suffix())

    def is_internal_topic(self, topic: str) -> bool:
        """Whether the name is MirrorMaker's (`mm2*.internal` or checkpoints) or begins with `__` or `.` (KIP-1074)."""
        ours = topic.startswith("mm2") and topic.endswith(self._internal_suffix())
        return ours or self.is_checkpoints_topic(topic) or topic.startswith(("__", "."))

    def is_cycle(self, topic: str, target_alias: str) -> bool:
        """Whether any hop of the topic is the target: `B.t` and `A.B.t` are cycles on the way to B."""
        while (source := self.topic_source(topic)) is not None:
            if source == target_alias:
                return True
            upstream = self.upstream_topic(topic)
            if upstream is None or upstream == topic:
                return False
            topic = upstream
        return False

    def _begins_with(self, alias: str, topic: str) -> bool:
        hop = f"{alias}{self.separator}"
        return topic.startswith(hop) and any(topic[len(hop) :].split(self.separator))

    def _internal_suffix(self) -> str:
        return f"{self.internal_separator}internal"

    def _checkpoints_suffix(self) -> str:
        return f"{self.internal_separator}checkpoints{self._internal_suffix()}"


# Methods of the base are called by its name below: `super()` does not work in the new class that slots=True makes.
@dataclass(frozen=True, slots=True)
class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Topics keep their names, so every topic counts as one of the source, and cycles are not detected.

    Names that end in `heartbeats` follow the default policy, `my-heartbeats` included: MirrorMaker 2 does the same.
    `source_alias` is None for a client that does not know it; then no topic is remote.
    """

    source_alias: str | None

    @classmethod
    def of(cls, flow: Flow) -> Self:
        """Build the policy for the flow's source."""
        return cls(flow.source.alias, aliases=_with_separator(flow), **_separators(flow))

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the same name, except for heartbeats."""
        if _looks_like_heartbeats(topic):
            return DefaultReplicationPolicy.format_remote_topic(self, source_alias, topic)
        return topic

    def topic_source(self, topic: str) -> str | None:
        """Return the configured source for every topic, except for heartbeats."""
        if _looks_like_heartbeats(topic):
            return DefaultReplicationPolicy.topic_source(self, topic)
        return self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        """Return the same name, except for heartbeats."""
        if _looks_like_heartbeats(topic):
            return DefaultReplicationPolicy.upstream_topic(self, topic)
        return topic


def _looks_like_heartbeats(topic: str) -> bool:
    return topic.endswith(HEARTBEATS)


def _separators(flow: Flow) -> dict[str, str]:
    separator = flow.replication_policy_separator
    internal = separator if flow.replication_policy_internal_topic_separator_enabled else "."
    return {"separator": separator, "internal_separator": internal}


def _with_separator(flow: Flow) -> tuple[str, ...]:
    separator = flow.replication_policy_separator
    return tuple(alias for alias in flow.aliases if separator and separator in alias)


_BUILT_IN: Final[Mapping[str, _Buildable]] = {
    "DefaultReplicationPolicy": DefaultReplicationPolicy,
    "IdentityReplicationPolicy": IdentityReplicationPolicy,
}
# Policies of other packages that only keep names: Strimzi's, Amazon's sample, and others by their usual names.
_KEEPS_NAMES: Final = re.compile(
    r"\.IdentityReplicationPolicy$|\.\w*(?:Prefixless|NoPrefix|WithoutPrefix|NoAlias)\w*Policy$"
    r"|^com\.amazonaws\.kafka\.samples\.CustomMM2ReplicationPolicy$",
    re.IGNORECASE,
)
_METHODS: Final = tuple(name for name in vars(ReplicationPolicy) if not name.startswith("_"))


class RenamingPolicy:
    """A policy, applied to the names that `mirrorless.topics.rename` gives: for every caller the same interface.

    What brokers, services and this program keep for themselves has its own name. Names with the hops of other clusters
    are judged before they are renamed, and no rule may hide a hop.
    """

    def __init__(self, flow: Flow, base: ReplicationPolicy) -> None:
        self.base = base
        self._alias, self._target = flow.source.alias, flow.target.alias
        self._others = frozenset(flow.aliases) - {self._alias}
        self._own = frozenset({flow.offset_storage_topic, flow.dead_letter_topic})
        self._names = Renaming(flow, keeps=self._is_kept)
        if (wrong := self._names.never(self._reserved_for)) is not None:
            raise wrong

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Rename the topic, then apply the policy."""
        name = self._names.renamed(topic) if source_alias == self._alias else topic
        return self.base.format_remote_topic(source_alias, topic if name is None else name)

    def topic_source(self, topic: str) -> str | None:
        """Return the alias that the policy reads in the name."""
        return self.base.topic_source(topic)

    def upstream_topic(self, topic: str) -> str | None:
        """Return the name one hop up, as it was before it was renamed, by this flow or by the opposite one."""
        name = self.base.upstream_topic(topic)
        if name is None or (source := self.base.topic_source(topic)) not in (self._alias, self._target):
            return name
        return self._names.origin(name) if source == self._alias else self._names.renamed(name)

    def original_topic(self, topic: str) -> str:
        """Return the name on the first cluster: a topic that was renamed is one of the source itself."""
        name = self.base.upstream_topic(topic)
        upstream = self.upstream_topic(topic)
        return self.base.original_topic(topic) if upstream in (None, name) else upstream

    def heartbeats_topic(self) -> str:
        """Return the policy's."""
        return self.base.heartbeats_topic()

    def offset_syncs_topic(self, alias: str) -> str:
        """Return the policy's."""
        return self.base.offset_syncs_topic(alias)

    def checkpoints_topic(self, alias: str) -> str:
        """Return the policy's."""
        return self.base.checkpoints_topic(alias)

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Ask the policy."""
        return self.base.is_heartbeats_topic(topic)

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Ask the policy."""
        return self.base.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """Ask the policy."""
        return self.base.is_internal_topic(topic)

    def is_cycle(self, topic: str, target_alias: str) -> bool:
        """Ask the policy, by the name on the source."""
        return self.base.is_cycle(topic, target_alias)

    def moved(self, topic: str) -> str:
        """Return the name of a topic of the source on the target, without what the policy adds."""
        name = self._names.renamed(topic)
        return topic if name is None else name

    def home(self, name: str) -> str | None:
        """Return the topic of the source that has such a name on the target; None if there is none."""
        return self._names.origin(name)

    def refusal(self, topic: str) -> str | None:
        """Return why a topic that the flow selects has no name of its own on the target, None if it has."""
        name = self._names.renamed(topic)
        if name is None or (clash := self._names.clash(topic, name)) is not None:
            return self._names.nameless(topic) if name is None else clash
        if name == topic:
            return None
        if (reason := why_illegal(name)) is not None:
            return f"would be named {name}, which {reason}; {self._names.advice}"
        if (owner := self._reserved_for(name)) is not None:
            return f"would be named {name}, an internal topic of {owner}; {self._names.advice}"
        hop = self.base.topic_source(topic)
        if hop in self._others and self.base.topic_source(name) != hop:
            return f"was replicated from {hop}, and its new name, {name}, would hide that; {self._names.advice}"
        return None

    def _is_kept(self, topic: str) -> bool:
        return topic == _EVERY_TOPIC or topic.startswith(OWN_TOPICS) or self._is_reserved(topic)

    def _is_reserved(self, topic: str) -> bool:
        return self.base.is_internal_topic(topic) or self.base.is_heartbeats_topic(topic)

    def _reserved_for(self, name: str) -> str | None:
        """Return what keeps topics of this name for itself; the name is one before the policy."""
        remote = self.base.format_remote_topic(self._alias, name)
        if name.startswith((*OWN_TOPICS, "mm2-")) or remote in self._own:
            return "this program"
        if self._is_reserved(name) or self._is_reserved(remote):
            return "Kafka, Connect or MirrorMaker"
        return service_of(name) if remote == name else None


def why_not_named(topic: str, policy: ReplicationPolicy) -> str | None:
    """Return why a topic that the flow selects has no name on the target, None if it has."""
    return policy.refusal(topic) if isinstance(policy, RenamingPolicy) else None


def keeps_names(policy: ReplicationPolicy, source_alias: str, topic: str) -> bool:
    """Whether the policy adds nothing to the name of a topic; `mirrorless.topics.rename` may change it."""
    return without_renaming(policy).format_remote_topic(source_alias, topic) == topic


def without_renaming(policy: ReplicationPolicy) -> ReplicationPolicy:
    """Return the policy that is applied to names after `mirrorless.topics.rename`."""
    return policy.base if isinstance(policy, RenamingPolicy) else policy


def policy_for(flow: Flow) -> ReplicationPolicy:
    """Build the policy that a flow names, for the names that `mirrorless.topics.rename` gives topics.

    Raises ConfigurationError for a class that cannot be imported or lacks a method, and for rules that cannot be
    followed.
    """
    base = base_policy_for(flow)
    return RenamingPolicy(flow, base) if flow.topics_rename or flow.inverts is not None else base


def base_policy_for(flow: Flow) -> ReplicationPolicy:
    """Build the policy that a flow names: a built-in one by its Java name, or a custom class by import path.

    Raises ConfigurationError for a class that cannot be imported or lacks a method.
    """
    text = flow.replication_policy_class
    try:
        return build(flow, key="replication.policy.class", text=text, built_in=_BUILT_IN, methods=_METHODS)
    except ConfigurationError as error:
        if _KEEPS_NAMES.search(text) is None:
            raise
        reason = f"flow {flow.name}: this Java class only keeps topic names; set IdentityReplicationPolicy"
        raise ConfigurationError(reason, file=error.file, key=error.key, value=error.value) from None
