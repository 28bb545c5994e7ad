"""Offsets that the target refuses: metadata that is too large is left out, and any other refusal ends the operation."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.clusters.groups import Committed, GroupOffsets, refusals
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.operation_log.records import OperationKind
from mirrorless.operations.steps import groups as step
from mirrorless.operations.steps.context import StepFailed
from mirrorless.settings import Cluster, Flow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.kafka_python.structs import OffsetAndMetadata, TopicPartition

FLOW = Flow(source=Cluster(alias="A", bootstrap_servers="a:1"), target=Cluster(alias="B", bootstrap_servers="b:1"))
WANTED = {"g": {("t", 0): Committed(7, "x" * 10_000), ("t", 1): Committed(8, "small"), ("t", 2): Committed(9, "")}}


class Coordinator:
    """A coordinator that stores metadata of 4,096 characters at most, and nothing in partition `refused`."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, int], Committed] = {}
        self.refused: int | None = None

    def alter_group_offsets(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> dict[Any, Any]:
        assert group == "g"
        return {place: self._store((place.topic, place.partition), one) for place, one in offsets.items()}

    def _store(self, place: tuple[str, int], one: OffsetAndMetadata) -> Any:  # noqa: ANN401 -- a class of errors
        if len(one.metadata) > 4_096:
            return kafka_errors.OffsetMetadataTooLargeError
        if place[1] == self.refused:
            return kafka_errors.TopicAuthorizationFailedError
        self.stored[place] = Committed(one.offset, one.metadata)
        return kafka_errors.NoError

    def commit_at_once(self, *_: object) -> set[str]:
        return set()

    def fetch_at_once(self, *_: object, **__: object) -> dict[str, Any]:
        return {}

    def list_group_offsets(self, groups: Mapping[str, None]) -> dict[str, Any]:
        return {group: {} for group in groups}

    def close(self) -> None:
        pass


@pytest.fixture
def coordinator(monkeypatch: pytest.MonkeyPatch) -> Coordinator:
    one = Coordinator()
    monkeypatch.setattr(GroupOffsets, "_connected", lambda *_: one)
    return one


def test_an_offset_is_committed_without_metadata_that_is_too_large(coordinator: Coordinator) -> None:
    groups = GroupOffsets(FLOW.target)
    assert groups.commit(WANTED) == {"g": dict.fromkeys(WANTED["g"])}
    assert coordinator.stored == WANTED["g"] | {("t", 0): Committed(7, "")}
    (line,) = groups.shortened
    assert line.startswith("group g: the metadata of its offsets in t-0, up to 10,000 characters, is left out on B")
    assert "offset.metadata.max.bytes" in line


def test_a_move_reports_metadata_that_is_left_out_and_is_complete(coordinator: Coordinator) -> None:
    kind = OperationKind.SWITCHOVER
    context = SimpleNamespace(forward=FLOW, check=lambda: None, warnings=[], request=SimpleNamespace(kind=kind))
    planned = {"wanted": step.packed(WANTED), "before": {}, "created": ["g"]}
    done = step.GroupsStep().act(cast("Any", context), planned)
    assert done["left"] == []
    assert len(coordinator.stored) == 3
    assert "up to 10,000 characters, is left out" in context.warnings[0]


def test_a_failover_moves_applications_and_reports_what_was_refused(coordinator: Coordinator) -> None:
    coordinator.refused, kind = 1, OperationKind.FAILOVER
    context = SimpleNamespace(forward=FLOW, check=lambda: None, warnings=[], request=SimpleNamespace(kind=kind))
    planned = {"wanted": step.packed(WANTED), "before": {}, "created": ["g"]}
    done = step.GroupsStep().act(cast("Any", context), planned)
    assert [line.partition(": ")[0] for line in done["refused"]] == ["group g, t-1"]


def test_no_move_is_complete_while_an_offset_is_refused(coordinator: Coordinator) -> None:
    coordinator.refused, kind = 1, OperationKind.SWITCHOVER
    context = SimpleNamespace(forward=FLOW, check=lambda: None, warnings=[], request=SimpleNamespace(kind=kind))
    planned = {"wanted": step.packed(WANTED), "before": {}, "created": ["g"]}
    with pytest.raises(StepFailed) as raised:
        step.GroupsStep().act(cast("Any", context), planned)
    assert "could not be committed on B" in str(raised.value)
    assert any(line.startswith("group g, t-1: ") for line in raised.value.lines)


def test_a_group_that_is_refused_for_one_reason_is_one_line() -> None:
    """Such as a share group of the same name: each partition of each topic has the same error."""
    outcome: dict[tuple[str, int], str | None] = {("t", number): "it is a share group" for number in range(11)}
    assert refusals("g", outcome) == ["group g, t-0 and 10 more: it is a share group"]
    assert refusals("g", outcome | {("t", 3): None, ("u", 0): "no READ"}) == [
        "group g, t-0 and 9 more: it is a share group",
        "group g, u-0: no READ",
    ]
