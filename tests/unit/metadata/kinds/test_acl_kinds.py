"""Which ACLs beside READ on topics are moved, and which are reported with what moves them."""

from __future__ import annotations

from dataclasses import replace

from mirrorless.clusters.acls import Acl
from mirrorless.metadata.kinds import cluster_acls, group_acls, prefixed_acls, write_acls
from tests.support.drill_facts import flow_with

READ = Acl(topic="orders", pattern="LITERAL", principal="User:x", host="*", operation="READ", permission="ALLOW")
NONE: frozenset[Acl] = frozenset()


def test_acls_of_selected_groups_by_name_and_by_prefix() -> None:
    mine, other = replace(READ, topic="billing"), replace(READ, topic="audit")
    prefix, vain = replace(mine, topic="bill", pattern="PREFIXED"), replace(mine, topic="aud", pattern="PREFIXED")
    every = replace(READ, topic="*")
    flow = flow_with(groups=("billing",))
    source = frozenset([mine, other, prefix, vain, every])
    found = group_acls.differences(flow, source, NONE, groups=["billing", "audit"])
    assert {one.what: one.change is not None for one in found} == {
        str(mine): True,
        str(prefix): True,
        str(every): False,
    }
    assert group_acls.differences(flow, source, source, groups=["billing"]) == []


def test_only_the_rights_of_applications_on_the_cluster_are_moved() -> None:
    write = replace(READ, topic="kafka-cluster", operation="IDEMPOTENT_WRITE")
    alter, elsewhere = replace(write, operation="ALTER"), replace(write, principal="User:y")
    found = cluster_acls.differences(
        flow_with(), frozenset([write, alter, elsewhere]), NONE, of_topics=frozenset([READ]), topics=["orders"]
    )
    assert {one.what: one.change is not None for one in found} == {str(write): True, str(alter): False}


def test_rights_to_write_are_left_to_operations_under_the_names_that_they_add() -> None:
    literal, prefixed = (
        replace(READ, operation="WRITE"),
        replace(READ, topic="ord", pattern="PREFIXED", operation="ALL"),
    )
    denied, other = replace(literal, permission="DENY"), replace(literal, topic="payments")
    found = write_acls.differences(frozenset([READ, literal, prefixed, denied, other]), NONE, topics=["orders"])
    assert [one.what for one in found] == [str(replace(literal, operation="ALL")), str(literal)]
    assert all(one.change is None for one in found)
    there = frozenset([literal, replace(literal, operation="ALL")])
    assert write_acls.differences(frozenset([literal, prefixed]), there, topics=["orders"]) == []


def test_prefixes_are_reported_unless_the_sync_moves_them() -> None:
    prefixed = replace(READ, topic="ord", pattern="PREFIXED")
    writes = replace(prefixed, operation="WRITE")
    source = frozenset([READ, prefixed, writes])
    (one,) = prefixed_acls.differences(flow_with(), source, NONE, topics=["orders"])
    assert (one.what, one.change) == (str(prefixed), None)
    moving = flow_with(acls_patterns=("literal", "prefixed"))
    assert prefixed_acls.differences(moving, source, NONE, topics=["orders"]) == []
