"""Reads the triggers of functions, and the jobs, from the SAM templates, for one flow.

Anything in the templates that this module does not support is an error: otherwise a function that runs on AWS and not
here would go unnoticed. What is skipped on purpose is in `LEFT_OUT`, with the reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mirrorless.errors import PrerequisiteError
from mirrorless.functions.flow_attributes import SELF_MANAGED, FlowProperties, attributes
from mirrorless.local.cloudformation import Stack, deployment, read

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mirrorless.local.cloudformation import CustomResource
    from mirrorless.settings import Flow, Settings

LEFT_OUT: Final = {
    "Drill": "`mirrorless drill` is a command",
    "VerifyCopy": "`mirrorless verify` is a command",
    "VerifyTrigger": "`mirrorless verify` is a command",
    "VerifyFailed": "there is no failure queue: records that a function refuses are in the log",
}
"""Resources that trigger something on AWS and nothing here, by their logical name."""
SUPERVISOR_S: Final = 2
"""How often a run is supervised here: EventBridge's minimum is a minute, too long for a user at a terminal."""
_OFTEN: Final = frozenset({"copy", "job_supervisor"})
"""What is triggered as often; an invocation of `copy` lasts until the run ends, or Spark copies."""
_PASSIVE: Final = frozenset(
    {
        "AWS::Serverless::Application",  # followed
        "AWS::Serverless::LayerVersion",
        "AWS::CloudFormation::WaitConditionHandle",
        "AWS::CloudWatch::Alarm",
        "AWS::CloudWatch::CompositeAlarm",
        "AWS::CloudWatch::Dashboard",
        "AWS::Glue::Connection",
        "AWS::IAM::ManagedPolicy",
        "AWS::IAM::Role",
        "AWS::Lambda::Function",  # answers CloudFormation only
        "AWS::Logs::LogGroup",
        "AWS::SQS::Queue",
        "AWS::SQS::QueuePolicy",
        "Custom::MirrorlessFlow",
    }
)
"""Types of resources that trigger nothing."""
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_ON_AWS: Final = frozenset({"--MIRRORLESS_METRICS", "--MIRRORLESS_REGION", "--MIRRORLESS_RELEASE"})
"""Arguments that mean nothing here: metrics are displayed, and the region is the environment's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSpec:
    """A function: where its `app.py` is, its timeout, and its environment variables."""

    name: str
    folder: Path
    timeout_s: float
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleTrigger:
    """Triggers a function every so many seconds."""

    function: str
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MskTrigger:
    """Triggers a function with records of topics; `bootstrap_servers` are those of the topics' cluster.

    An event has at most `batch_size` records, and waits at most `window_s` for them.
    """

    function: str
    topics: tuple[str, ...]
    bootstrap_servers: tuple[str, ...]
    batch_size: int
    window_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """Triggers a function when a job's run changes to one of these states."""

    function: str
    job: str
    states: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A Glue job: its script, and its default arguments."""

    name: str
    script: Path
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """The functions, triggers and jobs of one flow."""

    functions: Mapping[str, FunctionSpec]
    schedules: tuple[ScheduleTrigger, ...]
    triggers: tuple[MskTrigger, ...]
    changes: tuple[StateChange, ...]
    job: Job


def wiring(settings: Settings, flow: Flow) -> Wiring:
    """Read the wiring of a flow; raises `PrerequisiteError` for what is not supported on this machine."""
    stack = Stack(deployment() / "infra" / "pipeline.yaml", _parameters(settings, flow), _custom(settings, flow))
    for name in [stack.path.name, *(one["Location"] for one in stack.of_type("AWS::Serverless::Application").values())]:
        # As written: resources with a condition must be supported too.
        for resource, about in read(stack.path.parent / name)["Resources"].items():
            if about["Type"] not in _PASSIVE | _READ.keys() and resource not in LEFT_OUT:
                raise _unknown(name, f"resource {resource}, a {about['Type']}")
    return _WiringReader(stack).read()


def seconds_of(rate: str) -> int:
    """Return the seconds of `rate(5 minutes)`; raises `PrerequisiteError` for anything else, such as a cron."""
    found = re.fullmatch(r"rate\((\d+) (second|minute|hour|day)s?\)", rate)
    if found is None or not int(found[1]):
        raise PrerequisiteError(f"{rate!r} is not supported on this machine; use a rate such as rate(5 minutes)")
    return int(found[1]) * _SECONDS[found[2]]


def _unknown(template: str, what: str) -> PrerequisiteError:
    return PrerequisiteError(f"{template}: {what}, is not supported on this machine by `mirrorless run`")


def _parameters(settings: Settings, flow: Flow) -> dict[str, Any]:
    """Return parameters of this flow's stack; the clusters count as outside of MSK, whatever they are."""
    return {
        "Environment": "local",
        "Name": flow.name,
        "ConfigLocation": settings.file,
        "Flow": flow.name,
        "SubnetIds": "none,none",
        "SecurityGroupIds": "none",
        **dict.fromkeys(("Library", "Artifacts", "Release", "KafkaJars"), "local"),
    }


