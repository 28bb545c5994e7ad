"""Which remote topics have lost their source topic: only those of this flow, by their names."""

from __future__ import annotations

from mirrorless.metadata.kinds.topic_deletes import differences, orphans
from tests.support.drill_facts import flow_with


def test_only_remote_topics_of_the_flow() -> None:
    flow = flow_with(topics=("orders.*",))
    target = ["a.orders", "a.orders-old", "a.payments", "c.orders-old", "orders-old", "a.checkpoints.internal"]
    assert orphans(flow, source=["orders"], target=target) == {"a.orders-old": "orders-old"}
    (one,) = differences(flow, {"a.orders-old": "orders-old"})
    assert one.text == "delete a.orders-old on b: orders-old no longer exists on a"
    assert one.change is None


def test_with_kept_names_a_topic_of_the_target_may_be_its_own() -> None:
    flow = flow_with(topics=("orders.*",), replication_policy_class="IdentityReplicationPolicy")
    assert orphans(flow, source=["orders"], target=["orders", "orders-old"]) == {}
