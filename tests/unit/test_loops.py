"""A topic that every flow of a circle selects under its own name would be copied for ever: found by names alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.errors import ConfigurationError, LoopError
from mirrorless.loops import Loops
from mirrorless.modes import Modes
from mirrorless.policy import DefaultReplicationPolicy
from mirrorless.settings import load
from mirrorless.settings.patterns import plain_name

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.settings import Flow, Settings

IDENTITY = "replication.policy.class = IdentityReplicationPolicy\n"
TURNS = "mirrorless.both.directions = turns\nmirrorless.active.cluster = A\n"


def settings(folder: Path, text: str, *, clusters: str = "A, B, C") -> Settings:
    servers = "".join(f"{alias}.bootstrap.servers = {alias}:1\n" for alias in clusters.split(", "))
    file = folder / "mm2.properties"
    file.write_text(f"clusters = {clusters}\n{servers}{text}")
    return load(file)


def enabled(*flows: str) -> str:
    return "".join(f"{flow}.enabled = true\n" for flow in flows)


def paths(found: dict[str, tuple[Flow, ...]]) -> dict[str, list[str]]:
    return {topic: [one.name for one in path] for topic, path in found.items()}


def test_what_both_directions_select_under_its_own_name_loops(tmp_path: Path) -> None:
    flows = settings(tmp_path, IDENTITY + enabled("A->B", "B->A")).flows

    assert paths(Loops(flows[0]).find(["orders"])) == {"orders": ["A->B", "B->A"]}
    assert paths(Loops(flows[1]).find(["orders"])) == {"orders": ["B->A", "A->B"]}


def test_topics_that_go_one_way_each_do_not(tmp_path: Path) -> None:
    text = IDENTITY + enabled("A->B", "B->A") + "A->B.topics = eu-.*, both\nB->A.topics = us-.*, both\n"
    loops = Loops(settings(tmp_path, text).flows[0])

    assert list(loops.find(["eu-orders", "us-orders", "both"])) == ["both"]


def test_what_one_of_them_leaves_out_does_not(tmp_path: Path) -> None:
    text = IDENTITY + enabled("A->B", "B->A") + "B->A.topics.exclude = orders\n"

    assert not Loops(settings(tmp_path, text).flows[0]).find(["orders"])


def test_heartbeats_and_internal_topics_do_not(tmp_path: Path) -> None:
    loops = Loops(settings(tmp_path, IDENTITY + enabled("A->B", "B->A")).flows[0])
    names = ["heartbeats", "A.heartbeats", "my-heartbeats", "mm2-offsets.A.internal", "__consumer_offsets"]

    assert not loops.find(names)


def test_renamed_topics_do_not(tmp_path: Path) -> None:
    loops = Loops(settings(tmp_path, enabled("A->B", "B->A")).flows[0])

    assert not loops.possible
    assert not loops.find(["orders"])


def test_one_step_that_renames_breaks_the_circle(tmp_path: Path) -> None:
    text = IDENTITY + enabled("A->B", "B->A") + "B->A.replication.policy.class = DefaultReplicationPolicy\n"

    assert not Loops(settings(tmp_path, text).flows[0]).find(["orders"])


def test_a_ring_loops_and_what_only_leads_into_it_does_not(tmp_path: Path) -> None:
    text = IDENTITY + enabled("A->B", "B->C", "C->A", "D->A", "A->D")
    text += "D->A.topics = none\n"
    flows = {flow.name: flow for flow in settings(tmp_path, text, clusters="A, B, C, D").flows}

    assert paths(Loops(flows["B->C"]).find(["orders"])) == {"orders": ["B->C", "C->A", "A->B"]}
    assert not Loops(flows["A->D"]).find(["orders"])


class Kept(DefaultReplicationPolicy):
    """A policy of a user's own that keeps names."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:  # noqa: ARG002 -- the protocol's
        return topic


def test_a_policy_of_ones_own_is_asked(tmp_path: Path) -> None:
    text = f"replication.policy.class = {__name__}:Kept\n" + enabled("A->B", "B->A")

    assert list(Loops(settings(tmp_path, text).flows[0]).find(["orders", "B.orders"])) == ["orders"]


