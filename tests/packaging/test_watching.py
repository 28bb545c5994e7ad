"""Alarms and dashboard show metrics that are emitted, under the names and dimensions that they are emitted with."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from mirrorless.metrics import BY_NAME, FLOW, TOPIC, Emitter
from mirrorless.settings import Flow
from tests.support.template import environment

if TYPE_CHECKING:
    from tests.support.template import Stack

NAMESPACE: Final = "Mirrorless/stack"


@pytest.fixture(scope="module")
def watch() -> Stack:
    return environment(AlarmTopicArn="arn:aws:sns:eu-central-1:111122223333:alarms").nested["Forward"].nested["Watch"]


def alarms(watch: Stack) -> dict[str, dict[str, Any]]:
    return watch.of_type("AWS::CloudWatch::Alarm")


def test_there_is_an_alarm_for_each_thing_that_must_not_last(watch: Stack) -> None:
    ours = {
        name: [metric["MetricName"] for metric in looked_at(one)]
        for name, one in alarms(watch).items()
        if looked_at(one)
    }
    assert ours == {
        "HeartbeatMissing": ["heartbeat-age-seconds", "job-paused"],
        "Lag": ["lag-seconds", "job-running", "copy-running"],
        "NotCopying": ["job-paused", "job-running", "copy-running"],
        "SharesMissing": ["copy-missing"],
        "PartitionHalted": ["partitions-halted"],
        "MetadataFailed": ["topics-failed", "configs-failed", "acls-failed"],
        "Differences": ["differences"],
        "DrillFailed": ["drill-checks-failed", "drill-checks-not-done"],
    }
    assert set(alarms(watch)) == {
        *ours,
        "FunctionErrors",
        "Throttled",
        "FailuresWaiting",
        "VerifyNotDone",
        "DrillNotDone",
    }
    failed = {name for name in BY_NAME if name.endswith("-failed")}
    assert failed <= {metric for metrics in ours.values() for metric in metrics}


def looked_at(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """Return metrics of ours that an alarm is about, with name and dimensions."""
    metrics = [one["MetricStat"]["Metric"] for one in alarm.get("Metrics", ()) if "MetricStat" in one] or [alarm]
    return [one for one in metrics if one.get("Namespace") == NAMESPACE]


def test_alarms_look_at_metrics_of_the_flow(watch: Stack) -> None:
    for alarm in alarms(watch).values():
        for one in looked_at(alarm):
            metric = BY_NAME[one["MetricName"]]
            assert tuple(dimension["Name"] for dimension in one["Dimensions"]) in metric.dimensions
            assert [dimension["Value"] for dimension in one["Dimensions"]] == ["primary", "backup"]
            assert metric.cloudwatch
            # A value that is missing would be a zero: it has to be one to the alarm too.
            assert is_zero_if_missing(alarm, one["MetricName"]) or not metric.sparse


def is_zero_if_missing(alarm: dict[str, Any], metric: str) -> bool:
    """Whether an alarm takes a missing value of a metric for zero."""
    if "Metrics" not in alarm:
        return bool(alarm["TreatMissingData"] == "notBreaching")
    (name,) = [
        one["Id"]
        for one in alarm["Metrics"]
        if "MetricStat" in one and one["MetricStat"]["Metric"]["MetricName"] == metric
    ]
    return f"FILL({name}, 0)" in str(alarm["Metrics"])


def test_expressions_name_what_they_are_made_of(watch: Stack) -> None:
    for alarm in alarms(watch).values():
        if "Metrics" in alarm:
            (result,) = [one for one in alarm["Metrics"] if "Expression" in one]
            ids = {one["Id"] for one in alarm["Metrics"] if "MetricStat" in one}
            assert set(re.findall(r"\b[a-z]\w*", result["Expression"])) == ids
            assert len({one["MetricStat"]["Period"] for one in alarm["Metrics"] if "MetricStat" in one}) == 1


def test_a_run_that_tells_no_lag_is_an_alarm_and_a_pause_is_none(watch: Stack) -> None:
    (lag,) = [one["Expression"] for one in alarms(watch)["Lag"]["Metrics"] if "Expression" in one]
    assert lag == "IF(FILL(job, 0) + FILL(copy, 0) > 0, FILL(lag, 1000000000), 0)"
    (beats,) = [one["Expression"] for one in alarms(watch)["HeartbeatMissing"]["Metrics"] if "Expression" in one]
    assert beats == "IF(FILL(paused, 0) > 0, 0, age)"


def test_one_engine_is_enough_and_a_supervisor_that_does_not_run_is_an_alarm(watch: Stack) -> None:
    alarm = alarms(watch)["NotCopying"]
    (stopped,) = [one["Expression"] for one in alarm["Metrics"] if "Expression" in one]
    # Without a value of `paused`, which the supervisor emits each minute, there is no result.
    assert stopped == "IF(paused > 0, 0, IF(FILL(job, 0) + FILL(copy, 0) < 1, 1, 0))"
    assert alarm["TreatMissingData"] == "breaching"
    assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"]) == (4, 5)


def test_an_alarm_over_values_of_leases_finds_one_in_each_period(watch: Stack) -> None:
    periods = [one["MetricStat"]["Period"] for one in alarms(watch)["Lag"]["Metrics"] if "MetricStat" in one]
    assert min(periods) >= 2 * Flow.model_fields["lease_seconds"].default


def test_a_comparison_that_failed_and_one_that_found_something_are_alarms_of_their_own(watch: Stack) -> None:
    found = alarms(watch)["Differences"]
    assert (found["ComparisonOperator"], found["Threshold"]) == ("GreaterThanThreshold", 0)
    failed = alarms(watch)["VerifyNotDone"]
    assert (failed["Namespace"], failed["MetricName"]) == ("AWS/Events", "TriggeredRules")
    assert failed["Dimensions"] == [{"Name": "RuleName", "Value": "<VerifyFailed>"}]
    body = json.loads(watch.resources["Dashboard"]["Properties"]["DashboardBody"])
    shown = next(one["properties"]["alarms"] for one in body["widgets"] if one["type"] == "alarm")
    assert sorted(shown) == sorted(f"<{name}.Arn>" for name in alarms(watch))


def test_alarms_of_a_drill_last_until_the_next_one(watch: Stack) -> None:
    found, undone = alarms(watch)["DrillFailed"], alarms(watch)["DrillNotDone"]
    assert found["TreatMissingData"] == undone["TreatMissingData"] == "ignore"
    (checks,) = [one["Expression"] for one in found["Metrics"] if "Expression" in one]
    assert checks == "failed + undone"  # without FILL, which would end the alarm after five minutes
    assert (undone["Namespace"], undone["MetricName"]) == ("AWS/Lambda", "Errors")
    assert undone["Dimensions"] == [{"Name": "FunctionName", "Value": "<Drill>"}]
    # Its value has the time at which the invocation began.
    assert undone["Period"] > environment().nested["Forward"].of_type("AWS::Serverless::Function")["Drill"]["Timeout"]


@pytest.mark.parametrize(("seconds", "missing"), [(180, "breaching"), (0, "notBreaching")])
def test_heartbeats_are_missed_unless_they_are_switched_off(seconds: int, missing: str) -> None:
    watch = environment(HeartbeatAlarmSeconds=seconds).nested["Forward"].nested["Watch"]
    off = "emit.heartbeats.enabled=false\n" if not seconds else ""
    assert alarms(environment(off).nested["Forward"].nested["Watch"])["HeartbeatMissing"]["TreatMissingData"] == missing
    alarm = alarms(watch)["HeartbeatMissing"]
    assert alarm["TreatMissingData"] == missing
    # A heartbeat of long ago stays in its topic, which is compacted, and its age is told on.
    assert alarm["Threshold"] == seconds or alarm["Threshold"] > 1e11


def test_an_outage_notifies_whatever_is_on_for_days_and_the_rest_is_one_message(watch: Stack) -> None:
    ((name, review),) = watch.of_type("AWS::CloudWatch::CompositeAlarm").items()
    members = re.findall(r"ALARM\(\"<(\w+)\.Arn>\"\)", review["AlarmRule"])
    assert review["AlarmRule"].count(" OR ") == len(members) - 1
    topic = ["arn:aws:sns:eu-central-1:111122223333:alarms"]
    notifying = {alarm for alarm, one in alarms(watch).items() if one.get("AlarmActions") == topic == one["OKActions"]}
    assert notifying == {"HeartbeatMissing", "Lag", "NotCopying", "SharesMissing", "PartitionHalted"}
    assert (name, review["AlarmActions"], review["OKActions"]) == ("Review", topic, topic)
    # Each alarm notifies in one way: none by both, none by neither.
    assert sorted([*members, *notifying]) == sorted(alarms(watch))
    silent = environment().nested["Forward"].nested["Watch"]
    kinds = ("AWS::CloudWatch::CompositeAlarm", "AWS::CloudWatch::Alarm")
    assert not any("AlarmActions" in one for kind in kinds for one in silent.of_type(kind).values())


def test_a_share_that_is_missing_is_an_alarm_before_spark_copies(watch: Stack) -> None:
    alarm = alarms(watch)["SharesMissing"]
    # The supervisor looks each minute, and emits zero again at the third look, when the job takes over.
    assert (alarm["Period"], alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"]) == (60, 2, 3)
    assert alarm["TreatMissingData"] == "notBreaching"


def test_two_environments_in_one_account_share_no_series() -> None:
    """Functions, jobs, alarms, dashboard and rights have the namespace of their environment."""
    for stack in (environment(BackwardEnabled="true").nested["Forward"], environment().nested["Forward"]):
        assert stack.globals["Environment"]["Variables"]["POWERTOOLS_METRICS_NAMESPACE"] == NAMESPACE
        for job in stack.of_type("AWS::Glue::Job").values():
            assert job["DefaultArguments"]["--MIRRORLESS_METRICS"] == NAMESPACE
        granted = [
            statement["Condition"]["StringEquals"]["cloudwatch:namespace"]
            for role in stack.nested["Roles"].of_type("AWS::IAM::Role").values()
            for statement in role["Policies"][0]["PolicyDocument"]["Statement"]
            if statement["Sid"] == "Metrics"
        ]
        assert granted == [NAMESPACE, NAMESPACE]
        text = json.dumps(stack.nested["Watch"].resources)
        assert "Mirrorless/stack" in text
        assert not re.search(r"Mirrorless(?!/stack)[\"\\,]", text)


def test_tracing_costs_nothing_unless_the_caller_traces() -> None:
    assert environment().nested["Forward"].globals["Tracing"] == "PassThrough"


def test_the_alarms_of_errors_and_throttles_add_up_functions_that_no_other_alarm_shows(watch: Stack) -> None:
    functions = set(environment().nested["Forward"].of_type("AWS::Serverless::Function"))
    for name, metric in (("FunctionErrors", "Errors"), ("Throttled", "Throttles")):
        metrics = alarms(watch)[name]["Metrics"]
        sums = {one["Id"]: one["MetricStat"]["Metric"] for one in metrics if "MetricStat" in one}
        assert {one["MetricName"] for one in sums.values()} == {metric}
        seen = {one["Dimensions"][0]["Value"].strip("<>") for one in sums.values()}
        assert functions - seen == {"Heartbeat", "HeartbeatMonitor", "JobSupervisor", "Drill"}
        (expression,) = [one["Expression"] for one in metrics if "Expression" in one]
        assert sorted(re.findall(r"FILL\((\w+), 0\)", expression)) == sorted(sums)
        assert expression.count("+") == len(sums) - 1


def test_a_function_that_fails_every_ten_minutes_is_an_alarm(watch: Stack) -> None:
    alarm = alarms(watch)["FunctionErrors"]
    (period_s,) = {one["MetricStat"]["Period"] for one in alarm["Metrics"] if "MetricStat" in one}
    assert alarm["EvaluationPeriods"] * period_s / 600 >= alarm["DatapointsToAlarm"]


def test_the_dashboard_shows_metrics_as_they_are_emitted(watch: Stack) -> None:
    body = json.loads(watch.resources["Dashboard"]["Properties"]["DashboardBody"])
    shown = set()
    for widget in body["widgets"]:
        for row in widget["properties"].get("metrics", ()):
            if row[0] == NAMESPACE:
                names, options = [part for part in row[2:] if isinstance(part, str)], row[-1]
                assert (tuple(names[::2]), names[1::2]) == (FLOW, ["primary", "backup"])
                statistic = (options if isinstance(options, dict) else {}).get("stat") or widget["properties"].get(
                    "stat"
                )
                assert (statistic == "Sum") == BY_NAME[row[1]].counts or row[1] == "units-left", row[1]
                assert BY_NAME[row[1]].cloudwatch
                shown.add(row[1])
            elif isinstance(row[0], dict) and "SEARCH" in row[0]["expression"]:
                found = re.search(r"\{\"Mirrorless/stack\",([\w,]+)\} MetricName=\"([\w-]+)\"", row[0]["expression"])
                assert found is not None
                assert tuple(found[1].split(",")) == TOPIC
                assert TOPIC in BY_NAME[found[2]].dimensions
    verified = {name for name, one in BY_NAME.items() if one.emitter is Emitter.VERIFY_COPY}
    assert verified <= shown
    assert {name for name, one in BY_NAME.items() if one.emitter is Emitter.DRILL} <= shown
    copied = {name for name, one in BY_NAME.items() if one.emitter is Emitter.COPY and one.cloudwatch}
    # Rates are metric math; what flows that share topics skip is no fault.
    assert copied - shown <= {"skipped-count"}
    # Nothing is paid for that no alarm and no graph shows.
    alarming = {one["MetricName"] for alarm in alarms(watch).values() for one in looked_at(alarm)}
    sent = {name for name, one in BY_NAME.items() if one.cloudwatch and not one.sparse}
    assert sent <= shown | alarming


def test_widgets_do_not_overlap(watch: Stack) -> None:
    body = json.loads(watch.resources["Dashboard"]["Properties"]["DashboardBody"])
    taken: set[tuple[int, int]] = set()
    for widget in body["widgets"]:
        cells = {
            (x, y)
            for x in range(widget["x"], widget["x"] + widget["width"])
            for y in range(widget["y"], widget["y"] + widget["height"])
        }
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
