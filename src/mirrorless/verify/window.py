"""One window of a range, whatever has read it."""

from __future__ import annotations

from typing import Final, NamedTuple

WINDOW_RECORDS: Final = 10_000


class Window(NamedTuple):
    """One window of a range on both sides; `records` is 0 and offsets are None if a side has no records in it."""

    number: int
    records: int
    remote_records: int
    digest: int | None
    remote_digest: int | None
    first_upstream: int | None
    last_upstream: int | None
    first_downstream: int | None
    last_downstream: int | None
    size_bytes: int

    @property
    def same(self) -> bool:
        """Whether both sides are the same in it."""
        return self.records == self.remote_records and self.digest == self.remote_digest
