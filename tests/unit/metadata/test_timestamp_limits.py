"""When a remote topic would refuse records for their age, and what is set and left alone then."""

from __future__ import annotations

from typing import Final

import pytest

from mirrorless.clusters.configs import Configs, ConfigValue, Origin
from mirrorless.filters import ConfigPropertyFilter
from mirrorless.metadata.actions import AlterConfigs, ConfigDifference, CreateTopic
from mirrorless.metadata.config_plan import creation_config, plan_configs
from mirrorless.metadata.timestamp_limits import AGE_LIMITS, BEFORE, UNLIMITED, lifted_limits, with_lifted_limits

DIFFERENCE: Final = AGE_LIMITS[1]
DAY: Final = "86400000"
WEEK: Final = "604800000"
LATER: Final = "99999999999999"
USUAL: Final = ConfigPropertyFilter(["message.timestamp.difference.max.ms"])
EXCLUDED: Final = ConfigPropertyFilter([r"message\.timestamp\..*"])
WITH_DEFAULTS: Final = ConfigPropertyFilter([r"(?!message\.timestamp\.before).*"], defaults=True)
DYNAMIC: Final = 3


def configs(before: str = UNLIMITED, origin: int = Origin.DEFAULT, **more: str) -> Configs:
    """A topic's configs; all but the first are defaults, `_` for `.`."""
    usual = {
        "cleanup_policy": "delete",
        "retention_ms": WEEK,
        "segment_ms": DAY,
        "message_timestamp_type": "CreateTime",
    }
    found = {key.replace("_", "."): ConfigValue(value, Origin.DEFAULT) for key, value in (usual | more).items()}
    return found | {BEFORE: ConfigValue(before, origin)}


@pytest.mark.parametrize(
    ("source", "target", "is_lifted"),
    [
        (configs(), configs(DAY, Origin.STATIC_BROKER), True),
        (configs(), configs(DAY), True),
        (configs(), configs(DAY, Origin.TOPIC), True),
        (configs(), configs(), False),
        (configs(), configs(DAY, message_timestamp_type="LogAppendTime"), False),
        # Both ends refuse what is older than a day, but the source keeps for a week what was new once.
        (configs(DAY, Origin.STATIC_BROKER), configs(DAY, Origin.STATIC_BROKER), True),
        (configs(DAY, DYNAMIC), configs(DAY), True),
        (configs(DAY, Origin.STATIC_BROKER), configs(str(9 * int(DAY))), False),
        (configs(DAY, Origin.STATIC_BROKER, retention_ms="-1"), configs(LATER), True),
        (configs(DAY, Origin.STATIC_BROKER, cleanup_policy="compact"), configs(LATER), True),
        (configs(DAY, Origin.STATIC_BROKER, message_timestamp_type="LogAppendTime"), configs(LATER), True),
        # The owner of the source topic limits it: replicated, as all configs of its own.
        (configs("5", Origin.TOPIC), configs("5", Origin.TOPIC), False),
        # Brokers before 3.6 know the other name only, and those before 4.0 both.
        ({DIFFERENCE: ConfigValue(DAY, Origin.STATIC_BROKER)}, configs(DAY), True),
        ({DIFFERENCE: ConfigValue(UNLIMITED, Origin.DEFAULT)}, configs(), False),
    ],
)
def test_when_a_limit_is_lifted(source: Configs, target: Configs, is_lifted: bool) -> None:
    effective = {name: one.value for name, one in target.items()}
    assert lifted_limits(USUAL, source, effective) == ({BEFORE: UNLIMITED} if is_lifted else {})
    assert lifted_limits(EXCLUDED, source, effective) == {}


def test_every_limit_of_an_old_target_is_lifted() -> None:
    assert lifted_limits(USUAL, configs(), {DIFFERENCE: DAY}) == {DIFFERENCE: UNLIMITED}
    assert lifted_limits(USUAL, configs(), {DIFFERENCE: DAY, BEFORE: UNLIMITED}) == {DIFFERENCE: UNLIMITED}
    both = {DIFFERENCE: UNLIMITED, BEFORE: UNLIMITED}
    assert lifted_limits(USUAL, configs(), {DIFFERENCE: DAY, BEFORE: DAY}) == both


