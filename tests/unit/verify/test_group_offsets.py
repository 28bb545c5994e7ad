"""Offsets of groups differ only where a group would go on elsewhere than it stopped."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from confluent_kafka import KafkaError

from mirrorless.clusters.admin import Refusal
from mirrorless.clusters.groups import Activity, Committed
from mirrorless.clusters.topics import Described
from mirrorless.errors import ClusterError
from mirrorless.formats import Checkpoint
from mirrorless.offsets.translation import How, Translated
from mirrorless.settings import Cluster, Flow
from mirrorless.verify import group_offsets
from mirrorless.verify.group_offsets import GroupComparison, GroupsCompared

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mirrorless.clusters.topic_partition import TopicPartition

HERE, THERE = ("orders", 0), ("a.orders", 0)


class Side:
    """The groups of both clusters, their translations and checkpoints, as a test has them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.activity = {"a": {"readers": Activity.EMPTY}, "b": {"readers": Activity.EMPTY}}
        self.committed: dict[str, dict[str, dict[TopicPartition, int] | str]] = {"a": {"readers": {HERE: 70}}, "b": {}}
        self.checkpoints: dict[str, dict[TopicPartition, int]] = {"readers": {THERE: 70}}
        self.answer = Translated(70, How.RUN)
        self.topic: Described | Refusal = Described("id", (0,))
        monkeypatch.setattr(group_offsets, "list_groups", lambda admin: (self.activity[admin.alias], []))
        monkeypatch.setattr(group_offsets, "describe", lambda *_: self.topic)
        monkeypatch.setattr(group_offsets, "GroupOffsets", lambda cluster: _Offsets(self.committed[cluster.alias]))
        monkeypatch.setattr(group_offsets, "translator_of", lambda *_, **__: self)
        monkeypatch.setattr(group_offsets, "CheckpointTopic", lambda *_, **__: self)

    name = "a.checkpoints.internal"

    def read(self) -> dict[str, dict[TopicPartition, Checkpoint]]:
        return {
            group: {
                place: Checkpoint(
                    group=group, topic=place[0], partition=place[1], upstream=0, downstream=offset, metadata=""
                )
                for place, offset in some.items()
            }
            for group, some in self.checkpoints.items()
        }

    def refresh(self, places: object) -> None:
        pass

    def translate(self, wanted: Mapping[TopicPartition, Iterable[int]], *, deadline: float) -> object:  # noqa: ARG002
        return {place: dict.fromkeys(offsets, self.answer) for place, offsets in wanted.items()}

    def close(self) -> None:
        pass

    def compared(self, **settings: object) -> GroupsCompared:
        flow = Flow(
            source=Cluster(alias="a", bootstrap_servers="a:1"),
            target=Cluster(alias="b", bootstrap_servers="b:1"),
            **cast("Any", {"topics": ("orders",)} | settings),
        )
        source, target = (cast("Any", SimpleNamespace(alias=alias)) for alias in "ab")
        remote = {"orders": "a.orders", "heartbeats": "a.heartbeats"}
        return GroupComparison(flow, source=source, target=target, remote=remote).compare()


class _Offsets:
    def __init__(self, offsets: Mapping[str, dict[TopicPartition, int] | str]) -> None:
        self._offsets = offsets

    def committed(self, groups: Iterable[str]) -> Iterator[tuple[str, dict[TopicPartition, Committed] | str]]:
        for group in groups:
            some = self._offsets.get(group, {})
            yield group, some if isinstance(some, str) else {at: Committed(one, "") for at, one in some.items()}

    def close(self) -> None:
        pass


@pytest.fixture
def side(monkeypatch: pytest.MonkeyPatch) -> Side:
    return Side(monkeypatch)


def told(found: GroupsCompared) -> list[tuple[str, str | None]]:
    return [(one.what, one.target_has) for one in found.differences]


def test_a_group_that_stands_where_it_should(side: Side) -> None:
    assert side.compared() == GroupsCompared()


