"""Topics of services with names of their own are recognised by their records, and left out under kept names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from mirrorless import service_topics
from mirrorless.clusters.client_settings import for_confluent
from mirrorless.clusters.consumers import first_records
from mirrorless.metadata import service_records
from mirrorless.metadata.planning import Admins, MetadataPlanner, Part
from mirrorless.metadata.service_records import examine_records, replicated_on
from mirrorless.selection import LeftOut
from tests.support.metadata import discover_topics
from tests.support.secured import MIRROR

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.settings import Cluster
    from tests.support.secured import Secured

KEPT: Mapping[str, Any] = {"replication_policy_class": "IdentityReplicationPolicy"}
STATE = {
    "prod-configs": ("connector-sink", {"properties": {"topics": "orders"}}),
    "prod-offsets": ('["source",{"file":"a"}]', {"position": 1}),
    "prod-status": ("status-task-sink-0", {"state": "RUNNING", "worker_id": "w:1", "generation": 1}),
    "registry": ('{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', {"subject": "s"}),
    "commands": ('"stream/S/create"', {"statement": "CREATE STREAM S"}),
}


@pytest.fixture(autouse=True)
def _nothing_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_topics, "_examined", {})


def produce(secured: Secured, topic: str, records: Iterable[tuple[str, object]]) -> None:
    client = Producer(for_confluent(secured.cluster("a"), role="producer"))
    for key, value in records:
        client.produce(topic, key=key, value=json.dumps(value))
    assert client.flush(60) == 0


def make(secured: Secured) -> None:
    """A topic of each service with a few records, and topics of applications."""
    for topic, record in STATE.items():
        config = {"retention_ms": "-1"} if topic == "commands" else {"cleanup_policy": "compact"}
        produce(secured, secured.topic("a", topic, 25 if topic == "prod-offsets" else 1, **config), [record])
    produce(secured, secured.topic("a", "accounts", 3, cleanup_policy="compact"), [("1", {"properties": {}})])
    produce(secured, secured.topic("a", "orders"), [STATE["prod-configs"]])  # not compacted
    secured.topic("a", "empty", cleanup_policy="compact")


def left_out(secured: Secured, more: Mapping[str, Any]) -> dict[str, str]:
    flow = secured.flow("a", "b", **more)
    plan = MetadataPlanner(flow, Admins.of(flow)).plan([Part.TOPICS], thorough=True)
    mine = [one for one in plan.left_out if one.topic in secured.topics("a")]
    assert {one.kind for one in mine} <= {LeftOut.SERVICE}
    return {one.topic.partition("-")[2]: one.reason for one in mine}


def test_state_of_services_is_left_out_by_its_records(secured: Secured) -> None:
    make(secured)

    found = left_out(secured, KEPT)

    assert found.keys() == STATE.keys()
    why = "the target's own has a topic of this name too; name it in topics to copy it"
    assert {
        topic.partition("-")[0] for topic, reason in found.items() if reason == f"state of Kafka Connect; {why}"
    } == {"prod"}
    assert (found["registry"], found["commands"]) == (f"state of Schema Registry; {why}", f"state of ksqlDB; {why}")
    named = secured.name("prod-configs")
    assert left_out(secured, {"topics": f"{secured.name('')}.*, {named}", **KEPT}).keys() == STATE.keys() - {
        "prod-configs"
    }
    assert left_out(secured, {}) == {}  # the copies have names of their own


def test_the_run_of_discovery_agrees_with_the_plan_and_with_what_is_copied(secured: Secured) -> None:
    make(secured)
    flow = secured.flow("a", "b", **KEPT)

    assert not discover_topics(flow).failures

    copied = {secured.name(topic) for topic in ("accounts", "orders", "empty")}
    assert secured.topics("b").keys() - {flow.offset_storage_topic} == copied
    counts = dict.fromkeys(secured.topics("a"), 1)
    assert replicated_on(flow, secured.admin("a"), counts).keys() & secured.topics("a").keys() == copied


def test_a_topic_is_read_once_and_again_when_it_was_recreated(
    secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(secured)
    flow = secured.flow("a", "b", **KEPT)
    read: list[str] = []

    def counted(cluster: Cluster, places: list[TopicPartition], *, most: int, seconds: float) -> object:
        read.extend(topic for topic, _ in places)
        return first_records(cluster, places, most=most, seconds=seconds)

    monkeypatch.setattr(service_records, "first_records", counted)

    def look() -> set[str]:
        read.clear()
        examine_records(flow, secured.admin("a"), secured.topics("a"))
        return {topic.partition("-")[2] for topic in read}

    assert look() == {*STATE, "accounts"}
    assert look() == set()
    produce(secured, secured.name("empty"), [STATE["prod-configs"]])
    assert look() == {"empty"}
    assert "empty" in left_out(secured, KEPT)
    secured.remove("a", secured.name("empty"))
    secured.topic("a", "empty", cleanup_policy="compact")
    produce(secured, secured.name("empty"), [("1", {})])
    assert look() == {"empty"}
    assert "empty" not in left_out(secured, KEPT)


def test_without_the_right_to_read_topics_are_recognised_by_their_names_only(secured: Secured) -> None:
    make(secured)
    for topic in secured.topics("a"):
        own = {"principal": f"User:{MIRROR}"}
        secured.grant("a", *(secured.acl(topic, operation, **own) for operation in ("DESCRIBE", "DESCRIBE_CONFIGS")))
    flow = secured.flow("a", "b", users={"a": MIRROR}, **KEPT)

    plan = MetadataPlanner(flow, Admins.of(flow)).plan([Part.TOPICS], thorough=True)

    assert not [one for one in plan.left_out if one.topic in secured.topics("a")]
    (note,) = [one for one in plan.notes if "READ" in one]
    assert note == (
        f"topics of {secured.alias('a')} that may be a service's own, by their configs, are recognised by their names "
        f"only; grant READ on these to recognise them by their records: {secured.name('accounts')} and 5 more"
    )
