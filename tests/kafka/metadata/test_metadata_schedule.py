"""A flow that runs keeps topics, configs and ACLs in step, each at its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.local.metadata_schedule import MetadataSchedule
from tests.support.heard import Heard
from tests.support.secured import eventually

if TYPE_CHECKING:
    from tests.support.secured import Secured
    from tests.support.world import World


def test_what_changes_while_a_flow_runs_is_followed(secured: Secured) -> None:
    orders = secured.topic("a", "orders")
    one_second = dict.fromkeys(
        ("refresh_topics_interval_seconds", "sync_topic_configs_interval_seconds", "sync_topic_acls_interval_seconds"),
        "1",
    )
    heard = Heard()
    schedule = MetadataSchedule(secured.flow("a", "b", users=None, **one_second), heard)
    assert schedule.first().went_well
    secured.set_config("a", orders, "retention.ms", "1234567")
    secured.grant("a", secured.acl(orders, "READ"))
    secured.topic("a", "payments")
    remote = secured.remote("orders", "a")

    def followed() -> bool:
        schedule.tick()
        return (
            secured.overrides("b", remote) == {"retention.ms": "1234567"}
            and secured.acl(remote, "READ") in secured.acls("b")
            and secured.remote("payments", "a") in secured.topics("b")
        )

    eventually(followed)
    assert heard.troubles == []


def test_that_there_is_no_authorizer_is_said_once(world: World) -> None:
    world.topic()
    world.write_settings(**{"sync.topic.acls.interval.seconds": "1", "sync.topic.configs.enabled": "false"})
    heard = Heard()
    schedule = MetadataSchedule(world.place().load(), heard)

    assert schedule.first().went_well

    def third_pass() -> bool:
        schedule.tick()
        return len(heard.passes) >= 3

    eventually(third_pass)
    assert heard.troubles == []
    assert heard.notes == [
        f"{world.flow}: ACLs are not kept in step: cluster {world.source_alias} has no authorizer",
    ]


def test_what_is_switched_off_is_not_done(secured: Secured) -> None:
    orders = secured.topic("a", "orders")
    off = {"sync_topic_configs_enabled": "false", "sync_topic_acls_enabled": "false"}
    heard = Heard()
    schedule = MetadataSchedule(secured.flow("a", "b", users=None, **off), heard)
    assert schedule.first().went_well
    secured.set_config("a", orders, "retention.ms", "1234567")
    secured.grant("a", secured.acl(orders, "READ"))

    assert MetadataSchedule(secured.flow("a", "b", users=None, **off), heard).first().went_well

    assert [len(found.applied) for _, found in heard.passes] == [2, 0]
    assert secured.overrides("b", secured.remote("orders", "a")) == {}
