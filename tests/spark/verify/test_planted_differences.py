"""Every kind of difference, planted in real clusters, is found at its offset; one run sees all of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from mirrorless.offsets.checkpoint_pass import Checkpoints
from mirrorless.verify.comparison import ComparisonTerms, verify_flow
from mirrorless.verify.findings import DIFFERENT, DifferenceKind
from mirrorless.verify.repair import repair_plan
from tests.support.offsets import commit
from tests.support.planted import BEGAN_MS, Headers, Record, ends, plant, record, write
from tests.support.world import World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from mirrorless.verify.findings import Difference

COPIED, BLOCK, INTO = 120, 40, 20

Edit = Callable[[list[Record]], list[Record]]


def changed(**fields: Any) -> Edit:  # noqa: ANN401 -- a record's fields
    def edit(records: list[Record]) -> list[Record]:
        records[INTO] = records[INTO]._replace(**fields)
        return records

    return edit


def swapped(records: list[Record]) -> list[Record]:
    records[INTO], records[INTO + 1] = records[INTO + 1], records[INTO]
    return records


def twice_in_headers(records: list[Record]) -> Headers:
    return [*records[INTO].headers, *records[INTO].headers]


# What is done to one block of records after the other, in one partition.
EDITS: dict[str, Edit] = {
    "missing": lambda records: records[:INTO] + records[INTO + 1 :],
    "doubled": lambda records: records[: INTO + 1] + records[INTO:],
    "extra": lambda records: [*records[:INTO], record(9_999), *records[INTO:]],
    "swapped": swapped,
    "value": changed(value=b"other"),
    "no value": changed(value=None),
    "key": changed(key=b"other"),
    "no key": changed(key=None),
    "header value": changed(headers=[("a", b"2"), ("b", b"x"), ("a", None)]),
    "header order": lambda records: changed(headers=records[INTO].headers[::-1])(records),
    "header repeats": lambda records: changed(headers=twice_in_headers(records))(records),
    "timestamp": changed(timestamp_ms=BEGAN_MS),
    "two missing": lambda records: records[:INTO] + records[INTO + 2 :],
    "at the end": lambda records: [*records, record(9_998)],
}


class Planted:
    """Topics by what is wrong with them, and the verdict about all of them."""

    def __init__(self, world: World, spark: SparkSession) -> None:
        self.world = world
        names = ("edited", "short", "in between", "grown", "config", "group")
        self.topics = {name: world.topic() for name in names}
        for topic in self.topics.values():
            write(world.source, topic, map(record, range(COPIED)))
        world.write_settings(**{"sync.group.offsets.enabled": "true", "groups": f"{world.source_alias}-.*"})
        world.copy()
        self.first: dict[str, tuple[int, int]] = {}
        upstream = downstream = COPIED
        for name, edit in EDITS.items():
            self.first[name] = (upstream, downstream)
            downstream += plant(world, self.topics["edited"], upstream, BLOCK, edit)
            upstream += BLOCK
        self._short()
        self._in_between()
        self._metadata()
        self._group()
        self.topics["not there"] = world.topic()
        flow = world.place().load()
        terms = ComparisonTerms(window_records=25)
        self.verdict, _ = verify_flow(spark, flow, terms, say=lambda _: None)

    def _short(self) -> None:
        """The remote topic is lost, and comes back with half of it."""
        remote = self.world.remote(self.topics["short"])
        admin = AdminClient({"bootstrap.servers": self.world.target.bootstrap_servers})
        admin.delete_topics([remote])[remote].result()
        until = time.monotonic() + 120
        while True:
            try:
                admin.create_topics([NewTopic(remote, 1, 1)])[remote].result()
                break
            except Exception:  # noqa: BLE001 -- still being deleted
                assert time.monotonic() < until
                time.sleep(0.2)
        write(self.world.target, remote, map(record, range(60)))

    def _in_between(self) -> None:
        """Somebody else writes to the remote topic, and the copy goes on behind that."""
        topic = self.topics["in between"]
        write(self.world.target, self.world.remote(topic), [record(9_999)])
        write(self.world.source, topic, map(record, range(COPIED, COPIED + 80)))
        self.world.topics, kept = [topic], self.world.topics
        self.world.write_settings()
        self.world.copy()
        self.world.topics = kept
        self.world.write_settings()

    def _metadata(self) -> None:
        grown = self.topics["grown"]
        source = AdminClient({"bootstrap.servers": self.world.source.bootstrap_servers})
        source.create_partitions([NewPartitions(grown, 2)])[grown].result()
        target = AdminClient({"bootstrap.servers": self.world.target.bootstrap_servers})
        change = ConfigEntry("retention.ms", "777000", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(
            ResourceType.TOPIC, self.world.remote(self.topics["config"]), incremental_configs=[change]
        )
        target.incremental_alter_configs([resource])[resource].result()

    def _group(self) -> None:
        world, place = self.world, (self.topics["group"], 0)
        for name in ("right", "ahead", "behind"):
            commit(world.source, f"{world.source_alias}-{name}", {place: 70})
        passes = Checkpoints(world.place().load())
        passes.emit()
        passes.sync_groups()
        passes.close()
        there = (world.remote(self.topics["group"]), 0)
        commit(world.target, f"{world.source_alias}-ahead", {there: 71})
        commit(world.target, f"{world.source_alias}-behind", {there: 40})

    def of(self, name: str) -> list[Difference]:
        """Differences of one topic."""
        return [one for one in self.verdict.differences if one.topic == self.topics[name]]

    def one(self, name: str) -> Difference:
        """The only difference of a topic."""
        (found,) = self.of(name)
        return found

    def edited(self, name: str) -> tuple[Difference, int, int]:
        """The only difference of a block, and the offsets of the record that was touched."""
        upstream, downstream = self.first[name]
        (found,) = [
            one
            for one in self.of("edited")
            if one.downstream is not None
            and downstream <= one.downstream <= downstream + BLOCK + (name == "at the end")
            and (one.upstream is None or upstream <= one.upstream < upstream + BLOCK)
        ]
        return found, upstream + INTO, downstream + INTO


@pytest.fixture(scope="module")
def planted(
    source: EmbeddedCluster, target: EmbeddedCluster, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Planted:
    return Planted(World(source, target, tmp_path_factory.mktemp("planted")), spark)


@pytest.mark.parametrize(("name", "records"), [("missing", 1), ("two missing", 2)])
def test_missing_records(planted: Planted, name: str, records: int) -> None:
    found, upstream, downstream = planted.edited(name)
    assert (found.kind, found.upstream, found.downstream) == (DifferenceKind.MISSING, upstream, downstream)
    assert found.records == records


def test_a_doubled_record(planted: Planted) -> None:
    found, upstream, downstream = planted.edited("doubled")
    assert (found.kind, found.upstream, found.downstream) == (DifferenceKind.DOUBLED, upstream + 1, downstream + 1)


def test_a_record_that_the_source_does_not_have(planted: Planted) -> None:
    found, upstream, downstream = planted.edited("extra")
    assert (found.kind, found.upstream, found.downstream, found.records) == (
        DifferenceKind.EXTRA,
        upstream,
        downstream,
        1,
    )


def test_two_records_in_the_other_order(planted: Planted) -> None:
    found, upstream, downstream = planted.edited("swapped")
    assert (found.kind, found.upstream, found.downstream, found.records) == (
        DifferenceKind.OUT_OF_ORDER,
        upstream,
        downstream,
        2,
    )


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("value", "value"),
        ("no value", "value"),
        ("key", "key"),
        ("no key", "key"),
        ("header value", "headers"),
        ("header order", "headers"),
        ("header repeats", "headers"),
        ("timestamp", "timestamp"),
    ],
)
def test_a_changed_record_and_which_field(planted: Planted, name: str, field: str) -> None:
    found, upstream, downstream = planted.edited(name)
    assert (found.kind, found.upstream, found.downstream) == (DifferenceKind.CHANGED, upstream, downstream)
    assert found.fields == (field,)


def test_a_record_too_many_at_the_end(planted: Planted) -> None:
    _, downstream = planted.first["at the end"]
    found = planted.of("edited")[-1]
    assert (found.kind, found.upstream, found.downstream) == (DifferenceKind.EXTRA, None, downstream + BLOCK)


def test_nothing_else_is_found(planted: Planted) -> None:
    assert len(planted.of("edited")) == len(EDITS)


def test_a_foreign_record_amid_the_copy(planted: Planted) -> None:
    found = planted.one("in between")
    assert (found.kind, found.upstream, found.downstream, found.records) == (DifferenceKind.EXTRA, COPIED, COPIED, 1)
    (result,) = [one for one in planted.verdict.partitions if one.topic == planted.topics["in between"]]
    assert (result.records, result.not_copied) == (COPIED + 80, 0)


def test_a_partition_that_is_short(planted: Planted) -> None:
    found = planted.one("short")
    assert (found.kind, found.upstream, found.downstream, found.records) == (DifferenceKind.SHORT, 60, 60, COPIED - 60)


def test_a_missing_partition(planted: Planted) -> None:
    found = planted.one("grown")
    assert (found.kind, found.source_has, found.target_has) == (DifferenceKind.PARTITIONS, "2 partitions", "1")


def test_a_missing_topic(planted: Planted) -> None:
    found = planted.one("not there")
    assert (found.kind, found.target_has) == (DifferenceKind.TOPIC, "none")


def test_a_config(planted: Planted) -> None:
    found = planted.one("config")
    assert (found.kind, found.what, found.target_has) == (DifferenceKind.CONFIG, "retention.ms", "777000")


def test_group_offsets_ahead_and_behind(planted: Planted) -> None:
    alias = planted.world.source_alias
    found = {one.what: (one.kind, one.upstream, one.downstream) for one in planted.of("group")}
    assert found == {
        f"{alias}-ahead": (DifferenceKind.GROUP_OFFSET, 70, 71),
        f"{alias}-behind": (DifferenceKind.GROUP_OFFSET, 70, 40),
    }


def test_the_verdict(planted: Planted) -> None:
    assert planted.verdict.status == DIFFERENT
    assert planted.verdict.troubles == ()
    assert not any(one.more for one in planted.verdict.partitions)


def test_the_repair_plan_has_a_step_for_every_difference_and_writes_nothing(planted: Planted) -> None:
    remote = [planted.world.remote(topic) for topic in planted.topics.values() if topic != planted.topics["not there"]]
    before = ends(planted.world.target, remote)
    steps = repair_plan(planted.verdict, file="mm2.properties")
    places = {step.place for step in steps}
    assert places == {one.place for one in planted.verdict.differences}
    how = {step.place: step.action for step in steps}
    assert "into a new topic" in how[f"{planted.topics['edited']}-0"]
    assert f"--topic {planted.topics['short']} --partition 0 --offset 60" in how[f"{planted.topics['short']}-0"]
    assert how[planted.topics["config"]] == "mirrorless apply mm2.properties"
    assert "--to-offset 70" in how[f"{planted.topics['group']}-0"]
    assert ends(planted.world.target, remote) == before
