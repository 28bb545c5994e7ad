"""The doctor asks for the rights to what filters of one's own select."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, cast

from mirrorless.doctor.rights_check import Names, rights_there
from mirrorless.filters import GroupFilter, TopicFilter
from mirrorless.rights import Function, Operation, Side
from mirrorless.settings import Cluster, Flow

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    from mirrorless.doctor.probes import Probes


class OnlyReleased(TopicFilter):
    """What a user has on the path."""

    def selects(self, name: str) -> bool:
        return super().selects(name) and not name.endswith(".draft")


class NoTrials(GroupFilter):
    """What a user has on the path."""

    def selects(self, name: str) -> bool:
        return super().selects(name) and not name.endswith("-trial")


class Asked:
    """A cluster that grants everything and notes what it was asked for."""

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self.groups: set[str] = set()

    def refused_topics(self, _operation: Operation, topics: Iterable[str]) -> list[str]:
        self.topics |= set(topics)
        return []

    def refused_groups(self, _operation: Operation, groups: Iterable[str]) -> list[str]:
        self.groups |= set(groups)
        return []


def test_only_what_they_select_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("own_filters")
    vars(module).update({"OnlyReleased": OnlyReleased, "NoTrials": NoTrials})
    monkeypatch.setitem(sys.modules, "own_filters", module)
    flow = Flow(
        source=Cluster(alias="A", bootstrap_servers="a:1"),
        target=Cluster(alias="B", bootstrap_servers="b:1"),
        topics=("orders", "orders.draft"),
        groups=("team", "team-trial"),
        topic_filter_class="own_filters:OnlyReleased",
        group_filter_class="own_filters:NoTrials",
        offset_syncs_topic_location="target",
    )
    asked = Asked()

    rights_there(flow, Side.SOURCE, probes=cast("Probes", asked), names=Names((), ()), functions=[Function.CHECKPOINT])

    assert asked.topics == {"orders"}
    assert asked.groups == {"team"}
