"""What topics are planned, without any cluster."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from mirrorless.errors import ConfigurationError
from mirrorless.metadata.actions import CreateTopic, GrowTopic, LeftOutTopic
from mirrorless.metadata.plan import divide, named_in_vain, plan_topics, replicated
from mirrorless.metadata.topic_creation import _requests
from mirrorless.policy import DefaultReplicationPolicy
from mirrorless.selection import LeftOut
from mirrorless.settings import Cluster, Flow

FLOW = Flow(
    source=Cluster(alias="A", bootstrap_servers="a:1"),
    target=Cluster(alias="B", bootstrap_servers="b:1"),
    topics=("t.*",),
)


def test_topics_are_divided() -> None:
    assert divide(FLOW, ["u", "t2", "t1", "B.t1", "__t"]) == (
        {"t1": "A.t1", "t2": "A.t2"},
        (
            LeftOutTopic(topic="B.t1", kind=LeftOut.CYCLE, reason="was already replicated from B"),
            LeftOutTopic(
                topic="__t",
                kind=LeftOut.INTERNAL,
                reason="internal topic of Kafka, Connect or MirrorMaker",
            ),
            LeftOutTopic(topic="u", kind=LeftOut.FILTER, reason="no pattern of topics matches"),
        ),
    )


def test_a_name_that_no_topic_has_is_told_with_the_nearest() -> None:
    flow = FLOW.model_copy(update={"topics": ("ordrs", "payments", "quite-other", r"x\..*")})
    assert named_in_vain(flow, ["orders", "payments"]) == [
        "ordrs of topics does not exist on A, or is not visible; did you mean orders?",
        "quite-other of topics does not exist on A, or is not visible",
    ]


def test_a_topic_whose_configs_are_not_known_is_not_created() -> None:
    actions = plan_topics(
        FLOW,
        remote={"t1": "A.t1", "t2": "A.t2", "t3": "A.t3", "t4": "A.t4"},
        source={"t1": 1, "t2": 2, "t3": 3, "t4": 4},
        target={"A.t3": 2, "A.t4": 9},
        configs={"t2": {"cleanup.policy": "compact"}},
    )

    assert actions == [
        CreateTopic(
            topic="A.t2",
            partitions=2,
            replication_factor=2,
            factor_is_default=True,
            reason="t2 has no remote topic on B",
            config={"cleanup.policy": "compact"},
        ),
        GrowTopic(topic="A.t3", partitions=3, reason="t3 has 3 partitions, A.t3 has 2"),
    ]


class Merging(DefaultReplicationPolicy):
    """A mistake."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{source_alias}{self.separator}{topic[0]}"


def test_two_topics_are_never_mixed_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("own_policy")
    vars(module)["Merging"] = Merging
    monkeypatch.setitem(sys.modules, "own_policy", module)
    flow = FLOW.model_copy(update={"replication_policy_class": "own_policy:Merging"})

    with pytest.raises(ConfigurationError, match=r"flow A->B: t1 and t2 would both be replicated to A\.t; use another"):
        replicated(flow, ["t1", "t2"])


@pytest.mark.parametrize(
    ("topics", "partitions", "requests"),
    [(1200, 1, [500, 500, 200]), (100, 100, [49, 49, 2]), (3, 8000, [1, 1, 1]), (0, 1, [])],
)
def test_requests_stay_below_what_a_controller_takes(topics: int, partitions: int, requests: list[int]) -> None:
    actions = [
        CreateTopic(topic=f"t{number}", partitions=partitions, replication_factor=1, reason="")
        for number in range(topics)
    ]

    assert [len(some) for some in _requests(actions)] == requests
