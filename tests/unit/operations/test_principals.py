"""A principal that may use a source topic may use its remote topic, except for what a switchover adds."""

from __future__ import annotations

from mirrorless.clusters.acls import Acl
from mirrorless.operations.drill.principals import (
    AclSyncRules,
    MissingRight,
    WhyMissing,
    missing_acls,
    missing_rights,
)

REMOTE = {"orders": "a.orders", "payments": "a.payments"}
RULES = AclSyncRules(enabled=True, patterns=("literal",))
APP = "User:app"


def acl(topic: str, operation: str = "READ", principal: str = APP, **more: str) -> Acl:
    fields = {"pattern": "LITERAL", "host": "*", "permission": "ALLOW"} | more
    return Acl(topic=topic, operation=operation, principal=principal, **fields)


def lacking(source: list[Acl], target: list[Acl], rules: AclSyncRules = RULES) -> list[tuple[str, str, WhyMissing]]:
    _, found = missing_rights(source, target, remote=REMOTE, rules=rules)
    return [(one.principal, one.operation, one.why) for one in found]


def test_the_same_rights_under_the_remote_name_are_enough() -> None:
    assert missing_rights([acl("orders")], [acl("a.orders")], remote=REMOTE, rules=RULES) == (1, [])
    assert lacking([acl("orders")], [acl("orders")]) == [(APP, "READ", WhyMissing.NOT_SYNCED)]


def test_a_missing_right_is_named_with_its_topics() -> None:
    number, (one,) = missing_rights([acl("orders"), acl("payments")], [], remote=REMOTE, rules=RULES)
    topics = (("orders", "a.orders"), ("payments", "a.payments"))
    assert (number, one) == (
        1,
        MissingRight(principal=APP, host="*", operation="READ", why=WhyMissing.NOT_SYNCED, topics=topics),
    )
    assert one.text == "User:app lacks READ on a.orders and 1 more: not synced yet"


def test_write_is_added_by_a_switchover() -> None:
    assert lacking([acl("orders", "WRITE")], []) == [(APP, "WRITE", WhyMissing.BY_SWITCHOVER)]
    assert lacking([acl("orders", "WRITE")], [], AclSyncRules(enabled=False, patterns=())) == [
        (APP, "WRITE", WhyMissing.BY_SWITCHOVER)
    ]
    assert lacking([acl("orders", "WRITE")], [acl("a.orders", "WRITE")]) == []


def test_of_all_the_sync_gives_read_and_a_switchover_the_rest() -> None:
    found = lacking([acl("orders", "ALL")], [acl("a.orders", "READ")])
    assert {why for _, _, why in found} == {WhyMissing.BY_SWITCHOVER}
    assert {operation for _, operation, _ in found} == {
        *("WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
    }
    without = {operation: why for _, operation, why in lacking([acl("orders", "ALL")], [])}
    assert (without["READ"], without["DESCRIBE"]) == (WhyMissing.NOT_SYNCED, WhyMissing.NOT_SYNCED)
    assert lacking([acl("orders", "ALL")], [acl("a.orders", "ALL")]) == []


def test_a_wildcard_is_not_replicated_and_counts_as_missing() -> None:
    assert lacking([acl("*")], []) == [(APP, "READ", WhyMissing.EVERY_TOPIC)]
    assert lacking([acl("*")], [acl("*")]) == []


def test_a_prefix_counts_by_the_settings() -> None:
    prefix = acl("ord", pattern="PREFIXED")
    assert lacking([prefix], []) == [(APP, "READ", WhyMissing.PATTERN)]
    assert lacking([prefix], [], AclSyncRules(enabled=True, patterns=("prefixed",))) == [
        (APP, "READ", WhyMissing.NOT_SYNCED)
    ]
    assert lacking([prefix], [acl("a.ord", pattern="PREFIXED")]) == []


def test_an_acl_of_several_may_do_it() -> None:
    assert lacking([acl("orders"), acl("*")], []) == [
        (APP, "READ", WhyMissing.EVERY_TOPIC),  # of payments
        (APP, "READ", WhyMissing.NOT_SYNCED),
    ]


def test_without_the_sync_that_is_the_reason() -> None:
    assert lacking([acl("orders")], [], AclSyncRules(enabled=False, patterns=("literal",))) == [
        (APP, "READ", WhyMissing.SYNC_DISABLED)
    ]


def test_a_denial_takes_the_right_away_on_either_side() -> None:
    deny = acl("orders", "ALL", permission="DENY", principal="User:*")
    assert lacking([acl("orders"), deny], []) == []
    there = acl("a.orders", "READ", permission="DENY")
    assert lacking([acl("orders")], [acl("a.orders"), there]) == [(APP, "READ", WhyMissing.NOT_SYNCED)]


def test_a_right_of_everyone_or_a_wider_one_is_enough() -> None:
    assert lacking([acl("orders")], [acl("a.orders", principal="User:*")]) == []
    assert lacking([acl("orders")], [acl("a.orders", "ALL")]) == []
    assert lacking([acl("orders", "DESCRIBE")], [acl("a.orders", "READ")]) == []
    assert lacking([acl("orders", "DESCRIBE_CONFIGS")], [acl("a.orders", "ALTER_CONFIGS")]) == []


def test_a_right_from_one_host_is_not_one_from_all() -> None:
    here = acl("orders", host="10.0.0.1")
    assert lacking([here], [acl("a.orders")]) == []
    assert lacking([here], [acl("a.orders", host="10.0.0.1")]) == []
    assert lacking([acl("orders")], [acl("a.orders", host="10.0.0.1")]) == [(APP, "READ", WhyMissing.NOT_SYNCED)]


def test_rights_on_other_topics_do_not_count() -> None:
    assert missing_rights([acl("other")], [], remote=REMOTE, rules=RULES) == (0, [])


def test_groups_keep_their_names() -> None:
    here, wide = acl("billing"), acl("bil", pattern="PREFIXED")
    assert missing_acls([here, wide], [here]) == [wide]
    assert missing_acls([here, wide], [wide]) == []
    assert missing_acls([here, wide], [acl("*", "ALL")]) == []
    assert missing_acls([acl("*")], [wide]) == [acl("*")]
    assert missing_acls([here], [acl("billing", "DESCRIBE")]) == [here]
    assert missing_acls([here], [acl("billing", permission="DENY")]) == [here]
