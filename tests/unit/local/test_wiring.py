"""Every schedule, trigger and job of the templates is run by `mirrorless run`, or is left out with a reason."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from mirrorless.functions.environment import CopyEnvironment, FunctionEnvironment, SupervisorEnvironment, parse
from mirrorless.functions.flow_attributes import SELF_MANAGED, FlowProperties, attributes
from mirrorless.local.wiring import SUPERVISOR_S, Wiring, wiring
from mirrorless.settings import load
from tests.support.cloudformation import Stack
from tests.support.template import ROOT, read

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mirrorless.settings import Flow, Settings

LEFT_OUT: Final = {
    "Drill": "`mirrorless drill` is a command",
    "VerifyCopy": "`mirrorless verify` is a command",
    "VerifyTrigger": "`mirrorless verify` is a command",
    "VerifyFailed": "a failed comparison ends the command with status 1",
}
"""Resources that trigger something on AWS and nothing here, by their logical name."""
ENDS: Final = {"SUCCEEDED", "FAILED", "TIMEOUT", "STOPPED", "EXPIRED", "ERROR"}
OFTEN: Final = ("copy", "job_supervisor")
SECONDS: Final = {"minute": 60, "second": 1, "hour": 3600}
MODELS: Final[dict[str, type[FunctionEnvironment]]] = {"copy": CopyEnvironment, "job_supervisor": SupervisorEnvironment}
CASES: Final[dict[str, dict[str, str]]] = {
    "defaults": {},
    "offset syncs on the target": {"offset-syncs.topic.location": "target"},
    "another separator": {"replication.policy.separator": "-"},
    "other intervals": {
        "refresh.topics.interval.seconds": "1",
        "sync.topic.configs.interval.seconds": "90",
        "sync.topic.acls.interval.seconds": "3600",
        "emit.checkpoints.interval.seconds": "2",
    },
    "one direction of two": {"b->a.enabled": "true"},
}


def settings_of(folder: Path, **extra: str) -> tuple[Settings, Flow]:
    lines = {
        "clusters": "a, b",
        "a.bootstrap.servers": "a1:9092, a2:9092",
        "b.bootstrap.servers": "b1:9092",
        "a->b.enabled": "true",
        **extra,
    }
    file = folder / "mm2.properties"
    file.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    settings = load(str(file))
    return settings, settings.flows[0]


def stack_of(settings: Settings, flow: Flow) -> Stack:
    """The stack of a flow whose clusters are outside of MSK, so that it has every trigger."""
    rates = {
        "TopicDiscoveryRate": flow.refresh_topics_interval_seconds,
        "ConfigSyncRate": flow.sync_topic_configs_interval_seconds,
        "AclSyncRate": flow.sync_topic_acls_interval_seconds,
        "CheckpointRate": flow.emit_checkpoints_interval_seconds,
    }

    def answer(properties: Mapping[str, Any]) -> Mapping[str, str]:
        return {
            **attributes(settings, FlowProperties.model_validate(properties)),
            **{name: f"rate({seconds} seconds)" for name, seconds in rates.items()},
            "OffsetSyncsEventSource": SELF_MANAGED,
            "HeartbeatsEventSource": SELF_MANAGED,
            "AvailabilityZone": "local",
        }

    given = {"Name": flow.name, "ConfigLocation": settings.file, "Flow": flow.name, "SubnetIds": "none,none"}
    given |= dict.fromkeys(("Library", "Artifacts", "Release", "KafkaJars"), "local")
    given |= {"Environment": "local", "SecurityGroupIds": "none"}
    return Stack(ROOT / "infra" / "pipeline.yaml", given, {"Custom::MirrorlessFlow": answer})


def seconds_of(rate: str) -> int:
    found = re.fullmatch(r"rate\((\d+) (minute|second|hour)s?\)", rate)
    assert found is not None, rate
    return int(found[1]) * SECONDS[found[2]]


def check_functions(stack: Stack, found: Wiring) -> None:
    """Compare names, timeouts, environment and schedules of the functions."""
    shared = stack.globals
    functions = {
        one["CodeUri"].rpartition("/")[2]: one
        for name, one in stack.of_type("AWS::Serverless::Function").items()
        if name not in LEFT_OUT
    }
    assert functions.keys() == found.functions.keys()
    for name, one in functions.items():
        ours = found.functions[name]
        assert ours.timeout_s == one.get("Timeout", shared["Timeout"]), name
        assert ours.folder == (stack.path.parent / one["CodeUri"]).resolve()
        variables = {**shared["Environment"]["Variables"], **one["Environment"]["Variables"]}
        for key in ours.variables.keys() & variables.keys() - {"MIRRORLESS_RELEASE", "MIRRORLESS_JOB"}:
            assert ours.variables[key] == variables[key], (name, key)
        (schedule,) = [event for event in one["Events"].values() if event["Type"] == "Schedule"]
        assert set(schedule["Properties"]) == {"Schedule"}, name
        if name not in OFTEN:
            assert ours.every_s == seconds_of(schedule["Properties"]["Schedule"]), name


def check_triggers(stack: Stack, found: Wiring) -> None:
    """Compare functions, topics, clusters and sizes of what records trigger."""
    (nested,) = [one for one in stack.nested.values() if one.of_type("AWS::Lambda::EventSourceMapping")]
    mappings = {tuple(one["Topics"]): one for one in nested.of_type("AWS::Lambda::EventSourceMapping").values()}
    assert mappings.keys() == {one.topics for one in found.triggers}
    for ours in found.triggers:
        one = mappings[ours.topics]
        servers = one["SelfManagedEventSource"]["Endpoints"]["KafkaBootstrapServers"]
        assert (tuple(servers), one["StartingPosition"]) == (ours.bootstrap_servers, "LATEST")
        assert (int(one["BatchSize"]), float(one["MaximumBatchingWindowInSeconds"])) == (ours.batch_size, ours.window_s)
        assert ours.function.replace("_", "") in str(one["FunctionName"]).lower()


@pytest.mark.parametrize("case", CASES)
def test_what_the_templates_trigger_is_triggered_here(case: str, tmp_path: Path) -> None:
    settings, flow = settings_of(tmp_path, **CASES[case])
    stack, found = stack_of(settings, flow), wiring(settings, flow)
    check_functions(stack, found)
    check_triggers(stack, found)
    (job,) = [one for name, one in stack.of_type("AWS::Glue::Job").items() if name not in LEFT_OUT]
    arguments = dict(zip(found.job.arguments[::2], found.job.arguments[1::2], strict=True))
    assert (job["Name"], job["DefaultArguments"] | arguments) == (found.job.name, job["DefaultArguments"])
    assert found.job.script == ROOT / "glue_jobs" / "partition_copy.py"
    assert job["Command"]["ScriptLocation"].endswith(found.job.script.name)


def test_nothing_else_in_the_templates_triggers_a_function() -> None:
    found: list[str] = []
    for path in sorted((ROOT / "infra").glob("*.yaml")):
        for name, one in read(path)["Resources"].items():
            events: dict[str, Any] = one.get("Properties", {}).get("Events", {})
            for event in events.values():
                found.append(f"{event['Type']} of {name}")
                if event["Type"] == "EventBridgeRule" and name not in LEFT_OUT:
                    # `CopyJob` hands every end of a run to the supervisor.
                    assert set(event["Properties"]["Pattern"]["detail"]["state"]) == ENDS
            if any(word in one["Type"] for word in ("EventSourceMapping", "Events::", "Scheduler", "Trigger")):
                found.append(f"{one['Type']} {name}")
    left_out = [one for one in found if one.rpartition(" ")[2] in LEFT_OUT]
    assert len(found) - len(left_out) == 8 + 1 + 2, sorted(found)


def test_every_handler_is_found_and_told_what_it_needs(tmp_path: Path) -> None:
    settings, flow = settings_of(tmp_path)
    found = wiring(settings, flow)
    written = {path.parent.name for path in (ROOT / "functions").glob("*/app.py")}
    assert set(found.functions) == written - {"drill"}
    for name, one in found.functions.items():
        assert (one.folder / "app.py").exists()
        told = parse(MODELS.get(name, FunctionEnvironment), one.variables)
        assert (told.flow, told.config) == (flow.name, settings.file)
        assert told.failures is None
    assert {one.every_s for name, one in found.functions.items() if name in OFTEN} == {SUPERVISOR_S}
