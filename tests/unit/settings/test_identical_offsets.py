"""`mirrorless.offsets=identical` is per flow and per topic, and excludes what would leave records out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.errors import ConfigurationError
from mirrorless.modes import Modes
from mirrorless.settings import load

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.settings import Settings

BASE = """
clusters = a, b
a.bootstrap.servers = a:1
b.bootstrap.servers = b:1
a->b.enabled = true
b->a.enabled = true
a->b.mirrorless.offsets = identical
"""
KEPT = "replication.policy.class = IdentityReplicationPolicy\nheartbeats.replication.enabled = false\n"


def loaded(folder: Path, text: str) -> Settings:
    path = folder / "mm2.properties"
    path.write_text(text)
    return load(path)


def test_it_is_of_one_flow_and_of_some_topics(tmp_path: Path) -> None:
    settings = loaded(tmp_path, BASE + "a->b.mirrorless.offsets.identical.topics = orders, payments.*\n")
    there, back = Modes(settings.flow("a->b")), Modes(settings.flow("b->a"))
    assert [*filter(there.keeps_offsets, ("orders", "payments-eu", "clicks"))] == ["orders", "payments-eu"]
    assert not back.keeps_offsets("orders")
    everything = Modes(loaded(tmp_path, BASE).flow("a->b"))
    assert everything.keeps_offsets("clicks")
    assert not everything.keeps_offsets("heartbeats")


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            f"{KEPT}mirrorless.both.directions = skip\nb->a.sync.topic.configs.enabled = false\n",
            "mirrorless.both.directions=skip does not",
        ),
        (f"{KEPT}mirrorless.active.cluster = a\nb->a.mirrorless.offsets = dense\n", "b->a takes turns with it"),
        (
            f"{KEPT}mirrorless.active.cluster = a\nb->a.mirrorless.offsets.identical.topics = orders\n",
            "for both",
        ),
        ("mirrorless.offsets = other\n", "must be dense or identical"),
    ],
)
def test_what_it_excludes(tmp_path: Path, lines: str, reason: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        loaded(tmp_path, BASE.replace("a->b.mirrorless.offsets", "mirrorless.offsets") + lines)
    assert reason in str(refused.value)


def test_flows_that_take_turns_have_it_both_or_not(tmp_path: Path) -> None:
    turns = f"{KEPT}mirrorless.active.cluster = a\n"
    both = loaded(tmp_path, BASE.replace("a->b.mirrorless.offsets", "mirrorless.offsets") + turns)
    assert [flow.offsets for flow in both.flows] == ["identical", "identical"]
    # With default names each direction has remote topics of its own.
    one = loaded(tmp_path, BASE + "mirrorless.active.cluster = a\n")
    assert sorted(flow.offsets for flow in one.flows) == ["dense", "identical"]
