"""Which ACLs to add to remote topics, and which of those that this flow has added to remove. No I/O.

Rules: `MirrorSourceConnector.syncTopicAcls` of MirrorMaker 2 (reference, section 3.7). Writing to a remote topic is the
flow's business alone, so ALLOW WRITE does not go over and ALLOW ALL becomes ALLOW READ; every DENY goes over as it is.
A literal `*` becomes a literal `A.*`, which is no wildcard: MirrorMaker 2 does the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mirrorless.filters import replicated_topics
from mirrorless.metadata.actions import Action, AddAcl, ForgetAcl, Problem, RemoveAcl
from mirrorless.policy import policy_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.acls import Acl
    from mirrorless.settings import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class AclSnapshot:
    """The topic ACLs of both ends; `created` are those this flow has added, None where nothing is ever removed."""

    source: frozenset[Acl]
    target: frozenset[Acl]
    created: frozenset[Acl] | None = None


def plan_acls(flow: Flow, *, acls: AclSnapshot, remote: Mapping[str, str]) -> tuple[list[Action], list[Problem]]:
    """Compare the ACLs of both ends; `remote` has the replicated topics with their remote topics.

    An ACL is removed only if this flow has added it and no ACL of the source leads to it any more, whatever the filters
    say now: a topic that is left out of a flow keeps its ACLs, as it keeps its data.
    """
    policy = policy_for(flow)

    def translate(acl: Acl) -> Acl | None:
        if (acl.permission, acl.operation) == ("ALLOW", "WRITE"):
            return None
        everything = (acl.permission, acl.operation) == ("ALLOW", "ALL")
        topic = policy.format_remote_topic(flow.source.alias, acl.topic)
        return replace(acl, topic=topic, operation="READ" if everything else acl.operation)

    translated = {acl: one for acl in sorted(acls.source) if (one := translate(acl)) is not None}
    wanted, problems = _wanted(flow, translated, remote)
    actions: list[Action] = [
        AddAcl(acl=acl, reason=f"{flow.source.alias} has {origin}", recorded=flow.acls_prune)
        for acl, origin in sorted(wanted.items())
        if acl not in acls.target
    ]
    for acl in sorted((acls.created or frozenset()) - frozenset(translated.values())):
        if acl in acls.target:
            reason = f"{flow.name} had added it, and {flow.source.alias} no longer has what it came from"
            actions.append(RemoveAcl(acl=acl, reason=reason))
        else:
            reason = f"it is gone from {flow.target.alias} and from {flow.source.alias}"
            actions.append(ForgetAcl(acl=acl, reason=reason))
    return actions, problems


def _wanted(
    flow: Flow, translated: Mapping[Acl, Acl], remote: Mapping[str, str]
) -> tuple[dict[Acl, Acl], list[Problem]]:
    """ACLs that the target shall have, each with one of the source's that leads to it."""
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
                if not all(remote[topic].startswith(one.topic) for topic in covered):
                    problems.append(Problem(topic=acl.topic, reason=f"no prefix covers the remote topics of: {acl}"))
                    continue
            case _:
                continue
        if acl.operation == "UNKNOWN" or acl.permission == "UNKNOWN":
            problems.append(Problem(topic=acl.topic, reason=f"an ACL of a kind that this version does not know: {acl}"))
            continue
        wanted.setdefault(one, acl)
    return wanted, problems
