"""Names of remote and internal topics, as MirrorMaker 2's two policies have them."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorless.errors import ConfigurationError
from mirrorless.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, policy_for
from mirrorless.selection import should_replicate
from mirrorless.settings import Cluster, Flow

DOTS = DefaultReplicationPolicy()
IDENTITY = IdentityReplicationPolicy("A")

A = Cluster(alias="A", bootstrap_servers="a:1")
B = Cluster(alias="B", bootstrap_servers="b:1")


@pytest.mark.parametrize(
    ("topic", "source", "upstream", "original"),
    [
        ("t", None, None, "t"),
        ("A.t", "A", "t", "t"),
        ("A.B.t", "A", "B.t", "t"),
        ("a.", None, None, "a."),
        ("a..", None, None, "a.."),
        (".b", "", "b", "b"),
        ("a..b", "a", ".b", "b"),
        (".", None, None, "."),
        ("", None, None, ""),
    ],
)
def test_hops_are_cut_as_java_splits(topic: str, source: str | None, upstream: str | None, original: str) -> None:
    assert DOTS.topic_source(topic) == source
    assert DOTS.upstream_topic(topic) == upstream
    assert DOTS.original_topic(topic) == original


separators = st.sampled_from([".", "_", "__", "-->"])
aliases = st.text(alphabet="abcABC012", min_size=1)
topics = st.text(alphabet="abc.-_>", min_size=1)


@given(separators, aliases, topics)
def test_upstream_undoes_format(separator: str, alias: str, topic: str) -> None:
    policy = DefaultReplicationPolicy(separator=separator)
    remote = policy.format_remote_topic(alias, topic)

    if remote.count(separator) * len(separator) == len(remote) - len(alias):
        assert policy.topic_source(remote) is None  # nothing but separators behind the alias: Java sees no topic
    else:
        assert policy.topic_source(remote) == alias
        assert policy.upstream_topic(remote) == topic


@given(separators, st.lists(aliases, max_size=4))
def test_the_original_is_behind_all_hops(separator: str, hops: list[str]) -> None:
    policy = DefaultReplicationPolicy(separator=separator)
    remote = "t"
    for alias in hops:
        remote = policy.format_remote_topic(alias, remote)

    assert policy.original_topic(remote) == "t"
    assert all(policy.is_cycle(remote, alias) for alias in hops)
    assert not policy.is_cycle(remote, "elsewhere")


@given(topics.filter(lambda topic: not topic.endswith("heartbeats")))
def test_identity_changes_no_name_and_sees_no_cycle(topic: str) -> None:
    assert IDENTITY.format_remote_topic("A", topic) == topic
    assert IDENTITY.topic_source(topic) == "A"
    assert IDENTITY.upstream_topic(topic) == topic
    assert IDENTITY.original_topic(topic) == topic
    assert not IDENTITY.is_cycle(topic, "B")


def test_identity_treats_what_ends_in_heartbeats_as_the_default_does() -> None:
    assert IDENTITY.format_remote_topic("A", "heartbeats") == "A.heartbeats"
    assert IDENTITY.format_remote_topic("A", "my-heartbeats") == "A.my-heartbeats"
    assert IDENTITY.topic_source("heartbeats") is None
    assert IDENTITY.topic_source("C.heartbeats") == "C"
    assert IDENTITY.upstream_topic("C.heartbeats") == "heartbeats"
    assert IDENTITY.is_heartbeats_topic("C.heartbeats")
    assert IDENTITY.is_cycle("B.heartbeats", "B")


def test_identity_without_source_knows_no_remote_topic() -> None:
    policy = IdentityReplicationPolicy(None)

    assert policy.topic_source("t") is None
    assert policy.topic_source("A.heartbeats") == "A"


@pytest.mark.parametrize(
    ("policy", "names"),
    [
        (DOTS, ("mm2-offset-syncs.B.internal", "A.checkpoints.internal")),
        (
            DefaultReplicationPolicy(separator="__", internal_separator="__"),
            ("mm2-offset-syncs__B__internal", "A__checkpoints__internal"),
        ),
        (DefaultReplicationPolicy(separator="__"), ("mm2-offset-syncs.B.internal", "A.checkpoints.internal")),
        (IDENTITY, ("mm2-offset-syncs.B.internal", "A.checkpoints.internal")),
    ],
)
def test_internal_topics(policy: DefaultReplicationPolicy, names: tuple[str, str]) -> None:
    assert (policy.offset_syncs_topic("B"), policy.checkpoints_topic("A")) == names
    assert policy.heartbeats_topic() == "heartbeats"
    assert policy.is_checkpoints_topic(names[1])
    assert all(policy.is_internal_topic(name) for name in names)


def test_what_is_internal_since_4_0() -> None:
    cases: list[tuple[str, bool]] = [
        ("mm2-offsets.A.internal", True),
        ("mm2x.internal", True),
        ("C.checkpoints.internal", True),
        ("__consumer_offsets", True),
        (".hidden", True),
        ("orders.internal", False),
        ("orders-internal", False),
        ("mm2-orders", False),
        ("heartbeats", False),
    ]
    assert [(topic, DOTS.is_internal_topic(topic)) for topic, _ in cases] == cases


def test_with_a_separator_of_its_own_the_policy_no_longer_knows_connects_topics() -> None:
    policy = DefaultReplicationPolicy(separator="__", internal_separator="__")

    assert not policy.is_internal_topic("mm2-offsets.A.internal")


def test_a_topic_that_passed_through_the_target_is_a_cycle() -> None:
    cases: list[tuple[str, bool]] = [
        ("t", False),
        ("A.t", False),
        ("B.t", True),
        ("A.B.t", True),
        ("A.C.t", False),
        ("B", False),
    ]
    assert [(topic, DOTS.is_cycle(topic, "B")) for topic, _ in cases] == cases


@pytest.mark.parametrize("package", ["", "org.apache.kafka.connect.mirror."])
def test_a_flow_names_its_policy(package: str) -> None:
    default = Flow(
        source=A,
        target=B,
        replication_policy_class=f"{package}DefaultReplicationPolicy",
        replication_policy_separator="_",
    )
    identity = Flow(
        source=A,
        target=B,
        replication_policy_class=f"{package}IdentityReplicationPolicy",
        replication_policy_separator="_",
        replication_policy_internal_topic_separator_enabled=False,
    )

    assert policy_for(default) == DefaultReplicationPolicy(separator="_", internal_separator="_")
    assert policy_for(identity) == IdentityReplicationPolicy("A", separator="_", internal_separator=".")


class Suffixed(DefaultReplicationPolicy):
    """Remote topics end with the alias of their source."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}{self.separator}from{self.separator}{source_alias}"


