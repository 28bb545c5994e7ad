"""Settings that exclude `mirrorless.loops=skip`, with which flows copy only what was written to their own source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mirrorless.settings.model import Flow

LOOPS: Final = "mirrorless.loops"
RENAMES: Final = "DefaultReplicationPolicy"
_SYNC: Final = "sync.topic.configs.enabled"


class SettingRefusal(NamedTuple):
    """Why the setting `key` of a flow cannot be used."""

    flow: str
    key: str
    reason: str


def loop_skipping_refusals(flows: Sequence[Flow]) -> Iterator[SettingRefusal]:
    """Yield what cannot be: turns, and flows that set the configs of the same topics."""
    skipping = [
        flow
        for flow in flows
        if flow.loops == "skip" and flow.circle and not flow.replication_policy_class.strip().endswith(RENAMES)
    ]
    for flow in skipping:
        if flow.active_cluster is not None:
            reason = f"both directions copy at the same time with {LOOPS}=skip; remove one of the two settings"
            yield SettingRefusal(flow.name, "mirrorless.active.cluster", reason)
    syncing = [flow for flow in skipping if flow.sync_topic_configs_enabled]
    for flow in syncing:
        other = next((one for one in syncing if one is not flow and _contradicts(one, flow, syncing)), None)
        if other is not None and flows.index(other) < flows.index(flow):
            reason = (
                f"{other.name} syncs configs of the same topics, and each would undo what the other does; set "
                f"{flow.name}.{_SYNC}=false, so that one cluster's topic configs are those of all"
            )
            yield SettingRefusal(flow.name, _SYNC, reason)


def _contradicts(one: Flow, other: Flow, syncing: Sequence[Flow]) -> bool:
    """Whether two flows set configs of one cluster's topics, or lead in a circle."""
    return one.target.alias == other.target.alias or _leads(other.target.alias, other.source.alias, syncing)


def _leads(alias: str, goal: str, syncing: Sequence[Flow]) -> bool:
    reached, ahead = {alias}, [alias]
    while ahead:
        here = ahead.pop()
        found = {flow.target.alias for flow in syncing if flow.source.alias == here} - reached
        reached |= found
        ahead += found
    return goal in reached
