"""Settings that exclude `mirrorless.offsets=identical`, with which remote records have the source's offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.settings.loop_skipping import LOOPS, RENAMES, SettingRefusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mirrorless.settings.model import Flow

OFFSETS: Final = "mirrorless.offsets"


def identical_offsets_refusals(flows: Sequence[Flow]) -> Iterator[SettingRefusal]:
    """Yield what cannot be: flows that skip records, and turns of which only one keeps offsets."""
    for flow in flows:
        if flow.offsets == "identical" and flow.loops == "skip" and flow.circle:
            reason = f"records that {LOOPS}=skip does not copy would be holes; remove one of the two settings"
            yield SettingRefusal(flow.name, OFFSETS, reason)
        back = next((one for one in flows if (one.source, one.target) == (flow.target, flow.source)), None)
        if back is None or flow.active_cluster is None or flow.replication_policy_class.strip().endswith(RENAMES):
            continue
        if _kept(flow) and _kept(flow) != _kept(back):
            reason = (
                f"{back.name} takes turns with it (mirrorless.active.cluster), and has to keep the offsets of the same "
                f"topics: set {OFFSETS} and {OFFSETS}.identical.topics for both"
            )
            yield SettingRefusal(flow.name, OFFSETS, reason)


def _kept(flow: Flow) -> frozenset[str]:
    return frozenset(flow.offsets_identical_topics) if flow.offsets == "identical" else frozenset()
