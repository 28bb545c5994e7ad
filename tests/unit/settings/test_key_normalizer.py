"""What people write is read as they mean it, and a warning names the right way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.errors import ConfigurationError
from mirrorless.settings import Settings, load
from mirrorless.settings.model import FLOW_KEYS, WORKER_KEYS
from mirrorless.settings.patterns import compile_patterns
from mirrorless.settings.vocabulary import _words, flow_vocabulary

if TYPE_CHECKING:
    from pathlib import Path

BASE = """
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b1:9092,b2:9092
A->B.enabled = true
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def loaded(folder: Path, text: str) -> Settings:
    path = folder / "mm2.properties"
    path.write_text(text, encoding="utf-8")
    return load(path)


def warnings(settings: Settings) -> list[str]:
    """Warnings without the file's name."""
    return [warning.removeprefix(f"{settings.file}:") for warning in settings.warnings]


@pytest.mark.parametrize(
    "written", ["A, B", "A,B", " A ,B ", "A;B", "A B", '"A", "B"', '"A,B"', "'A, B'", "[A, B]", "A, B,", "A,\\\n  B"]
)
def test_clusters_in_any_spelling(folder: Path, written: str) -> None:
    settings = loaded(folder, BASE.replace("A, B", written))

    assert [cluster.alias for cluster in settings.clusters] == ["A", "B"]
    plain = written.replace("\\\n", "").replace(" ", "").rstrip(",") == "A,B"
    assert [warning.rpartition(": ")[2] for warning in warnings(settings)] == ([] if plain else ["read as A, B"])


@pytest.mark.parametrize(
    ("written", "warned"),
    [
        ("b1:9092,b2:9092", False),
        ("b1:9092, b2:9092 ,", False),
        ("b1:9092;b2:9092", True),
        ("b1:9092; b2:9092;", True),
        ("b1:9092 b2:9092", True),
        ('"b1:9092,b2:9092"', True),
        ("'b1:9092', 'b2:9092'", True),
        ("PLAINTEXT://b1:9092,SASL_SSL://b2:9092", False),
    ],
)
def test_brokers_in_any_spelling(folder: Path, written: str, *, warned: bool) -> None:
    settings = loaded(folder, BASE.replace("b1:9092,b2:9092", written))

    assert settings.flow("A->B").target.bootstrap_servers == "b1:9092,b2:9092"
    assert warnings(settings) == ([f"4: B.bootstrap.servers={written}: read as b1:9092,b2:9092"] if warned else [])


@pytest.mark.parametrize("address", ["b1", "b1:", ":9092", "b1:0", "b1:70000", "b1:9092/x", "b1:http"])
def test_a_broker_without_a_port_is_an_error(folder: Path, address: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"B\.bootstrap\.servers=.*: {address} is not host:port$"):
        loaded(folder, BASE.replace("b1:9092,b2:9092", f"b:1,{address}"))


@pytest.mark.parametrize("address", ["[::1]:9092", "b-1.my_cluster.kafka.eu-west-1.amazonaws.com:9098", "127.0.0.1:1"])
def test_addresses_of_all_kinds(folder: Path, address: str) -> None:
    settings = loaded(folder, BASE.replace("a:9092", address))

    assert settings.flow("A->B").source.bootstrap_servers == address


