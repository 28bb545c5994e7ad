"""A topic is read once from its beginning, then what is new, and anew whenever it is another one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from confluent_kafka import KafkaError

from mirrorless.clusters import replay
from mirrorless.clusters.admin import Admin, Refusal
from mirrorless.clusters.replay import Replay
from mirrorless.clusters.topics import Described
from mirrorless.errors import ClusterUnavailable
from mirrorless.settings import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka import TopicPartition as ConfluentTopicPartition

    from mirrorless.clusters.topic_partition import TopicPartition

CLUSTER = Cluster(alias="B", bootstrap_servers="127.0.0.1:1")
GONE = Refusal(KafkaError.UNKNOWN_TOPIC_OR_PART, "unknown")


class Message(NamedTuple):
    place: int
    at: int
    content: bytes

    def error(self) -> None:
        return None

    def partition(self) -> int:
        return self.place

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes:
        return self.content


@dataclass
class World:
    """A topic `t` and how it is asked for; `logs` are its records by partition, None if it is not there.

    `logs_later` are those after a pause.
    """

    logs: list[list[bytes]] | None = None
    topic_id: str = "first"
    refusal: Refusal = GONE
    leaderless: int = 0
    slept_s: list[float] = field(default_factory=list)
    logs_later: list[list[bytes]] | None = None
    opened: int = 0

    def describe(self, _admin: Admin, _topic: str) -> Described | Refusal:
        return self.refusal if self.logs is None else Described(self.topic_id, tuple(range(len(self.logs))))

    def ends(
        self, _admin: Admin, places: Iterable[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
        if self.leaderless:
            self.leaderless -= 1
            return {}, dict.fromkeys(places, "no leader")
        assert self.logs is not None
        return {place: len(self.logs[place[1]]) for place in places}, {}

    def reader(self, _cluster: Cluster, **_own: Any) -> Reader:  # noqa: ANN401 -- librdkafka's values
        self.opened += 1
        return Reader(self)

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.logs = self.logs if self.logs_later is None else self.logs_later

    def make_again(self, logs: list[list[bytes]]) -> None:
        self.logs, self.topic_id = logs, f"{self.topic_id} again"


@dataclass
class Reader:
    """A consumer of the world's topic, from its beginning on."""

    world: World
    read_to: dict[int, int] = field(default_factory=dict)

    def list_topics(self, _topic: str, *, timeout: float) -> None:
        pass

    def assign(self, places: list[ConfluentTopicPartition]) -> None:
        self.read_to = {place.partition: 0 for place in places}

    def consume(self, _number: int, *, timeout: float) -> list[Message]:  # noqa: ARG002 -- as the library's
        found = []
        for partition, offset in self.read_to.items():
            log = (self.world.logs or [])[partition]
            found += [Message(partition, at, log[at]) for at in range(offset, len(log))]
            self.read_to[partition] = len(log)
        return found

    def close(self) -> None:
        pass


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(replay, "describe", world.describe)
    monkeypatch.setattr(replay, "last_stable_offsets", world.ends)
    monkeypatch.setattr(replay, "reader", world.reader)
    monkeypatch.setattr("time.sleep", world.sleep)
    return world


class Known:
    """What a reader of the topic has gathered."""

    def __init__(self, *, must_exist: bool = False) -> None:
        self.replay = Replay(topic="t", cluster=CLUSTER, admin=Admin(CLUSTER), must_exist=must_exist)
        self.values: list[bytes | None] = []

    def read(self) -> list[bytes | None]:
        self.values += [entry.value for entry in self.replay.read(self.values.clear)]
        return self.values


def test_what_is_new_is_added(topic: World) -> None:
    topic.logs = [[b"a"], [b"b"]]
    known = Known()
    assert known.read() == [b"a", b"b"]
    topic.logs[1].append(b"c")
    assert known.read() == [b"a", b"b", b"c"]
    assert topic.opened == 1


def test_who_has_no_time_left_goes_on_at_the_next_read(topic: World) -> None:
    topic.logs = [[b"a"], [b"b"]]
    known = Known()
    came = list(known.replay.read(stopping=lambda: True))
    complete = [known.replay.complete]
    assert came == []
    assert known.read() == [b"a", b"b"]
    assert [*complete, known.replay.complete] == [False, True]
    assert topic.opened == 1


@pytest.mark.parametrize(
    "logs",
    [pytest.param([[]], id="empty"), pytest.param([[b"x"]], id="as long"), pytest.param([[b"x", b"y"]], id="longer")],
)
def test_a_topic_that_was_made_again_is_another_one(topic: World, logs: list[list[bytes]]) -> None:
    topic.logs = [[b"a"]]
    known = Known()
    known.read()
    topic.make_again(logs)
    assert known.read() == logs[0]


def test_a_log_that_was_cut_is_read_again(topic: World) -> None:
    topic.logs = [[b"a", b"b"], []]
    known = Known()
    known.read()
    topic.logs[0].pop()
    assert known.read() == [b"a"]


def test_more_partitions_are_read_too(topic: World) -> None:
    topic.logs = [[b"a"]]
    known = Known()
    known.read()
    topic.logs.append([b"b"])
    assert known.read() == [b"a", b"b"]


def test_what_was_not_taken_is_read_again(topic: World) -> None:
    topic.logs = [[b"a", b"b"]]
    known = Known()
    entries = iter(known.replay.read())
    assert next(entries).value == b"a"
    del entries
    assert known.read() == [b"a", b"b"]


def test_a_topic_that_was_deleted_is_an_empty_one_until_it_is_there_again(topic: World) -> None:
    topic.logs = [[b"a"]]
    known = Known()
    known.read()
    topic.logs = None
    assert known.read() == []
    assert known.read() == []
    topic.make_again([[b"b"]])
    assert known.read() == [b"b"]


def test_a_broker_that_has_not_heard_of_the_topic_yet_is_asked_again(topic: World) -> None:
    topic.logs = [[b"a"]]
    known = Known()
    known.read()
    topic.logs, topic.logs_later = None, topic.logs
    assert known.read() == [b"a"]
    assert topic.opened == 1


@pytest.mark.parametrize(
    ("refusal", "line"),
    [
        (GONE, "cluster B: topic t does not exist yet"),
        (
            Refusal(KafkaError.TOPIC_AUTHORIZATION_FAILED, "Broker: Topic authorization failed"),
            "cluster B: t: Broker: Topic authorization failed; grant READ on it",
        ),
    ],
)
def test_a_topic_that_must_exist(topic: World, refusal: Refusal, line: str) -> None:
    topic.logs, topic.refusal = None, refusal
    known = Known(must_exist=True)
    with pytest.raises(ClusterUnavailable) as caught:
        known.read()
    assert str(caught.value) == line
    topic.logs = [[b"a"]]
    assert known.read() == [b"a"]


def test_a_partition_without_a_leader_is_asked_for_again_after_a_pause(topic: World) -> None:
    topic.logs, topic.leaderless = [[b"a"]], 2
    assert Known().read() == [b"a"]
    assert topic.slept_s == [0.5, 0.5]


def test_a_partition_that_stays_without_a_leader_is_told(topic: World, monkeypatch: pytest.MonkeyPatch) -> None:
    topic.logs, topic.leaderless = [[b"a"]], 1_000
    monkeypatch.setattr(replay, "_LEADERLESS_S", 0.0)
    known = Known()
    with pytest.raises(ClusterUnavailable, match=r"^cluster B: t-0: no leader$"):
        known.read()
    topic.leaderless = 0
    assert known.read() == [b"a"]
