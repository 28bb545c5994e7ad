"""Plans which ACLs to add to remote topics, and which of those that this flow added to remove. No I/O.

Rules: `MirrorSourceConnector.syncTopicAcls` of MirrorMaker 2. Only the flow writes to a remote topic, so ALLOW WRITE is
not replicated and ALLOW ALL becomes ALLOW READ; every DENY is replicated unchanged.

Unlike MirrorMaker 2, a literal `*` is not replicated: it is Kafka's pattern for every topic, not the name of one. With
unchanged names it would open every topic of the target; renamed, as `A.*`, it is an ACL on a topic that cannot exist.
A prefix that keeps its name is not replicated either if the target has other topics with this prefix.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from mirrorless.filters import replicated_topics
from mirrorless.metadata.actions import Action, AddAcl, ForgetAcl, Problem, RemoveAcl
from mirrorless.policy import policy_for, without_renaming

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.acls import Acl
    from mirrorless.policy import ReplicationPolicy
    from mirrorless.settings import Flow

_EVERY_TOPIC: Final = "*"
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AclSnapshot:
    """The topic ACLs of both ends; `created` are those this flow added, None if nothing may be removed.

    `others` are topics of the target that the source does not have.
    """

    source: frozenset[Acl]
    target: frozenset[Acl]
    created: frozenset[Acl] | None = None
    others: frozenset[str] = frozenset()


def plan_acls(flow: Flow, *, acls: AclSnapshot, remote: Mapping[str, str]) -> tuple[list[Action], list[Problem]]:
    """Compare the ACLs of both ends; `remote` has the replicated topics with their remote topics.

    An ACL is removed only if this flow added it and no ACL of the source results in it any more, whatever the filters
    select now: a topic that is excluded from a flow keeps its ACLs, as it keeps its data.
    """
    rules = _AclRules(flow, policy_for(flow), acls.others)
    translated = {acl: rules.renamed(acl) for acl in sorted(acls.source) if rules.may_go_over(acl)}
    narrow = {acl: one for acl, one in translated.items() if not rules.is_too_wide(acl)}
    wanted, problems = _wanted(flow, narrow, remote)
    actions: list[Action] = [
        AddAcl(acl=acl, reason=f"{flow.source.alias} has {origin}", recorded=flow.acls_prune)
        for acl, origin in sorted(wanted.items())
        if acl not in acls.target
    ]
    for acl in sorted((acls.created or frozenset()) - frozenset(translated.values())):
        if acl in acls.target:
            cause = f"{flow.source.alias} no longer has the ACL that it was derived from"
            if acl.pattern == "LITERAL" and acl.topic == rules.name_of_every:
                cause = "an ACL on every topic is no longer replicated"
            reason = f"{flow.name} added it, and {cause}"
            actions.append(RemoveAcl(acl=acl, reason=reason))
        else:
            reason = f"it no longer exists on {flow.target.alias} and {flow.source.alias}"
            actions.append(ForgetAcl(acl=acl, reason=reason))
    return actions, problems


def acl_notes(flow: Flow, acls: AclSnapshot) -> list[str]:
    """One line about the ACLs on every topic that are not replicated, and one about prefixes that are too wide."""
    rules = _AclRules(flow, policy_for(flow), acls.others)
    source, target = flow.source.alias, flow.target.alias
    ours = sorted(acl for acl in acls.source if not _is_allow_write(acl))
    notes: list[str] = []
    if "literal" in flow.acls_patterns and (every := [acl for acl in ours if _is_on_every_topic(acl)]):
        added_before = {rules.renamed(acl) for acl in every} & acls.target - (acls.created or frozenset())
        text = (
            f"not replicated: {_some(every)}, because * matches every topic of {source}; to grant it on "
            f"{target}, add the ACL there for the intended topics"
        )
        if added_before:
            text += (
                f"; {target} has {_some(sorted(added_before))}, which an earlier release or MirrorMaker 2 may have "
                "added: remove it with kafka-acls unless it is intended"
            )
        notes.append(text)
    if "prefixed" in flow.acls_patterns and (wide := [acl for acl in ours if rules.is_too_wide(acl)]):
        covered = sorted(name for name in acls.others if any(name.startswith(acl.topic) for acl in wide))
        notes.append(
            f"not replicated: {_some(wide)}, because on {target} the prefix matches topics that {source} does not "
            f"have, among them {', '.join(covered[:_SHOWN])}; add the ACL on {target} for the intended topics"
        )
    return notes


@dataclass(frozen=True, slots=True)
class _AclRules:
    """Maps ACLs of the source to the target; `others` are topics that only the target has."""

    flow: Flow
    policy: ReplicationPolicy
    others: frozenset[str]

    @property
    def name_of_every(self) -> str:
        """The name that earlier releases, and MirrorMaker 2, give to an ACL on every topic."""
        return self.policy.format_remote_topic(self.flow.source.alias, _EVERY_TOPIC)

    def may_go_over(self, acl: Acl) -> bool:
        return not (_is_allow_write(acl) or _is_on_every_topic(acl))

    def is_too_wide(self, acl: Acl) -> bool:
        """Whether a prefix keeps its name on the target, and matches topics there that the source does not have."""
        if acl.pattern != "PREFIXED" or self.renamed(acl).topic != acl.topic:
            return False
        return any(name.startswith(acl.topic) for name in self.others)

    def renamed(self, acl: Acl) -> Acl:
        everything = (acl.permission, acl.operation) == ("ALLOW", "ALL")
        # No prefix is that of names that rules give: those are only granted topic by topic.
        policy = self.policy if acl.pattern == "LITERAL" else without_renaming(self.policy)
        topic = policy.format_remote_topic(self.flow.source.alias, acl.topic)
        return replace(acl, topic=topic, operation="READ" if everything else acl.operation)


def _is_allow_write(acl: Acl) -> bool:
    return (acl.permission, acl.operation) == ("ALLOW", "WRITE")


def _is_on_every_topic(acl: Acl) -> bool:
    return (acl.pattern, acl.topic) == ("LITERAL", _EVERY_TOPIC)


def _some(acls: list[Acl]) -> str:
    more = f" and {len(acls) - _SHOWN} more" if len(acls) > _SHOWN else ""
    return ", ".join(str(acl) for acl in acls[:_SHOWN]) + more


def _wanted(
    flow: Flow, translated: Mapping[Acl, Acl], remote: Mapping[str, str]
) -> tuple[dict[Acl, Acl], list[Problem]]:
    """The ACLs that the target should have, each with one of the source's that results in it."""
    replicates = replicated_topics(flow)
    wanted: dict[Acl, Acl] = {}
    problems: list[Problem] = []
    for acl, one in translated.items():
        match acl.pattern:
            case "LITERAL" if "literal" in flow.acls_patterns:
                if not replicates(acl.topic):
                    continue
            case "PREFIXED" if "prefixed" in flow.acls_patterns:
                covered = [topic for topic in remote if topic.startswith(acl.topic)]
                if not covered:
                    continue
                if {topic for topic, name in remote.items() if name.startswith(one.topic)} != set(covered):
                    problems.append(Problem(topic=acl.topic, reason=f"no prefix matches the remote topics of: {acl}"))
                    continue
            case _:
                continue
        if acl.operation == "UNKNOWN" or acl.permission == "UNKNOWN":
            problems.append(Problem(topic=acl.topic, reason=f"this version does not support this type of ACL: {acl}"))
            continue
        wanted.setdefault(one, acl)
    return wanted, problems
