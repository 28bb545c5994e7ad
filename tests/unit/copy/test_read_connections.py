"""How many connections to a leader there are, and which of them are used."""

from __future__ import annotations

from mirrorless.copy.slot.parallel_reads import MOST_CONNECTIONS, ReadConnections


def grown(most: int = MOST_CONNECTIONS, *, times: int = 20) -> ReadConnections:
    connections = ReadConnections(most)
    for _ in range(times):
        connections.answered(waited_s=0.1, now=0.0)
    return connections


def test_there_is_one_until_the_target_has_waited_twice_in_a_row() -> None:
    connections = ReadConnections(32)
    for waited_s in (0.1, 0.001, 0.1, 0.001):
        connections.answered(waited_s=waited_s, now=0.0)
    assert connections.count == 1
    connections.answered(waited_s=0.1, now=0.0)
    connections.answered(waited_s=0.1, now=0.0)
    assert connections.count == 4


def test_then_there_are_twice_as_many_each_time_up_to_the_most() -> None:
    assert [grown(times=times).count for times in (2, 3, 4, 5, 6)] == [4, 8, 16, 32, 32]
    assert grown(11).count == 11
    assert grown(1).count == 1
    assert grown(0).count == 1


def test_there_are_more_where_the_target_waits_shortly_but_most_of_the_time() -> None:
    """Seven reads in flight over 150 ms: an answer every 21 ms, which the target takes in 10 ms."""
    connections = grown(times=2)
    for number in range(1, 5):
        assert connections.count == 4
        connections.answered(waited_s=0.011, now=0.021 * number)
    assert connections.count == 8
    for number in range(5, 40):
        connections.answered(waited_s=0.009, now=0.021 * number)
    assert connections.count == 8


def test_one_connection_is_enough_where_the_target_waits_shortly() -> None:
    connections = ReadConnections(32)
    for number in range(100):
        connections.answered(waited_s=0.011, now=0.021 * number)
    assert connections.count == 1


def test_each_extra_one_is_used_once() -> None:
    connections = grown(4)
    for number in (3, 4, 5):
        assert connections.idle(now=0.0) == number
        connections.take(number)
    assert connections.idle(now=0.0) is None
    assert not connections.has_idle
    connections.give_back(3, now=0.0)
    assert connections.idle(now=0.0) == 3


def test_one_that_failed_is_not_used_for_a_while_also_if_it_was_not_needed_then() -> None:
    connections = grown(2, times=2)
    now = 0.0
    for pause_s in (0.5, 1.0, 2.0):
        assert connections.idle(now=now) == 3
        connections.take(3)
        connections.give_back(3, now=now, failed=True)
        assert connections.idle(now=now + pause_s - 0.1) is None
        assert connections.has_idle
        now += pause_s
        assert connections.idle(now=now) == 3  # and there is nothing to read
    connections.take(3)
    connections.give_back(3, now=now)
    assert connections.idle(now=now) == 3
