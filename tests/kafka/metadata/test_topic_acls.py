"""Remote topics have the ACLs that MirrorMaker 2's rules make of their source topics' ACLs; more only if asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.metadata.actions import AddAcl, CreateTopic, ForgetAcl, RemoveAcl
from mirrorless.metadata.planning import Admins, MetadataPlanner
from mirrorless.policy import policy_for
from tests.support.metadata import sync_acls
from tests.support.secured import MIRROR, VIEWER, eventually

if TYPE_CHECKING:
    from mirrorless.clusters.acls import Acl
    from mirrorless.metadata.sync_pass import SyncPass
    from mirrorless.settings import Flow
    from tests.support.secured import Secured


def own(secured: Secured, cluster: str) -> set[Acl]:
    """This test's ACLs on a cluster."""
    principal = secured.acl("", "READ").principal
    return {acl for acl in secured.acls(cluster) if acl.principal == principal}


def synced(secured: Secured, flow: Flow) -> SyncPass:
    """One pass, whose every change is seen by the target's brokers."""
    found = sync_acls(flow)
    assert not found.failures
    added = {one.action.acl for one in found.applied if isinstance(one.action, AddAcl)}
    removed = {one.action.acl for one in found.applied if isinstance(one.action, RemoveAcl)}
    target = flow.target.alias[0]
    eventually(lambda: added <= secured.acls(target) and not removed & secured.acls(target))
    return found


def test_the_rules_of_mirrormaker_2(secured: Secured) -> None:
    topic, elsewhere = secured.name("orders"), f"not-{secured.name('orders')}"
    kept = [
        ("READ", "ALLOW"),
        ("DESCRIBE", "ALLOW"),
        ("CREATE", "ALLOW"),
        ("ALTER_CONFIGS", "ALLOW"),
        ("WRITE", "DENY"),
        ("ALL", "DENY"),
    ]
    secured.grant(
        "a",
        *(secured.acl(topic, *each) for each in kept),
        secured.acl(topic, "WRITE"),
        secured.acl(topic, "DESCRIBE", host="10.1.2.3"),
        secured.acl(secured.name("payments"), "ALL"),
        secured.acl(elsewhere, "READ"),
        secured.acl(secured.name(""), "READ", pattern="PREFIXED"),
    )

    synced(secured, secured.flow("a", "b"))

    remote = secured.remote("orders", "a")
    assert own(secured, "b") == {
        *(secured.acl(remote, *each) for each in kept),
        secured.acl(remote, "DESCRIBE", host="10.1.2.3"),
        secured.acl(secured.remote("payments", "a"), "READ"),
    }
    assert sync_acls(secured.flow("a", "b")).applied == ()


def test_what_is_gone_from_the_source_stays_and_what_is_gone_from_the_target_comes_back(secured: Secured) -> None:
    read, describe = (secured.acl(secured.name("orders"), each) for each in ("READ", "DESCRIBE"))
    secured.grant("a", read, describe)
    flow = secured.flow("a", "b")
    synced(secured, flow)
    everything = own(secured, "b")
    secured.revoke("a", read)
    assert sync_acls(flow).applied == ()
    secured.revoke("b", secured.acl(secured.remote("orders", "a"), "DESCRIBE"))

    synced(secured, flow)

    assert own(secured, "b") == everything


@pytest.mark.parametrize("policy", ["DefaultReplicationPolicy", "IdentityReplicationPolicy"])
def test_an_acl_on_every_topic_is_not_replicated_and_told_once(secured: Secured, policy: str) -> None:
    star, named = secured.acl("*", "READ"), secured.acl(secured.name("orders"), "READ")
    secured.grant("a", star, named)
    flow = secured.flow("a", "b", topics=".*", topics_exclude="", replication_policy_class=policy)
    found = synced(secured, flow)
    secured.revoke("a", star)

    assert own(secured, "b") == {
        secured.acl(policy_for(flow).format_remote_topic(flow.source.alias, named.topic), "READ")
    }
    assert [note for note in found.notes if str(star) in note] == [
        f"not replicated: {star}, because * matches every topic of {flow.source.alias}; to grant it on "
        f"{flow.target.alias}, add the ACL there for the intended topics"
    ]


def test_an_acl_on_every_topic_that_an_earlier_release_added_is_pruned(secured: Secured) -> None:
    star = secured.acl("*", "DESCRIBE")
    secured.grant("a", star, secured.acl(secured.name("orders"), "READ"))
    flow = secured.flow("a", "b", topics=secured.name(".*"), mirrorless_acls_prune="true")
    synced(secured, flow)
    added = secured.acl(f"{secured.alias('a')}.*", "DESCRIBE")
    secured.grant("b", added)
    MetadataPlanner(flow, Admins.of(flow)).record.add([added])

    (removed,) = synced(secured, flow).applied
    secured.revoke("a", star)

    assert isinstance(removed.action, RemoveAcl)
    assert own(secured, "b") == {secured.acl(secured.remote("orders", "a"), "READ")}


def test_prefixed_acls_go_over_if_asked_for_where_a_replicated_topic_begins_so(secured: Secured) -> None:
    secured.topic("a", "orders-eu")
    prefix = secured.name("orders")
    secured.grant(
        "a",
        secured.acl(prefix, "ALL", pattern="PREFIXED"),
        secured.acl(prefix, "WRITE", pattern="PREFIXED"),
        secured.acl(secured.name("payments"), "READ", pattern="PREFIXED"),
        secured.acl(secured.name("orders-eu"), "READ"),
    )
    remote = secured.remote("orders", "a")

    synced(secured, secured.flow("a", "b", mirrorless_acls_patterns="prefixed"))
    assert own(secured, "b") == {secured.acl(remote, "READ", pattern="PREFIXED")}

    synced(secured, secured.flow("a", "b", mirrorless_acls_patterns="literal,prefixed"))
    assert own(secured, "b") == {
        secured.acl(remote, "READ", pattern="PREFIXED"),
        secured.acl(secured.remote("orders-eu", "a"), "READ"),
    }


