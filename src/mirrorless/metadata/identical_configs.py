"""Configs of remote topics whose records get the source's offsets. No I/O.

Such a topic may have to begin at an offset above 0: it is filled, and `DeleteRecords` empties it, which brokers refuse
with `cleanup.policy=compact`. So it gets `compact,delete` with unlimited retention, which deletes nothing by itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.compaction import CLEANUP_POLICY
from mirrorless.clusters.configs import ConfigValue, Origin
from mirrorless.modes import Modes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.configs import Configs
    from mirrorless.settings import Flow

_COMPACT_ONLY: Final = "compact"
_ALSO_DELETE: Final = "compact,delete"
_UNLIMITED: Final = {"retention.ms": "-1", "retention.bytes": "-1"}


def with_identical_offsets(flow: Flow, source: Mapping[str, Configs]) -> dict[str, Configs]:
    """Return the configs that remote topics follow, by source topic: the source's, except as above."""
    keeps_offsets = Modes(flow).keeps_offsets
    return {topic: _deletable(configs) if keeps_offsets(topic) else configs for topic, configs in source.items()}


def _deletable(configs: Configs) -> Configs:
    found = configs.get(CLEANUP_POLICY)
    if found is None or found.value != _COMPACT_ONLY:
        return configs
    unlimited = {name: ConfigValue(value, Origin.TOPIC) for name, value in _UNLIMITED.items()}
    return {**configs, CLEANUP_POLICY: replace(found, value=_ALSO_DELETE), **unlimited}
