"""A flow that runs keeps topics, configs and ACLs in step, each by its function's schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.heard import Heard, first_pass, without_copy
from tests.support.secured import eventually

if TYPE_CHECKING:
    from tests.support.secured import Secured
    from tests.support.world import World

INTERVALS = ("refresh_topics", "sync_topic_configs", "sync_topic_acls")


def test_what_changes_while_a_flow_runs_is_followed(secured: Secured) -> None:
    orders = secured.topic("a", "orders")
    one_second = {f"{name}_interval_seconds": "1" for name in INTERVALS}
    heard = Heard()
    with without_copy(
        secured.file(("a", "b"), users=None, emit_heartbeats_enabled="false", **one_second), heard
    ) as run:
        first = first_pass(run)
        assert len(first) == 3
        assert all(found.went_well for found in first)
        secured.set_config("a", orders, "retention.ms", "1234567")
        secured.grant("a", secured.acl(orders, "READ"))
        secured.topic("a", "payments")
        remote = secured.remote("orders", "a")
        run.start()
        eventually(
            lambda: (
                secured.overrides("b", remote) == {"retention.ms": "1234567"}
                and secured.acl(remote, "READ") in secured.acls("b")
                and secured.remote("payments", "a") in secured.topics("b")
            )
        )
    assert heard.troubles == []
    assert sum(heard.values["topics-created"]) >= 2
    assert sum(heard.values["acls-changed"]) >= 1


def test_that_there_is_no_authorizer_is_said_once(world: World) -> None:
    world.topic()
    world.write_settings(**{"sync.topic.acls.interval.seconds": "1", "sync.topic.configs.enabled": "false"})
    heard = Heard()
    with without_copy(world.file, heard) as run:
        assert all(found.went_well for found in first_pass(run))
        run.start()
        eventually(lambda: len(heard.passes) >= 4)
    assert heard.troubles == []
    assert heard.notes == [
        f"{world.flow}: ACLs are not synced: cluster {world.source_alias} has no authorizer",
    ]


def test_what_is_switched_off_is_not_done(secured: Secured) -> None:
    orders = secured.topic("a", "orders")
    off = {"sync_topic_configs_enabled": "false", "sync_topic_acls_enabled": "false"}
    file = secured.file(("a", "b"), users=None, refresh_topics_enabled="false", **off)
    heard = Heard()
    with without_copy(file, heard) as run:
        assert len(first_pass(run)) == 1
        secured.set_config("a", orders, "retention.ms", "1234567")
        secured.grant("a", secured.acl(orders, "READ"))
        assert len(first_pass(run)) == 1
    assert [len(found.applied) for _, found in heard.passes] == [2, 0]
    assert secured.overrides("b", secured.remote("orders", "a")) == {}
