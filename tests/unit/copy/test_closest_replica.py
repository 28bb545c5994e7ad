"""Which topics may be read from followers: those that are not compacted, as far as their configs are visible."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from mirrorless.clusters.admin import Refusal
from mirrorless.clusters.configs import ConfigValue, Origin
from mirrorless.copy.planning import lease_planner
from mirrorless.copy.planning.lease_planner import FollowableTopics
from mirrorless.settings import Cluster, Flow
from mirrorless.settings.masking import MaskedMapping

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.configs import Configs


class Asked:
    """Stands for `topic_configs`; `policies` are those of the source."""

    def __init__(self, policies: dict[str, str]) -> None:
        self.policies = policies
        self.asked: list[list[str]] = []
        self.now = 0.0

    def topic_configs(self, _admin: Admin, topics: Iterable[str]) -> tuple[dict[str, Configs], dict[str, Refusal]]:
        wanted = list(topics)
        self.asked.append(wanted)
        found = {
            topic: {"cleanup.policy": ConfigValue(self.policies[topic], Origin.TOPIC)}
            for topic in wanted
            if topic in self.policies
        }
        return found, {topic: Refusal(29, "not allowed") for topic in wanted if topic not in self.policies}

    def topics(self, **source: str) -> FollowableTopics:
        settings = {key.replace("_", "."): value for key, value in source.items()}
        flow = Flow(
            source=Cluster(alias="A", bootstrap_servers="a:9092", client=MaskedMapping(settings)),
            target=Cluster(alias="B", bootstrap_servers="b:9092"),
        )
        return FollowableTopics(flow, cast("Admin", None), clock=lambda: self.now)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    found = Asked({"plain": "delete", "table": "compact", "both": "compact,delete"})
    monkeypatch.setattr(lease_planner, "topic_configs", found.topic_configs)
    return found


def test_compacted_topics_and_those_that_are_hidden_are_read_from_leaders(
    asked: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    topics = asked.topics(client_rack="a")
    for _ in range(2):
        assert topics.among(["plain", "table", "both", "hidden"]) == {"plain"}
    (line,) = caplog.messages
    assert "1 topics are read from their leaders" in line
    assert "hidden: not allowed; grant DESCRIBE_CONFIGS" in line


def test_configs_are_asked_for_once_in_ten_minutes(asked: Asked) -> None:
    topics = asked.topics(client_rack="a")
    topics.among(["plain"])
    topics.among(["plain", "table"])
    assert asked.asked == [["plain"], ["table"]]
    asked.policies["plain"] = "compact"
    asked.now = 600.0
    assert topics.among(["plain", "table"]) == set()
    assert asked.asked[2:] == [["plain", "table"]]


def test_without_a_rack_nothing_is_asked(asked: Asked) -> None:
    assert asked.topics().among(["plain"]) == set()
    assert asked.asked == []
