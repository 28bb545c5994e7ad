"""A default replication factor gives way where a cluster has fewer brokers; one that is set does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from mirrorless.clusters.internal_topics import checkpoints_topic, heartbeats_topic, offset_syncs_topic
from mirrorless.clusters.replication_factors import broker_count, factor_of, usable_factor
from mirrorless.clusters.target_state import configs_topic
from mirrorless.metadata.actions import CreateTopic
from mirrorless.metadata.plan import plan_internal_topics, plan_topics, within_brokers
from mirrorless.settings import Cluster, Flow, load

if TYPE_CHECKING:
    from pathlib import Path

    from confluent_kafka.admin import ClusterMetadata

A, B = Cluster(alias="A", bootstrap_servers="a:1"), Cluster(alias="B", bootstrap_servers="b:1")
DEFAULTS = Flow(source=A, target=B, errors_tolerance="all", dead_letter_topic="dead")


def created(flow: Flow, *, source: int, target: int) -> tuple[dict[str, int], tuple[str, ...]]:
    """Factors of all topics that a pass creates, where nothing is there, and the warnings."""
    actions = [
        *plan_internal_topics(flow, source=(), target=()),
        *plan_topics(
            flow, remote={"t": "A.t", "u": "A.u"}, source={"t": 1, "u": 1}, target={}, configs={"t": {}, "u": {}}
        ),
    ]
    planned, warnings = within_brokers(flow, actions, source=source, target=target)
    return {one.topic: one.replication_factor for one in planned if isinstance(one, CreateTopic)}, warnings


def test_only_a_default_gives_way() -> None:
    cases: list[tuple[int, bool, int, int]] = [
        (3, True, 1, 1),
        (3, True, 3, 3),
        (2, True, 6, 2),
        (3, False, 1, 3),
        (-1, True, 1, -1),
        (-1, False, 1, -1),
    ]
    assert [
        (factor, is_default, brokers, usable_factor(factor, is_default=is_default, brokers=brokers))
        for factor, is_default, brokers, _ in cases
    ] == cases


def test_each_cluster_has_one_warning() -> None:
    factors, warnings = created(DEFAULTS, source=2, target=1)
    assert factors == {
        "mm2-offsets.A.internal": 1,
        "dead": 1,
        "mm2-offset-syncs.B.internal": 2,
        "A.t": 1,
        "A.u": 1,
    }
    assert warnings == (
        "A has 2 brokers, fewer than the default replication factors (offset-syncs.topic.replication.factor=3): "
        "new topics get 2; set the factors to confirm this",
        "B has 1 broker, fewer than the default replication factors (offset.storage.replication.factor=3, "
        "errors.deadletterqueue.topic.replication.factor=3, replication.factor=2): new topics get 1; "
        "set the factors to confirm this",
    )


def test_enough_brokers_are_not_worth_a_warning() -> None:
    factors, warnings = created(DEFAULTS, source=3, target=3)
    assert set(factors.values()) == {2, 3}
    assert warnings == ()


def test_what_is_set_stays_even_if_it_is_the_default(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
        "A->B.replication.factor = 2\noffset.storage.replication.factor = 3\n"
    )
    flow = load(file).flow("A->B")
    factors, warnings = created(flow, source=1, target=1)
    assert factors == {
        "mm2-offsets.A.internal": 3,
        "mm2-offset-syncs.B.internal": 1,
        "A.t": 2,
        "A.u": 2,
    }
    assert len(warnings) == 1
    assert factor_of(flow, "replication.factor") == (2, False)
    assert factor_of(flow, "heartbeats.topic.replication.factor") == (3, True)


def test_internal_topics_know_whether_their_factor_is_set() -> None:
    made = (checkpoints_topic, heartbeats_topic, offset_syncs_topic, configs_topic)
    assert [one(DEFAULTS).factor_is_default for one in made] == [True] * 4
    fields = ("checkpoints_topic", "heartbeats_topic", "offset_syncs_topic", "offset_storage")
    flow = Flow.model_validate({"source": A, "target": B} | {f"{field}_replication_factor": 3 for field in fields})
    assert [(one(flow).factor_is_default, one(flow).replication_factor) for one in made] == [(False, 3)] * 4


def test_brokers_that_are_down_count_if_replicas_are_assigned_to_them() -> None:
    topic = SimpleNamespace(partitions={0: SimpleNamespace(replicas=[1, 2]), 1: SimpleNamespace(replicas=[2, 3])})
    metadata = SimpleNamespace(brokers={1: None, 4: None}, topics={"t": topic, "none": SimpleNamespace(partitions={})})
    assert broker_count(cast("ClusterMetadata", metadata)) == 4