@pytest.mark.parametrize(("there", "has"), [(69, "69"), (71, "71"), (None, "none")])
def test_a_group_that_stands_elsewhere(side: Side, there: int | None, has: str) -> None:
    side.checkpoints = {} if there is None else {"readers": {THERE: there}}
    assert told(side.compared()) == [("readers", has)]


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"emit_checkpoints_enabled": False}, "emit.checkpoints.enabled"),
        ({"emit_checkpoints_enabled": False, "sync_group_offsets_enabled": True}, "emit.checkpoints.enabled"),
        ({"emit_offset_syncs_enabled": False}, "emit.offset-syncs.enabled"),
    ],
)
def test_without_checkpoints_nothing_is_compared(side: Side, settings: dict[str, bool], key: str) -> None:
    side.checkpoints = {}
    assert side.compared(**settings) == GroupsCompared(notes=[f"group offsets are not compared: {key} is false"])


@pytest.mark.parametrize("there", [50, None])
def test_a_group_ahead_of_the_copy(side: Side, there: int | None) -> None:
    side.answer = Translated(60, How.BEYOND)
    side.checkpoints = {} if there is None else {"readers": {THERE: there}}
    found = side.compared()
    assert found.differences == []
    assert found.notes == ["group readers, orders-0: not compared, the group is ahead of the copy"]


def test_a_group_past_what_is_copied_would_skip_records(side: Side) -> None:
    side.answer = Translated(60, How.BEYOND)
    side.checkpoints = {"readers": {THERE: 65}}
    assert told(side.compared()) == [("readers", "65")]


@pytest.mark.parametrize("activity", [Activity.ACTIVE, Activity.UNKNOWN])
def test_a_group_that_may_be_reading_on_the_source(side: Side, activity: Activity) -> None:
    side.activity["a"]["readers"] = activity
    side.checkpoints = {"readers": {THERE: 50}}
    assert side.compared().differences == []
    side.checkpoints = {"readers": {THERE: 80}}
    assert told(side.compared()) == [("readers", "80")]


@pytest.mark.parametrize(
    ("activity", "how"), [(Activity.ACTIVE, "is active"), (Activity.UNKNOWN, "may be active"), (Activity.EMPTY, None)]
)
def test_a_group_that_may_be_reading_on_the_target(side: Side, activity: Activity, how: str | None) -> None:
    side.activity["b"]["readers"] = activity
    side.committed["b"] = {"readers": {THERE: 90}}
    found = side.compared(sync_group_offsets_enabled=True)
    assert told(found) == ([("readers", "90")] if how is None else [])
    assert found.notes == ([] if how is None else [f"group readers {how} on b: not compared"])


def test_a_group_that_is_not_on_the_target_has_no_offset_there(side: Side) -> None:
    del side.activity["b"]["readers"]
    assert told(side.compared(sync_group_offsets_enabled=True)) == [("readers", "none")]


def test_a_group_that_cannot_be_asked_for_is_a_trouble_only(side: Side) -> None:
    side.committed["b"] = {"readers": "not authorized"}
    found = side.compared(sync_group_offsets_enabled=True)
    assert (found.differences, found.troubles) == ([], ["group readers: not authorized"])


def test_heartbeats_that_the_filter_does_not_select(side: Side) -> None:
    side.committed["a"] = {"readers": {HERE: 70, ("heartbeats", 0): 5}}
    assert side.compared() == GroupsCompared()
    assert told(side.compared(topics=(".*",))) == [("readers", "none")]


def test_checkpoints_that_the_user_may_not_see(side: Side) -> None:
    side.checkpoints = {}
    side.topic = Refusal(KafkaError.TOPIC_AUTHORIZATION_FAILED, "Broker: Topic authorization failed")
    with pytest.raises(ClusterError, match=r"^cluster b: a\.checkpoints\.internal: .*; grant READ on it$"):
        side.compared()
    side.topic = Refusal(KafkaError.UNKNOWN_TOPIC_OR_PART, "Broker: Unknown topic or partition")
    assert told(side.compared()) == [("readers", "none")]
