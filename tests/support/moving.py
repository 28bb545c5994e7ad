"""Applications of a pair of clusters that are moved by commands."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from mirrorless.clusters.acls import Acl, AclResource, create_acls
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.topics import high_watermarks
from mirrorless.local.broker import SecureListener
from mirrorless.metadata.planning import Admins
from mirrorless.offsets.checkpoint_pass import Checkpoints
from mirrorless.operations.steps.context import StepFailed
from mirrorless.settings import Cluster, load
from mirrorless.verify.metadata_diff import compare_metadata
from tests.support.applications import Clients, GroupReader, Outcome, Writer, running
from tests.support.processes import Mirrorless
from tests.support.secured import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from mirrorless.settings import Flow
    from tests.support.world import World

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""Brokers that check ACLs; clients without a login may do everything."""
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
APPLICATIONS = SecureListener(
    name="APP",
    protocol="SASL_PLAINTEXT",
    settings={
        "sasl.enabled.mechanisms": "PLAIN",
        "plain.sasl.jaas.config": f'{_PLAIN} required user_app="of-tests";',
    },
)
"""Where applications log in, as a user who needs rights."""
PARTITIONS = 3
GROUPS = 3
LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "app",
    "sasl.password": "of-tests",
}
EXACT = "lost 0, repeated 0, out of order 0"


