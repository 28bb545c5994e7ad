"""Remote topics have the configs of their source topics: when they are created, and after every change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from mirrorless.clusters.configs import topic_configs
from mirrorless.metadata.acl_record import AclRecord
from mirrorless.metadata.actions import AlterConfigs, ConfigDifference, CreateTopic
from mirrorless.metadata.apply import apply
from mirrorless.metadata.kind import BothEnds
from tests.support.metadata import discover_topics, sync_configs
from tests.support.secured import MIRROR, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mirrorless.metadata.actions import Action
    from mirrorless.metadata.apply import Applied
    from tests.support.secured import Secured


def test_a_new_topic_is_created_with_what_its_source_topic_has_of_its_own(secured: Secured) -> None:
    secured.topic(
        "a", "orders", cleanup_policy="compact", retention_ms="1234567", message_timestamp_type="LogAppendTime"
    )

    found = discover_topics(secured.flow("a", "b"))

    assert not found.failures
    assert secured.overrides("b", secured.remote("orders", "a")) == {
        "cleanup.policy": "compact",
        "retention.ms": "1234567",
    }
    assert sync_configs(secured.flow("a", "b")).applied == ()


def test_what_was_changed_by_hand_is_reverted_and_what_is_excluded_is_left(secured: Secured) -> None:
    secured.topic("a", "orders", retention_ms="1000000")
    flow, remote = secured.flow("a", "b"), secured.remote("orders", "a")
    discover_topics(flow)
    secured.set_config("b", remote, "retention.ms", "5")
    secured.set_config("b", remote, "segment.ms", "6000000")
    secured.set_config("b", remote, "min.insync.replicas", "1")

    (applied,) = sync_configs(flow).applied

    assert applied.error is None
    assert applied.action == AlterConfigs(
        topic=remote,
        differences=(
            ConfigDifference(name="retention.ms", upstream="1000000", downstream="5"),
            ConfigDifference(name="segment.ms", upstream="604800000", downstream="6000000", delete=True),
        ),
        reason=f"to match {secured.name('orders')}",
    )
    after = {"retention.ms": "1000000", "min.insync.replicas": "1"}
    eventually(lambda: secured.overrides("b", remote) == after)
    assert sync_configs(flow).applied == ()


def test_what_is_deleted_on_the_source_is_deleted_on_the_target(secured: Secured) -> None:
    topic = secured.topic("a", "orders", cleanup_policy="compact")
    flow, remote = secured.flow("a", "b"), secured.remote("orders", "a")
    discover_topics(flow)
    secured.set_config("a", topic, "cleanup.policy", None)

    sync_configs(flow)

    eventually(lambda: secured.overrides("b", remote) == {})


def test_defaults_of_the_source_are_set_if_asked_for(secured: Secured) -> None:
    secured.topic("a", "orders")
    flow, remote = secured.flow("a", "b", use_defaults_from="source"), secured.remote("orders", "a")

    discover_topics(flow)

    overrides = secured.overrides("b", remote)
    assert overrides["retention.ms"] == "604800000"
    assert "min.insync.replicas" not in overrides
    assert "segment.index.bytes" not in overrides  # set in the brokers' file, so it is no default
    assert sync_configs(flow).applied == ()
    secured.set_config("b", remote, "retention.ms", None)
    (applied,) = sync_configs(flow).applied
    assert isinstance(applied.action, AlterConfigs)
    assert [(one.name, one.upstream) for one in applied.action.differences] == [("retention.ms", "604800000")]


@pytest.fixture
def dynamic_default(secured: Secured) -> Iterator[None]:
    """Cluster `a` keeps closed segments for another time, set while it runs."""

    def alter(operation: AlterConfigOpType) -> None:
        change = ConfigEntry("log.segment.delete.delay.ms", "61000", incremental_operation=operation)
        resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[change])
        secured.admin("a").client.incremental_alter_configs([resource])[resource].result()

    alter(AlterConfigOpType.SET)
    yield
    alter(AlterConfigOpType.DELETE)


@pytest.mark.usefixtures("dynamic_default")
def test_what_the_source_s_brokers_were_told_while_running_goes_over(secured: Secured) -> None:
    topic = secured.topic("a", "orders")
    admin = secured.admin("a")
    eventually(lambda: topic_configs(admin, [topic])[0][topic]["file.delete.delay.ms"].value == "61000")

    discover_topics(secured.flow("a", "b"))

    assert secured.overrides("b", secured.remote("orders", "a")) == {"file.delete.delay.ms": "61000"}


def test_what_the_user_excludes_is_left_to_the_target(secured: Secured) -> None:
    secured.topic("a", "orders", retention_ms="1000000", segment_ms="7000000")
    flow = secured.flow("a", "b", config_properties_exclude=r"retention.*, min\\.insync\\.replicas")

    discover_topics(flow)

    assert secured.overrides("b", secured.remote("orders", "a")) == {"segment.ms": "7000000"}
    assert sync_configs(flow).applied == ()


def test_a_topic_that_may_not_be_altered_does_not_hold_up_the_others(secured: Secured) -> None:
    for name in ("orders", "payments"):
        secured.topic("a", name, retention_ms="1000000")
    discover_topics(secured.flow("a", "b"))
    rights = [secured.acl(secured.remote("payments", "a"), each) for each in ("DESCRIBE_CONFIGS", "ALTER_CONFIGS")]
    rights += [secured.acl(secured.remote("orders", "a"), "DESCRIBE_CONFIGS")]
    rights += [secured.acl(secured.remote(name, "a"), "DESCRIBE") for name in ("orders", "payments")]
    everybody = [secured.acl(one.topic, one.operation, principal=f"User:{MIRROR}") for one in rights]
    secured.grant("b", *everybody)
    for name in ("orders", "payments"):
        secured.set_config("b", secured.remote(name, "a"), "retention.ms", "5")

    found = sync_configs(secured.flow("a", "b", users={"b": MIRROR}))

    (failure,) = found.failures
    assert failure.action.topic == secured.remote("orders", "a")
    assert failure.error is not None
    assert failure.error.endswith("(TOPIC_AUTHORIZATION_FAILED); grant ALTER_CONFIGS on the topic")
    eventually(lambda: secured.overrides("b", secured.remote("payments", "a")) == {"retention.ms": "1000000"})


def applied_to(secured: Secured, actions: Sequence[Action]) -> list[Applied]:
    """Apply actions to `b`."""
    flow, target = secured.flow("a", "b"), secured.admin("b")
    ends = BothEnds(flow=flow, source=secured.admin("a"), target=target, remote={})
    return apply(target, actions, record=AclRecord(flow, source_id=""), ends=ends)


def test_a_topic_is_created_without_the_configs_that_the_target_refuses(secured: Secured) -> None:
    # These brokers have no tiered storage, and say so to whoever asks for it, as MSK Serverless does of most configs.
    name, other = secured.name("tiered"), secured.name("plain")
    refused = {"remote.storage.enable": "true", "retention.ms": "1000000", "cleanup.policy": "delete"}
    actions = [
        CreateTopic(topic=name, partitions=1, replication_factor=1, reason="", config=refused),
        CreateTopic(topic=other, partitions=1, replication_factor=1, reason="", config={"retention.ms": "5"}),
    ]

    first, second = applied_to(secured, actions)

    assert (first.error, second.error, second.note) == (None, None, None)
    assert first.note is not None
    assert first.note.startswith(
        f"created without configs that {secured.alias('b')} refuses: remote.storage.enable=true: Tiered Storage "
        "functionality"
    )
    eventually(lambda: {name, other} <= secured.topics("b").keys())
    assert secured.overrides("b", name) == {"retention.ms": "1000000", "cleanup.policy": "delete"}
    assert secured.overrides("b", other) == {"retention.ms": "5"}


def test_a_topic_whose_cleanup_policy_the_target_refuses_is_not_created(secured: Secured) -> None:
    name = secured.name("orders")
    config = {"cleanup.policy": "burn", "retention.ms": "5"}
    action = CreateTopic(topic=name, partitions=1, replication_factor=1, reason="", config=config)

    (applied,) = applied_to(secured, [action])

    assert applied.error is not None
    assert applied.error.startswith(f"not created, because {secured.alias('b')} refuses cleanup.policy=burn: ")
    assert name not in secured.topics("b")


def test_of_several_changes_only_the_refused_one_is_not_made(secured: Secured) -> None:
    name = secured.topic("b", "orders")
    wanted = [("retention.ms", "7"), ("remote.storage.enable", "true"), ("segment.ms", "8000000")]
    action = AlterConfigs(
        topic=name,
        differences=tuple(ConfigDifference(name=key, upstream=value, downstream=None) for key, value in wanted),
        reason="",
    )

    (applied,) = applied_to(secured, [action])

    assert applied.error is not None
    assert applied.error.startswith("remote.storage.enable: ")
    advice = "; to keep the target's values, add remote.storage.enable to config.properties.exclude"
    assert applied.error.endswith(advice)
    assert applied.error.count("; ") == 1
    eventually(lambda: secured.overrides("b", name) == {"retention.ms": "7", "segment.ms": "8000000"})
