"""Which ACLs go over, in cases that a cluster is not needed for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mirrorless.clusters.acls import Acl
from mirrorless.metadata.acl_plan import AclSnapshot, plan_acls
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

    assert added(everything, READ, replace(READ, topic="*")) == [replace(READ, topic="*"), READ]


def test_two_acls_that_come_to_the_same_are_added_once() -> None:
    assert added(FLOW, READ, replace(READ, operation="ALL")) == [replace(READ, topic="A.t")]


def test_a_prefix_that_covers_no_common_remote_prefix_is_a_problem() -> None:
    prefixed = replace(READ, topic="t-", pattern="PREFIXED")
    remote = {"t-orders": "t-orders", "t-heartbeats": "A.t-heartbeats"}

    actions, problems = plan_acls(IDENTITY, acls=AclSnapshot(source=frozenset([prefixed]), target=NONE), remote=remote)

    assert actions == []
    assert problems == [Problem(topic="t-", reason=f"no prefix covers the remote topics of: {prefixed}")]


def test_an_operation_of_a_later_kafka_is_a_problem() -> None:
    acls = AclSnapshot(source=frozenset([replace(READ, operation="UNKNOWN")]), target=NONE)

    actions, (problem,) = plan_acls(FLOW, acls=acls, remote={})

    assert actions == []
    assert "that this version does not know: ALLOW UNKNOWN on t to User:x" in problem.reason


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