def test_a_policy_of_ones_own_comes_by_its_import_path(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("own_policy")
    vars(module)["Suffixed"] = Suffixed
    monkeypatch.setitem(sys.modules, "own_policy", module)
    flow = Flow(source=A, target=B, replication_policy_class="own_policy:Suffixed", replication_policy_separator="_")

    assert policy_for(flow).format_remote_topic("A", "t") == "t_from_A"


def test_a_java_policy_of_ones_own_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"^replication\.policy\.class=com\.example\.Mine: flow A->B: "):
        policy_for(Flow(source=A, target=B, replication_policy_class="com.example.Mine"))


def test_the_filter_decides_unless_it_is_a_heartbeat_an_internal_topic_or_a_cycle() -> None:
    flow = Flow(source=A, target=B)

    def replicates(topic: str, *, selected: bool) -> bool:
        return should_replicate(topic, flow=flow, policy=DOTS, selects=lambda _: selected)

    assert replicates("t", selected=True)
    assert not replicates("t", selected=False)
    assert replicates("heartbeats", selected=False)
    assert not replicates("__t", selected=True)
    assert not replicates("B.t", selected=True)


DASHED = DefaultReplicationPolicy(separator="-", aliases=("dc-a", "dc-a-old"))


@pytest.mark.parametrize(
    ("topic", "source", "upstream", "original"),
    [
        ("dc-a-t", "dc-a", "t", "t"),
        ("dc-a-old-t", "dc-a-old", "t", "t"),
        ("x-dc-a-t", "x", "dc-a-t", "t"),
        ("dc-a-", "dc", "a-", "a-"),
        ("dc-a", "dc", "a", "a"),
        ("dc-b-t", "dc", "b-t", "t"),
    ],
)
def test_a_known_alias_is_one_hop_whatever_it_contains(topic: str, source: str, upstream: str, original: str) -> None:
    assert DASHED.topic_source(topic) == source
    assert DASHED.upstream_topic(topic) == upstream
    assert DASHED.original_topic(topic) == original


def test_a_target_whose_alias_contains_the_separator_is_a_cycle() -> None:
    assert DASHED.is_cycle("dc-a-t", "dc-a")
    assert DASHED.is_cycle("x-dc-a-t", "dc-a")
    assert not DASHED.is_cycle("dc-b-t", "dc-a")


def test_a_flow_knows_the_aliases_of_its_file_that_contain_the_separator() -> None:
    flow = Flow(source=A, target=B, replication_policy_separator="-").among(aliases=("A", "dc-c", "B"), circle=())

    assert policy_for(flow) == DefaultReplicationPolicy(separator="-", internal_separator="-", aliases=("dc-c",))


@pytest.mark.parametrize(
    ("topic", "passes"),
    [
        ("heartbeats", True),
        ("C.heartbeats", True),
        ("C.D.heartbeats", True),
        ("A.heartbeats", False),
        ("C.A.heartbeats", False),
        ("B.heartbeats", False),
        ("A.orders", True),
    ],
)
@pytest.mark.parametrize("policy", [DOTS, IDENTITY])
def test_heartbeats_that_came_from_the_source_do_not_leave_it_again(
    topic: str, *, passes: bool, policy: DefaultReplicationPolicy
) -> None:
    flow = Flow(source=A, target=B)

    assert should_replicate(topic, flow=flow, policy=policy, selects=lambda _: True) is passes
