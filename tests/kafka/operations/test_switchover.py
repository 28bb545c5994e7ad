"""Applications move to the other cluster and back: no record is lost, none is read twice."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.applications import GroupReader, Outcome, Writer, running
from tests.support.processes import Mirrorless
from tests.support.secured import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.world import World

PARTITIONS = 3
GROUPS = 3
pytestmark = pytest.mark.timeout(300)


class Applications:
    """A pair of clusters with flows in both directions, a switch file, a writer and some groups."""

    def __init__(self, world: World, **extra: str) -> None:
        self.world = world
        self.topic = world.topic(PARTITIONS)
        self.switch = world.folder / "bootstrap"
        back = f"{world.target_alias}->{world.source_alias}"
        self.settings = {
            f"{back}.enabled": "true",
            f"{back}.topics": self.topic,
            "groups": f"{self.topic}-.*",
            "mirrorless.switch": f"file:{self.switch}",
            "mirrorless.fence": "config",
            "mirrorless.fence.quiet.seconds": "2",
            "refresh.topics.interval.seconds": "1",
            "emit.checkpoints.interval.seconds": "1",
            "replication.factor": "1",
            **extra,
        }
        world.write_settings(**self.settings)
        self.switch.write_text(world.source.bootstrap_servers)
        self.writer = Writer(self.switch, self.topic, PARTITIONS, 600)
        names = [self.topic, world.remote(self.topic), f"{world.target_alias}.{self.topic}"]
        self.readers = [GroupReader(self.switch, f"{self.topic}-{number}", names) for number in range(GROUPS)]

    def command(self, *words: str, timeout: float = 120) -> tuple[int, dict[str, Any], str]:
        """Run a command; returns its status, its JSON, and what it wrote on standard error."""
        done = subprocess.run(
            [sys.executable, "-m", "mirrorless", words[0], str(self.world.file), *words[1:], "--json"],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr

    def check(self) -> None:
        """Stop the writer, let all groups read everything, and compare."""
        written = self.writer.stop()
        for reader in self.readers:
            reader.wait_for(written)
            reader.stop()
        outcomes = [Outcome(reader.read, written) for reader in self.readers]
        assert [repr(one) for one in outcomes] == ["lost 0, repeated 0, out of order 0"] * GROUPS, self.writer.errors


@pytest.fixture
def applications(world: World) -> Iterator[Applications]:
    made = Applications(world)
    with Mirrorless(world.file, "--engine", "functions"), running(made.writer, made.readers):
        eventually(lambda: sum(len(some) for some in made.readers[0].read.values()) > 300)
        yield made


def test_there_and_back(applications: Applications) -> None:
    world = applications.world
    status, report, said = applications.command("switchover", "--to", world.target_alias, "--yes")
    assert status == 0, said
    assert applications.switch.read_text().strip() == world.target.bootstrap_servers
    assert report["writers_blocked_seconds"] < 15
    assert report["groups"]["moved"] == GROUPS, report
    assert set(report["groups"]["read_again"].values()) <= {0}
    time.sleep(3)
    status, report, said = applications.command("switchover", "--to", world.source_alias, "--yes")
    assert status == 0, said
    time.sleep(3)
    applications.check()