def _custom(settings: Settings, flow: Flow) -> Mapping[str, CustomResource]:
    """Return what the custom resource of a deployment would, with intervals to the second and every trigger."""
    rates = {
        "TopicDiscoveryRate": flow.refresh_topics_interval_seconds,
        "ConfigSyncRate": flow.sync_topic_configs_interval_seconds,
        "AclSyncRate": flow.sync_topic_acls_interval_seconds,
        "CheckpointRate": flow.emit_checkpoints_interval_seconds,
    }

    def attributes_of(properties: Mapping[str, Any]) -> Mapping[str, str]:
        return {
            **attributes(settings, FlowProperties.model_validate(properties)),
            **{name: f"rate({seconds} seconds)" for name, seconds in rates.items()},
            "OffsetSyncsEventSource": SELF_MANAGED,
            "HeartbeatsEventSource": SELF_MANAGED,
            "AvailabilityZone": "local",
        }

    return {"Custom::MirrorlessFlow": attributes_of}


class _WiringReader:
    """Reads the stack of a flow, resource by resource."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._template = stack.path.name
        self._functions: dict[str, FunctionSpec] = {}
        self._schedules: list[ScheduleTrigger] = []
        self._triggers: list[MskTrigger] = []
        self._changes: list[StateChange] = []
        self._jobs: list[Job] = []
        # The values of references to resources, as far as they are used here.
        self._references = {
            f"<{name}>": one["Properties"]["CodeUri"].rpartition("/")[2]
            if one["Type"] == "AWS::Serverless::Function"
            else one["Properties"]["Name"]
            for name, one in stack.resources.items()
            if one["Type"] in ("AWS::Serverless::Function", "AWS::Glue::Job")
        }

    def read(self) -> Wiring:
        for stack in (self._stack, *self._stack.nested.values()):
            self._template = stack.path.name
            for name, one in stack.resources.items():
                if name not in LEFT_OUT and (read := _READ.get(one["Type"])) is not None:
                    read(self, one["Properties"])
        (job,) = self._jobs
        return Wiring(
            functions=self._functions,
            schedules=tuple(self._schedules),
            triggers=tuple(self._triggers),
            changes=tuple(self._changes),
            job=job,
        )

    def function(self, properties: dict[str, Any]) -> None:
        folder = (self._stack.path.parent / properties["CodeUri"]).resolve()
        shared = self._stack.globals
        variables = {**shared["Environment"]["Variables"], **properties["Environment"]["Variables"]}
        told = {key: self._references.get(value, value) for key, value in variables.items()}
        self._functions[folder.name] = FunctionSpec(
            name=folder.name,
            folder=folder,
            timeout_s=properties.get("Timeout", shared["Timeout"]),
            # Resources that do not exist here, such as the failure queue.
            variables={key: value for key, value in told.items() if not value.startswith("<")},
        )
        for event in properties.get("Events", {}).values():
            self._event(folder.name, event["Type"], event["Properties"])

    def _event(self, function: str, kind: str, properties: dict[str, Any]) -> None:
        if kind == "Schedule" and set(properties) == {"Schedule"}:
            # More often than EventBridge can, as a user waits.
            seconds = SUPERVISOR_S if function in _OFTEN else seconds_of(properties["Schedule"])
            self._schedules.append(ScheduleTrigger(function=function, seconds=seconds))
            return
        pattern = properties.get("Pattern", {}) if set(properties) == {"Pattern"} else {}
        detail = pattern.get("detail", {})
        ours = {"source": ["aws.glue"], "detail-type": ["Glue Job State Change"], "detail": detail}
        if kind != "EventBridgeRule" or pattern != ours or set(detail) != {"jobName", "state"}:
            raise _unknown(self._template, f"an event of {function}, a {kind} of {sorted(properties)}")
        self._changes += [
            StateChange(function=function, job=self._references[job], states=frozenset(detail["state"]))
            for job in detail["jobName"]
        ]

    def trigger(self, properties: dict[str, Any]) -> None:
        function = self._references[properties["FunctionName"]]
        if properties["StartingPosition"] != "LATEST":
            raise _unknown(self._template, f"a trigger of {function} that starts at {properties['StartingPosition']}")
        self._triggers.append(
            MskTrigger(
                function=function,
                topics=tuple(properties["Topics"]),
                bootstrap_servers=tuple(properties["SelfManagedEventSource"]["Endpoints"]["KafkaBootstrapServers"]),
                batch_size=int(properties["BatchSize"]),
                window_s=float(properties["MaximumBatchingWindowInSeconds"]),
            )
        )

    def job(self, properties: dict[str, Any]) -> None:
        arguments = properties["DefaultArguments"]
        self._jobs.append(
            Job(
                name=properties["Name"],
                # On AWS it is a copy in the bucket of releases.
                script=deployment() / "glue_jobs" / properties["Command"]["ScriptLocation"].rpartition("/")[2],
                arguments=tuple(
                    part for name, value in arguments.items() if name not in _ON_AWS for part in (name, str(value))
                ),
            )
        )


_READ: Final = {
    "AWS::Serverless::Function": _WiringReader.function,
    "AWS::Lambda::EventSourceMapping": _WiringReader.trigger,
    "AWS::Glue::Job": _WiringReader.job,
}
