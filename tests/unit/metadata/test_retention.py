"""Which remote topics keep their records shorter, in cases that a cluster is not needed for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.clusters.configs import ConfigValue, Origin
from mirrorless.clusters.effective_configs import EffectiveConfigs
from mirrorless.filters import config_filter_for
from mirrorless.metadata.expected_configs import Target, TopicPair, Unread, topic_pairs
from mirrorless.metadata.retention import compare_retention
from mirrorless.settings import Cluster, Flow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.configs import Configs

FLOW = Flow(source=Cluster(alias="A", bootstrap_servers="a:1"), target=Cluster(alias="B", bootstrap_servers="b:1"))
FROM_SOURCE = FLOW.model_copy(update={"use_defaults_from": "source"})
DAY_MS = 86_400_000


def configs(origin: int = Origin.DEFAULT, **values: int | str) -> Configs:
    """Configs that are all from one place, `_` for `.`."""
    with_policy = {"cleanup_policy": "delete", "retention_bytes": "-1"} | values
    return {key.replace("_", "."): ConfigValue(str(value), origin) for key, value in with_policy.items()}


def pairs(
    flow: Flow, source: Mapping[str, Configs], target: Mapping[str, Configs], default: Mapping[str, str | None] | str
) -> tuple[list[TopicPair], str]:
    """The pairs of these source topics; `default` is what new topics have on the target, beside what they are given."""
    unread = Unread()

    def would_be(_: str, config: Mapping[str, str]) -> EffectiveConfigs | str:
        if isinstance(default, str):
            return default
        return EffectiveConfigs(error_code=0, reason="", configs={**default, **config}, replication_factor=3)

    found = topic_pairs(
        flow,
        remote={topic: f"A.{topic}" for topic in source},
        counts=dict.fromkeys(source, 1),
        chosen=config_filter_for(flow),
        source=source,
        target=Target(replicas=dict.fromkeys(target, 2), configs=target),
        would_be=would_be,
        unread=unread,
    )
    return list(found), str(unread)


MINUTE = {"cleanup.policy": "delete", "retention.ms": "60000", "retention.bytes": "-1"}


def line(flow: Flow, found: list[TopicPair]) -> str | None:
    compared = compare_retention(flow, config_filter_for(flow), found)
    return None if compared is None else f"{compared.text}; {compared.fix}"


def test_a_default_of_the_target_that_is_shorter() -> None:
    source = {topic: configs(retention_ms=7 * DAY_MS) for topic in ("t", "u")}

    found, unread = pairs(FLOW, source, {}, MINUTE)

    assert unread == ""
    assert [one.replicas for one in found] == [2, 2]  # replication.factor
    assert line(FLOW, found) == (
        "retention of 2 of 2 topics is shorter on B than on A, so their records are deleted sooner: A.t 1 minute (t: 7 "
        "days), A.u 1 minute (u: 7 days); set use.defaults.from=source, or retention.ms on the "
        "source topics, or raise log.retention.ms of B's brokers"
    )
    assert line(FROM_SOURCE, pairs(FROM_SOURCE, source, {}, MINUTE)[0]) is None


def test_what_the_source_s_brokers_say_in_their_files_never_goes_over() -> None:
    source = {"t": configs(Origin.STATIC_BROKER, retention_ms=7 * DAY_MS)}

    for flow in (FLOW, FROM_SOURCE):
        found = line(flow, pairs(flow, source, {}, MINUTE)[0])
        assert found is not None
        assert found.endswith("; set retention.ms on the source topics, or raise log.retention.ms of B's brokers")


def test_a_value_of_the_topic_s_own_goes_over() -> None:
    source = {"t": configs(Origin.TOPIC, retention_ms=7 * DAY_MS)}

    assert line(FLOW, pairs(FLOW, source, {}, MINUTE)[0]) is None
    out_of_step = {"A.t": configs(Origin.TOPIC, retention_ms=1)}
    assert line(FLOW, pairs(FLOW, source, out_of_step, MINUTE)[0]) is None
    apart = FLOW.model_copy(update={"sync_topic_configs_enabled": False})
    found = line(apart, pairs(apart, source, out_of_step, MINUTE)[0])
    assert found is not None
    assert "A.t 1 ms (t: 7 days); set retention.ms on the remote topics, or" in found


def test_a_value_that_is_about_to_be_deleted_leaves_the_target_s_default() -> None:
    source = {"t": configs(retention_ms=7 * DAY_MS)}
    target = {"A.t": configs(Origin.TOPIC, retention_ms=30 * DAY_MS)}

    found = line(FLOW, pairs(FLOW, source, target, MINUTE)[0])

    assert found is not None
    assert "A.t 1 minute (t: 7 days)" in found
    assert line(FLOW, pairs(FLOW, source, target, "no answer")[0]) is None  # as it is now


@pytest.mark.parametrize(
    ("source", "target", "shown"),
    [
        ({"retention_ms": -1}, {"retention_ms": DAY_MS}, "A.t 1 day (t: no limit)"),
        ({"retention_ms": DAY_MS}, {"retention_ms": -1}, None),
        ({"retention_ms": DAY_MS}, {"retention_ms": DAY_MS, "retention_bytes": 1000}, "A.t 1,000 bytes (t: no limit)"),
        ({"retention_ms": 1, "cleanup_policy": "compact"}, {"retention_ms": 2}, "A.t 2 ms (t: no limit)"),
        ({"retention_ms": 2}, {"retention_ms": 1, "cleanup_policy": "compact"}, None),
        ({"retention_ms": 2}, {"retention_ms": 1, "cleanup_policy": "compact,delete"}, "A.t 1 ms (t: 2 ms)"),
    ],
)
def test_what_counts(source: dict[str, int | str], target: dict[str, int | str], shown: str | None) -> None:
    apart = FLOW.model_copy(update={"sync_topic_configs_enabled": False})
    found, _ = pairs(
        apart, {"t": configs(Origin.DEFAULT, **source)}, {"A.t": configs(Origin.DEFAULT, **target)}, MINUTE
    )

    told = line(apart, found)

    assert (told is None) == (shown is None)
    assert shown is None or f": {shown}; " in str(told)


def test_the_worst_come_first() -> None:
    apart = FLOW.model_copy(update={"sync_topic_configs_enabled": False})
    source = {f"t{number}": configs(retention_ms=10 * DAY_MS) for number in range(5)}
    target = {f"A.t{number}": configs(retention_ms=(9 - 2 * number) * DAY_MS) for number in range(5)}

    told = line(apart, pairs(apart, source, target, MINUTE)[0])

    assert told is not None
    assert told.startswith("retention of 5 of 5 topics ")
    assert ", so their records are deleted sooner: A.t4 1 day (t4: 10 days), A.t3 3 days (t3: 10 days), " in told
    assert " and 2 more; " in told


def test_topics_without_an_answer_hide_nothing_of_the_others() -> None:
    source = {"t": configs(Origin.TOPIC, retention_ms=DAY_MS), "u": configs(retention_ms=7 * DAY_MS)}
    apart = FLOW.model_copy(update={"sync_topic_configs_enabled": False})

    found, unread = pairs(apart, source, {"A.u": configs(retention_ms=DAY_MS)}, "{}: the broker is too old")

    assert unread == "A.t: the broker is too old"
    assert [one.remote for one in found] == ["A.u"]
