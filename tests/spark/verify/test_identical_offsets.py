"""With identical offsets the same record has to be at the same offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.verify.comparison import ComparisonTerms, verify_flow
from mirrorless.verify.findings import DIFFERENT, IDENTICAL, DifferenceKind
from tests.kafka.identical.test_identical_copy import identical, transactions
from tests.kafka.identical.test_writers import foreign_markers
from tests.support.identical import delete_before, ends
from tests.support.planted import record, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.world import World


def test_a_record_at_another_offset_is_a_difference(world: World, spark: SparkSession) -> None:
    topic = identical(world)
    write(world.source, topic, map(record, range(50)))
    delete_before(world.source, topic, 20)
    transactions(world, topic, rounds=3)
    world.copy()
    flow = world.place().load()
    result, _ = verify_flow(spark, flow, ComparisonTerms(), say=lambda _: None)
    assert (result.status, result.differences, result.troubles) == (IDENTICAL, (), ())
    end = ends(world.source, topic)[1]
    # As another program might: the record is the same, and one marker is before it.
    write(world.source, topic, [record(1)])
    foreign_markers(world, topic, 1)
    write(world.target, world.remote(topic), [record(1)])
    result, _ = verify_flow(spark, flow, ComparisonTerms(), say=lambda _: None)
    assert result.status == DIFFERENT
    (one,) = result.differences
    assert (one.kind, one.upstream, one.downstream) == (DifferenceKind.MOVED, end, end + 1)
