"""Compares what principals may do with source topics and with their remote topics. No I/O.

Rights are evaluated as Kafka's authorizer does: a DENY wins, `User:*` is every principal, `ALL` every operation, and
READ, WRITE, DELETE and ALTER imply DESCRIBE. Super users, and brokers that allow everything where no ACL exists, are
not visible in ACLs.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mirrorless.clusters.acls import Acl

_EVERYONE: Final = "User:*"
_EVERY_TOPIC: Final = "*"
_OPERATIONS: Final = ("READ", "WRITE", "CREATE", "DESCRIBE", "DELETE", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
_IMPLIED_BY: Final[dict[str, frozenset[str]]] = {
    "DESCRIBE": frozenset({"READ", "WRITE", "DELETE", "ALTER"}),
    "DESCRIBE_CONFIGS": frozenset({"ALTER_CONFIGS"}),
}
_SYNCED_FROM_ALL: Final = frozenset({"READ", "DESCRIBE"})


class WhyMissing(StrEnum):
    """Why a principal lacks a right on the target."""

    BY_SWITCHOVER = "added by a switchover"
    """Topic ACL sync leaves it out on purpose: only the flow writes to a remote topic."""
    NOT_SYNCED = "not synced yet"
    EVERY_TOPIC = "an ACL on every topic (*) is not replicated"
    PATTERN = "mirrorless.acls.patterns does not select it"
    SYNC_DISABLED = "sync.topic.acls.enabled is false"


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class MissingRight:
    """An operation that a principal may do with source topics, but not with their remote topics.

    `topics` are source topics with their remote topics; `host` is `*` for all.
    """

    principal: str
    host: str
    operation: str
    why: WhyMissing
    topics: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """The right in one line."""
        where = "" if self.host == "*" else f" from {self.host}"
        (_, first), more = self.topics[0], len(self.topics) - 1
        on = f"{first} and {more} more" if more else first
        return f"{self.principal}{where} lacks {self.operation} on {on}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AclSyncRules:
    """What topic ACL sync replicates: nothing unless `enabled`, and only ACLs of these pattern types."""

    enabled: bool
    patterns: tuple[str, ...]


def missing_rights(
    source: Iterable[Acl], target: Iterable[Acl], *, remote: Mapping[str, str], rules: AclSyncRules
) -> tuple[int, list[MissingRight]]:
    """Return the number of principals with rights on replicated topics, and what each of them lacks on the target."""
    here_by_topic, there_by_topic = _ByTopic(source), _ByTopic(target)
    principals: set[str] = set()
    lacking: dict[tuple[str, str, str, WhyMissing], list[tuple[str, str]]] = defaultdict(list)
    for topic, name in sorted(remote.items()):
        here, there = here_by_topic.on(topic), there_by_topic.on(name)
        for principal, host in sorted({(one.principal, one.host) for one in here if one.permission == "ALLOW"}):
            principals.add(principal)
            for operation, grants in _granted(here, principal, host).items():
                if not _allowed(there, principal, host, operation):
                    lacking[principal, host, operation, _why(grants, operation, rules)].append((topic, name))
    found = [
        MissingRight(principal=principal, host=host, operation=operation, why=why, topics=tuple(topics))
        for (principal, host, operation, why), topics in sorted(lacking.items())
    ]
    return len(principals), found


def missing_acls(source: Iterable[Acl], target: Iterable[Acl]) -> list[Acl]:
    """Return ACLs of the source, of a resource that has the same name on the target, that no ACL there covers."""
    there = _ByTopic(target)
    return [one for one in sorted(source) if not any(_covers(other, one) for other in there.like(one))]


class _ByTopic:
    """ACLs by the name of their resource: there may be thousands, of as many topics."""

    def __init__(self, acls: Iterable[Acl]) -> None:
        self._named: dict[str, list[Acl]] = defaultdict(list)
        self._wide: list[Acl] = []
        for one in acls:
            wide = one.pattern != "LITERAL" or one.topic == _EVERY_TOPIC
            (self._wide if wide else self._named[one.topic]).append(one)

    def on(self, topic: str) -> list[Acl]:
        """Return the ACLs that apply to a topic."""
        return [*self._named.get(topic, ()), *(one for one in self._wide if _is_on(one, topic))]

    def like(self, acl: Acl) -> Iterator[Acl]:
        """Yield the ACLs that may cover this one."""
        yield from self._named.get(acl.topic, ())
        yield from self._wide


def _granted(here: Iterable[Acl], principal: str, host: str) -> dict[str, list[Acl]]:
    """Return the operations that these ACLs name for the principal and allow, each with the ACLs that do."""
    here = list(here)
    own = [one for one in here if (one.principal, one.host, one.permission) == (principal, host, "ALLOW")]
    found: dict[str, list[Acl]] = {}
    for operation in _OPERATIONS:
        grants = [one for one in own if one.operation in (operation, "ALL")]
        if grants and _allowed(here, principal, host, operation):
            found[operation] = grants
    return found


def _allowed(acls: Iterable[Acl], principal: str, host: str, operation: str) -> bool:
    acls = [one for one in acls if one.principal in (principal, _EVERYONE) and one.host in (host, "*")]
    if any(one.permission == "DENY" and one.operation in (operation, "ALL") for one in acls):
        return False
    enough = {operation, "ALL"} | _IMPLIED_BY.get(operation, frozenset())
    return any(one.permission == "ALLOW" and one.operation in enough for one in acls)


def _is_on(acl: Acl, topic: str) -> bool:
    if acl.pattern == "PREFIXED":
        return topic.startswith(acl.topic)
    return acl.pattern == "LITERAL" and acl.topic in (topic, _EVERY_TOPIC)


def _why(grants: Iterable[Acl], operation: str, rules: AclSyncRules) -> WhyMissing:
    """The most harmless reason: one of several ACLs is enough."""
    reasons = [_why_of(one, operation, rules) for one in grants]
    return min(reasons, key=list(WhyMissing).index)


def _why_of(acl: Acl, operation: str, rules: AclSyncRules) -> WhyMissing:
    if operation == "WRITE" or (acl.operation == "ALL" and operation not in _SYNCED_FROM_ALL):
        return WhyMissing.BY_SWITCHOVER
    if not rules.enabled:
        return WhyMissing.SYNC_DISABLED
    if (acl.pattern, acl.topic) == ("LITERAL", _EVERY_TOPIC):
        return WhyMissing.EVERY_TOPIC
    return WhyMissing.NOT_SYNCED if acl.pattern.lower() in rules.patterns else WhyMissing.PATTERN


def _covers(other: Acl, acl: Acl) -> bool:
    """Whether an ACL of the target gives all that this one of the source gives."""
    if other.principal not in (acl.principal, _EVERYONE) or other.host not in (acl.host, "*"):
        return False
    enough = {acl.operation, "ALL"} | _IMPLIED_BY.get(acl.operation, frozenset())
    if other.permission != acl.permission or other.operation not in enough:
        return False
    if other.pattern == "PREFIXED":
        return acl.topic.startswith(other.topic) and acl.topic != _EVERY_TOPIC
    if other.topic == _EVERY_TOPIC:
        return True
    return (other.pattern, other.topic) == (acl.pattern, acl.topic)
