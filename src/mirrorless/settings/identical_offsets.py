"""Settings that exclude `mirrorless.offsets=identical`, with which remote records have the source's offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.settings.loop_skipping import LOOPS, SettingRefusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mirrorless.settings.model import Flow

OFFSETS: Final = "mirrorless.offsets"


def identical_offsets_refusals(flows: Sequence[Flow]) -> Iterator[SettingRefusal]:
    """Yield what cannot be: flows that skip records, and flows that take turns."""
    for flow in flows:
        if flow.offsets != "identical":
            continue
        reason: str | None = None
        if flow.loops == "skip" and flow.circle:
            reason = f"records that {LOOPS}=skip does not copy would be holes; remove one of the two settings"
        elif flow.active_cluster is not None:
            reason = "flows that take turns (mirrorless.active.cluster) cannot have it; remove one of the two settings"
        if reason is not None:
            yield SettingRefusal(flow.name, OFFSETS, reason)
