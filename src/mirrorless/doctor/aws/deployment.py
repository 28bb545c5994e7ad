"""A deployment as its parameters have it, and the resources of its stack if there is one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

# The parameters of infra/template.yaml and of infra/flow.yaml.
_ENDS: Final = (("First", "Source"), ("Second", "Target"))
_OTHERS_A_FLOW: Final = 10
"""Concurrency of a flow's functions but `copy`, in infra/pipeline.yaml."""
_INVOCATIONS: Final = 2
"""Of each function that copies: one that ends, and its successor."""


class Arn(NamedTuple):
    """The parts of an ARN that checks need."""

    text: str
    service: str
    region: str
    account: str
    resource: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterParameters:
    """What the parameters have about one cluster; `prefix` begins their names. An ARN is None if it is empty."""

    prefix: str
    cluster: Arn | None = None
    trigger: Arn | None = None
    secret: Arn | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyParameters:
    """What the parameters have about the functions that copy one flow; `prefix` begins their names."""

    prefix: str = ""
    functions: int = 1
    memory_mb: int = 256

    @property
    def concurrency(self) -> int:
        """How many invocations may run at once."""
        return _INVOCATIONS * self.functions

    @property
    def reserved(self) -> int:
        """How many of them `ReservedConcurrency` reserves: none of several functions, see infra/pipeline.yaml."""
        return self.concurrency if self.functions == 1 else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyParameters:
    """What the parameters have about the comparison; without a schedule it runs by hand only."""

    schedule: str = ""
    since: str = "26h"
    worker_type: str = "G.1X"
    workers: int = 2
    sample: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A stack, or with `is_deployed` false one that is to be deployed in `region` with these parameters.

    `clusters` are the first and the second one; `copies` are by flow. `functions` are physical names by logical name,
    of every flow; `copy_names` are those of `copy` by the prefix of the flow's parameters; `jobs` are names of Glue
    jobs. `environment` is the last part of the metrics' namespace.
    """

    name: str
    region: str
    is_deployed: bool
    subnets: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()
    clusters: tuple[ClusterParameters, ...] = ()
    secrets: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    flow: str = ""
    triggers: str = "auto"
    reserves: bool = False
    copies: tuple[CopyParameters, ...] = (CopyParameters(),)
    has_jobs: bool = True
    verify: VerifyParameters = VerifyParameters()
    environment: str = ""
    config_location: str = ""
    functions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    copy_names: Mapping[str, str] = field(default_factory=dict)
    jobs: tuple[str, ...] = ()
    account: str | None = None

    @property
    def flows(self) -> int:
        """How many flows it has: one, or both directions."""
        return len(self.copies)

    @property
    def concurrency(self) -> int:
        """How many invocations of its functions may run at once."""
        return _OTHERS_A_FLOW * self.flows + sum(one.concurrency for one in self.copies)

    @property
    def reserved(self) -> int:
        """How many of them are reserved."""
        return _OTHERS_A_FLOW * self.flows + sum(one.reserved for one in self.copies) if self.reserves else 0

    @property
    def starts_copies(self) -> bool:
        """Whether a function that copies starts others."""
        return any(one.functions > 1 for one in self.copies)

    def polled(self, end: ClusterParameters) -> Arn | None:
        """Return what a trigger of a cluster polls, by the conditions of infra/pipeline.yaml; None for no trigger."""
        if self.triggers == "off":
            return None
        if end.trigger is not None:
            return end.trigger
        arn = end.cluster
        is_here = arn is not None and arn.region == self.region and self.account in (None, arn.account)
        return arn if is_here else None


def from_parameters(
    values: Mapping[str, str],
    *,
    name: str,
    region: str,
    account: str | None = None,
    functions: Mapping[str, tuple[str, ...]] | None = None,
    copy_names: Mapping[str, str] | None = None,
    jobs: tuple[str, ...] = (),
    is_deployed: bool = False,
) -> Deployment:
    """Make a deployment of the values of a template's parameters; raises `ValueError` for a number that is none."""
    return Deployment(
        name=name,
        region=region,
        account=account,
        is_deployed=is_deployed,
        subnets=_list(values, "SubnetIds"),
        security_groups=_list(values, "SecurityGroupIds"),
        clusters=tuple(_cluster(values, prefixes) for prefixes in _ENDS),
        secrets=_list(values, "SecretArns"),
        parameters=_list(values, "ParameterArns"),
        roles=_list(values, "ClientRoleArns"),
        keys=_list(values, "KmsKeyArns"),
        flow=values.get("Flow", "").strip(),
        triggers=values.get("Triggers", "auto"),
        reserves=values.get("ReservedConcurrency") == "true",
        copies=tuple(_copy(values, prefix) for prefix in _flows(values)),
        has_jobs=values.get("GlueJobs", "true") == "true",
        verify=_verify(values),
        environment=values.get("Environment") or name,
        config_location=values.get("ConfigLocation", ""),
        functions=functions or {},
        copy_names=copy_names or {},
        jobs=jobs,
    )


def parse_arn(text: str) -> Arn | None:
    """Divide an ARN; None for any other text."""
    parts = text.strip().split(":", 5)
    return Arn(text.strip(), parts[2], parts[3], parts[4], parts[5]) if len(parts) == 6 and parts[0] == "arn" else None


def _cluster(values: Mapping[str, str], prefixes: tuple[str, str]) -> ClusterParameters:
    prefix = next((one for one in prefixes if f"{one}ClusterArn" in values), prefixes[0])
    cluster, trigger, secret = (
        parse_arn(values.get(f"{prefix}{what}", "")) for what in ("ClusterArn", "TriggerArn", "SecretArn")
    )
    return ClusterParameters(prefix=prefix, cluster=cluster, trigger=trigger, secret=secret)


def _flows(values: Mapping[str, str]) -> tuple[str, ...]:
    """Return what begins the names of each flow's parameters: nothing in those of infra/flow.yaml."""
    if any(name in values for name in ("CopyFunctions", "SourceClusterArn", "TargetClusterArn")):
        return ("",)
    return ("Forward", "Backward") if values.get("BackwardEnabled") == "true" else ("Forward",)


def _copy(values: Mapping[str, str], prefix: str) -> CopyParameters:
    usual = CopyParameters(prefix=prefix)
    functions = _number(values, f"{prefix}CopyFunctions", usual.functions)
    memory_mb = _number(values, f"{prefix}CopyMemory", usual.memory_mb)
    return CopyParameters(prefix=prefix, functions=functions, memory_mb=memory_mb)


def _verify(values: Mapping[str, str]) -> VerifyParameters:
    usual = VerifyParameters()
    return VerifyParameters(
        schedule=values.get("VerifySchedule", "").strip(),
        since=values.get("VerifySince") or usual.since,
        worker_type=values.get("VerifyWorkerType") or usual.worker_type,
        workers=_number(values, "VerifyWorkers", usual.workers),
        sample=_number(values, "VerifySample", usual.sample),
    )


def _number(values: Mapping[str, str], name: str, usual: int) -> int:
    text = values.get(name, "").strip()
    if not text:
        return usual
    if not text.isdecimal():
        raise ValueError(f"{name} is {text}, which is no number")
    return int(text)


def _list(values: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(one for part in values.get(name, "").split(",") if (one := part.strip()))
