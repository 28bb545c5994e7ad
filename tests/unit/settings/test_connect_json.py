"""Connectors as people post them to Connect start a flow as an mm2.properties file would."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.errors import ConfigurationError
from mirrorless.settings import Settings, load

if TYPE_CHECKING:
    from pathlib import Path

PACKAGE = "org.apache.kafka.connect.mirror."
ENDS: dict[str, Any] = {
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:1",
}
SOURCE: dict[str, Any] = {
    **ENDS,
    "connector.class": PACKAGE + "MirrorSourceConnector",
    "topics": "orders, pay.*",
    "tasks.max": 4,
    "replication.factor": "3",
    "source.cluster.security.protocol": "SSL",
    "source.consumer.client.id": "reader",
    "producer.override.client.id": "writer",
    "refresh.topics.enabled": False,
    "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
}
CHECKPOINT: dict[str, Any] = {
    **ENDS,
    "connector.class": PACKAGE + "MirrorCheckpointConnector",
    "groups": "billing",
    "tasks.max": 1,
}
HEARTBEAT: dict[str, Any] = {**ENDS, "connector.class": PACKAGE + "MirrorHeartbeatConnector"}


def connector(config: dict[str, Any]) -> dict[str, Any]:
    return {"name": config["connector.class"].rpartition(".")[2], "config": config}


def write(folder: Path, *contents: object) -> list[Path]:
    paths = [folder / f"{number}.json" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return paths


ALL: tuple[dict[str, Any], ...] = (SOURCE, CHECKPOINT, HEARTBEAT)
EXPANDED = {
    one["name"]: {"info": {**one, "tasks": [{"connector": one["name"], "task": 0}], "type": "source"}}
    for one in map(connector, ALL)
}


@pytest.mark.parametrize(
    "files",
    [
        pytest.param([connector(one) for one in ALL], id="a file each"),
        pytest.param([connector(one) for one in reversed(ALL)], id="in any order"),
        pytest.param(list(ALL), id="settings alone, as for PUT"),
        pytest.param([[connector(one) for one in ALL]], id="a list"),
        pytest.param([EXPANDED], id="expand=info"),
        pytest.param([{name: one["info"] for name, one in EXPANDED.items()}], id="by name"),
        pytest.param([connector(SOURCE), [connector(CHECKPOINT)], {"h": {"info": connector(HEARTBEAT)}}], id="mixed"),
    ],
)
def test_every_shape_is_the_same_flow(tmp_path: Path, files: list[object]) -> None:
    flow = load(*write(tmp_path, *files)).flow("A->B")

    assert flow.topics == ("orders", "pay.*")
    assert flow.groups == ("billing",)
    assert (flow.tasks_max, flow.replication_factor, flow.refresh_topics_enabled) == (4, 3, False)
    assert (flow.source.bootstrap_servers, flow.target.bootstrap_servers) == ("a:1", "b:1")
    assert dict(flow.source.client) == {"security.protocol": "SSL", "consumer.client.id": "reader"}
    assert dict(flow.target.client) == {"producer.client.id": "writer"}


def test_one_text_stands_for_all_files(tmp_path: Path) -> None:
    settings = load(*write(tmp_path, *map(connector, ALL)))

    assert load(settings.file) == settings


def test_what_two_connectors_say_differently_is_the_copying_one_s(tmp_path: Path) -> None:
    settings = load(*write(tmp_path, connector(CHECKPOINT | {"topics": "x"}), connector(SOURCE)))

    assert settings.flow("A->B").topics == ("orders", "pay.*")
    place = f"{tmp_path / '0.json'}#MirrorCheckpointConnector"
    other = f"{tmp_path / '1.json'}#MirrorSourceConnector"
    assert f"{place}: topics: is ignored, because {other} sets another value" in settings.warnings


def test_the_progress_topic_is_the_worker_s_if_it_is_named_and_the_name_is_the_connector_s(tmp_path: Path) -> None:
    source = connector(SOURCE | {"offset.storage.topic": "connect-offsets"}) | {"name": "orders"}
    settings = load(*write(tmp_path, source))

    assert settings.flow("A->B").offset_storage_topic == "connect-offsets"
    assert settings.flow("A->B").connector_name == "orders"
    assert settings.warnings == ()


def test_a_connector_s_own_progress_topic_comes_before_the_worker_s(tmp_path: Path) -> None:
    said = {"offsets.storage.topic": "own", "offset.storage.topic": "connect-offsets"}
    settings = load(*write(tmp_path, connector(SOURCE | said) | {"name": "orders"}))

    assert settings.flow("A->B").offset_storage_topic == "own"
    assert settings.warnings == ()


@pytest.mark.parametrize("key", ["offsets.storage.topic", "offset.storage.topic"])
def test_two_progress_topics_on_one_target_are_refused(tmp_path: Path, key: str) -> None:
    other = SOURCE | {"source.cluster.alias": "C", "source.cluster.bootstrap.servers": "c:1", key: "of-c"}
    files = write(tmp_path, connector(SOURCE | {key: "of-a"}) | {"name": "a"}, connector(other) | {"name": "c"})
    with pytest.raises(ConfigurationError) as raised:
        load(*files)
    first, second = (f"{tmp_path / f'{number}.json'}#{name}" for number, name in enumerate("ac"))
    assert str(raised.value) == (f"{second}: {key}=of-c: {first} has of-a; use a separate configuration file for each")


def test_without_the_progress_topic_a_warning_says_that_it_starts_from_scratch(tmp_path: Path) -> None:
    settings = load(*write(tmp_path, connector(SOURCE) | {"name": "orders"}))

    assert settings.warnings == (
        f"{tmp_path / '0.json'}: connector orders: offset.storage.topic is not set, so the copy uses a "
        "new progress topic; to resume where Connect stopped, set it to the worker's offset.storage.topic",
    )


@pytest.mark.parametrize("content", [SOURCE, {"config": SOURCE}, SOURCE | {"name": ""}], ids=["PUT", "POST", "empty"])
def test_without_its_name_the_connector_is_called_as_in_dedicated_mode_and_a_warning_says_so(
    tmp_path: Path, content: dict[str, Any]
) -> None:
    settings = load(*write(tmp_path, content | {"offset.storage.topic": "connect-offsets"}))

    assert settings.flow("A->B").connector_name == "MirrorSourceConnector"
    assert (
        f"{tmp_path / '0.json'}: connector without a name: name is missing; add the connector's name to resume where "
        "Connect stopped"
    ) in settings.warnings


@pytest.mark.parametrize("said", [{"name": "orders"}, {"mirrorless.connector.name": "orders"}])
def test_settings_alone_may_say_the_name(tmp_path: Path, said: dict[str, str]) -> None:
    settings = load(*write(tmp_path, SOURCE | said | {"offset.storage.topic": "connect-offsets"}))

    assert settings.flow("A->B").connector_name == "orders"
    assert settings.warnings == ()


def test_several_flows(tmp_path: Path) -> None:
    back = SOURCE | {"source.cluster.alias": "B", "source.cluster.bootstrap.servers": "b:1"}
    back |= {"target.cluster.alias": "C", "target.cluster.bootstrap.servers": "c:1"}
    settings = load(*write(tmp_path, [connector(SOURCE), connector(back)]))

    assert [flow.name for flow in settings.flows] == ["A->B", "B->C"]
    assert [cluster.bootstrap_servers for cluster in settings.clusters] == ["a:1", "b:1", "c:1"]


def test_a_connector_without_a_copy_and_a_stranger_are_left_out_with_a_warning(tmp_path: Path) -> None:
    stranger = {"name": "jdbc", "config": {"connector.class": "io.Jdbc", "connection.password": "swordfish"}}
    back = CHECKPOINT | {"source.cluster.alias": "B", "target.cluster.alias": "A"}
    settings = load(*write(tmp_path, [connector(SOURCE), stranger, connector(back)]))

    assert [flow.name for flow in settings.flows] == ["A->B"]
    file = tmp_path / "0.json"
    assert f"{file}: connector jdbc: ignored, not a connector of MirrorMaker 2" in settings.warnings
    assert (
        f"{file}: connector MirrorCheckpointConnector: is ignored, as B->A has no MirrorSourceConnector"
        in settings.warnings
    )


def test_the_target_s_alias_has_a_default_and_spelling_is_put_right(tmp_path: Path) -> None:
    config = {key: value for key, value in SOURCE.items() if key != "target.cluster.alias"}
    config |= {"connector.class": " " + PACKAGE + "MirrorSourceConnector", "Replication.Factor": 1, "topics": '"*.x"'}
    config.pop("replication.factor")
    flow = load(*write(tmp_path, config)).flow("A->target")

    assert (flow.replication_factor, flow.topics) == (1, (r".*\.x",))


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("{", "is not JSON at line 1: Expecting property name enclosed in double quotes"),
        ("[" * 100_000, "is not JSON that can be read: RecursionError"),
        ([1], "element 1 of the list is not a connector"),
        ({}, 'is not a connector: it has neither "connector.class" nor "config"'),
        ({"clusters": "A, B"}, 'is not a connector: it has neither "connector.class" nor "config"'),
        ([], "the file has no connector of MirrorMaker 2; supported: MirrorSourceConnector, "),
        ({"a": {"status": {}}}, "a: has no settings; request it with ?expand=info"),
        (connector(HEARTBEAT), "MirrorHeartbeatConnector does not copy records; add the MirrorSourceConnector of A->B"),
        (
            [connector(SOURCE), connector(SOURCE)],
            "are both a MirrorSourceConnector of A->B; use a separate configuration file for each",
        ),
        (
            [connector(SOURCE), connector(CHECKPOINT), connector(CHECKPOINT)],
            "are both a MirrorCheckpointConnector of A->B; merge them into one",
        ),
        (
            connector(SOURCE | {"source.cluster.alias": ""}),
            "source.cluster.alias: is empty, so MirrorMaker 2 names remote topics .t; name the source",
        ),
        (connector(SOURCE | {"source.cluster.alias": "a b"}), "must be one word without -> and commas"),
        (connector(SOURCE | {"topics": ["a"]}), "topics: must be a string, a number, true or false"),
        (connector(SOURCE | {"tasks.max": "x"}), "tasks.max=x: must be a whole number in the range of 32 bits"),
        (
            connector(SOURCE | {"transforms": "mask"}),
            "transforms=mask: mask has no class: records are copied unchanged",
        ),
        (connector(SOURCE | {"source.cluster.bootstrap.servers": "a"}), "bootstrap.servers=a: a is not host:port"),
    ],
)
def test_one_line_with_the_file(tmp_path: Path, content: object, line: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(*write(tmp_path, content))

    assert line in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "0.json"))
    assert "\n" not in str(caught.value)


def test_several_properties_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"0\.json: several files may only be connectors"):
        load(*write(tmp_path, "clusters = A", "clusters = B"))


def settings_of(folder: Path, config: dict[str, Any]) -> Settings:
    return load(*write(folder, connector(config)))


def test_no_secret_is_shown(tmp_path: Path) -> None:
    config = SOURCE | {"source.cluster.ssl.key.password": "swordfish", "target.cluster.sasl.jaas.config": "swordfish"}

    assert "swordfish" not in repr(settings_of(tmp_path, config))


@pytest.mark.parametrize(
    "said", [{"topics": "orders"}, {"errors.tolerance": "all"}, {"consumer.auto.offset.reset": "latest"}]
)
def test_what_the_copying_connector_does_not_say_is_its_default(tmp_path: Path, said: dict[str, str]) -> None:
    source = {key: value for key, value in SOURCE.items() if key != "topics"}
    alone = load(*write(tmp_path, connector(source))).flow("A->B")
    settings = load(*write(tmp_path, connector(source), connector(CHECKPOINT | said)))

    flow = settings.flow("A->B")
    assert (flow.topics, flow.errors_tolerance, flow.auto_offset_reset) == (
        (alone.topics, alone.errors_tolerance, alone.auto_offset_reset)
    )
    (key,) = said
    place = f"{tmp_path / '1.json'}#MirrorCheckpointConnector"
    assert f"{place}: {key}: is ignored, because the MirrorSourceConnector does not set it" in settings.warnings


def test_checkpoints_that_are_switched_off_are_not_written(tmp_path: Path) -> None:
    off = CHECKPOINT | {"enabled": "false", "sync.group.offsets.enabled": "true"}
    flow = load(*write(tmp_path, connector(SOURCE), connector(off))).flow("A->B")

    assert not flow.writes_checkpoints


def test_a_connector_that_is_switched_off_is_no_flow(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"A->B\.enabled=false: no flow is enabled|enabled=false"):
        settings_of(tmp_path, SOURCE | {"enabled": "false"})


BACK = HEARTBEAT | {"source.cluster.alias": "B", "target.cluster.alias": "A", "emit.heartbeats.interval.seconds": 7}


@pytest.mark.parametrize(
    ("connectors", "beats"),
    [
        pytest.param([SOURCE, CHECKPOINT], [], id="none"),
        pytest.param([SOURCE, HEARTBEAT], ["A->B"], id="with the copy"),
        pytest.param([SOURCE, BACK], ["B->A"], id="into the source, to be copied from there"),
        pytest.param([SOURCE, BACK | {"emit.heartbeats.enabled": False}], [], id="switched off"),
        pytest.param([SOURCE, HEARTBEAT, BACK], ["A->B", "B->A"], id="both ways"),
    ],
)
def test_heartbeats_are_sent_where_a_connector_sends_them(
    tmp_path: Path, connectors: list[dict[str, Any]], beats: list[str]
) -> None:
    settings = load(*write(tmp_path, [connector(one) for one in connectors]))
    assert [flow.name for flow in settings.flows] == ["A->B"]
    assert sorted(flow.name for flow in settings.heartbeats) == beats
    assert [flow.emit_heartbeats_interval_seconds for flow in settings.heartbeats if flow.name == "B->A"] in ([], [7])
