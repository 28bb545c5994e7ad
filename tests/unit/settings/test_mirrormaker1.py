"""A MirrorMaker 1's two files and its pattern are a flow that keeps names and writes no internal topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from mirrorless.cli.run import run
from mirrorless.errors import ConfigurationError
from mirrorless.filters import replicated_topics
from mirrorless.policy import policy_for
from mirrorless.settings import Settings, load
from mirrorless.settings.mirrormaker1 import location

if TYPE_CHECKING:
    from pathlib import Path

CONSUMER = "bootstrap.servers = a:1\ngroup.id = mirror\nclient.id = reader\nsecurity.protocol = SSL\n"
PRODUCER = "bootstrap.servers=b:1\nacks=all\nclient.id = writer\n"


def loaded(folder: Path, *, include: str = "a|b", consumer: str = CONSUMER, producer: str = PRODUCER) -> Settings:
    (folder / "consumer.properties").write_text(consumer)
    (folder / "producer.properties").write_text(producer)
    return load(
        location(
            consumer=str(folder / "consumer.properties"),
            producer=str(folder / "producer.properties"),
            include=include,
        )
    )


def test_the_flow(tmp_path: Path) -> None:
    settings = loaded(tmp_path)
    flow = settings.flow("source->target")

    assert (flow.source.bootstrap_servers, flow.target.bootstrap_servers) == ("a:1", "b:1")
    assert flow.source.client["consumer.client.id"] == "reader"
    assert flow.source.client["security.protocol"] == "SSL"
    assert "security.protocol" not in flow.target.client
    assert flow.target.client["producer.client.id"] == "writer"
    assert load(settings.file) == settings


def test_nothing_is_written_that_is_no_copy(tmp_path: Path) -> None:
    settings = loaded(tmp_path)
    assert settings.heartbeats == ()
    assert not settings.flow("source->target").writes_checkpoints


def test_names_stay_as_they_are(tmp_path: Path) -> None:
    flow = loaded(tmp_path).flow("source->target")
    policy = policy_for(flow)

    assert policy.format_remote_topic("source", "a") == "a"
    assert not flow.heartbeats_replication_enabled
    assert (flow.replication_factor, flow.offset_storage_replication_factor) == (-1, -1)
    takes = replicated_topics(flow)
    assert [name for name in ("a", "b", "ab", "__consumer_offsets", "heartbeats") if takes(name)] == ["a", "b"]


@pytest.mark.parametrize("include", ["a|b", "a,b", "a, b", "'a|b'", '"a,b"', " a | b "])
def test_the_pattern_in_any_spelling(tmp_path: Path, include: str) -> None:
    takes = replicated_topics(loaded(tmp_path, include=include).flow("source->target"))

    assert [name for name in ("a", "b", "c", "ab") if takes(name)] == ["a", "b"]


def test_partitions_begin_where_a_java_consumer_begins(tmp_path: Path) -> None:
    settings = loaded(tmp_path)

    assert settings.flow("source->target").auto_offset_reset == "latest"
    file = tmp_path / "consumer.properties"
    assert settings.warnings[0] == (
        f"{file}:2: group.id=mirror: partitions begin at its committed offsets "
        "(mirrorless.start.group), those in which it has none at latest"
    )
    earliest = loaded(tmp_path, consumer=CONSUMER + "auto.offset.reset=earliest\n")
    assert earliest.flow("source->target").auto_offset_reset == "earliest"


def test_an_error_names_the_file_and_its_own_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"producer\.properties:1: bootstrap\.servers=b: b is not host:port$"):
        loaded(tmp_path, producer="bootstrap.servers=b")
    with pytest.raises(ConfigurationError, match=r"target\.bootstrap\.servers: flow source->target needs it"):
        loaded(tmp_path, producer="acks=all")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "Missing argument 'FILES'"),
        (["--include", "a"], "MirrorMaker 1 needs --consumer.config, --producer.config and --include"),
        (["f", "--include", "a"], "give FILES or the three options of MirrorMaker 1, not both"),
    ],
)
def test_what_does_not_go_together(arguments: list[str], line: str) -> None:
    result = CliRunner().invoke(run, arguments)

    assert result.exit_code == 2
    assert line in result.output


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        run, ["--consumer.config", str(tmp_path / "none"), "--producer.config", "p", "--include", "a"]
    )

    assert str(result.exception) == f"{tmp_path / 'none'}: cannot be read: No such file or directory"
