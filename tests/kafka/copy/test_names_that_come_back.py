"""Remote topics do not multiply, even where an alias contains the separator and two files know different aliases."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.settings import load
from tests.support.metadata import discover_topics

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from mirrorless.settings import Flow

_numbers = count()
ROUNDS = 3


class Names:
    """Two clusters whose aliases no other test uses."""

    def __init__(self, source: EmbeddedCluster, target: EmbeddedCluster, folder: Path) -> None:
        self.mark = f"k{next(_numbers)}"
        self.clusters = {"a": source, "b": target}
        self._folder = folder

    def alias(self, cluster: str, suffix: str = "") -> str:
        return f"dc-{cluster}{self.mark}{suffix}"

    def flows(self, name: str, aliases: dict[str, str], *pairs: tuple[str, str], **more: str) -> tuple[Flow, ...]:
        """Write a file and read its flows; `aliases` are those it has for `a` and `b`."""
        lines = {"clusters": ", ".join(aliases.values()), "replication.policy.separator": "-"}
        lines |= {
            f"{alias}.bootstrap.servers": self.clusters[cluster].bootstrap_servers for cluster, alias in aliases.items()
        }
        lines |= {f"{aliases[one]}->{aliases[other]}.enabled": "true" for one, other in pairs}
        lines |= {"emit.offset-syncs.enabled": "false", "replication.factor": "1"}
        lines |= {"offset.storage.replication.factor": "1", "topics": f".*{self.mark}.*"}
        lines |= {key.replace("_", "."): value for key, value in more.items()}
        file = self._folder / name
        file.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
        return load(file).flows

    def make(self, cluster: str, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.clusters[cluster].bootstrap_servers})
        if topic not in admin.list_topics(timeout=60).topics:
            # As heartbeats are kept: all tests share a topic of that name.
            admin.create_topics([NewTopic(topic, 1, 1, config={"cleanup.policy": "compact"})])[topic].result()

    def topics(self, cluster: str, original: str) -> set[str]:
        admin = AdminClient({"bootstrap.servers": self.clusters[cluster].bootstrap_servers})
        names = admin.list_topics(timeout=60).topics
        return {name for name in names if name.endswith(original) and self.mark in name}


def rounds(*flows: Flow) -> list[list[str]]:
    """Discover with each flow in turn; returns what was created, round by round."""
    created = []
    for _ in range(ROUNDS):
        found = [discover_topics(flow) for flow in flows]
        assert not any(one.failures for one in found)
        created.append([action.action.topic for one in found for action in one.applied])
    return created


def test_two_files_whose_targets_have_other_aliases(
    source: EmbeddedCluster, target: EmbeddedCluster, tmp_path: Path
) -> None:
    names = Names(source, target, tmp_path)
    a, b = names.alias("a"), names.alias("b")
    names.make("a", f"{names.mark}-orders")
    for cluster in ("a", "b"):
        names.make(cluster, "heartbeats")
    (there,) = names.flows(
        "1.properties",
        {"a": a, "b": names.alias("b", "-target")},
        ("a", "b"),
        topics_exclude=rf"heartbeats, mm2.*\\.internal, {b}-.*",
    )
    (back,) = names.flows(
        "2.properties",
        {"b": b, "a": names.alias("a", "-target")},
        ("b", "a"),
        topics_exclude=rf"heartbeats, mm2.*\\.internal, {a}-.*",
    )

    assert rounds(there, back)[-1] == []

    assert names.topics("a", "heartbeats") == {f"{b}-heartbeats", f"{b}-{a}-heartbeats"}
    assert names.topics("b", "heartbeats") == {f"{a}-heartbeats", f"{a}-{b}-heartbeats"}
    assert names.topics("b", "orders") == {f"{a}-{names.mark}-orders"}


def test_both_ways_in_one_file(source: EmbeddedCluster, target: EmbeddedCluster, tmp_path: Path) -> None:
    names = Names(source, target, tmp_path)
    aliases = {one: names.alias(one) for one in "ab"}
    names.make("a", f"{names.mark}-orders")
    flows = names.flows("mm2.properties", aliases, ("a", "b"), ("b", "a"), heartbeats_replication_enabled="false")

    assert rounds(*flows)[-1] == []

    assert names.topics("a", "orders") == {f"{names.mark}-orders"}
    assert names.topics("b", "orders") == {f"{aliases['a']}-{names.mark}-orders"}


def test_a_topic_named_after_its_own_cluster_is_replicated_with_a_warning(
    source: EmbeddedCluster, target: EmbeddedCluster, tmp_path: Path
) -> None:
    names = Names(source, target, tmp_path)
    a, b = f"a{names.mark}", f"b{names.mark}"
    names.make("a", f"{a}-orders")
    (flow,) = names.flows("mm2.properties", {"a": a, "b": b}, ("a", "b"), heartbeats_replication_enabled="false")

    found = discover_topics(flow)

    assert f"{a}-{a}-orders" in names.topics("b", "orders")
    assert any(f"among them {a}-orders, which is replicated as {a}-{a}-orders" in note for note in found.notes)
