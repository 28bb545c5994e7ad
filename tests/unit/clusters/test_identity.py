"""What tells one cluster from two that report the same id."""

from __future__ import annotations

import pytest

from mirrorless.clusters.identity import Likeness, ShownCluster, compare, id_of
from mirrorless.settings import Cluster


def shown(*brokers: str, topics: dict[str, str] | None = None, ids: bool = True) -> ShownCluster:
    """Brokers 1, 2, ... at these addresses, topics with their ids."""
    topics = topics or {}
    return ShownCluster(frozenset(enumerate(brokers, start=1)), dict.fromkeys(topics, 1), topics if ids else {})


@pytest.mark.parametrize(
    ("source", "target", "likeness"),
    [
        # One cluster, asked twice; by two listeners; and with users who see other topics.
        (shown("a:1", "b:1"), shown("a:1", "b:1"), Likeness.SAME),
        (shown("a:1", topics={"t": "x"}), shown("a:2", topics={"t": "x"}), Likeness.SAME),
        (shown("a:1", topics={"t": "x", "u": "old"}), shown("a:2", topics={"t": "x", "u": "new"}), Likeness.SAME),
        (shown("a:1", topics={"t": "x"}), shown("a:1", topics={"u": "y"}), Likeness.SAME),
        # Two clusters: nothing there yet, topics of the same name, other topics.
        (shown("a:1"), shown("b:1"), Likeness.DIFFERENT),
        (shown("a:1", topics={"t": "x"}), shown("b:1", topics={"t": "y"}), Likeness.DIFFERENT),
        (shown("a:1", topics={"t": "x"}), shown("b:1", topics={"A.t": "y"}), Likeness.DIFFERENT),
        (shown("a:1", topics={"t": "x"}), shown("b:1"), Likeness.DIFFERENT),
        # Brokers without ids of topics.
        (shown("a:1", topics={"t": ""}, ids=False), shown("b:1", topics={"t": ""}, ids=False), Likeness.ALIKE),
        (shown("a:1", topics={"t": ""}, ids=False), shown("b:1", topics={"u": ""}, ids=False), Likeness.DIFFERENT),
        (
            shown("a:1", topics={"t": ""}, ids=False),
            shown("b:1", "c:1", topics={"t": ""}, ids=False),
            Likeness.DIFFERENT,
        ),
    ],
)
def test_what_both_ends_have_in_common(source: ShownCluster, target: ShownCluster, likeness: Likeness) -> None:
    assert compare(source, target) is likeness
    assert compare(target, source) is likeness


def test_a_name_takes_the_place_of_the_reported_id() -> None:
    cluster = Cluster(alias="A", bootstrap_servers="a:1")

    assert id_of(cluster, "reported") == "reported"
    assert id_of(cluster.model_copy(update={"cluster_id": "name"}), "reported") == "name"
