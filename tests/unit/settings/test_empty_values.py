"""An empty value is read as not set, in every form of file; only lists, passwords and a few keys may be empty."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.settings import Settings, load

if TYPE_CHECKING:
    from pathlib import Path

BASE = """
clusters = A, B
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
A->B.enabled = true
"""
SOURCE: dict[str, Any] = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:1",
    "offset.storage.topic": "connect-offsets",
}


def of_properties(folder: Path, text: str) -> Settings:
    path = folder / "mm2.properties"
    path.write_text(BASE + text)
    return load(path)


def of_json(folder: Path, content: object) -> Settings:
    path = folder / "connectors.json"
    path.write_text(json.dumps(content))
    return load(path)


@pytest.mark.parametrize(
    "key",
    [
        "tasks.max",
        "A->B.replication.factor",
        "A->B.sync.topic.acls.enabled",
        "replication.policy.class",
        "B.offset.storage.topic",
        "offset-syncs.topic.location",
        "A.client.id",
        "A.consumer.auto.offset.reset",
        "A.sasl.jaas.config",
        "mirrorless.lease.seconds",
    ],
)
def test_an_empty_value_is_the_default_with_a_warning(tmp_path: Path, key: str) -> None:
    settings = of_properties(tmp_path, f"{key} =\n")

    assert settings.flows == of_properties(tmp_path, "").flows
    (warning,) = settings.warnings
    assert warning.endswith(": is empty, which is read as not set")


@pytest.mark.parametrize("key", ["transforms", "A->B.predicates", "config.providers", "A->B.key.converter"])
def test_an_empty_key_without_a_counterpart_is_not_mentioned(tmp_path: Path, key: str) -> None:
    settings = of_properties(tmp_path, f"{key} =\n")

    assert (settings.warnings, settings.notes) == ((), ())


def test_an_empty_list_is_empty_as_in_mirrormaker_2(tmp_path: Path) -> None:
    flow = of_properties(tmp_path, "A->B.topics.exclude =\ngroups =\n").flow("A->B")

    assert (flow.topics_exclude, flow.groups) == ((), ())


def test_an_empty_value_that_has_a_meaning_is_kept(tmp_path: Path) -> None:
    text = "A.ssl.endpoint.identification.algorithm =\nA.ssl.key.password =\n"
    client = of_properties(tmp_path, text).flow("A->B").source.client

    assert dict(client) == {"ssl.endpoint.identification.algorithm": "", "ssl.key.password": ""}


def test_a_flow_without_a_value_has_that_of_the_top_level(tmp_path: Path) -> None:
    assert of_properties(tmp_path, "A->B.tasks.max =\ntasks.max = 4\n").flow("A->B").tasks_max == 4


def test_empty_strings_nulls_numbers_and_booleans_of_connect(tmp_path: Path) -> None:
    config = SOURCE | {
        "name": "orders",
        "transforms": "",
        "predicates": None,
        "tasks.max": 4,
        "replication.factor": None,
        "offset.lag.max": "",
        "sync.topic.acls.enabled": False,
        "refresh.topics.interval.seconds": 30,
        "enabled": "",
        "offsets.storage.topic": "",
        "source.cluster.sasl.jaas.config": "",
        "topics": "orders",
    }
    settings = of_json(tmp_path, config)
    flow = settings.flow("A->B")

    assert (flow.tasks_max, flow.replication_factor, flow.offset_lag_max) == (4, 2, 100)
    assert (flow.sync_topic_acls_enabled, flow.refresh_topics_interval_seconds) == (False, 30)
    assert (flow.offset_storage_topic, dict(flow.source.client)) == ("connect-offsets", {})
    assert [line.rpartition(": ")[2] for line in settings.warnings] == ["is empty, which is read as not set"] * 2


def test_the_answer_with_info_and_status(tmp_path: Path) -> None:
    running = {"connector": {"state": "RUNNING", "worker_id": "w:8083"}, "tasks": []}
    info = {"name": "orders", "config": SOURCE | {"name": "orders"}, "tasks": [], "type": "source"}
    settings = of_json(tmp_path, {"orders": {"info": info, "status": {"name": "orders", **running}}})
    assert (settings.flow("A->B").connector_name, settings.warnings) == ("orders", ())

    stopped = {"orders": {"info": info, "status": {"name": "orders", "connector": {"state": "STOPPED"}}}}
    assert of_json(tmp_path, stopped).warnings == (
        f"{tmp_path / 'connectors.json'}: connector orders: is STOPPED on Connect, which has no effect here; to start "
        "without copying, use mirrorless pause",
    )
