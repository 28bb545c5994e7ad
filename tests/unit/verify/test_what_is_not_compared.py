"""What could not be compared never passes for identical, and takes nothing away that was found."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.clusters.admin import Refusal
from mirrorless.errors import ClusterError
from mirrorless.metadata import kind_results
from mirrorless.metadata.creation_probe import CreationProbe
from mirrorless.metadata.planning import Admins
from mirrorless.settings import Cluster, Flow
from mirrorless.verify import comparison
from mirrorless.verify.comparison import ComparisonTerms, FlowComparison
from mirrorless.verify.findings import (
    DIFFERENT,
    IDENTICAL,
    NOT_COMPARED,
    Difference,
    DifferenceKind,
    VerificationResult,
)
from mirrorless.verify.group_offsets import GroupsCompared
from mirrorless.verify.metadata_diff import Metadata, compare_metadata
from mirrorless.verify.selected_offsets import EVERYTHING, Selection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

FLOW = Flow(
    source=Cluster(alias="a", bootstrap_servers="a:1"),
    target=Cluster(alias="b", bootstrap_servers="b:1"),
    topics_exclude=("secret.*",),
    sync_topic_configs_enabled=False,
    sync_topic_acls_enabled=False,
)
CHANGED = Difference(kind=DifferenceKind.CHANGED, topic="orders", remote_topic="a.orders", partition=0)


class FakeAdmin:
    """A cluster that has these topics, and some that it does not describe."""

    def __init__(self, alias: str, topics: Sequence[str], *, hidden: Sequence[str] = ()) -> None:
        self.alias = alias
        partition = SimpleNamespace(replicas=[1])
        described = {topic: SimpleNamespace(partitions={0: partition}, error=None) for topic in topics}
        refused = {topic: SimpleNamespace(partitions={}, error="no") for topic in hidden}
        self._metadata = SimpleNamespace(cluster_id=f"id of {alias}", brokers={1: None}, topics=described | refused)
        self.client = self

    def metadata(self) -> object:
        return self._metadata

    def describe_configs(self, resources: Sequence[Any]) -> dict[Any, Future[dict[str, object]]]:
        answers: dict[Any, Future[dict[str, object]]] = {}
        for resource in resources:
            answers[resource] = Future()
            answers[resource].set_result({})
        return answers

    def refusal(self, future: object) -> None:  # noqa: ARG002
        return None

    def result(self, future: Future[Any]) -> object:
        return future.result()


@pytest.fixture(autouse=True)
def _no_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds of what a cluster has beside topics have clients of their own."""
    monkeypatch.setattr(kind_results, "KINDS", ())


def admins(source: FakeAdmin, target: FakeAdmin) -> Admins:
    return Admins(cast("Any", source), cast("Any", target))


def metadata_of(source: FakeAdmin, target: FakeAdmin, *, topics: str = "") -> Metadata:
    return compare_metadata(FLOW, admins(source, target), wanted=lambda topic: topic.startswith(topics))


INTERNAL_A, INTERNAL_B = ("mm2-offset-syncs.b.internal",), ("mm2-offsets.a.internal",)


def test_a_source_topic_that_cannot_be_described_is_a_trouble() -> None:
    source = FakeAdmin("a", ["orders", *INTERNAL_A], hidden=["payments", "secret-1", "mm2-configs.x.internal"])
    found = metadata_of(source, FakeAdmin("b", ["a.orders", "a.payments", *INTERNAL_B]))
    assert found.remote == {"orders": "a.orders"}
    assert found.troubles == ["payments: cannot be described on a: no"]
    assert (found.differences, found.notes[2:]) == ([], [])
    assert metadata_of(source, FakeAdmin("b", ["a.orders", *INTERNAL_B]), topics="orders").troubles == []


def test_a_remote_topic_that_cannot_be_described_is_a_trouble_and_no_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CreationProbe, "defaults", lambda *_: {})
    source = FakeAdmin("a", ["orders", *INTERNAL_A])
    found = metadata_of(source, FakeAdmin("b", [*INTERNAL_B], hidden=["a.orders"]))
    assert found.troubles == ["a.orders: cannot be described on b: no"]
    assert found.differences == []


