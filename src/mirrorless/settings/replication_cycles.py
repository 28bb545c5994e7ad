"""Adds to a flow what depends on the rest of the file: other aliases, flows beside it, those that lead back, names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.settings.model import Flow


def together(flows: Sequence[Flow], aliases: Sequence[str]) -> list[Flow]:
    """Return the flows of one file, each with the file's aliases, its `circle` (empty for most) and `beside`."""
    flows = [_renaming(flow.among(aliases=aliases, circle=()), flows) for flow in flows]
    reached = {flow.source.alias: reached_from(flow.source.alias, flows) for flow in flows}

    def leads_to(alias: str, other: str) -> bool:
        return alias == other or other in reached.get(alias, ())

    found = []
    for flow in flows:
        circle: list[Flow] = []
        if leads_to(flow.target.alias, flow.source.alias):
            circle = [
                other
                for other in flows
                if other is not flow
                and leads_to(flow.target.alias, other.source.alias)
                and leads_to(other.target.alias, flow.source.alias)
            ]
        beside = [other for other in flows if other is not flow and other.target.alias == flow.target.alias]
        found.append(flow.among(aliases=aliases, circle=circle, beside=beside))
    return found


def opposite(flow: Flow, flows: Sequence[Flow]) -> Flow | None:
    """Return the flow in the other direction, None if there is none."""
    ends = flow.target.alias, flow.source.alias
    return next((one for one in flows if (one.source.alias, one.target.alias) == ends), None)


def _renaming(flow: Flow, flows: Sequence[Flow]) -> Flow:
    """Return a flow with the inverse of the opposite flow's rules, if that has some."""
    other = opposite(flow, flows)
    return flow if other is None or not other.topics_rename or flow.topics_rename else flow.inverting(other)


def reached_from(alias: str, flows: Sequence[Flow]) -> set[str]:
    """Return the aliases of the clusters that flows lead to from one."""
    reached: set[str] = set()
    ahead = [alias]
    while ahead:
        here = ahead.pop()
        for flow in flows:
            if flow.source.alias == here and flow.target.alias not in reached:
                reached.add(flow.target.alias)
                ahead.append(flow.target.alias)
    return reached
