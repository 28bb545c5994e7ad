"""A trigger whose topic may not be read says so once, and what to grant."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from mirrorless.local.msk_trigger import MskPoller
from mirrorless.local.wiring import MskTrigger
from tests.support.secured import VIEWER, eventually

if TYPE_CHECKING:
    from tests.support.secured import Secured


def test_a_missing_right_is_named_once(secured: Secured) -> None:
    topic = secured.topic("a", "offset-syncs")
    cluster = secured.cluster("a", VIEWER)
    ended = threading.Event()
    told: list[str] = []
    trigger = MskTrigger(
        function="checkpoint",
        topics=(topic,),
        cluster=cluster,
        batch_size=100,
        window_s=1,
    )
    poller = MskPoller(trigger, lambda _event: threading.Event(), tell=told.append, ended=ended.is_set)
    poller.start()
    eventually(lambda: bool(told))
    time.sleep(3)  # it looks again every two seconds
    ended.set()
    poller.join(until=time.monotonic() + 10)
    assert told == [f"trigger on {topic}: Broker: Topic authorization failed; grant READ on it"]