@pytest.mark.parametrize(
    ("written", "right"),
    [
        # blanks around the arrow and dots are how files are written, nothing to warn of
        ("A -> B . replication.factor = 3", None),
        ("A->B .replication . factor=3", None),
        # quotes
        ('A->B.replication.factor = "3"', "quotes are ignored"),
        ("A->B.replication.factor = '3'", "quotes are ignored"),
        ("A->B.replication.factor = \u201c3\u201d", "quotes are ignored"),
        # case
        ("Replication.factor = 3", "read as replication.factor"),
        ("REPLICATION.FACTOR = 3", "read as replication.factor"),
        ("A->B.Replication.Factor = 3", "read as A->B.replication.factor"),
        ("a->b.replication.factor = 3", "read as A->B.replication.factor"),
        # almost right
        ("replication-factor = 3", "read as replication.factor"),
        ("replication_factor = 3", "read as replication.factor"),
        ("replications.factor = 3", "read as replication.factor"),
    ],
)
def test_a_key_almost_right(folder: Path, written: str, right: str | None) -> None:
    settings = loaded(folder, BASE + written)

    assert settings.flow("A->B").replication_factor == 3
    assert [warning.rpartition(": ")[2] for warning in warnings(settings)] == ([right] if right else [])


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("offset-sync.topic.replication.factor", "offset-syncs.topic.replication.factor"),
        ("offset.syncs.topic.replication.factor", "offset-syncs.topic.replication.factor"),
        ("heartbeat.topic.replication.factor", "heartbeats.topic.replication.factor"),
        ("checkpoint.topic.replication.factor", "checkpoints.topic.replication.factor"),
        ("emit.heartbeat.enabled", "emit.heartbeats.enabled"),
        ("sync.topic.acl.enabled", "sync.topic.acls.enabled"),
        ("task.max", "tasks.max"),
        ("topic", "topics"),
        ("Topics.Exclude", "topics.exclude"),
        ("topics.blacklist", "topics.exclude"),
        ("topic.blacklist", "topics.exclude"),
        ("groups.blacklist", "groups.exclude"),
        ("config.properties.blacklist", "config.properties.exclude"),
        ("topics.whitelist", "topics"),
        ("groups.whitelist", "groups"),
        ("whitelist", "topics"),
    ],
)
@pytest.mark.parametrize("scope", ["", "A->B."])
def test_the_right_key_is_named(folder: Path, scope: str, written: str, right: str) -> None:
    value = "true" if right.endswith("enabled") else "1"
    settings = loaded(folder, f"{BASE}{scope}{written} = {value}")

    assert warnings(settings) == [f"6: {scope}{written}={value}: read as {scope}{right}"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("ms = 30000", "30"),
        ("ms = 500", "1"),
        ("ms = 1500", "2"),
        ("millis = 30000", "30"),
        ("minutes = 5", "300"),
        ("sec = 7", "7"),
    ],
)
def test_a_wrong_unit_is_converted(folder: Path, written: str, read: str) -> None:
    settings = loaded(folder, f"{BASE}A->B.refresh.topics.interval.{written}")

    assert settings.flow("A->B").refresh_topics_interval_seconds == int(read)
    right = "A->B.refresh.topics.interval.seconds"
    assert warnings(settings)[0].endswith(f": read as {right}={read}, which is in seconds")


def test_a_wrong_unit_of_a_setting_without_a_field(folder: Path) -> None:
    settings = loaded(folder, BASE + "sync.group.offsets.interval.ms=30000")

    assert warnings(settings) == [
        "6: sync.group.offsets.interval.ms=30000: read as sync.group.offsets.interval.seconds=30, which is in seconds"
    ]


@pytest.mark.parametrize(
    ("key", "written", "patterns", "remarks"),
    [
        ("topics", "^foo.*", ("^foo.*",), []),
        ("topics", "orders, pay.*", ("orders", "pay.*"), []),
        ("topics", '"orders,payments"', ("orders", "payments"), ["quotes"]),
        ("topics", '"orders", "payments"', ("orders", "payments"), ["quotes"]),
        ("topics", "'orders.*'", ("orders.*",), ["quotes"]),
        ("topics", "*", (".*",), ["* is not a regular expression, read as .*"]),
        (
            "topics.blacklist",
            '"*.internal,__.*"',
            (r".*\.internal", "__.*"),
            ["read as topics.exclude", "quotes", r"*.internal is not a regular expression, read as .*\.internal"],
        ),
        ("topics.exclude", "*-dlq", (r".*\-dlq",), [r"*-dlq is not a regular expression, read as .*\-dlq"]),
        ("groups", "*.team.*", (r".*\.team.*",), [r"*.team.* is not a regular expression, read as .*\.team.*"]),
        (
            "topics",
            "orders*",
            ("orders*",),
            ["orders* means order and any number of s; to match any suffix, write orders.*"],
        ),
    ],
)
def test_patterns(folder: Path, key: str, written: str, patterns: tuple[str, ...], remarks: list[str]) -> None:
    settings = loaded(folder, f"{BASE}{key} = {written}")
    flow = settings.flow("A->B")
    field = {"topics": flow.topics, "groups": flow.groups}.get(key, flow.topics_exclude)

    assert field == patterns
    told = [warning.rpartition(": ")[2] for warning in warnings(settings)]
    assert [line[: len(remark)] for line, remark in zip(told, remarks, strict=True)] == remarks


def test_a_glob_takes_what_it_says_and_a_caret_does_no_harm() -> None:
    glob, caret = compile_patterns([r".*\.internal", "^foo.*"])

    assert glob.fullmatch("x.internal")
    assert not glob.fullmatch("x-internal")
    assert caret.fullmatch("foobar")


@pytest.mark.parametrize("blank", [" ", "\\ ", "\\t"])
def test_a_class_name_with_blanks_around_it(folder: Path, blank: str) -> None:
    name = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    settings = loaded(folder, f"{BASE}replication.policy.class={blank}{name}{blank}")

    assert settings.flow("A->B").replication_policy_class == name
    assert settings.warnings == ()


def test_the_right_key_wins_over_a_wrong_one_wherever_they_stand(folder: Path) -> None:
    for text in ("topics = x\ntopics.whitelist = y\n", "topics.whitelist = y\ntopics = x\n"):
        settings = loaded(folder, BASE + text)
        assert settings.flow("A->B").topics == ("x",)
        line = "topics.whitelist=y: is ignored, because topics is set too"
        assert any(warning.endswith(line) for warning in settings.warnings)


