"""Which configs a remote topic is created with, and which are changed afterwards, by MirrorMaker 2's rules."""

from __future__ import annotations

import pytest

from mirrorless.clusters.configs import ConfigValue, Origin
from mirrorless.filters import ConfigPropertyFilter
from mirrorless.metadata.actions import AlterConfigs, ConfigDifference
from mirrorless.metadata.config_plan import creation_config, plan_configs
from mirrorless.metadata.fences import FENCED_BYTES, MAX_BYTES

OWN, STATIC, DEFAULT = (ConfigValue("7", origin) for origin in (Origin.TOPIC, Origin.STATIC_BROKER, Origin.DEFAULT))
DYNAMIC = ConfigValue("7", 3)
PLAIN = ConfigPropertyFilter(["hidden"])
WITH_DEFAULTS = ConfigPropertyFilter(["hidden"], defaults=True)


def test_creation() -> None:
    cases: list[tuple[ConfigPropertyFilter, str, ConfigValue, dict[str, str]]] = [
        (PLAIN, "x", OWN, {"x": "7"}),
        (PLAIN, "x", DYNAMIC, {"x": "7"}),
        (PLAIN, "x", STATIC, {}),
        (PLAIN, "x", DEFAULT, {}),
        (WITH_DEFAULTS, "x", DEFAULT, {"x": "7"}),
        (WITH_DEFAULTS, "x", STATIC, {}),
        (WITH_DEFAULTS, "x", ConfigValue(None, Origin.DEFAULT), {}),
        (PLAIN, "hidden", OWN, {}),
        (PLAIN, "x", ConfigValue("7", Origin.TOPIC, fixed=True), {}),
    ]
    assert [(chosen, name, value, creation_config(chosen, {name: value})) for chosen, name, value, _ in cases] == cases


SET = ConfigDifference(name="x", upstream="7", downstream="8")
DELETE = ConfigDifference(name="x", upstream="7", downstream="8", delete=True)


@pytest.mark.parametrize(
    ("chosen", "upstream", "downstream", "difference"),
    [
        (PLAIN, OWN, OWN, None),
        (PLAIN, OWN, ConfigValue("8", Origin.TOPIC), SET),
        (PLAIN, OWN, ConfigValue("8", Origin.DEFAULT), SET),
        # The same value, but only as long as the target's default is what it is.
        (PLAIN, OWN, DEFAULT, ConfigDifference(name="x", upstream="7", downstream="7")),
        (PLAIN, DYNAMIC, ConfigValue("8", Origin.TOPIC), SET),
        (PLAIN, STATIC, ConfigValue("8", Origin.TOPIC), None),
        (PLAIN, DEFAULT, ConfigValue("8", Origin.TOPIC), DELETE),
        (PLAIN, DEFAULT, ConfigValue("8", Origin.DEFAULT), None),
        (PLAIN, DEFAULT, ConfigValue("8", Origin.STATIC_BROKER), None),
        (WITH_DEFAULTS, DEFAULT, ConfigValue("8", Origin.DEFAULT), SET),
        (WITH_DEFAULTS, DEFAULT, OWN, None),
    ],
)
def test_difference(
    chosen: ConfigPropertyFilter, upstream: ConfigValue, downstream: ConfigValue, difference: ConfigDifference | None
) -> None:
    actions, notes = plan_configs(
        chosen, remote={"t": "A.t"}, source={"t": {"x": upstream}}, target={"A.t": {"x": downstream}}
    )

    expected = [] if difference is None else [AlterConfigs(topic="A.t", differences=(difference,), reason="to match t")]
    assert actions == expected
    assert notes == []


def test_what_the_target_does_not_know_is_noted_once_for_all_topics() -> None:
    topics = ["t", "u"]
    actions, notes = plan_configs(
        PLAIN,
        remote={topic: f"A.{topic}" for topic in topics},
        source={topic: {"x": OWN, "y": DEFAULT} for topic in topics},
        target={f"A.{topic}": {} for topic in topics},
    )

    assert actions == []
    assert notes == ["the target's brokers do not support config x; it is not set on 2 topics, among them A.t"]


def test_a_topic_that_one_side_could_not_describe_is_left_alone() -> None:
    assert plan_configs(PLAIN, remote={"t": "A.t"}, source={}, target={"A.t": {"x": OWN}}) == ([], [])
    assert plan_configs(PLAIN, remote={"t": "A.t"}, source={"t": {"x": OWN}}, target={}) == ([], [])


def test_the_fence_of_an_operation_stays_on_the_target() -> None:
    fence = ConfigValue(FENCED_BYTES, Origin.TOPIC)
    source, target = {"t": {MAX_BYTES: ConfigValue("2000", Origin.TOPIC)}}, {"A.t": {MAX_BYTES: fence}}
    assert plan_configs(PLAIN, remote={"t": "A.t"}, source=source, target=target) == ([], [])
