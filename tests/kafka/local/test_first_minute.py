"""What README.md says to type and to paste in the first minute works on the clusters that it starts."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.cli.plan import plan
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.internal_topics import InternalTopic, checkpoints_topic, ensure
from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.lease_run import run_lease
from mirrorless.copy.flow.reference import FlowRef
from mirrorless.copy.planning.lease_planner import LeasePlanner
from mirrorless.doctor.checks import examine
from mirrorless.doctor.findings import Status
from mirrorless.settings import load
from tests.support.heard import Heard, first_pass, without_copy
from tests.support.secured import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

README = (Path(__file__).parents[3] / "README.md").read_text()
FLOW = "primary->backup"


class FirstMinute:
    """The clusters of the README's first command, and the file that it writes."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.text = file.read_text()
        settings = load(file)
        self.servers = {cluster.alias: cluster.bootstrap_servers for cluster in settings.clusters}

    def make(self, *topics: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.servers["primary"]})
        there = admin.list_topics(timeout=60).topics
        for future in admin.create_topics([NewTopic(one, 2, 1) for one in topics if one not in there] or []).values():
            future.result(30)
        producer = Producer({"bootstrap.servers": self.servers["primary"]})
        for topic in topics:
            producer.produce(topic, b"value")
        assert producer.flush(60) == 0

    def replicas(self) -> dict[tuple[str, str], int]:
        """How many replicas each topic has that is not the brokers' own."""
        return {
            (alias, name): len(topic.partitions[0].replicas)
            for alias, servers in self.servers.items()
            for name, topic in AdminClient({"bootstrap.servers": servers}).list_topics(timeout=60).topics.items()
            if not name.startswith("__")
        }


def typed(command: str) -> list[str]:
    """The arguments of the README's line that begins so."""
    found = re.search(rf"^\$ mirrorless ({command}.*?)(?: +#.*)?$", README, re.MULTILINE)
    assert found is not None
    return shlex.split(found[1])


