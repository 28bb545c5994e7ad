"""`mirrorless verify` without Spark: the same result, of what fits one process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from click.testing import CliRunner

from mirrorless.cli import root
from mirrorless.verify import one_process
from mirrorless.verify.comparison import ComparisonTerms, verify_flow
from mirrorless.verify.findings import DifferenceKind
from tests.support.world import fill, producer

if TYPE_CHECKING:
    import pytest

    from tests.support.world import World

PARTITIONS = 2


def compared(world: World) -> tuple[int, list[tuple[DifferenceKind, int | None, int | None]], tuple[str, ...]]:
    """Records, differences by kind and offsets, and what was not compared."""
    found, _ = verify_flow(None, world.place().load(), ComparisonTerms(window_records=50), say=lambda _: None)
    return found.records, [(one.kind, one.upstream, one.downstream) for one in found.differences], found.troubles


def test_it_finds_no_difference_and_each_that_there_is(world: World) -> None:
    topic = world.topic(partitions=PARTITIONS)
    fill(world.source, topic, (b"%d" % number for number in range(1_000)), partitions=PARTITIONS)
    compacted = world.topic(cleanup_policy="compact")
    client = producer(world.source)
    for number in range(300):
        client.produce(compacted, key=b"%d" % (number % 40), value=b"%d" % number)
    client.flush(30)
    world.copy_to_the_end()
    records, differences, troubles = compared(world)
    assert (records >= 1_000, differences, troubles) == (True, [], ())

    done = CliRunner().invoke(root, ["verify", str(world.file), "--with", "python", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["flows"][0]["status"] in (0, "identical")

    client = producer(world.target)
    client.produce(world.remote(topic), value=b"not of the source", partition=0)
    client.produce(world.remote(compacted), key=b"7", value=b"changed")
    client.flush(30)
    _, differences, troubles = compared(world)
    assert DifferenceKind.EXTRA in {kind for kind, _, _ in differences}, (differences, troubles)


def test_too_much_is_refused_with_its_size(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(world.source, world.topic(), (b"%d" % number for number in range(100)))
    world.copy_to_the_end()
    monkeypatch.setattr(one_process, "MOST_OFFSETS", 150)
    _, _, (trouble,) = compared(world)
    assert trouble.startswith("200 offsets of both sides are to be read, and without Spark 150 at most: compare with")