class Applications:
    """A pair of clusters with flows in both directions, a switch file, a writer and some groups."""

    def __init__(
        self,
        world: World,
        extra: Mapping[str, str] | None = None,
        *,
        log_in: bool = False,
        keeps_names: bool = False,
        takes_turns: bool = False,
        shares_topics: bool = False,
        renames: bool = False,
        rate: int = 600,
        groups: int = GROUPS,
    ) -> None:
        self.world = world
        self.topic = world.topic(PARTITIONS)
        self.there = f"v2.{self.topic}" if renames else self.topic
        """What applications call the topic on the target."""
        self.switch = world.folder / "bootstrap"
        back = f"{world.target_alias}->{world.source_alias}"
        keeps_names = keeps_names or takes_turns or shares_topics
        both = takes_turns or shares_topics or not keeps_names
        self._is_one_way = not both
        self.settings = {
            **({"replication.policy.class": "IdentityReplicationPolicy"} if keeps_names else {}),
            **(
                {"mirrorless.both.directions": "turns", "mirrorless.active.cluster": world.source_alias}
                if takes_turns
                else {}
            ),
            **({f"{back}.enabled": "true", f"{back}.topics": self.there} if both else {}),
            **({f"{world.flow}.mirrorless.topics.rename": f"({self.topic}) -> v2.$1"} if renames else {}),
            # As with `.*`, the filters select the copies of the other side too.
            **({} if keeps_names else {f"{one}.topics": f".*{self.topic}" for one in (world.flow, back)}),
            **(
                {"mirrorless.both.directions": "skip", f"{back}.sync.topic.configs.enabled": "false"}
                if shares_topics
                else {}
            ),
            "groups": f"{self.topic}-.*",
            "mirrorless.switch": f"file:{self.switch}",
            "mirrorless.fence": "config",
            "mirrorless.fence.quiet.seconds": "2",
            "refresh.topics.interval.seconds": "1",
            "sync.topic.acls.interval.seconds": "1",
            "sync.topic.configs.interval.seconds": "1",
            "emit.checkpoints.interval.seconds": "1",
            **(extra or {}),
        }
        world.write_settings(**self.settings)
        self.switch.write_text(world.source.bootstrap_servers)
        renamed = [world.remote(self.there), f"{world.target_alias}.{self.topic}"]
        names = {world.target.bootstrap_servers: {self.topic: self.there}}
        clients = Clients(names=names)
        if log_in:
            addresses = {one.bootstrap_servers: one.secure_servers("APP") for one in (world.source, world.target)}
            clients = Clients(addresses, LOGIN, names)
        self.groups = [f"{self.topic}-{number}" for number in range(groups)]
        if log_in:
            self.grant()
        self.writer = Writer(self.switch, self.topic, PARTITIONS, rate, clients)
        topics = [self.topic, *([] if keeps_names else renamed)]
        self.readers = [GroupReader(self.switch, group, topics, clients) for group in self.groups]

    def grant(self) -> None:
        """Give the user of applications rights on the source, and nowhere else."""
        admin = Admin(plain(self.world.source))
        some = Acl(
            topic=self.topic, pattern="LITERAL", principal="User:app", host="*", operation="READ", permission="ALLOW"
        )
        groups = [replace(some, topic=group) for group in self.groups]
        assert set(create_acls(admin, [some, replace(some, operation="WRITE")]).values()) == {None}
        assert set(create_acls(admin, groups, AclResource.GROUP).values()) == {None}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the flows, the writer and the groups run; begins when the target has the topic, its ACLs and records."""
        with Mirrorless(self.world.file, "--engine", "functions"), running(self.writer, self.readers):
            eventually(lambda: sum(map(len, self.readers[0].read.values())) > 300)
            eventually(self._is_copied)
            yield

    def _is_copied(self) -> bool:
        flow = next(one for one in load(str(self.world.file)).flows if one.name == self.world.flow)
        source, target = Admin(flow.source), Admin(flow.target)
        metadata = compare_metadata(flow, Admins(source, target), wanted=lambda topic: topic == self.topic)
        if metadata.differences or metadata.troubles:
            return False
        remote = metadata.remote[self.topic]
        ends, _ = high_watermarks(target, [(remote, partition) for partition in range(PARTITIONS)])
        return all(ends.values()) and len(ends) == PARTITIONS

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command."""
        if words[0] == "switchover" and self._is_one_way:
            words = (*words, "--one-way")
        return subprocess.Popen(
            [sys.executable, "-m", "mirrorless", words[0], str(self.world.file), *words[1:], "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def command(self, *words: str) -> tuple[int, dict[str, Any], str]:
        """Run a command; returns its status, its JSON, and what it wrote on standard error."""
        out, err = (process := self.start(*words)).communicate(timeout=120)
        return process.returncode, json.loads(out) if out else {}, err

    def move(self, target: str) -> dict[str, Any]:
        """Switch over, and return the report."""
        status, report, said = self.command("switchover", "--to", target, "--yes")
        assert status == 0, said + json.dumps(report, indent=1)
        return report

    def write_more(self, records: int) -> None:
        """Wait until the writer has written so many more."""
        goal = sum(self.writer.written) + records
        eventually(lambda: sum(self.writer.written) > goal)

    def close(self) -> None:
        """Remove the fence of the last move, once the writer has followed; start the other flow if they take turns."""
        self.write_more(100)
        done = subprocess.run(
            [sys.executable, "-m", "mirrorless", "operation", str(self.world.file), "close", "--yes"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "is removed" in done.stdout, done.stdout
        assert "warning" not in done.stdout, done.stdout

    def outcomes(self) -> list[Outcome]:
        """Stop the writer, let all groups read everything, and compare."""
        written = self.writer.stop()
        for reader in self.readers:
            reader.wait_for(written)
            reader.stop()
        return [Outcome(reader.read, written) for reader in self.readers]

    def check(self) -> None:
        """Stop, and assert that every group has read everything once and in order."""
        assert [repr(one) for one in self.outcomes()] == [EXACT] * len(self.readers), self.writer.errors


def plain(cluster: EmbeddedCluster) -> Cluster:
    return Cluster(alias=cluster.name, bootstrap_servers=cluster.bootstrap_servers)


def stop_here(*_: object) -> NoReturn:
    """Fail in place of a step."""
    raise StepFailed("stopped here")


def checkpoint(flow: Flow) -> None:
    """Emit the checkpoints of a flow once."""
    with closing(Checkpoints(flow)) as passes:
        passes.emit()
