"""What the copier's tests listen to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.copy.verdicts import Verdicts

if TYPE_CHECKING:
    from mirrorless.copy.partition import PartitionCopy


@pytest.fixture
def troubles(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Why partitions were resumed, one text for each time; a resume loses nothing, so nothing else tells of it."""
    heard: list[str] = []
    later = Verdicts.later

    def note(self: Verdicts, copy: PartitionCopy, error: BaseException | str) -> None:
        heard.append(str(error))
        later(self, copy, error)

    monkeypatch.setattr(Verdicts, "later", note)
    return heard
