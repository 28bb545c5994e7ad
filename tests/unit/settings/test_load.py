"""An mm2.properties file becomes clusters and flows, with MirrorMaker 2's precedence and defaults."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from mirrorless.errors import ConfigurationError
from mirrorless.settings import Cluster, Flow, Settings, load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BASE = """
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b1:9092, b2:9092
A -> B.enabled = true
"""


@pytest.fixture
def loaded(tmp_path: Path) -> Callable[[str], Settings]:
    def load_text(text: str) -> Settings:
        path = tmp_path / "mm2.properties"
        path.write_text(text, encoding="utf-8")
        return load(path)

    return load_text


def test_the_smallest_file_has_the_defaults_of_mirrormaker(loaded: Callable[[str], Settings], tmp_path: Path) -> None:
    a = Cluster(alias="A", bootstrap_servers="a:9092")
    b = Cluster(alias="B", bootstrap_servers="b1:9092,b2:9092")

    assert loaded(BASE) == Settings(
        file=str(tmp_path / "mm2.properties"),
        clusters=(a, b),
        flows=(
            Flow(
                source=a,
                target=b,
                topics=(".*",),
                topics_exclude=(r"mm2.*\.internal", r".*\.replica", "__.*"),
                groups=(".*",),
                groups_exclude=("console-consumer-.*", "connect-.*", "__.*"),
                replication_factor=2,
                tasks_max=1,
                refresh_topics_enabled=True,
                refresh_topics_interval_seconds=600,
                heartbeats_replication_enabled=True,
                replication_policy_class="org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
                replication_policy_separator=".",
                replication_policy_internal_topic_separator_enabled=True,
                offset_storage_topic="mm2-offsets.A.internal",
                offset_storage_replication_factor=3,
                offset_storage_partitions=25,
                lease_seconds=120.0,
                errors_tolerance="none",
                dead_letter_topic=None,
                on_gap="halt",
                max_bytes_per_second=None,
                cloudwatch_topics=(".*",),
                emit_offset_syncs_enabled=True,
                offset_lag_max=100,
                offset_syncs_topic_location="source",
                offset_syncs_topic_replication_factor=3,
                sync_index_records=100_000,
                refresh_groups_enabled=True,
                refresh_groups_interval_seconds=600,
                emit_checkpoints_enabled=True,
                emit_checkpoints_interval_seconds=60,
                checkpoints_topic_replication_factor=3,
                sync_group_offsets_enabled=False,
                sync_group_offsets_interval_seconds=60,
                emit_heartbeats_enabled=True,
                emit_heartbeats_interval_seconds=1,
                heartbeats_topic_replication_factor=3,
            ),
        ),
        heartbeats=(Flow(source=a, target=b), Flow(source=b, target=a)),
        warnings=(),
    )


def test_a_flow_beats_the_top_level(loaded: Callable[[str], Settings]) -> None:
    flow = loaded(
        BASE
        + r"""
        topics = everything
        A -> B.topics = orders, pay\\..*
        tasks.max = 7
        A->B.replication.factor = -1
        replication.factor = 5
        refresh.topics.enabled = FALSE
        A->B.refresh.topics.interval.seconds = 5
        A->B.groups =
        replication.policy.separator = __
        A->B.heartbeats.replication.enabled = false
        mirrorless.lease.seconds = 9
        A->B.mirrorless.lease.seconds = 0.5
        """
    ).flow("A->B")

    assert flow.topics == ("orders", r"pay\..*")
    assert flow.tasks_max == 7
    assert flow.replication_factor == -1
    assert flow.refresh_topics_enabled is False
    assert flow.refresh_topics_interval_seconds == 5
    assert flow.groups == ()
    assert flow.replication_policy_separator == "__"
    assert flow.heartbeats_replication_enabled is False
    assert flow.lease_seconds == 0.5


def test_storage_topics_are_the_workers_so_the_top_level_beats_the_target(loaded: Callable[[str], Settings]) -> None:
    flow = loaded(
        BASE
        + """
        B.offset.storage.topic = of-b
        A.offset.storage.topic = of-a
        B.offset.storage.partitions = 5
        B.offset.storage.replication.factor = 1
        offset.storage.replication.factor = 2
        """
    ).flow("A->B")

    assert flow.offset_storage_topic == "of-b"
    assert flow.offset_storage_partitions == 5
    assert flow.offset_storage_replication_factor == 2


def test_client_settings_come_from_the_alias_then_security_from_the_top(loaded: Callable[[str], Settings]) -> None:
    a, b = loaded(
        BASE
        + """
        security.protocol = SSL
        ssl.truststore.type = PEM
        client.id = at the top level this is nobody's
        A.security.protocol = PLAINTEXT
        A.client.id = mine
        A.consumer.fetch.max.bytes = 1000
        A.producer.ssl.truststore.type = JKS
        A.group.id = of the worker
        A.offset.flush.interval.ms = 10
        """
    ).clusters

    assert dict(a.client) == {
        "security.protocol": "PLAINTEXT",
        "ssl.truststore.type": "PEM",
        "client.id": "mine",
        "consumer.fetch.max.bytes": "1000",
        "producer.ssl.truststore.type": "JKS",
    }
    assert dict(b.client) == {"security.protocol": "SSL", "ssl.truststore.type": "PEM"}


def test_bootstrap_servers_may_stand_at_the_top_level(loaded: Callable[[str], Settings]) -> None:
    settings = loaded("clusters=A,B\nbootstrap.servers=x:1\nB.bootstrap.servers=b:1\nA->B.enabled=true")

    assert [cluster.bootstrap_servers for cluster in settings.clusters] == ["x:1", "b:1"]


def test_only_enabled_flows_are_there_in_the_order_of_the_clusters(loaded: Callable[[str], Settings]) -> None:
    settings = loaded(
        """
        clusters = us.east, us, eu
        us.east.bootstrap.servers = e:1
        us.bootstrap.servers = u:1
        eu -> us.east.enabled = true
        us.east -> us.enabled = true
        us -> us.east.enabled = false
        eu.bootstrap.servers = eu:1
        eu -> us.east.topics = dotted
        """
    )

    assert [flow.name for flow in settings.flows] == ["us.east->us", "eu->us.east"]
    assert settings.flow("eu -> us.east").topics == ("dotted",)
    with pytest.raises(
        ConfigurationError,
        match=r"us->us\.east\.enabled: this flow is not enabled; enabled: us\.east->us, eu->us\.east$",
    ):
        settings.flow("us->us.east")
    for name, line in (
        (
            "eu->us.est",
            r"flow=eu->us\.est: no such flow; did you mean eu->us\.east\? enabled: us\.east->us, eu->us\.east$",
        ),
        ("zz", r"flow=zz: no such flow; enabled: us\.east->us, eu->us\.east$"),
    ):
        with pytest.raises(ConfigurationError, match=line):
            settings.flow(name)


def test_enabled_at_top_level_is_every_flow_that_does_not_say_otherwise(loaded: Callable[[str], Settings]) -> None:
    text = BASE.replace("A -> B.enabled = true", "enabled = true")

    assert [flow.name for flow in loaded(text).flows] == ["A->B", "B->A"]
    assert [flow.name for flow in loaded(text + "B->A.enabled = false").flows] == ["A->B"]
    # without heartbeats MirrorMaker 2 makes no pair of it
    assert [flow.name for flow in loaded(text + "A->B.emit.heartbeats.enabled = false").flows] == ["B->A"]


def test_everything_else_that_mirrormaker_knows_is_accepted(loaded: Callable[[str], Settings]) -> None:
    others = """
    A->B.offset.flush.interval.ms = 5
    B.exactly.once.source.support = enabled
    dedicated.mode.enable.internal.rest = true
    key.converter = org.apache.kafka.connect.converters.ByteArrayConverter
    A->gone.enabled = false
    A->gone.topics = whatever
    """

    settings = loaded(BASE + others)

    assert settings.flows == loaded(BASE).flows
    assert settings.warnings == ()
    assert [note.partition("=")[0].rpartition(": ")[2] for note in settings.notes] == [
        "A->B.offset.flush.interval.ms",
        "B.exactly.once.source.support",
        "dedicated.mode.enable.internal.rest",
        "key.converter",
    ]
    assert all(len(note.rpartition(": ")[2]) > 10 for note in settings.notes)


def test_a_cluster_without_brokers_and_without_flow_is_left_out_with_a_warning(
    loaded: Callable[[str], Settings],
) -> None:
    settings = loaded(BASE.replace("A, B", "A, B, C"))

    assert [cluster.alias for cluster in settings.clusters] == ["A", "B"]
    assert len(settings.warnings) == 1
    assert "C.bootstrap.servers" in settings.warnings[0]


def test_settings_are_values_that_travel_and_hide_their_secrets(loaded: Callable[[str], Settings]) -> None:
    settings = loaded(BASE + "A.ssl.key.password = swordfish\nA.sasl.jaas.config = x password=\\\\swordfish;\n")

    assert pickle.loads(pickle.dumps(settings)) == settings  # noqa: S301 - our own bytes
    assert hash(settings.flows[0]) == hash(pickle.loads(pickle.dumps(settings.flows[0])))  # noqa: S301
    assert settings.clusters[0].client["ssl.key.password"] == "swordfish"
    assert "swordfish" not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
    assert "swordfish" not in f"{settings.clusters[0].client.items()} {settings.clusters[0].client.values()}"
    assert "ssl.key.password" in repr(settings)


def test_topic_configs_and_acls_are_read(loaded: Callable[[str], Settings]) -> None:
    text = """
    A->B.use.defaults.from = source
    config.properties.exclude = retention\\\\.ms, x.*
    sync.topic.configs.interval.seconds = 7
    A->B.sync.topic.acls.enabled = false
    mirrorless.acls.patterns = literal, PREFIXED
    A->B.mirrorless.acls.prune = true
    A->B.mirrorless.cloudwatch.topics =
    """
    (flow,) = loaded(BASE + text).flows

    assert flow.use_defaults_from == "source"
    assert flow.config_properties_exclude == (r"retention\.ms", "x.*")
    assert flow.sync_topic_configs_interval_seconds == 7
    assert (flow.sync_topic_configs_enabled, flow.sync_topic_acls_enabled) == (True, False)
    assert (flow.acls_patterns, flow.acls_prune) == (("literal", "prefixed"), True)
    assert flow.cloudwatch_topics == ()


def test_every_ordered_pair_sends_heartbeats_unless_they_are_switched_off(loaded: Callable[[str], Settings]) -> None:
    text = (
        BASE
        + """
        B->A.topics = (
        B->A.emit.heartbeats.interval.seconds = 7
    """
    )
    pairs = loaded(text).heartbeats
    assert [(pair.name, pair.emit_heartbeats_interval_seconds) for pair in pairs] == [("A->B", 1), ("B->A", 7)]
    assert [pair.name for pair in loaded(text + "A->B.emit.heartbeats.enabled = false").heartbeats] == ["B->A"]
    assert loaded(text + "emit.heartbeats.enabled = false").heartbeats == ()


@pytest.mark.parametrize("scope", ["", "A->B."])
def test_a_setting_that_is_not_needed_any_more_is_a_warning(loaded: Callable[[str], Settings], scope: str) -> None:
    line = f"{scope}mirrorless.spark.start.growing.seconds=20: is not needed any more, has no effect"
    warnings = loaded(f"{BASE}\n{scope}mirrorless.spark.start.growing.seconds = 20\n").warnings
    assert [one.partition(": ")[2] for one in warnings] == [line]