def test_the_error_names_flows_and_a_topic(tmp_path: Path) -> None:
    loops = Loops(settings(tmp_path, IDENTITY + enabled("A->B", "B->A")).flows[0])

    with pytest.raises(LoopError) as caught:
        loops.refuse(["orders", "carts"])

    assert (caught.value.topic, caught.value.path) == ("carts", ("A->B", "B->A"))
    assert str(caught.value).startswith(
        "flow A->B: topic carts (and 1 more) would be replicated in a loop by A->B, B->A, which all select the topic "
        "and keep"
    )


def test_flows_that_take_turns_do_not_loop(tmp_path: Path) -> None:
    there, back = settings(tmp_path, IDENTITY + enabled("A->B", "B->A") + TURNS, clusters="A, B").flows

    assert not Loops(there).find(["orders"])
    assert [one.name for flow in (there, back) if (one := Modes(flow).other_turn)] == ["B->A", "A->B"]
    assert (Modes(there).begins_stopped, Modes(back).begins_stopped) == (False, True)


@pytest.mark.parametrize("line", ["mirrorless.active.cluster = C\n", "A->B.mirrorless.active.cluster = A\n", ""])
def test_without_one_active_cluster_they_loop(tmp_path: Path, line: str) -> None:
    there, _ = settings(tmp_path, IDENTITY + enabled("A->B", "B->A") + line, clusters="A, B").flows

    assert Modes(there).other_turn is None
    with pytest.raises(LoopError, match=r"mirrorless\.active\.cluster is the one of the two clusters"):
        Loops(there).refuse(["orders"])


def test_renamed_topics_take_no_turns(tmp_path: Path) -> None:
    flows = settings(tmp_path, enabled("A->B", "B->A") + "mirrorless.active.cluster = A\n", clusters="A, B").flows

    assert not any(Modes(flow).begins_stopped for flow in flows)


def test_a_longer_way_back_loops_although_a_pair_takes_turns(tmp_path: Path) -> None:
    text = IDENTITY + enabled("A->B", "B->A", "B->C", "C->A") + "mirrorless.active.cluster = A\n"
    loops = Loops(settings(tmp_path, text).flows[0])

    assert paths(loops.find(["orders"])) == {"orders": ["A->B", "B->C", "C->A"]}


@pytest.mark.parametrize(
    ("there", "back", "open_"),
    [
        (".*", ".*", True),
        (".*", "us-.*", True),
        ("orders.*", "order.*", True),
        ("eu-.*", "us-.*", False),
        (r"eu\-.*", r"us\-.*", False),
        ("(eu|us)-.*", "eu-.*", True),
        ("orders*", "order", False),
        ("a|b", "b|a", True),
        (".*", "orders", False),
    ],
)
def test_whether_patterns_may_match_the_same(tmp_path: Path, there: str, back: str, *, open_: bool) -> None:
    text = IDENTITY + enabled("A->B", "B->A") + f"A->B.topics = {there}\nB->A.topics = {back}\n".replace("\\", "\\\\")

    assert (Loops(settings(tmp_path, text).flows[0]).undecided() is not None) is open_


def test_a_plain_name_is_one_topic() -> None:
    cases: list[tuple[str, str | None]] = [
        ("orders", "orders"),
        ("a.b", "a.b"),
        (r"a\.b", "a.b"),
        ("a.*", None),
        ("a|b", None),
    ]
    assert [(pattern, plain_name(pattern)) for pattern, _ in cases] == cases


SKIP = IDENTITY + "mirrorless.both.directions = skip\nsync.topic.configs.enabled = false\n"


def skipped(flow: Flow, topic: str = "orders") -> set[str]:
    return {one.alias for one in Loops(flow).skipped(topic)}


def test_flows_that_skip_copies_do_not_loop(tmp_path: Path) -> None:
    there, back = settings(tmp_path, SKIP + enabled("A->B", "B->A"), clusters="A, B").flows

    assert not Loops(there).find(["orders"])
    assert Loops(there).undecided() is None
    assert (skipped(there), skipped(back)) == ({"B"}, {"A"})
    assert Modes(there).shares_topics


def test_a_full_mesh_does_not_loop_and_a_ring_does(tmp_path: Path) -> None:
    mesh = settings(tmp_path, SKIP + enabled("A->B", "A->C", "B->A", "B->C", "C->A", "C->B")).flows
    assert not any(Loops(flow).find(["orders"]) for flow in mesh)
    assert skipped(mesh[0]) == {"B", "C"}

    ring = settings(tmp_path, SKIP + enabled("A->B", "B->C", "C->A")).flows[0]
    with pytest.raises(
        LoopError, match=r"or until \w->\w selects the topic too: mirrorless.both.directions=skip copies no"
    ):
        Loops(ring).refuse(["orders"])


