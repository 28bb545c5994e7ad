"""The first signal asks for an orderly end; a second one unwinds at once, so that what was started is stopped."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from mirrorless.local.runner import StopRequest


def signalled_twice(number: signal.Signals, stopped: list[str]) -> None:
    stop = StopRequest()
    with stop.on_signals():
        try:
            os.kill(os.getpid(), number)
            assert stop.event.is_set()
            os.kill(os.getpid(), number)
        finally:
            stopped.append("what was started")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_unwinds(number: signal.Signals) -> None:
    stopped: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        signalled_twice(number, stopped)
    assert stopped


def test_the_handlers_from_before_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with StopRequest().on_signals():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_signal_in_the_midst_of_waiting_locks_nothing() -> None:
    for _ in range(50):
        stop = StopRequest()
        with stop.on_signals():
            sender = threading.Timer(0.001, os.kill, (os.getpid(), signal.SIGTERM))
            sender.start()
            while not stop.event.is_set():
                stop.wait(0)
            sender.join()
