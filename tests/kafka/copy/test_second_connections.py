"""What becomes of a copy when only the second connection to a leader of the target fails."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.kafka_python import connection_manager as brokers
from mirrorless.kafka_python.connection_manager import ExtraConnection
from tests.support.world import World, fill

if TYPE_CHECKING:
    from collections.abc import Callable

PARTITIONS = 8
MANY = 100


def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """As if the broker took no more connections: whoever makes one is refused."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return _mislead(monkeypatch, lambda found: found._replace(host="127.0.0.1", port=port))


def nobody_knows_it(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """As behind metadata that do not name the broker any more: what is sent is refused within the call."""
    return _mislead(monkeypatch, lambda _: None)


def _mislead(monkeypatch: pytest.MonkeyPatch, answer: Callable[[Any], Any]) -> list[Any]:
    asked: list[Any] = []
    where = brokers._Metadata.broker_metadata

    def misled(self: Any, broker_id: Any) -> Any:  # noqa: ANN401
        found = where(self, broker_id)
        if not isinstance(broker_id, ExtraConnection) or found is None:
            return found
        asked.append(broker_id)
        return answer(found)

    monkeypatch.setattr(brokers._Metadata, "broker_metadata", misled)
    return asked


@pytest.mark.parametrize("fails", [nobody_listens, pytest.param(nobody_knows_it, marks=pytest.mark.nightly)])
def test_one_that_cannot_be_made_is_left_alone(
    world: World,
    fails: Callable[[pytest.MonkeyPatch], list[Any]],
    monkeypatch: pytest.MonkeyPatch,
    troubles: list[str],
) -> None:
    topic = world.topic(partitions=PARTITIONS)
    fill(world.source, topic, (b"before" for _ in range(PARTITIONS)), partitions=PARTITIONS)
    world.discover()
    world.copy_to_the_end()
    values = (b"%d" % n * 50 for n in range(200_000))
    # So large that not all of them go by one connection.
    fill(world.source, topic, values, partitions=PARTITIONS, batch_size=300_000, linger_ms=500)
    asked = fails(monkeypatch)
    troubles.clear()  # what is new may have no leader yet
    world.copy_to_the_end()
    assert world.assert_equal(topic) == PARTITIONS + 200_000
    assert asked
    # Each may have had something with it when it failed; all that came later went by the first.
    assert 0 < len(troubles) <= PARTITIONS, troubles


@pytest.mark.nightly
def test_one_that_hangs_does_not_draw_all(world: World, monkeypatch: pytest.MonkeyPatch, troubles: list[str]) -> None:
    topic = world.topic(partitions=MANY)
    fill(world.source, topic, (b"before" for _ in range(MANY)), partitions=MANY)
    world.write_settings(**{f"{world.target_alias}.producer.request.timeout.ms": "5000"})
    world.discover()
    world.copy_to_the_end()
    values = (b"%d" % n * 50 for n in range(200_000))
    fill(world.source, topic, values, partitions=MANY, batch_size=100_000, linger_ms=500)
    troubles.clear()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        asked = _mislead(monkeypatch, lambda found: found._replace(host="127.0.0.1", port=port))
        world.copy_to_the_end()
    assert world.assert_equal(topic) == MANY + 200_000
    assert asked
    # What it was given waits until the time of its requests is over; the others go by the first meanwhile.
    assert 0 < len(troubles) < MANY, troubles