def pasted(servers: dict[str, str]) -> str:
    """The README's first file, with where the clusters are."""
    found = re.search(r"^```[a-z]*\n(clusters = .*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert found is not None
    text = found[1]
    for alias, address in servers.items():
        text, count = re.subn(
            rf"^{alias}\.bootstrap\.servers = .*$", f"{alias}.bootstrap.servers = {address}", text, flags=re.M
        )
        assert count == 1
    return text


@contextmanager
def started(folder: Path, arguments: list[str]) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """`mirrorless` with these arguments, and what it has printed when it is up."""
    command = [sys.executable, "-m", "mirrorless", *arguments]
    environment = os.environ | {"TMPDIR": str(folder)}
    up = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    lines: list[str] = []
    try:
        assert up.stdout is not None
        for line in up.stdout:
            lines.append(line.rstrip("\n"))
            if line.startswith("Ctrl-C"):
                break
        yield up, lines
    finally:
        up.send_signal(signal.SIGINT)
        up.communicate(timeout=30)


@pytest.fixture(scope="module")
def first_minute(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FirstMinute]:
    folder = tmp_path_factory.mktemp("first-minute")
    arguments = typed("kafka up")
    with started(folder, arguments) as (_, lines):
        names = [line.split()[0] for line in lines]
        assert names == ["starting", "primary", "backup", "mm2.properties", "Ctrl-C"], lines
        yield FirstMinute(folder / arguments[arguments.index("--config") + 1])


def copied(file: Path) -> int:
    """Copy all that is there, in this process; returns how many records."""
    place = FlowRef(location=str(file), flow=FLOW, bounded=True)
    planner = LeasePlanner(place.load(), bounded=True)
    try:
        rows = [row for pile in planner.plan(place.load()) for row in pile]
    finally:
        planner.close()
    return sum(report.records for report in run_lease(place, rows, control=Control(), lease=1, slot=0))


@pytest.mark.nightly
def test_the_file_to_begin_with_works_when_pasted(first_minute: FirstMinute, tmp_path: Path) -> None:
    first_minute.make("orders", "payments.eu")
    file = tmp_path / "mm2.properties"
    file.write_text(pasted(first_minute.servers))
    planned = CliRunner().invoke(plan, [str(file)])
    assert planned.output.count("warning: ") == 2, planned.output
    assert "create primary.orders: 2 partitions, replication factor 1" in planned.output
    found = {(one.cluster, one.check): one for one in examine(load(file).flow(FLOW))}
    assert [one for one in found.values() if one.status is Status.FAILED] == []
    assert found["backup", "replication factors"].text.startswith("backup has 1 broker, fewer than the default")

    heard = Heard()
    with without_copy(file, heard) as run:
        assert all(found.went_well for found in first_pass(run))
        assert copied(file) == 2
        run.start()
        eventually(lambda: {("backup", "heartbeats"), ("primary", "heartbeats")} <= first_minute.replicas().keys())
        eventually(lambda: bool(heard.checkpoints or heard.troubles))
    assert heard.troubles == []
    assert [text.partition(",")[0] for _, text in heard.warnings] == ["primary has 1 broker", "backup has 1 broker"]
    there = first_minute.replicas()
    assert {
        ("backup", "primary.orders"),
        ("backup", "mm2-offsets.primary.internal"),
        ("primary", "mm2-offset-syncs.backup.internal"),
        ("backup", "primary.checkpoints.internal"),
    } <= there.keys()
    assert set(there.values()) == {1}


def test_the_file_that_is_written_is_ready(first_minute: FirstMinute) -> None:
    first_minute.make("orders", "clicks")
    settings = load(first_minute.file)
    assert [flow.name for flow in settings.flows] == [FLOW]
    assert settings.warnings == ()
    heard = Heard()
    with without_copy(first_minute.file, heard) as run:
        assert all(found.went_well for found in first_pass(run))
    assert (heard.troubles, heard.warnings) == ([], [])
    assert ("backup", "primary.clicks") in first_minute.replicas()


def test_a_factor_that_is_set_and_cannot_be_met_is_one_error(first_minute: FirstMinute, tmp_path: Path) -> None:
    first_minute.make("one", "two", "three")
    file = tmp_path / "mm2.properties"
    lines = [line for line in first_minute.text.splitlines() if "factor" not in line and ".topics" not in line]
    lines += [f"{FLOW}.topics = one, two, three", "replication.factor = 3", "checkpoints.topic.replication.factor = 2"]
    lines += ["offset.storage.topic = progress", "offset.storage.replication.factor = 3"]
    file.write_text("\n".join(lines) + "\n")
    flow = load(file).flow(FLOW)
    heard = Heard()
    with without_copy(file, heard) as run:
        topics, *_ = first_pass(run)
        progress, remote = [one.error or "" for one in topics.reported() if one.error is not None]
        assert progress.endswith(
            "set offset.storage.replication.factor to at most the number of brokers of backup, or to -1"
        )
        assert remote.endswith(
            "set replication.factor to at most the number of brokers of backup, or to -1 (and 2 more topics)"
        )
        # That it is missing follows from that, so it is not told as another trouble.
        run.stats.control.complain("cluster backup: topic progress does not exist yet")
        assert run.trouble == ""
        run.stats.control.complain("cluster primary: no answer")
        assert run.trouble == "cluster primary: no answer"
        # The next pass fails of the same, which is not told again.
        run._functions["topic_discovery"].invoke({}, limited=False)
        (again,) = [found for _, found in heard.passes if found.ends == topics.ends][-1:]
        assert again.failures == []
    topic = checkpoints_topic(flow)
    refused = ensure(
        Admin(topic.cluster),
        InternalTopic(
            cluster=topic.cluster,
            name="explicit",
            replication_factor=2,
            factor_key="checkpoints.topic.replication.factor",
        ),
    )
    assert str(refused).endswith(
        "; set checkpoints.topic.replication.factor to at most the number of brokers of backup, or to -1"
    )


def test_a_file_of_another_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "mm2.properties").write_text("clusters = mine\n")
    for arguments, said in (
        (["a", "b", "--config", "mm2.properties"], "not written by `mirrorless kafka up`; choose another name"),
        (["a", "--config", "new.properties"], "a flow needs two clusters; name both"),
        (["a", "b", "--config", "none/new.properties"], "the folder does not exist; create it"),
    ):
        began = time.monotonic()
        with started(tmp_path, ["kafka", "up", *arguments]) as (up, lines):
            (line,) = lines
            assert line.startswith("error: --config=")
            assert line.endswith(said)
            assert up.wait(10) == 2
        assert time.monotonic() - began < 30
    assert [path.name for path in tmp_path.iterdir()] == ["mm2.properties"]