class _Groups:
    """Stands for the comparison of groups; `error` is raised by it."""

    error: ClusterError | None = None

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def compare(self) -> GroupsCompared:
        if self.error is not None:
            raise self.error
        return GroupsCompared(notes=["groups were compared"])

    def close(self) -> None:
        pass


class _Pairing:
    """Stands for the pairing; remembers what was to be paired."""

    asked: list[dict[str, str]]

    def __init__(self, *_: object, remote: Mapping[str, str], **__: object) -> None:
        self.asked.append(dict(remote))

    def pair(self, *, since_ms: int | None) -> list[object]:  # noqa: ARG002
        return []

    def select(self, paired: list[object]) -> Selection:  # noqa: ARG002
        return EVERYTHING

    def close(self) -> None:
        pass


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> type[_Pairing]:
    """A comparison whose clusters are not asked."""
    _Pairing.asked = []
    _Groups.error = None
    nobody = FakeAdmin("a", [])
    monkeypatch.setattr(comparison, "Admins", SimpleNamespace(of=lambda _: admins(nobody, nobody)))
    monkeypatch.setattr(comparison, "Pairing", _Pairing)
    monkeypatch.setattr(comparison, "GroupComparison", _Groups)
    monkeypatch.setattr(comparison, "topic_configs", lambda _, topics: ({topic: {} for topic in topics}, {}))
    return _Pairing


def run(monkeypatch: pytest.MonkeyPatch, metadata: Metadata, *, topics: str = ".*") -> VerificationResult:
    monkeypatch.setattr(comparison, "compare_metadata", lambda *_, **__: metadata)
    terms = ComparisonTerms.read(topics=topics, since=None, percent=None)
    return FlowComparison(cast("SparkSession", None), FLOW, terms, say=lambda _: None).run()


@pytest.mark.usefixtures("compared")
@pytest.mark.parametrize(
    ("remote", "topics", "troubles"),
    [
        ({"orders": "a.orders"}, ".*", ()),
        ({"orders": "a.orders"}, "or.*", ()),
        (
            {},
            ".*",
            (
                "nothing to compare: a has no visible topic that a->b replicates; check `topics` of the flow, and that "
                "its user has DESCRIBE on these topics",
            ),
        ),
        ({}, "ordres", ("--topics=ordres: a->b replicates no visible topic of this name",)),
        (
            {"orders": "a.orders"},
            "orders,paymnets",
            ("--topics=paymnets: a->b replicates no visible topic of this name",),
        ),
        ({}, "", ("nothing to compare: --topics has no pattern",)),
    ],
)
def test_nothing_to_compare(
    monkeypatch: pytest.MonkeyPatch, remote: dict[str, str], topics: str, troubles: tuple[str, ...]
) -> None:
    found = run(monkeypatch, Metadata(remote), topics=topics)
    assert found.troubles == troubles
    assert found.status == (NOT_COMPARED if troubles else IDENTICAL)


@pytest.mark.usefixtures("compared")
def test_groups_that_cannot_be_compared_leave_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    _Groups.error = ClusterError("no answer", cluster="b")
    found = run(monkeypatch, Metadata({"orders": "a.orders"}, differences=[CHANGED], notes=["a note"]))
    assert found.differences == (CHANGED,)
    assert found.notes == ("a note",)
    assert found.troubles == ("group offsets: cluster b: no answer",)
    assert found.status == DIFFERENT


def test_a_topic_whose_configs_cannot_be_read_is_left_out(
    monkeypatch: pytest.MonkeyPatch, compared: type[_Pairing]
) -> None:
    refused = {"customers": Refusal(29, "Topic authorization failed")}
    monkeypatch.setattr(comparison, "topic_configs", lambda *_: ({"orders": {}}, refused))
    found = run(monkeypatch, Metadata({"customers": "a.customers", "orders": "a.orders"}))
    assert compared.asked == [{"orders": "a.orders"}]
    assert found.troubles == (
        "customers: its records are not compared, because reading its configs failed: Topic authorization failed",
    )
