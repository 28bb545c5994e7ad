"""Defaults of brokers that differ: a topic without a value of its own behaves otherwise on the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.clusters.broker_defaults import broker_defaults
from mirrorless.clusters.cluster_requests import NotThere
from mirrorless.clusters.side_by_side import side_by_side
from mirrorless.metadata.actions import ClusterDifference
from mirrorless.metadata.kind import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.metadata.kind import BothEnds, Found


def differences(source: Mapping[str, str], target: Mapping[str, str], *, alias: str) -> list[ClusterDifference]:
    """Return each default that both report and that differs; `alias` is the target's."""
    return [
        ClusterDifference(
            kind="broker-defaults",
            on=f"brokers of {alias}",
            what=name,
            source_has=value,
            target_has=target[name],
            text=f"set {name} of the brokers of {alias} to {value} (now {target[name]})",
            reason="topics without a value of their own take it; configs of brokers are not moved",
        )
        for name, value in sorted(source.items())
        if target.get(name, value) != value
    ]


def _compare(ends: BothEnds) -> Found:
    source, target = side_by_side(lambda: broker_defaults(ends.source), lambda: broker_defaults(ends.target))
    if isinstance(source, NotThere):
        return source
    if isinstance(target, NotThere):
        return target
    return differences(source, target, alias=ends.flow.target.alias)


KIND = Kind(
    name="broker-defaults",
    about="configs of brokers that topics without a value of their own take, such as `log.retention.ms`",
    left="configs of brokers; `use.defaults.from=source` sets the source's values on remote topics",
    compare=_compare,
    reads="DESCRIBE_CONFIGS",
)
