"""Which ACLs go over, in cases that a cluster is not needed for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mirrorless.clusters.acls import Acl
from mirrorless.metadata.acl_plan import AclSnapshot, acl_notes, plan_acls
from mirrorless.metadata.actions import AddAcl, ForgetAcl, Problem, RemoveAcl
from mirrorless.settings import Cluster, Flow

A = Cluster(alias="A", bootstrap_servers="a:1")
B = Cluster(alias="B", bootstrap_servers="b:1")
FLOW = Flow(source=A, target=B, topics=("t.*",), acls_patterns=("literal", "prefixed"))
IDENTITY = FLOW.model_copy(update={"replication_policy_class": "IdentityReplicationPolicy"})
READ = Acl(topic="t", pattern="LITERAL", principal="User:x", host="*", operation="READ", permission="ALLOW")
NONE: frozenset[Acl] = frozenset()


def added(flow: Flow, *acls: Acl, remote: dict[str, str] | None = None) -> list[Acl]:
    """What is added for these ACLs of the source."""
    actions, problems = plan_acls(flow, acls=AclSnapshot(source=frozenset(acls), target=NONE), remote=remote or {})
    assert problems == []
    return [action.acl for action in actions if isinstance(action, AddAcl)]


@pytest.mark.parametrize(
    ("topic", "remote"), [("t", "A.t"), ("A.t", None), ("B.t", None), ("__t", None), ("u", None), ("tC.t", "A.tC.t")]
)
def test_only_acls_of_replicated_topics(topic: str, remote: str | None) -> None:
    assert added(FLOW, replace(READ, topic=topic)) == ([] if remote is None else [replace(READ, topic=remote)])


def test_identity_keeps_the_names() -> None:
    everything = FLOW.model_copy(update={"topics": (".*",), "replication_policy_class": "IdentityReplicationPolicy"})

    assert added(everything, READ) == [READ]


@pytest.mark.parametrize("policy", ["DefaultReplicationPolicy", "IdentityReplicationPolicy"])
def test_an_acl_on_every_topic_is_left_out_and_told(policy: str) -> None:
    flow = FLOW.model_copy(update={"topics": (".*",), "replication_policy_class": policy})
    every = replace(READ, topic="*")
    acls = AclSnapshot(source=frozenset([every, replace(every, permission="DENY")]), target=NONE)

    assert plan_acls(flow, acls=acls, remote={"t": "A.t"}) == ([], [])
    (note,) = acl_notes(flow, acls)
    assert note == (
        "not replicated: ALLOW READ on * to User:x, DENY READ on * to User:x, because * matches every topic of A; to "
        "grant it on B, add the ACL there for the intended topics"
    )
    assert acl_notes(flow.model_copy(update={"acls_patterns": ("prefixed",)}), acls) == []
    write = AclSnapshot(source=frozenset([replace(every, operation="WRITE")]), target=NONE)
    assert acl_notes(flow, write) == []


@pytest.mark.parametrize(("policy", "name"), [("DefaultReplicationPolicy", "A.*"), ("IdentityReplicationPolicy", "*")])
def test_an_acl_on_every_topic_that_was_added_before_is_removed_or_told(policy: str, name: str) -> None:
    flow = FLOW.model_copy(update={"topics": (".*",), "replication_policy_class": policy, "acls_prune": True})
    every, ours = replace(READ, topic="*"), replace(READ, topic=name)
    recorded = AclSnapshot(source=frozenset([every]), target=frozenset([ours]), created=frozenset([ours]))
    gone = replace(recorded, target=NONE)
    unrecorded = replace(recorded, created=NONE)

    (removed,), _ = plan_acls(flow, acls=recorded, remote={})
    assert removed == RemoveAcl(acl=ours, reason="A->B added it, and an ACL on every topic is no longer replicated")
    assert "earlier release" not in acl_notes(flow, recorded)[0]
    assert [type(action) for action in plan_acls(flow, acls=gone, remote={})[0]] == [ForgetAcl]
    assert plan_acls(flow, acls=unrecorded, remote={}) == ([], [])
    assert acl_notes(flow, unrecorded)[0].endswith(
        f"; B has ALLOW READ on {name} to User:x, which an earlier release or MirrorMaker 2 may have added: remove it "
        "with kafka-acls unless it is intended"
    )


def test_a_prefix_that_keeps_its_name_opens_no_topic_that_the_source_does_not_have() -> None:
    prefixed = replace(READ, topic="t", pattern="PREFIXED")
    acls = AclSnapshot(source=frozenset([prefixed]), target=NONE, others=frozenset(["t-secret", "u"]))

    assert plan_acls(IDENTITY, acls=acls, remote={"t-a": "t-a"}) == ([], [])
    (note,) = acl_notes(IDENTITY, acls)
    assert note == (
        "not replicated: ALLOW READ on t (prefix) to User:x, because on B the prefix matches topics that A does not "
        "have, among them t-secret; add the ACL on B for the intended topics"
    )
    there = replace(acls, target=frozenset([prefixed]), created=frozenset([prefixed]))
    assert plan_acls(IDENTITY, acls=there, remote={"t-a": "t-a"}) == ([], [])  # as it is: its source has it still
    fine = replace(acls, others=frozenset(["u"]))
    assert [action.acl for action in plan_acls(IDENTITY, acls=fine, remote={"t-a": "t-a"})[0]] == [prefixed]  # type: ignore[union-attr]
    assert acl_notes(IDENTITY, fine) == []
    assert acl_notes(FLOW, acls) == []


def test_two_acls_that_come_to_the_same_are_added_once() -> None:
    assert added(FLOW, READ, replace(READ, operation="ALL")) == [replace(READ, topic="A.t")]


def test_a_prefix_that_covers_no_common_remote_prefix_is_a_problem() -> None:
    prefixed = replace(READ, topic="t-", pattern="PREFIXED")
    remote = {"t-orders": "t-orders", "t-heartbeats": "A.t-heartbeats"}

    actions, problems = plan_acls(IDENTITY, acls=AclSnapshot(source=frozenset([prefixed]), target=NONE), remote=remote)

    assert actions == []
    assert problems == [Problem(topic="t-", reason=f"no prefix matches the remote topics of: {prefixed}")]


def test_an_operation_of_a_later_kafka_is_a_problem() -> None:
    acls = AclSnapshot(source=frozenset([replace(READ, operation="UNKNOWN")]), target=NONE)

    actions, (problem,) = plan_acls(FLOW, acls=acls, remote={})

    assert actions == []
    assert "this version does not support this type of ACL: ALLOW UNKNOWN on t to User:x" in problem.reason


@pytest.mark.parametrize(
    ("created", "target", "kinds"),
    [
        (None, {"A.t", "A.t2"}, []),
        (frozenset(), {"A.t", "A.t2"}, []),
        ({"A.t2"}, {"A.t", "A.t2"}, [RemoveAcl]),
        ({"A.t2"}, {"A.t"}, [ForgetAcl]),
        ({"A.t"}, {"A.t", "A.t2"}, []),
        ({"A.t"}, set(), [AddAcl]),
    ],
)
def test_only_what_the_flow_had_added_is_removed(
    created: set[str] | None, target: set[str], kinds: list[type[object]]
) -> None:
    acls = AclSnapshot(
        source=frozenset([READ]),
        target=frozenset(replace(READ, topic=topic) for topic in target),
        created=None if created is None else frozenset(replace(READ, topic=topic) for topic in created),
    )
    if "A.t" not in target:
        assert kinds == [AddAcl]

    for prune in (True, False):
        flow = FLOW.model_copy(update={"acls_prune": prune})
        actions, _ = plan_acls(flow, acls=acls, remote={"t": "A.t"})

        assert [type(action) for action in actions] == kinds
        # Also where the record cannot be read this time.
        assert all(action.recorded == prune for action in actions if isinstance(action, AddAcl))
