"""A login that was exchanged while connections were open: whoever is refused connects anew, with the one that holds."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import NewTopic
from kafka import errors as kafka_errors

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.clusters.topics import high_watermarks
from mirrorless.copy.engines import lease_plans, lease_run
from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.lease_run import run_lease
from mirrorless.copy.engines.spark import lease_source as partition_leases
from mirrorless.copy.engines.spark.lease_source import LeaseReader
from mirrorless.copy.flow.reference import FlowRef
from mirrorless.copy.planning import lease_planner as planning
from mirrorless.copy.planning.lease_planner import LeasePlanner
from mirrorless.copy.slot.worker import Slot
from mirrorless.errors import ClusterUnavailable, ConfigurationError
from mirrorless.kafka_python.event_loop import EventLoop
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from mirrorless.protocol.cluster_client import LATEST, ClusterClient
from mirrorless.settings import Cluster
from tests.support.world import World, fill

if TYPE_CHECKING:
    from mirrorless.settings import Flow

OF_YESTERDAY = "zeroth"


def test_a_broker_that_refuses_the_login_is_noticed() -> None:
    topic, net = "t", EventLoop()
    with start_clusters([ClusterSpec(name="exchanged", users={"admin": "first"})]) as started:
        cluster = started["exchanged"]
        login = cluster.client_settings()
        here = Cluster(alias="A", bootstrap_servers=cluster.bootstrap_servers, client=login)
        admin = Admin(here)
        admin.result(admin.client.create_topics([NewTopic(topic, 1, 1)])[topic])
        wire = ClusterClient(net, cluster="A", config=for_kafka_python(here, role="consumer"))

        def refused() -> bool:
            return wire.login_refused

        async def ask() -> int:
            await wire.connect(timeout_ms=30_000, topics=[topic])
            found = await wire.offsets(1, [(topic, 0)], at=LATEST)
            return found[topic, 0].offset

        assert net.run(ask) == 0
        assert not refused()
        wire._manager.config["sasl_plain_password"] = OF_YESTERDAY
        wire._manager._conns[1].close()
        with pytest.raises(kafka_errors.SaslAuthenticationFailedError):
            net.run(lambda: wire.offsets(1, [(topic, 0)], at=LATEST))
        assert refused()
        wire.close()
        net.close()


def test_a_slot_that_was_refused_is_not_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(world.source, world.topic(), [b"one"])
    world.discover()
    place = world.place(bounded=False)
    world.write_settings(**{"mirrorless.lease.seconds": "1"})
    with closing(LeasePlanner(place.load(), bounded=False)) as planner:
        (rows,) = planner.plan(place.load())
    try:
        run_lease(place, rows, control=Control(), lease=1, slot=0)
        first = lease_run._slots[world.flow]
        run_lease(place, rows, control=Control(), lease=2, slot=0)
        assert lease_run._slots[world.flow] is first
        first._ends.source.login_refused = True  # behind the lease
        run_lease(place, rows, control=Control(), lease=3, slot=0)
        assert lease_run._slots[world.flow] is not first
        monkeypatch.setattr(Slot, "login_refused", True)
        run_lease(place, rows, control=Control(), lease=4, slot=0)
        assert world.flow not in lease_run._slots
    finally:
        if (left := lease_run._slots.pop(world.flow, None)) is not None:
            left.close()


def test_a_slot_that_cannot_be_opened_is_opened_at_the_next_lease(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(world.source, world.topic(), [b"one"])
    world.discover()
    place = world.place(bounded=True)
    with closing(LeasePlanner(place.load(), bounded=True)) as planner:
        (rows,) = planner.plan(place.load())

    def no_token(*_: Any, **__: Any) -> Any:  # noqa: ANN401
        raise ClusterUnavailable("no token for the login", cluster="B")

    def no_file(_: FlowRef) -> Flow:
        raise ConfigurationError("cannot be read", file="mm2.properties")

    monkeypatch.setattr(lease_run, "_PAUSE_S", 0.01)
    for method, failing, why in ((Slot, no_token, "no token"), (FlowRef, no_file, "mm2.properties: cannot be read")):
        with monkeypatch.context() as context:
            context.setattr(method, "__init__" if method is Slot else "load", failing)
            (report,) = run_lease(place, rows, control=Control(), lease=1, slot=0)
        assert report.state == "unreachable"
        assert why in str(report.error)
        assert world.flow not in lease_run._slots
    try:
        (report,) = run_lease(place, rows, control=Control(), lease=2, slot=0)
        assert report.records == 1
    finally:
        lease_run._slots.pop(world.flow).close()


def test_a_planner_that_gets_no_answer_is_followed_by_one_with_new_clients(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.topic()
    world.discover()
    control = Control(str(world.folder))
    reader = LeaseReader(world.place(bounded=False), control)
    assert len(reader.partitions({"lease": 0}, {"lease": 1})) == 1
    first = reader._plans.planner
    assert first is not None
    plan = LeasePlanner.plan

    def refused(self: LeasePlanner, flow: Flow, **options: Any) -> Any:  # noqa: ANN401
        if self is first:
            raise ClusterUnavailable("check user and password", cluster="A")
        return plan(self, flow, **options)

    monkeypatch.setattr(LeasePlanner, "plan", refused)
    monkeypatch.setattr(lease_plans, "_RETRY_S", 0.01)
    assert reader.partitions({"lease": 1}, {"lease": 2}) == []
    assert "check user and password" in control.complaint()
    assert len(reader.partitions({"lease": 2}, {"lease": 3})) == 1
    assert reader._plans.planner is not first
    assert reader._plans.planner is not None
    assert reader._plans.planner._rival is first._rival
    reader.stop()


def test_partitions_that_the_target_lacks_are_told_after_a_while(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, unmade = world.topic(partitions=2), world.topic(partitions=3)
    flow = world.place().load()
    monkeypatch.setattr(planning, "_DISCOVERIES", 0)
    with closing(LeasePlanner(flow, bounded=False)) as planner:
        counts = {topic: 2, unmade: 3}
        assert planner._not_made(counts, {topic: 1, unmade: 0}) == (
            f"4 partitions are not copied, since {world.target_alias} lacks them, among them {topic}-1; the log of "
            "topic discovery has the reason"
        )
        assert planner._not_made(counts, counts) == ""
        monkeypatch.setattr(planning, "_DISCOVERIES", 2)
        assert planner._not_made(counts, {topic: 0, unmade: 0}) == ""  # they may just not have been made yet


def test_partitions_whose_end_is_not_known_stay_in_the_plan(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = world.topic(partitions=2)
    fill(world.source, topic, [b"one"] * 10, partitions=2)
    world.discover()
    control = Control(str(world.folder))
    reader = LeaseReader(world.place(bounded=False), control)
    assert len(reader.partitions({"lease": 0}, {"lease": 1})) == 1
    first = reader._plans.planner
    ends = high_watermarks

    def one_broker_is_away(*what: Any) -> Any:  # noqa: ANN401
        found, missing = ends(*what)
        return {place: end for place, end in found.items() if place[1]}, missing | {(topic, 0): "timed out"}

    monkeypatch.setattr(planning, "high_watermarks", one_broker_is_away)
    (lease,) = reader.partitions({"lease": 1}, {"lease": 2})
    assert isinstance(lease, partition_leases.SlotLease)
    assert [(row[1], row[3]) for row in sorted(lease.rows)] == [(0, 5), (1, 5)]
    assert f"the end of 1 partitions is not known, among them {topic}-0: timed out" in control.complaint()
    monkeypatch.setattr(planning, "high_watermarks", ends)
    assert len(reader.partitions({"lease": 2}, {"lease": 3})) == 1
    assert reader._plans.planner is not first  # perhaps it was the login
    assert control.complaint() == ""
    reader.stop()
