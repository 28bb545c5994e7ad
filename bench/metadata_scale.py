"""How long topics, configs and ACLs take at scale, and how many requests: two clusters of this machine, one flow.

    python bench/metadata_scale.py [--topics 2000] [--partitions 5]

Prints a line for each pass: what was done, seconds, requests by kind on each side (ACLs are read with
another library: one more connection and one DescribeAcls on each side).
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from typing import Any

import click
from confluent_kafka.admin import NewTopic

from mirrorless.clusters.acls import Acl, NoAcls, create_acls, topic_acls
from mirrorless.clusters.admin import Admin
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from mirrorless.metadata.planning import Admins, switched_on
from mirrorless.metadata.sync_pass import one_pass
from mirrorless.settings import Cluster, Flow

# Indexes of 10 MB are set aside for every partition otherwise.
BROKER = {"log.index.size.max.bytes": "4096"}


class Counted:
    """An admin client that knows which requests it has made."""

    def __init__(self, cluster: Cluster) -> None:
        self._latest: dict[str, Any] = {}
        self._before: Counter[str] = Counter()
        self.admin = Admin(cluster, extra={"stats_cb": self._keep, "statistics.interval.ms": 100})

    def requests(self) -> str:
        """Requests since the last call, by kind."""
        self._latest = {}
        while not self._latest:
            self.admin.client.poll(0.1)
        found: Counter[str] = Counter()
        for broker in self._latest["brokers"].values():
            found.update({name: count for name, count in broker["req"].items() if count})
        new, self._before = found - self._before, found
        return ", ".join(f"{count} {name}" for name, count in sorted(new.items()))

    def _keep(self, text: str) -> None:
        self._latest = json.loads(text)


def fill(cluster: Cluster, topics: int, partitions: int) -> None:
    """Create topics, half of them compacted, each with an ACL, and wait until the broker knows them."""
    admin = Admin(cluster)
    names = [f"topic-{number:05}" for number in range(topics)]
    for at in range(0, topics, 500):
        new = [
            NewTopic(name, partitions, 1, config={"cleanup.policy": "compact"} if number % 2 else {})
            for number, name in enumerate(names[at : at + 500])
        ]
        for future in admin.client.create_topics(new).values():
            future.result()
        rule = {"pattern": "LITERAL", "principal": "User:reader", "host": "*", "permission": "ALLOW"}
        acls = [Acl(topic=name, operation="READ", **rule) for name in names[at : at + 500]]
        assert set(create_acls(admin, acls).values()) == {None}
    while len(admin.metadata().topics) < topics or len(found_acls(cluster)) < topics:
        time.sleep(0.5)


def found_acls(cluster: Cluster) -> frozenset[Acl]:
    """Read the ACLs of a cluster that has an authorizer."""
    found = topic_acls(cluster)
    assert not isinstance(found, NoAcls)
    return found


def measure(topics: int, partitions: int) -> dict[str, float]:
    """Seconds of three passes over so many topics, by what they had to do; prints them as they end."""
    seconds: dict[str, float] = {}
    users = {"admin": "admin"}
    specs = [ClusterSpec(name=name, users=users, settings=BROKER) for name in ("source", "target")]
    with start_clusters(specs, say=click.echo) as clusters:
        source, target = (
            Cluster(alias=name, bootstrap_servers=one.bootstrap_servers, client=one.client_settings())
            for name, one in clusters.items()
        )
        flow = Flow(
            source=source,
            target=target,
            replication_factor=1,
            offset_storage_replication_factor=1,
            offset_syncs_topic_replication_factor=1,
        )
        begun = time.monotonic()
        fill(source, topics, partitions)
        what = f"{topics} topics of {partitions} partitions, each with an ACL"
        click.echo(f"filled: {what}, in {time.monotonic() - begun:.1f} s")
        ends = Counted(source), Counted(target)
        for what in ("everything new", "nothing to do", "nothing to do, new connections"):
            if what.endswith("new connections"):
                ends = Counted(source), Counted(target)
            begun = time.monotonic()
            found = one_pass(flow, list(switched_on(flow)), admins=Admins(ends[0].admin, ends[1].admin))
            seconds[what] = time.monotonic() - begun
            click.echo(f"{what}: {len(found.applied)} changes, {len(found.failures)} failed, {seconds[what]:.2f} s")
            for alias, one in zip(clusters, ends, strict=True):
                click.echo(f"  {alias}: {one.requests()}")
    return seconds


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=2000)
    parser.add_argument("--partitions", type=int, default=5)
    given = parser.parse_args()
    measure(given.topics, given.partitions)


if __name__ == "__main__":
    main()
