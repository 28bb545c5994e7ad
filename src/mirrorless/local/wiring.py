"""The functions of one flow on this machine: what triggers each, as the SAM templates do on AWS.

A test compares this with the templates, so that nothing runs there and not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import mirrorless
from mirrorless.clusters.internal_topics import offset_syncs_topic, replicated_heartbeats
from mirrorless.errors import PrerequisiteError
from mirrorless.settings.key_normalizer import addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mirrorless.settings import Cluster, Flow, Settings

SUPERVISOR_S: Final = 2
"""How often a run is supervised, and `copy` triggered: EventBridge's minimum is a minute, too long at a terminal."""
_WINDOW_S: Final = 15.0


class _Function(NamedTuple):
    timeout_s: float
    every_s: Callable[[Flow], float]
    variables: Mapping[str, str] = {}


_SHARES: Final = {"MIRRORLESS_COPY_FUNCTIONS": "1"}
_FUNCTIONS: Final = {
    "topic_discovery": _Function(300, lambda flow: flow.refresh_topics_interval_seconds),
    "config_sync": _Function(300, lambda flow: flow.sync_topic_configs_interval_seconds),
    "acl_sync": _Function(300, lambda flow: flow.sync_topic_acls_interval_seconds),
    "checkpoint": _Function(300, lambda flow: flow.emit_checkpoints_interval_seconds),
    "heartbeat": _Function(90, lambda _: 60),
    "heartbeat_monitor": _Function(60, lambda _: 60),
    "copy": _Function(120, lambda _: SUPERVISOR_S, _SHARES),
    "job_supervisor": _Function(60, lambda _: SUPERVISOR_S, {**_SHARES, "MIRRORLESS_RELEASE": "local"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSpec:
    """A function: where its `app.py` is, its timeout, its environment variables, and how often it is triggered."""

    name: str
    folder: Path
    timeout_s: float
    variables: Mapping[str, str]
    every_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MskTrigger:
    """Triggers a function with records of topics of `cluster`.

    An event has at most `batch_size` records, and waits at most `window_s` for them.
    """

    function: str
    topics: tuple[str, ...]
    cluster: Cluster
    batch_size: int
    window_s: float

    @property
    def bootstrap_servers(self) -> tuple[str, ...]:
        """The cluster's addresses."""
        return tuple(addresses(self.cluster.bootstrap_servers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A Glue job: its script, and its default arguments."""

    name: str
    script: Path
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """The functions, triggers and the job of one flow."""

    functions: Mapping[str, FunctionSpec]
    triggers: tuple[MskTrigger, ...]
    job: Job


def deployment() -> Path:
    """Return the folder with `infra`, `functions` and `glue_jobs`: a checkout's own, or the wheel's copy.

    Raises `PrerequisiteError` if neither has them.
    """
    package = Path(mirrorless.__file__).parent
    for folder in (package.parents[1], package / "deployment"):
        if (folder / "infra" / "template.yaml").exists() and (folder / "functions").is_dir():
            return folder
    raise PrerequisiteError(f"the templates and functions of a run are missing beside {package}; reinstall the package")


def wiring(settings: Settings, flow: Flow) -> Wiring:
    """Return the wiring of a flow; raises `PrerequisiteError` if the package lacks its functions."""
    folder, name = deployment(), f"{flow.name}-copy"
    shared = {"LOG_LEVEL": "INFO", "MIRRORLESS_CONFIG": settings.file, "MIRRORLESS_FLOW": flow.name}
    syncs = offset_syncs_topic(flow)
    return Wiring(
        functions={
            function: FunctionSpec(
                name=function,
                folder=folder / "functions" / function,
                timeout_s=one.timeout_s,
                variables={**shared, **one.variables, "POWERTOOLS_SERVICE_NAME": function, "MIRRORLESS_JOB": name},
                every_s=one.every_s(flow),
            )
            for function, one in _FUNCTIONS.items()
        },
        triggers=(
            MskTrigger(
                function="checkpoint",
                topics=(syncs.name,),
                cluster=syncs.cluster,
                batch_size=10_000,
                window_s=_WINDOW_S,
            ),
            MskTrigger(
                function="heartbeat_monitor",
                topics=(replicated_heartbeats(flow),),
                cluster=flow.target,
                batch_size=1_000,
                window_s=_WINDOW_S,
            ),
        ),
        job=Job(
            name=name,
            script=folder / "glue_jobs" / "partition_copy.py",
            arguments=("--MIRRORLESS_CONFIG", settings.file, "--MIRRORLESS_FLOW", flow.name),
        ),
    )
