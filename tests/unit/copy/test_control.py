"""The folder of a run, written by one process while another one looks."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from mirrorless.copy.engines.control import Control

if TYPE_CHECKING:
    from pathlib import Path


def test_a_complaint_that_is_made_again_is_there_all_the_time(tmp_path: Path) -> None:
    """Or it would be told again, as another one."""
    control = Control(str(tmp_path))
    control.complain("no answer")
    over = threading.Event()

    def repeat() -> None:
        while not over.is_set():
            control.complain("no answer", unreachable=True)

    again = threading.Thread(target=repeat)
    again.start()
    try:
        assert {control.complaint() for _ in range(3_000)} == {"no answer"}
    finally:
        over.set()
        again.join()


def test_the_number_of_slots_is_the_one_that_was_offered_last(tmp_path: Path) -> None:
    control = Control(str(tmp_path))
    control.offer_slots(None)
    assert control.slots() is None
    control.offer_slots(4)
    control.offer_slots(12)
    assert control.slots() == 12
    assert Control().slots() is None
