"""What the copier's tests listen to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.copy.slot.error_policy import ErrorPolicy

if TYPE_CHECKING:
    from mirrorless.copy.partition.state import PartitionCopy


@pytest.fixture
def troubles(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Why partitions were resumed, one text for each time; a resume loses nothing, so nothing else tells of it."""
    heard: list[str] = []
    retry_later = ErrorPolicy.retry_later

    def note(self: ErrorPolicy, copy: PartitionCopy, error: BaseException | str) -> None:
        heard.append(str(error))
        retry_later(self, copy, error)

    monkeypatch.setattr(ErrorPolicy, "retry_later", note)
    return heard
