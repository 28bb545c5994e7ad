"""Checks of the functions that copy: how many there are, how many may run at once, and whether their memory is enough.

Partitions are assigned by the number of functions. So a function that was given another number than the stack has, or
less concurrency than all of them need, leaves partitions uncopied until the job copies them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mirrorless.doctor.aws.api import Missing
from mirrorless.doctor.findings import Finding, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mirrorless.doctor.aws.api import Api
    from mirrorless.doctor.aws.deployment import CopyParameters, Deployment

COPYING: Final = "functions that copy"
LEAST_MB: Final = 256
"""Memory below which a function may not have enough for its buffers: docs/deployment.md, "Sizing"."""
_NUMBER: Final = "MIRRORLESS_COPY_FUNCTIONS"


def check_copying(deployment: Deployment, api: Api) -> Iterator[Finding]:
    """Check the functions that copy each flow: as parameters have them, and as they are deployed."""
    for one in deployment.copies:
        if not deployment.is_deployed:
            yield _memory(f"{one.prefix}CopyFunctions={one.functions}", one.memory_mb, one) or _fine(
                f"{one.prefix}CopyFunctions={one.functions}", one.memory_mb, one
            )
        elif (name := deployment.copy_names.get(one.prefix)) is None:
            text = f"{deployment.name} has no function copy: an earlier release deployed it"
            yield Finding(check=COPYING, status=Status.WARNING, text=text, fix="deploy the stack again")
        else:
            yield from _deployed(name, one, api)


def _deployed(name: str, wanted: CopyParameters, api: Api) -> Iterator[Finding]:
    try:
        found = api.ask("lambda:GetFunctionConfiguration", FunctionName=name)
    except Missing:
        text = f"{name} does not exist"
        yield Finding(check=COPYING, status=Status.FAILED, text=text, fix="deploy the stack again")
        return
    problems = [
        problem for problem in (_number(name, found, wanted), _reservation(name, wanted, api)) if problem is not None
    ]
    memory_mb = int(found["MemorySize"])
    if (small := _memory(name, memory_mb, wanted)) is not None:
        problems.append(small)
    yield from problems or [_fine(name, memory_mb, wanted)]


def _number(name: str, found: Mapping[str, Any], wanted: CopyParameters) -> Finding | None:
    given = found.get("Environment", {}).get("Variables", {}).get(_NUMBER)
    if given == str(wanted.functions):
        return None
    parameter = f"{wanted.prefix}CopyFunctions"
    text = f"{name} has {_NUMBER}={given or ''}, and the stack has {parameter}={wanted.functions}"
    fix = f"deploy the stack again; to change the number, change {parameter}"
    return Finding(check=COPYING, status=Status.FAILED, text=text, fix=fix)


def _reservation(name: str, wanted: CopyParameters, api: Api) -> Finding | None:
    reserved = api.ask("lambda:GetFunctionConcurrency", FunctionName=name).get("ReservedConcurrentExecutions")
    if reserved is None or int(reserved) >= wanted.concurrency:
        return None
    text = f"{name} may run {reserved} times at once; {wanted.functions} that copy need {wanted.concurrency}, two each"
    fix = f"aws lambda put-function-concurrency --function-name {name}"
    fix += f" --reserved-concurrent-executions {wanted.concurrency}"
    return Finding(check=COPYING, status=Status.FAILED, text=text, fix=fix)


def _memory(name: str, memory_mb: int, wanted: CopyParameters) -> Finding | None:
    if memory_mb >= LEAST_MB:
        return None
    text = f"{name}: {memory_mb} MB of memory may not be enough to copy"
    fix = f"set {wanted.prefix}CopyMemory to {LEAST_MB} or more"
    return Finding(check=COPYING, status=Status.WARNING, text=text, fix=fix)


def _fine(name: str, memory_mb: int, wanted: CopyParameters) -> Finding:
    text = f"{name}: {wanted.functions} of {memory_mb} MB, at most {wanted.concurrency} invocations at once"
    return Finding(check=COPYING, status=Status.OK, text=text)
