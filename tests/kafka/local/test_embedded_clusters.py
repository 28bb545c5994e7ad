from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from mirrorless.errors import ClusterError, ConfigurationError
from mirrorless.local import embedded_kafka as kafka
from mirrorless.local.broker import PortTaken, free_ports
from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters

# A lost broker is noticed after this long, not after Kafka's nine seconds.
SOON = {"broker.session.timeout.ms": "4000", "broker.heartbeat.interval.ms": "500"}


def create(cluster: EmbeddedCluster, topic: NewTopic) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([topic])[topic.topic].result(30)


def write(cluster: EmbeddedCluster, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "log_level": 0})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(60) == 0


def read(cluster: EmbeddedCluster, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "unused", "log_level": 0})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        messages = consumer.consume(count, timeout=60)
        assert [message.error() for message in messages] == [None] * len(messages)
        return [message.value() for message in messages]
    finally:
        consumer.close()


def await_in_sync(cluster: EmbeddedCluster, topic: str, replicas: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    deadline = time.monotonic() + 120
    while len(admin.list_topics(topic, timeout=60).topics[topic].partitions[0].isrs) < replicas:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def process_ids(cluster: EmbeddedCluster) -> list[int]:
    return [broker.process_id for broker in cluster.brokers if broker.process_id is not None]


@pytest.mark.nightly
def test_a_topic_outlives_a_killed_broker_and_the_broker_comes_back(tmp_path: Path) -> None:
    spec = ClusterSpec(name="one", brokers=3, settings=SOON)
    with start_clusters([spec], directory=tmp_path) as clusters:
        cluster = clusters["one"]
        create(cluster, NewTopic("t", 1, 3, config={"min.insync.replicas": "2"}))
        write(cluster, "t", [b"before"])
        port = cluster.broker(1).port

        cluster.kill_broker(1)
        assert cluster.broker(1).process_id is None
        write(cluster, "t", [b"meanwhile"])
        assert read(cluster, "t", 2) == [b"before", b"meanwhile"]

        cluster.start_broker(1)
        assert cluster.broker(1).port == port
        await_in_sync(cluster, "t", 3)
        cluster.stop_broker(2)
        write(cluster, "t", [b"after"])
        assert read(cluster, "t", 3) == [b"before", b"meanwhile", b"after"]

        running = process_ids(cluster)
        assert len(running) == 2
    assert not any(map(psutil.pid_exists, running))
    assert list(tmp_path.iterdir()) == []


def test_two_clusters_are_strangers(source: EmbeddedCluster, target: EmbeddedCluster) -> None:
    admins = [AdminClient({"bootstrap.servers": cluster.bootstrap_servers}) for cluster in (source, target)]
    assert [admin.list_topics(timeout=60).cluster_id for admin in admins] == [source.cluster_id, target.cluster_id]
    assert source.cluster_id != target.cluster_id


def test_a_port_taken_meanwhile_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with start_clusters([ClusterSpec(name="first")], directory=tmp_path) as first:
        taken = first["first"].broker(1).port
        # Ports are dealt from the end, so it is the second broker that meets the taken one.
        answers = iter([[taken, *free_ports(2)], free_ports(3)])
        monkeypatch.setattr(kafka, "free_ports", lambda _: next(answers))
        with start_clusters([ClusterSpec(name="second", brokers=2)], directory=tmp_path) as second:
            assert taken not in [broker.port for broker in second["second"].brokers]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.nightly
def test_ports_taken_again_and_again_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with start_clusters([ClusterSpec(name="first")], directory=tmp_path) as first:
        taken = first["first"].broker(1).port
        monkeypatch.setattr(kafka, "free_ports", lambda count: [taken, *free_ports(count - 1)])
        second = start_clusters([ClusterSpec(name="second")], directory=tmp_path)
        with pytest.raises(PortTaken, match="Address already in use"), second:
            pytest.fail("two brokers on one port")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        pytest.param({"num.io.threads": "many"}, "Invalid value many", id="refused by the formatter"),
        pytest.param({"metric.reporters": "no.such.Class"}, "no.such.Class", id="refused by the broker"),
    ],
)
def test_a_broker_that_cannot_start_is_one_line_with_its_log(
    tmp_path: Path, settings: dict[str, str], said: str
) -> None:
    specs = [ClusterSpec(name="good"), ClusterSpec(name="bad", settings=settings)]
    with pytest.raises(ClusterError) as caught, start_clusters(specs, directory=tmp_path):
        pytest.fail("a nonsense setting was accepted")
    text = str(caught.value)
    assert text.startswith("cluster bad: broker 1 ")
    assert said in text
    assert "\n" not in text
    log = Path(text.rpartition("log: ")[2])
    assert said in log.read_text()
    assert [entry for entry in tmp_path.rglob("*") if entry.is_file()] == [log]


def test_an_unknown_broker_and_a_repeated_name_are_refused(source: EmbeddedCluster) -> None:
    with pytest.raises(ConfigurationError, match="node_id=7"):
        source.kill_broker(7)
    twins = [ClusterSpec(name="twin"), ClusterSpec(name="twin")]
    with pytest.raises(ConfigurationError, match="the name twin is given twice"), start_clusters(twins):
        pytest.fail("two clusters of one name")


def test_a_cluster_that_was_never_stopped_goes_with_its_process(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys\n"
        "from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters\n"
        "held = start_clusters([ClusterSpec(name='left')], directory=pathlib.Path(sys.argv[1]))\n"
        "print(held.__enter__()['left'].broker(1).process_id)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert not psutil.pid_exists(int(done.stdout))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_kafka_up_prints_addresses_and_stops_on_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    program = "from mirrorless.cli import main; main()"
    command = [sys.executable, "-c", program, "kafka", "up", "a", "bb"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as up:
        assert up.stdout is not None
        lines = [up.stdout.readline(), up.stdout.readline()]
        names, addresses = zip(*(line.split() for line in lines), strict=True)
        assert names == ("a", "bb")
        for address in addresses:
            assert len(AdminClient({"bootstrap.servers": address}).list_topics(timeout=60).brokers) == 1
        children = psutil.Process(up.pid).children(recursive=True)
        assert len(children) == 2

        up.send_signal(number)
        rest, _ = up.communicate(timeout=15)
    assert (up.returncode, rest) == (0, "")
    assert not any(child.is_running() for child in children)
    assert list(tmp_path.iterdir()) == []
