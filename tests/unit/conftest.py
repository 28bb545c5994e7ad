"""An event loop of its own for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.kafka_python.event_loop import EventLoop

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def loop() -> Iterator[Any]:
    found = EventLoop()
    yield found
    found.close()
