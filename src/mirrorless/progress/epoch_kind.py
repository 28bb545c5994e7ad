"""Why an epoch of a copy begins: an enum that decisions go by, beside the text that earlier releases compare."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from mirrorless.errors import GapKind


class EpochKind(Enum):
    """Why an epoch begins. Announcements store the name."""

    FIRST_COPY = auto()
    AFTER_MIRRORMAKER2 = auto()
    """It starts at the position where MirrorMaker 2 stopped."""
    RESET = auto()
    SOURCE_CLEANED = auto()
    """Log compaction on the source removed records that would have located the copy."""
    LEFT_OUT = auto()
    """It starts after records that were left out (`errors.tolerance=all`)."""
    TARGET_LOST = auto()
    """It copies acknowledged records again that the target lost."""
    GAP = auto()
    """It starts after any other gap."""
    FORGOTTEN = auto()
    """The target forgot the producer of a copy with identical offsets, whose position is the end of its log."""
    TURN = auto()
    """A turn of a copy with identical offsets begins, after what the opposite flow has appended to its source."""
    OTHER = auto()
    """Stored by a release that knows more kinds, or fewer: no decision depends on it."""


# Releases before 0.2.0 store no kind and compare these texts. A release of that age may run beside this one, so new
# announcements keep them: they must never change.
AFTER_MIRRORMAKER2_TEXT: Final = "behind MirrorMaker 2"
LEFT_OUT_TEXT: Final = "left out offset "
TARGET_LOST_TEXT: Final = "the target lost acknowledged records"

_BEGINNINGS: Final = {
    "first copy": EpochKind.FIRST_COPY,
    "reset to ": EpochKind.RESET,
    "the source was cleaned in between": EpochKind.SOURCE_CLEANED,
    LEFT_OUT_TEXT: EpochKind.LEFT_OUT,
    TARGET_LOST_TEXT: EpochKind.TARGET_LOST,
}


def kind_of_gap(gap: GapKind) -> EpochKind:
    """The kind of an epoch that starts after a gap."""
    return EpochKind.TARGET_LOST if gap is GapKind.TARGET_LOST else EpochKind.GAP


def text_of_gap(gap: GapKind) -> str:
    """How the stored reason of an epoch starts that starts after a gap."""
    return TARGET_LOST_TEXT if gap is GapKind.TARGET_LOST else gap.value


def kind_named(name: object, reason: str) -> EpochKind:
    """The stored kind, or without one (a release before 0.2.0) the kind that `reason` stands for."""
    if name is not None:
        return EpochKind.__members__.get(str(name), EpochKind.OTHER)
    if reason == AFTER_MIRRORMAKER2_TEXT:
        return EpochKind.AFTER_MIRRORMAKER2
    return next((kind for text, kind in _BEGINNINGS.items() if reason.startswith(text)), EpochKind.OTHER)
