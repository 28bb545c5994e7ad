"""A group counts as one with members unless its cluster says that it has none."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException

from mirrorless.clusters import mirrormaker2
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.groups import Activity, list_groups
from mirrorless.settings import Cluster
from tests.support.drill_facts import flow_with

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

UNKNOWN = ConsumerGroupState.UNKNOWN


def done(answer: object) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
    return future


class Brokers:
    """Brokers that list the states of the consumer protocol, and of all groups before 2.6, as unknown."""

    def __init__(self, **groups: object) -> None:
        self._groups = groups

    def list_consumer_groups(self, **_: object) -> Future[Any]:
        valid = [SimpleNamespace(group_id=name, state=UNKNOWN) for name in self._groups]
        valid.append(SimpleNamespace(group_id="listed", state=ConsumerGroupState.EMPTY))
        return done(SimpleNamespace(valid=valid, errors=[]))

    def describe_consumer_groups(self, groups: list[str], **_: object) -> dict[str, Future[Any]]:
        assert "listed" not in groups
        return {name: done(self._groups[name]) for name in groups}

    def poll(self, _: float) -> None:
        pass


def test_groups_that_are_listed_without_a_state_are_described() -> None:
    """In a rebalance of the consumer protocol the description has no state either, but members."""
    admin = Admin(Cluster(alias="A", bootstrap_servers="127.0.0.1:1"))
    brokers = Brokers(
        stable=SimpleNamespace(state=ConsumerGroupState.STABLE, members=[]),
        empty=SimpleNamespace(state=ConsumerGroupState.EMPTY, members=[]),
        reconciling=SimpleNamespace(state=UNKNOWN, members=["one"]),
        unclear=SimpleNamespace(state=UNKNOWN, members=[]),
        refused=KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)),
    )
    admin.client = cast("AdminClient", brokers)
    groups, troubles = list_groups(admin)
    assert troubles == []
    assert groups == {
        "listed": Activity.EMPTY,
        "stable": Activity.ACTIVE,
        "empty": Activity.EMPTY,
        "reconciling": Activity.ACTIVE,
        "unclear": Activity.UNKNOWN,
        "refused": Activity.UNKNOWN,
    }


@pytest.mark.parametrize("activity", Activity)
def test_only_a_state_without_members_means_that_there_are_none(activity: Activity) -> None:
    assert activity.may_have_members is (activity not in {Activity.EMPTY, Activity.DEAD})


@pytest.mark.parametrize(("state", "runs"), [("Stable", True), ("Empty", False), (None, True), ("", True)])
def test_nodes_of_mirrormaker_2_may_run_where_no_state_is_listed(
    monkeypatch: pytest.MonkeyPatch, state: str | None, runs: bool
) -> None:
    listed = [{"group_id": "a-mm2", "group_state": state}]
    client = SimpleNamespace(list_groups=lambda: listed, close=lambda: None)
    monkeypatch.setattr(mirrormaker2, "admin_client", lambda _: client)
    assert mirrormaker2.nodes_run(flow_with()) is runs
    listed.clear()
    assert mirrormaker2.nodes_run(flow_with()) is None