def test_pruning_removes_what_the_flow_added_and_nothing_else(secured: Secured) -> None:
    topic, remote = secured.name("orders"), secured.remote("orders", "a")
    ours, there_before, of_before_pruning = (secured.acl(topic, each) for each in ("READ", "DESCRIBE", "ALTER"))
    secured.grant("a", of_before_pruning)
    synced(secured, secured.flow("a", "b"))
    secured.grant("a", ours, there_before)
    secured.grant("b", secured.acl(remote, "DESCRIBE"), secured.acl(remote, "DELETE"))
    flow = secured.flow("a", "b", mirrorless_acls_prune="true")
    found = synced(secured, flow)
    assert [type(one.action) for one in found.applied] == [CreateTopic, AddAcl]
    assert sync_acls(flow).applied == ()
    secured.revoke("a", ours, there_before, of_before_pruning)

    assert sync_acls(secured.flow("a", "b")).applied == ()
    (removed,) = synced(secured, flow).applied

    assert isinstance(removed.action, RemoveAcl)
    assert removed.action.acl == secured.acl(remote, "READ")
    assert own(secured, "b") == {secured.acl(remote, each) for each in ("DESCRIBE", "DELETE", "ALTER")}
    assert sync_acls(flow).applied == ()


def test_pruning_needs_rights_to_its_record_and_to_no_group(secured: Secured) -> None:
    acl, record = secured.acl(secured.name("orders"), "READ"), f"mm2-acls.{secured.alias('a')}.internal"
    secured.grant("a", acl)
    synced(secured, secured.flow("a", "b", mirrorless_acls_prune="true"))
    secured.revoke("a", acl)
    flow = secured.flow("a", "b", mirrorless_acls_prune="true", users={"b": VIEWER})
    describe, read = (secured.acl(record, each, principal=f"User:{VIEWER}") for each in ("DESCRIBE", "READ"))

    secured.grant("b", describe)
    (note,) = sync_acls(flow).notes
    assert note.startswith(f"no ACL is removed: cluster {secured.alias('b')}: {record}: ")

    secured.grant("b", read)
    assert [type(one.action) for one in sync_acls(flow).applied] == [RemoveAcl]


def test_pruning_keeps_the_acls_of_a_topic_that_is_no_longer_selected(secured: Secured) -> None:
    secured.grant("a", secured.acl(secured.name("orders"), "READ"))
    synced(secured, secured.flow("a", "b", mirrorless_acls_prune="true"))

    assert sync_acls(secured.flow("a", "b", mirrorless_acls_prune="true", topics="none")).applied == ()


def test_an_acl_that_was_removed_by_hand_is_no_longer_the_flow_s(secured: Secured) -> None:
    acl, remote = secured.acl(secured.name("orders"), "READ"), secured.acl(secured.remote("orders", "a"), "READ")
    flow = secured.flow("a", "b", mirrorless_acls_prune="true")
    secured.grant("a", acl)
    synced(secured, flow)
    secured.revoke("b", remote)
    secured.revoke("a", acl)
    (forgotten,) = sync_acls(flow).applied
    assert isinstance(forgotten.action, ForgetAcl)
    secured.grant("b", remote)

    assert sync_acls(flow).applied == ()
    assert own(secured, "b") == {remote}


def test_pruning_leaves_what_came_from_another_cluster_under_the_same_alias(secured: Secured) -> None:
    secured.grant("a", secured.acl(secured.name("orders"), "READ"))
    flow = secured.flow("a", "b", mirrorless_acls_prune="true")
    synced(secured, flow)
    moved = flow.model_copy(update={"source": secured.cluster("c").model_copy(update={"alias": secured.alias("a")})})

    found = sync_acls(moved)

    assert found.applied == ()
    assert (
        f"1 ACLs that {flow.name} added when {flow.source.alias} was another cluster, or its remote topics had other "
        "names, are not changed" in found.notes
    )


@pytest.mark.parametrize("blind", ["a", "b"])
def test_without_the_right_to_see_acls_nothing_is_added_or_removed(secured: Secured, blind: str) -> None:
    acl = secured.acl(secured.name("orders"), "READ")
    secured.grant("a", acl)
    synced(secured, secured.flow("a", "b", mirrorless_acls_prune="true"))
    secured.revoke("a", acl)

    found = sync_acls(secured.flow("a", "b", mirrorless_acls_prune="true", users={blind: MIRROR}))

    assert found.applied == ()
    (problem,) = found.problems
    assert (found.went_well, found.topics_are_there) == (False, True)
    assert problem.reason == (
        f"ACLs are not synced: no right to see the ACLs of cluster {secured.alias(blind)}; "
        "grant DESCRIBE on the cluster"
    )
    assert own(secured, "b") == {secured.acl(secured.remote("orders", "a"), "READ")}


def test_an_acl_that_may_not_be_added_is_told(secured: Secured) -> None:
    secured.grant("a", secured.acl(secured.name("orders"), "READ"))
    flow = secured.flow("a", "b", users={"b": VIEWER})

    (failure,) = sync_acls(flow).failures

    assert failure.action.topic == secured.remote("orders", "a")
    assert failure.error is not None
    assert failure.error.endswith("(CLUSTER_AUTHORIZATION_FAILED); grant ALTER on the cluster")
