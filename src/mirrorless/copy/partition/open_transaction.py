"""An open transaction of the source, which holds back every record after its first one."""

from __future__ import annotations

from typing import NamedTuple


class OpenTransaction(NamedTuple):
    """A transaction open at source offset `offset` since `since` (`time.monotonic`).

    The records from there to `log_end`, the high watermark, can be copied when it commits or aborts.
    """

    offset: int
    since: float
    log_end: int


def open_transaction(before: OpenTransaction | None, *, stable: int, high: int, now: float) -> OpenTransaction | None:
    """Return the transaction open at the last stable offset `stable`, None if that is the high watermark `high`.

    `before` is what the previous fetch response showed: a transaction at the same offset keeps its `since`.
    """
    if high <= stable:
        return None
    since = before.since if before is not None and before.offset == stable else now
    return OpenTransaction(stable, since, high)
