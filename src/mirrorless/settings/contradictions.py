"""Settings of one flow that cancel each other out, where MirrorMaker 2 does not start (reference, 2.2 and 2.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.settings.model import Flow


def contradictions(flow: Flow) -> Iterator[str]:
    """Yield a line for each; all of them only switch something off, so that the flow can run."""
    if flow.writes_checkpoints:
        return
    reason = "emit.checkpoints.enabled=false"
    if flow.emit_checkpoints_enabled:
        reason = "emit.offset-syncs.enabled=false"
        yield (
            f"{flow.name}: {reason}: no offset can be translated, so no checkpoints are written; set "
            "emit.checkpoints.enabled=false too if that is meant"
        )
    if flow.sync_group_offsets_enabled:
        yield f"{flow.name}: sync.group.offsets.enabled=true commits checkpoints: no effect with {reason}"
