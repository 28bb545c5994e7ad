"""A cluster that does not answer is connected to by one attempt at a time, and reported once."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError

from mirrorless.clusters import outages
from mirrorless.clusters.client_settings import for_confluent
from mirrorless.errors import ClusterUnavailable
from mirrorless.functions.client_cache import ClientCache
from mirrorless.settings import Cluster, Flow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Brokers:
    """A cluster that accepts connections; `refusal` is the code with which it answers an attempt, None if it works."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.cluster = Cluster(alias="B", bootstrap_servers=f"127.0.0.1:{self._listener.getsockname()[1]}")
        self.flow = Flow(source=self.cluster.model_copy(update={"alias": "A"}), target=self.cluster)
        self.refusal: int | None = None
        self.digest = "old"
        self.attempts: list[float] = []
        self.lines: list[tuple[str, bool]] = []

    def connect(self, cluster: Cluster) -> None:
        assert cluster.alias == "B"
        self.attempts.append(time.monotonic())
        if self.refusal is not None:
            raise ClusterUnavailable("no answer", cluster="B", code=self.refusal)

    def login_digest(self, _: Cluster) -> str:
        return self.digest

    def tell(self, alias: str, text: str, *, is_error: bool) -> None:
        assert alias == "B"
        self.lines.append((text, is_error))

    @contextmanager
    def watched(self) -> Iterator[None]:
        with outages.watched([self.cluster], lambda: [self.cluster], self, self.tell):
            yield

    def close_each(self) -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                self._listener.accept()[0].close()

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Brokers]:
    for name, seconds in (("_CONFIRM_S", 0.05), ("_FIRST_PAUSE_S", 0.02), ("_LONGEST_PAUSE_S", 0.1), ("_LOOK_S", 0.05)):
        monkeypatch.setattr(outages, name, seconds)
    one = Brokers()
    yield one
    one.close()


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_an_outage_is_two_lines_and_all_wait_for_its_end(brokers: Brokers) -> None:
    brokers.refusal = KafkaError._TRANSPORT
    with brokers.watched():
        before = outages.generation("B")
        assert outages.suspect("B")
        until(lambda: outages.is_away("B"))
        with pytest.raises(ClusterUnavailable, match="no answer"):
            outages.require(brokers.cluster)
        for_confluent(brokers.cluster, role="admin")  # as for a group's offsets, while only the source is away
        waits = threading.Thread(target=lambda: outages.wait(brokers.flow, stopping=lambda: False))
        waits.start()
        until(lambda: len(brokers.attempts) > 5)
        assert waits.is_alive()
        assert [outages.suspect("B") for _ in range(3)] == [True] * 3
        brokers.refusal = None
        waits.join(10)
        assert not outages.is_away("B")
        assert outages.generation("B") != before
        assert not outages.suspect("B"), "it has just answered"
    (away, is_error), (back, is_another) = brokers.lines
    assert (away.startswith("does not answer: no answer; "), is_error) == (True, True)
    assert (back.startswith("answers again after "), is_another) == (True, False)


def test_a_cluster_that_answers_an_attempt_is_not_away(brokers: Brokers) -> None:
    with brokers.watched():
        before = outages.generation("B")
        assert outages.suspect("B")
        until(lambda: not outages.any_away())
        assert outages.generation("B") == before
    assert (len(brokers.attempts), brokers.lines) == (1, [])


def test_a_refused_login_is_tried_again_after_pauses_that_grow_and_at_once_with_another_password(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outages, "_FIRST_LOGIN_PAUSE_S", 0.2)
    brokers.refusal = KafkaError._AUTHENTICATION
    with brokers.watched():
        assert outages.suspect("B", refused=True)
        until(lambda: len(brokers.attempts) == 4)
        pauses = [after - before for before, after in zip(brokers.attempts, brokers.attempts[1:], strict=False)]
        assert pauses[2] > 1.5 * pauses[1]
        with pytest.raises(ClusterUnavailable):
            for_confluent(brokers.cluster, role="admin")
        brokers.refusal, brokers.digest = None, "new"
        changed = time.monotonic()
        until(lambda: not outages.any_away())
        assert brokers.attempts[-1] - changed < 1.2, "the pause was 1.6 s"
    assert [is_error for _, is_error in brokers.lines] == [True, False]
    assert "refuses the login or certificate" in brokers.lines[0][0]


def test_clients_that_were_refused_are_replaced_if_the_password_is_right_by_now(brokers: Brokers) -> None:
    closed: list[str] = []
    cache: ClientCache[str] = ClientCache(closed.append)
    with cache.kept("one", "settings", lambda: "idle"):
        pass
    with brokers.watched(), cache.kept("two", "settings", lambda: "busy"):
        before = outages.generation("B")
        outages.noticed("B", KafkaError(KafkaError._AUTHENTICATION))
        until(lambda: outages.generation("B") != before)
        until(lambda: closed == ["idle"])
    assert (len(brokers.attempts), brokers.lines) == (1, [])


def test_a_broker_that_closes_connections_at_once_is_reported_with_its_limits(brokers: Brokers) -> None:
    closes = threading.Thread(target=brokers.close_each, daemon=True)
    closes.start()
    with brokers.watched():
        outages.suspect("B")
        until(lambda: outages.is_away("B"))
    ((line, _),) = brokers.lines
    assert "closes connections at once, as brokers do at their limit (max.connections.per.ip, max.connections)" in line
    assert brokers.attempts == []


def test_outside_of_a_run_nothing_is_away(brokers: Brokers) -> None:
    assert not outages.suspect("B", refused=True)
    outages.require(brokers.cluster)
    outages.wait(brokers.flow, stopping=lambda: pytest.fail("waits"))


def test_clients_may_be_made_while_others_are_polled() -> None:
    """A run with many flows has clients made in some threads while another one polls all of them."""

    class Client:
        def poll(self) -> None:
            pass

    kept: list[Client] = []
    ended = threading.Event()

    def make() -> None:
        while not ended.is_set():
            kept.append(Client())
            outages.poll_client(kept[-1])
            if len(kept) > 500:
                kept.clear()

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(300):
            outages.poll()
    finally:
        ended.set()
        for thread in threads:
            thread.join()