def created(source: Configs, defaults: dict[str, str | None]) -> CreateTopic:
    config = creation_config(USUAL, source)
    action = CreateTopic(topic="A.t", partitions=1, replication_factor=3, reason="missing", config=config)
    return with_lifted_limits(USUAL, action, source, topic="t", defaults=defaults)


def test_a_topic_is_created_without_the_limit_of_its_target() -> None:
    made = created(configs(), {BEFORE: DAY})
    assert made.config == {BEFORE: UNLIMITED}
    assert made.reason == "missing; records of t older than 1 day would be refused"
    assert created(configs(), {BEFORE: "1500"}).reason.endswith("older than 1,500 ms would be refused")


def test_a_topic_is_created_as_before_if_the_target_has_no_limit_or_does_not_show_it() -> None:
    assert created(configs(), {BEFORE: UNLIMITED}).config == {}
    assert created(configs(), {}).config == {}
    assert created(configs("5", Origin.TOPIC), {BEFORE: DAY}).config == {BEFORE: "5"}
    # A dynamic default of the source's brokers is no wish for this topic.
    assert created(configs(DAY, DYNAMIC), {BEFORE: UNLIMITED}).config == {}


def planned(
    source: Configs, target: Configs, *, chosen: ConfigPropertyFilter = USUAL
) -> list[tuple[str, str | None, str | None, bool]]:
    actions, notes = plan_configs(chosen, remote={"t": "A.t"}, source={"t": source}, target={"A.t": target})
    assert notes == []
    return [(one.name, one.upstream, one.downstream, one.delete) for action in actions for one in action.differences]


SET: Final = (BEFORE, UNLIMITED, DAY, False)


@pytest.mark.parametrize("origin", [Origin.DEFAULT, Origin.STATIC_BROKER, DYNAMIC])
@pytest.mark.parametrize("limit", [UNLIMITED, DAY])
def test_the_sync_of_configs_lifts_a_limit_once_and_leaves_it(limit: str, origin: int) -> None:
    source = configs(limit, origin)
    assert planned(source, configs(DAY, Origin.STATIC_BROKER)) == [SET]
    assert planned(source, configs(DAY, Origin.TOPIC)) == [SET]
    assert planned(source, configs(UNLIMITED, Origin.TOPIC)) == []


def test_the_sync_of_configs_follows_a_limit_of_the_source_topic_s_own() -> None:
    source = configs("5", Origin.TOPIC)
    assert planned(source, configs(DAY, Origin.STATIC_BROKER)) == [(BEFORE, "5", DAY, False)]
    assert planned(source, configs("5", Origin.TOPIC)) == []
    assert planned(configs(UNLIMITED, Origin.TOPIC), configs(DAY)) == [SET]


def test_defaults_of_the_source_are_no_limit() -> None:
    assert planned(configs(DAY), configs(UNLIMITED, Origin.TOPIC), chosen=WITH_DEFAULTS) == []
    assert planned(configs(), configs(UNLIMITED), chosen=WITH_DEFAULTS) == [(BEFORE, UNLIMITED, UNLIMITED, False)]


def test_an_excluded_limit_is_left_to_the_target() -> None:
    for target in (configs(DAY, Origin.TOPIC), configs(UNLIMITED, Origin.TOPIC), configs(DAY)):
        assert planned(configs(), target, chosen=EXCLUDED) == []


def test_the_reason_says_why_a_limit_is_lifted() -> None:
    source = configs() | {"x": ConfigValue("7", Origin.TOPIC)}
    target = configs(DAY) | {"x": ConfigValue("8", Origin.TOPIC)}
    (both,), _ = plan_configs(USUAL, remote={"t": "A.t"}, source={"t": source}, target={"A.t": target})
    assert both == AlterConfigs(
        topic="A.t",
        differences=(
            ConfigDifference(name="x", upstream="7", downstream="8"),
            ConfigDifference(name=BEFORE, upstream=UNLIMITED, downstream=DAY),
        ),
        reason="to match t; records of t older than 1 day would be refused",
    )
