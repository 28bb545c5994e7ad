"""What the rest of a file adds to a flow: the flows that lead back to its source."""

from __future__ import annotations

import pickle
from itertools import permutations

from mirrorless.settings import Cluster, Flow
from mirrorless.settings.replication_cycles import together


def circles(*names: str) -> dict[str, set[str]]:
    ends = [name.split("->") for name in names]
    clusters = {alias: Cluster(alias=alias, bootstrap_servers="x:1") for pair in ends for alias in pair}
    flows = [Flow(source=clusters[source], target=clusters[target]) for source, target in ends]
    return {flow.name: {one.name for one in flow.circle} for flow in together(flows, tuple(clusters))}


def test_only_flows_on_a_cycle_have_a_circle() -> None:
    assert circles("A->B", "B->C", "C->A", "A->D", "E->A") == {
        "A->B": {"B->C", "C->A"},
        "B->C": {"A->B", "C->A"},
        "C->A": {"A->B", "B->C"},
        "A->D": set(),
        "E->A": set(),
    }


def test_two_cycles_that_share_no_cluster_stay_apart() -> None:
    assert circles("A->B", "B->A", "B->C", "C->D", "D->C") == {
        "A->B": {"B->A"},
        "B->A": {"A->B"},
        "B->C": set(),
        "C->D": {"D->C"},
        "D->C": {"C->D"},
    }


def test_in_a_full_mesh_all_are_on_cycles() -> None:
    names = [f"{source}->{target}" for source, target in permutations("ABC", 2)]

    assert circles(*names) == {name: {*names} - {name} for name in names}


def test_a_flow_knows_all_aliases_and_travels_with_them() -> None:
    flow = Flow(source=Cluster(alias="A", bootstrap_servers="a:1"), target=Cluster(alias="B", bootstrap_servers="b:1"))
    (found,) = together([flow], ("C", "B", "A"))

    assert found.aliases == ("A", "B", "C")
    assert pickle.loads(pickle.dumps(found)).aliases == found.aliases  # noqa: S301 -- our own
