"""Settings that cancel each other out, with which MirrorMaker 2 does not start, are told; the flow runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.settings import load

if TYPE_CHECKING:
    from pathlib import Path

BASE = """
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""
NO_CHECKPOINTS = (
    "A->B: emit.offset-syncs.enabled=false: offsets cannot be translated, so no checkpoints are written; "
    "set emit.checkpoints.enabled=false too if this is intended"
)

COMMITTED_ONLY = (
    "A->B: consumer.isolation.level=read_uncommitted has no effect: records of aborted transactions are never copied, "
    "and records after an open transaction are copied once it ends"
)


def no_effect(reason: str) -> str:
    return f"A->B: sync.group.offsets.enabled=true has no effect with {reason}"


@pytest.mark.parametrize(
    ("lines", "warnings"),
    [
        ("sync.group.offsets.enabled=true", []),
        ("emit.checkpoints.enabled=false", []),
        ("emit.checkpoints.enabled=false\nemit.offset-syncs.enabled=false", []),
        ("emit.offset-syncs.enabled=false", [NO_CHECKPOINTS]),
        (
            "emit.offset-syncs.enabled=false\nsync.group.offsets.enabled=true",
            [NO_CHECKPOINTS, no_effect("emit.offset-syncs.enabled=false")],
        ),
        (
            "A->B.emit.checkpoints.enabled=false\nsync.group.offsets.enabled=true",
            [no_effect("emit.checkpoints.enabled=false")],
        ),
        ("A->B.source.consumer.isolation.level=read_committed", []),
        ("A->B.source.consumer.isolation.level=read_uncommitted", [COMMITTED_ONLY]),
        ("A.consumer.isolation.level=read_uncommitted", [COMMITTED_ONLY]),
        ("B.consumer.isolation.level=read_uncommitted", []),
    ],
)
def test_what_cancels_out(tmp_path: Path, lines: str, warnings: list[str]) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(BASE + lines)
    assert list(load(file).warnings) == [f"{file}: {line}" for line in warnings]


FAN_IN = """
clusters = A, B, C
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
C.bootstrap.servers = c:9092
A->C.enabled = true
B->C.enabled = true
"""
IDENTITY = "replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"


def removes(flow: str, other: str) -> str:
    return (
        f"{flow}: mirrorless.acls.prune=true removes an ACL that is gone from {flow[0]}, though {other} may have "
        "added it for a topic of the same name; C lacks the ACL until the next sync run of that flow; set "
        "mirrorless.acls.prune=false"
    )


@pytest.mark.parametrize(
    ("lines", "warnings"),
    [
        (f"{IDENTITY}mirrorless.acls.prune=true", [removes("A->C", "B->C"), removes("B->C", "A->C")]),
        (f"{IDENTITY}A->C.mirrorless.acls.prune=true", [removes("A->C", "B->C")]),
        (f"{IDENTITY}A->C.mirrorless.acls.prune=true\nB->C.sync.topic.acls.enabled=false", []),
        ("mirrorless.acls.prune=true", []),
        (f"{IDENTITY}", []),
    ],
)
def test_who_removes_what_another_flow_wants(tmp_path: Path, lines: str, warnings: list[str]) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(FAN_IN + lines)
    found = [line for line in load(file).warnings if "mirrorless.acls.prune" in line]
    assert found == [f"{file}: {line}" for line in warnings]


@pytest.mark.parametrize(
    ("aliases", "separator", "told"),
    [(("dc-a", "b"), "-", ["dc-a"]), (("dc-a", "b"), ".", []), (("a.eu", "b.eu"), ".", ["a.eu", "b.eu"])],
)
def test_an_alias_that_contains_the_separator(
    tmp_path: Path, aliases: tuple[str, str], separator: str, told: list[str]
) -> None:
    one, other = aliases
    file = tmp_path / "mm2.properties"
    file.write_text(
        f"clusters = {one}, {other}\n{one}.bootstrap.servers = a:1\n{other}.bootstrap.servers = b:1\n"
        f"{one}->{other}.enabled = true\n{other}->{one}.enabled = true\nreplication.policy.separator = {separator}\n"
    )

    found = [line for line in load(file).warnings if "contains the separator" in line]
    assert [line.partition(" contains")[0] for line in found] == [
        f"{file}: {aliases[0]}->{aliases[1]}: alias {alias}" for alias in told
    ]