def test_a_cluster_s_keys_in_the_wrong_case(folder: Path) -> None:
    settings = loaded(
        folder,
        """
        Clusters = A, B
        a.Bootstrap.Servers = a:1
        B.bootstrap.server = b:1
        A->B.Enabled = true
        A.consumer.Auto.Offset.Reset = latest
        A.Security.Protocol = SSL
        """,
    )

    flow = settings.flow("A->B")
    assert (flow.source.bootstrap_servers, flow.target.bootstrap_servers) == ("a:1", "b:1")
    assert flow.auto_offset_reset == "latest"
    assert flow.source.client["security.protocol"] == "SSL"
    assert len(settings.warnings) == 6


def test_aliases_that_differ_by_case_only_are_two(folder: Path) -> None:
    text = "clusters = a, A\na.bootstrap.servers = x:1\nA.bootstrap.servers = y:1\na->A.enabled = true\n"
    flow = loaded(folder, text).flow("a->A")

    assert (flow.source.bootstrap_servers, flow.target.bootstrap_servers) == ("x:1", "y:1")


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("replicaton.factor = 3", "is not known and has no effect; did you mean replication.factor?"),
        ("A->B.tpics = x", "is not known and has no effect; did you mean A->B.topics?"),
        ("wibble = 3", "is not known and has no effect"),
        ("A.topics = x", "has no effect, because it is a setting of flows; write A->B.topics"),
        ("consumer.group.id = 1", "has no effect at top level, nor in MirrorMaker 2; write A.consumer.group.id"),
        (
            "A->B.offset.storage.topic = x",
            "has no effect for a flow, nor in MirrorMaker 2; write B.offset.storage.topic",
        ),
        (
            "A->B.security.protocol = SSL",
            "has no effect, nor in MirrorMaker 2, because it names neither end of the flow; write "
            "A->B.source.cluster.security.protocol or A->B.target.cluster.security.protocol",
        ),
    ],
)
def test_what_does_nothing_is_said(folder: Path, written: str, line: str) -> None:
    settings = loaded(folder, BASE + written)

    assert settings.flows == loaded(folder, BASE).flows
    settings = loaded(folder, BASE + written)
    key, _, value = written.partition(" = ")
    assert warnings(settings) == [f"6: {key}={value}: {line}"]


@pytest.mark.parametrize("key", ["transforms", "A->B.transforms"])
def test_what_would_change_records_is_refused(folder: Path, key: str) -> None:
    with pytest.raises(
        ConfigurationError, match=rf"{key}=x: x has no class: records are copied unchanged, so no transformation can"
    ):
        loaded(folder, f"{BASE}{key} = x")


@pytest.mark.parametrize("key", ["A->B.transforms.mask.type", "predicates", "A->B.predicates.is.type"])
def test_settings_of_transforms_that_are_not_listed_have_no_effect(folder: Path, key: str) -> None:
    settings = loaded(folder, f"{BASE}{key} = x\n")

    assert warnings(settings) == [f"6: {key}=x: has no effect without transforms, nor in MirrorMaker 2"]


def test_a_password_keeps_its_quotes_and_no_warning_shows_it(folder: Path) -> None:
    settings = loaded(
        folder,
        BASE + 'A.SSL.key.password = "swordfish"\nA.sasl.jaas.config = "M required password=\\"swordfish\\";"\n',
    )

    client = settings.flow("A->B").source.client
    assert client["ssl.key.password"] == '"swordfish"'
    assert client["sasl.jaas.config"] == 'M required password="swordfish";'
    assert len(settings.warnings) == 3
    assert "swordfish" not in str(settings.warnings)


def test_a_key_in_pem_that_is_not_continued_is_not_shown(folder: Path) -> None:
    lines = [
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
        "MzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dV==",
    ]
    pem = "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])
    said = "\n".join(warnings(loaded(folder, f"{BASE}A.ssl.keystore.key = {pem}\n")))
    assert "7: ***: looks like a part of a PEM text" in said
    assert not any(line[:20] in said for line in lines)


def test_a_word_alone_on_its_line_is_not_shown(folder: Path) -> None:
    settings = loaded(folder, f"{BASE}A.ssl.key.password = sword\nfish\n")

    assert warnings(settings) == ["7: ***: is not known and has no effect"]


def test_no_two_keys_consist_of_the_same_words() -> None:
    vocabulary = flow_vocabulary([*FLOW_KEYS, *WORKER_KEYS])
    words = [_words(key) for key in vocabulary._keys if not key.startswith("mirrorless.")]

    assert len(words) == len(set(words))
