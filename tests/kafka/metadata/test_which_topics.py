"""Which topics get a remote topic: rings, fan-in, heartbeats, and users whose rights do not suffice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import ThrottleEvent

from mirrorless.clusters.admin import Admin
from mirrorless.errors import SameClusterError
from mirrorless.metadata.actions import CreateTopic
from mirrorless.metadata.planning import Admins, MetadataPlanner, switched_on
from mirrorless.selection import LeftOut
from tests.support.metadata import discover_topics
from tests.support.secured import MIRROR, VIEWER

if TYPE_CHECKING:
    from mirrorless.metadata.sync_pass import SyncPass
    from tests.support.secured import Secured


def reasons(found: SyncPass, secured: Secured) -> dict[str, LeftOut]:
    """Why topics of this test are left out."""
    own = {*secured.topics("a"), *secured.topics("b"), *secured.topics("c")}
    return {one.topic: one.kind for one in found.left_out if one.topic in own}


def test_a_topic_goes_round_a_ring_once(secured: Secured) -> None:
    secured.topic("a", "orders", partitions=2)
    ring = [secured.flow("a", "b"), secured.flow("b", "c"), secured.flow("c", "a")]

    for flow in [*ring, *ring]:
        last = discover_topics(flow)
        assert not last.failures

    assert secured.topics("a").keys() == {secured.name("orders"), f"mm2-offsets.{secured.alias('c')}.internal"}
    assert secured.topics("b")[secured.remote("orders", "a")] == 2
    assert secured.topics("c")[secured.remote("orders", "b", "a")] == 2
    assert reasons(last, secured)[secured.remote("orders", "b", "a")] == LeftOut.CYCLE
    assert reasons(last, secured)[f"mm2-offsets.{secured.alias('b')}.internal"] == LeftOut.INTERNAL


def test_two_sources_into_one_target_stay_apart(secured: Secured) -> None:
    secured.topic("a", "orders", partitions=1, cleanup_policy="compact")
    secured.topic("b", "orders", partitions=3)

    for source in ("a", "b"):
        assert not discover_topics(secured.flow(source, "c")).failures

    topics = secured.topics("c")
    assert (topics[secured.remote("orders", "a")], topics[secured.remote("orders", "b")]) == (1, 3)
    assert secured.overrides("c", secured.remote("orders", "a")) == {"cleanup.policy": "compact"}
    assert secured.overrides("c", secured.remote("orders", "b")) == {}


def test_heartbeats_need_no_filter_unless_they_are_told_to(secured: Secured) -> None:
    if "heartbeats" not in secured.admin("a").metadata().topics:
        secured.make("a", "heartbeats")
    far = f"{secured.alias('c')}.heartbeats"
    secured.make("a", far)

    found = discover_topics(secured.flow("a", "b"))
    assert reasons(found, secured)[far] == LeftOut.FILTER

    discover_topics(secured.flow("a", "b", heartbeats_replication_enabled="true"))
    assert {f"{secured.alias('a')}.heartbeats", f"{secured.alias('a')}.{far}"} <= secured.topics("b").keys()


def test_every_topic_that_may_not_be_created_is_told_and_the_others_are(secured: Secured) -> None:
    for topic in ("orders", "payments"):
        secured.topic("a", topic)
    own = {"principal": f"User:{MIRROR}"}
    progress = f"mm2-offsets.{secured.alias('a')}.internal"
    secured.grant(
        "b",
        *(secured.acl(topic, "CREATE", **own) for topic in (secured.remote("payments", "a"), progress)),
        *(secured.acl(topic, "DESCRIBE", **own) for topic in (secured.remote("payments", "a"), progress)),
    )

    found = discover_topics(secured.flow("a", "b", users={"b": MIRROR}))

    (failure,) = found.failures
    remote = secured.remote("orders", "a")
    assert failure.action.topic == remote
    assert failure.error == (
        "Broker: Topic authorization failed (TOPIC_AUTHORIZATION_FAILED); "
        f"grant CREATE on topic {remote}, or on cluster {secured.alias('b')}"
    )
    assert secured.topics("b").keys() == {secured.remote("payments", "a"), progress}


def test_a_topic_whose_configs_may_not_be_read_is_not_created_with_others(secured: Secured) -> None:
    orders, payments = (secured.topic("a", topic, cleanup_policy="compact") for topic in ("orders", "payments"))
    own = {"principal": f"User:{MIRROR}"}
    secured.grant(
        "a",
        *(secured.acl(topic, "DESCRIBE", **own) for topic in (orders, payments)),
        secured.acl(payments, "DESCRIBE_CONFIGS", **own),
    )

    found = discover_topics(secured.flow("a", "b", users={"a": MIRROR}))

    (problem,) = found.problems
    assert problem.topic == orders
    assert problem.reason == (
        f"not created, because reading its configs failed on {secured.alias('a')}: "
        "Broker: Topic authorization failed (TOPIC_AUTHORIZATION_FAILED); grant DESCRIBE_CONFIGS on the topic"
    )
    assert secured.remote("orders", "a") not in secured.topics("b")
    assert secured.overrides("b", secured.remote("payments", "a")) == {"cleanup.policy": "compact"}


def test_a_user_who_sees_no_topic_of_the_source_is_told_so(secured: Secured) -> None:
    secured.topic("a", "orders")

    found = discover_topics(secured.flow("a", "c", users={"a": VIEWER}))

    assert [one.action.topic for one in found.applied] == [f"mm2-offsets.{secured.alias('a')}.internal"]
    source = secured.alias("a")
    assert found.notes == (
        f"{source} has no topics yet, or none that the flow's user may see: grant it DESCRIBE on those to replicate",
    )


def test_more_replicas_than_brokers_are_told_for_each_topic(secured: Secured) -> None:
    secured.topic("a", "orders")

    found = discover_topics(secured.flow("a", "b", replication_factor="2"))

    (failure,) = found.failures
    assert failure.error is not None
    assert failure.error.endswith(
        f"(INVALID_REPLICATION_FACTOR); set replication.factor to at most the number of brokers of "
        f"{secured.alias('b')}, or to -1"
    )
    created = [one.action.topic for one in found.applied if one.error is None]
    assert created == [f"mm2-offsets.{secured.alias('a')}.internal"]


def test_a_quota_on_new_partitions_slows_a_pass_down_and_loses_no_topic(secured: Secured) -> None:
    names = [secured.topic("a", f"orders-{number}", 5) for number in range(6)]
    flow, delays = secured.flow("a", "b"), list[ThrottleEvent]()
    admins = Admins(Admin(flow.source), Admin(flow.target, extra={"throttle_cb": delays.append}))
    secured.limit_changes("b", "admin", rate=10)
    try:
        found = discover_topics(flow, admins=admins)
        admins.target.client.poll(0)
        again = discover_topics(secured.flow("a", "b"))
    finally:
        secured.limit_changes("b", "admin", rate=None)

    assert delays
    assert not found.failures
    assert again.applied == ()
    assert {f"{secured.alias('a')}.{name}" for name in names} <= secured.topics("b").keys()


def test_two_aliases_of_one_cluster_are_refused_before_anything_is_planned(secured: Secured) -> None:
    secured.topic("a", "orders")
    flow = secured.flow("a", "b")
    same = flow.model_copy(update={"target": secured.cluster("a").model_copy(update={"alias": "other"})})

    with pytest.raises(SameClusterError, match="source and target are the same cluster"):
        MetadataPlanner(same, Admins.of(same))


def test_a_plan_writes_nothing(secured: Secured) -> None:
    secured.topic("a", "orders", cleanup_policy="compact")
    secured.grant("a", secured.acl(secured.name("orders"), "READ"))
    flow = secured.flow("a", "b", mirrorless_acls_prune="true")

    plan = MetadataPlanner(flow, Admins.of(flow)).plan(switched_on(flow))

    assert len(plan.actions) == 4  # the progress topic, the remote topic, the record of ACLs, the ACL
    assert any(isinstance(one, CreateTopic) and one.topic == secured.remote("orders", "a") for one in plan.actions)
    assert secured.topics("b") == {}
    assert not [acl for acl in secured.acls("b") if secured.name("") in acl.topic]