def test_records_without_a_flow_of_their_own_are_copied_on(tmp_path: Path) -> None:
    """C's topic `extra` reaches B by way of A only."""
    text = SKIP + enabled("A->B", "A->C", "B->A", "B->C", "C->A", "C->B")
    text += "C->B.topics.exclude = extra\nB->A.topics.exclude = extra\nB->C.topics.exclude = extra\n"
    flow = settings(tmp_path, text + "A->C.topics.exclude = extra\n").flow("A->B")

    assert not Loops(flow).find(["extra"])
    assert (skipped(flow, "extra"), skipped(flow)) == (set(), {"B", "C"})


def test_all_flows_of_a_circle_have_to_skip(tmp_path: Path) -> None:
    text = SKIP + enabled("A->B", "B->A") + "B->A.mirrorless.both.directions = refuse\n"

    assert list(Loops(settings(tmp_path, text, clusters="A, B").flows[0]).find(["orders"])) == ["orders"]


def test_flows_that_rename_skip_nothing(tmp_path: Path) -> None:
    flow = settings(tmp_path, "mirrorless.both.directions = skip\n" + enabled("A->B", "B->A"), clusters="A, B").flows[0]

    assert not skipped(flow)


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ("", "B->A.sync.topic.configs.enabled: A->B syncs configs of the same topics"),
        (
            "sync.topic.configs.enabled = false\nmirrorless.active.cluster = A\n",
            "both directions copy at the same time",
        ),
    ],
)
def test_what_skipping_excludes(tmp_path: Path, lines: str, error: str) -> None:
    text = IDENTITY + "mirrorless.both.directions = skip\n" + enabled("A->B", "B->A") + lines

    with pytest.raises(ConfigurationError, match=error):
        settings(tmp_path, text, clusters="A, B")


def test_one_of_three_clusters_has_the_configs_of_all(tmp_path: Path) -> None:
    text = IDENTITY + "mirrorless.both.directions = skip\n" + enabled("A->B", "A->C", "B->A", "B->C", "C->A", "C->B")
    text += "".join(f"{flow}.sync.topic.configs.enabled = false\n" for flow in ("B->A", "B->C", "C->A", "C->B"))

    assert len(settings(tmp_path, text).flows) == 6


def test_a_topic_that_is_renamed_on_its_way_loops_under_both_names(tmp_path: Path) -> None:
    rules = "A->B.mirrorless.topics.rename = orders -> orders.v2\n"
    flows = enabled("A->B", "B->A") + IDENTITY + rules
    out, back = settings(tmp_path, flows, clusters="A, B").flows
    assert paths(Loops(out).find(["orders"])) == {"orders": ["A->B", "B->A"]}
    assert paths(Loops(out).find(["orders.v2"])) == {"orders": ["A->B", "B->A"]}
    assert paths(Loops(back).find(["orders.v2"])) == {"orders.v2": ["B->A", "A->B"]}
    out, back = settings(tmp_path, f"{flows}B->A.topics = orders\n", clusters="A, B").flows
    assert Loops(out).find(["orders", "orders.v2"]) == {}
    assert Loops(back).find(["orders", "orders.v2"]) == {}


def test_a_topic_that_comes_back_under_another_name_loops_if_it_is_copied_on(tmp_path: Path) -> None:
    flows = enabled("A->B", "B->C", "C->A") + IDENTITY
    rules = "A->B.mirrorless.topics.rename = (.*) -> v.$1\n"
    assert paths(Loops(settings(tmp_path, flows + rules).flows[0]).find(["orders"])) == {
        "orders": ["A->B", "B->C", "C->A"]
    }
    assert Loops(settings(tmp_path, f"{flows}{rules}A->B.topics = orders\n").flows[0]).find(["orders"]) == {}


def test_a_topic_has_a_name_on_each_cluster(tmp_path: Path) -> None:
    rules = "A->B.mirrorless.topics.rename = orders -> o2\n"
    out, back, on = settings(tmp_path, enabled("A->B", "B->A", "B->C") + IDENTITY + rules).flows
    assert Loops(out).names("orders") == {"A": "orders", "B": "o2"}
    assert Loops(back).names("o2") == {"A": "orders", "B": "o2"}
    assert Loops(on).names("o2") == {"B": "o2"}
