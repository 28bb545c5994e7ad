"""`mirrorless doctor`: whether both ends of every flow, and a deployment on AWS, are ready; writes nothing."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from mirrorless.cli import interrupts
from mirrorless.cli.options import (
    CONFIG_VARIABLE,
    chosen_flows,
    flow_option,
    json_option,
    print_json,
    verbose_option,
    warn,
)
from mirrorless.cli.status_codes import FINE, FOUND
from mirrorless.doctor.aliases import one_cluster_twice
from mirrorless.doctor.aws.examination import examine_aws
from mirrorless.doctor.checks import examine
from mirrorless.doctor.findings import Status
from mirrorless.doctor.identical_probe import probe_identical_offsets
from mirrorless.rights import Function
from mirrorless.settings import load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mirrorless.doctor.findings import Finding
    from mirrorless.settings import Settings


@click.command
@click.argument("files", nargs=-1, envvar=CONFIG_VARIABLE)
@flow_option
@click.option(
    "--aws",
    "deployment",
    metavar="STACK",
    help="Check a CloudFormation stack; if STACK is a file, the parameters in a samconfig.toml, a template or JSON.",
)
@click.option(
    "--function",
    "functions",
    type=click.Choice(list(Function)),
    multiple=True,
    help="Only the checks that this function or job needs; repeat it for several.",
)
@click.option(
    "--probe",
    is_flag=True,
    help="Also try what mirrorless.offsets=identical needs, on a topic that is created on the target and deleted.",
)
@click.option("--show-ok", is_flag=True, help="List the checks that are ok too.")
@json_option
@verbose_option
def doctor(
    files: tuple[str, ...],
    *,
    name: str | None,
    deployment: str | None,
    functions: tuple[Function, ...],
    probe: bool,
    show_ok: bool,
    as_json: bool,
) -> None:
    """Check that both ends of every flow are ready.

    Checks connections, rights, internal topics, limits and clocks of every flow of FILES, and writes nothing without
    --probe. Prints a line for each check that is not ok, and for each failed check what to change. With --aws checks
    what a deployment needs from AWS: network, secrets, concurrency, triggers and runs.

    Exit status 0: no check failed (warnings, and checks that could not run, do not count); 1: a check failed; 2: FILES
    or the stack cannot be used.
    """
    if not files and deployment is None:
        raise click.UsageError("give FILES, or --aws STACK")
    settings = load(*files) if files else None
    found = {} if settings is None else _flows(settings, functions, name)
    if probe:
        interrupts.must_end_by_itself()
    if settings is not None and probe:
        for flow in chosen_flows(settings, name):
            if (tried := probe_identical_offsets(flow)) is not None:
                found[flow.name].append(tried)
    warnings = () if settings is None else settings.warnings
    on_aws = {} if deployment is None else examine_aws(deployment)
    every = [one for some in (*found.values(), *on_aws.values()) for one in some]
    if as_json:
        aws = {} if deployment is None else {"aws": _fields(on_aws)}
        print_json({"flows": _fields(found), **aws, "warnings": warnings})
    else:
        for warning in warnings:
            warn(warning)
        for one_name, some in (*found.items(), *on_aws.items()):
            _show(one_name, some, show_ok=show_ok or probe)
        counts = Counter(one.status for one in every)
        click.echo(", ".join(_counted(counts[status], status) for status in Status))
    sys.exit(FOUND if any(one.status is Status.FAILED for one in every) else FINE)


def _flows(settings: Settings, functions: Sequence[Function], name: str | None) -> dict[str, list[Finding]]:
    """Check the flows of a configuration."""
    chosen = [Function(name) for name in functions] or None
    found = {flow.name: examine(flow, chosen) for flow in chosen_flows(settings, name)}
    if name is None and (chosen is None or Function.HEARTBEAT in chosen):
        # The heartbeats of the opposite direction, without which no client there learns who is upstream.
        # Nothing copies these pairs, so no function `copy` does the work of `heartbeat`.
        pairs = (pair.model_copy(update={"engine": "spark"}) for pair in settings.heartbeats)
        others = [pair for pair in pairs if pair.name not in found]
        found |= {f"{pair.name} (heartbeats only)": examine(pair, [Function.HEARTBEAT]) for pair in others}
    if chosen is None and (twice := one_cluster_twice(settings)):
        found["clusters"] = twice
    return found


def _fields(found: Mapping[str, Sequence[Finding]]) -> dict[str, Any]:
    return {name: [asdict(one) for one in some] for name, some in found.items()}


def _counted(number: int, status: Status) -> str:
    return f"{number} {status}{'s' if status is Status.WARNING and number != 1 else ''}"


def _together(findings: Sequence[Finding]) -> list[Finding]:
    """Make one line of checks that could not be done for one reason, such as an unreachable cluster."""
    alike: dict[tuple[str, str | None], list[Finding]] = {}
    for one in findings:
        if one.status is Status.NOT_CHECKED and one.fix is None:
            alike.setdefault((one.text, one.cluster), []).append(one)
    found: list[Finding] = []
    for one in findings:
        some = alike.get((one.text, one.cluster), [one]) if one.status is Status.NOT_CHECKED else [one]
        if one is some[0]:
            found.append(replace(one, check=", ".join(dict.fromkeys(each.check for each in some))))
    return found


def _show(name: str, findings: Sequence[Finding], *, show_ok: bool) -> None:
    click.echo(name)
    shown = [one for one in findings if show_ok or one.status is not Status.OK]
    width = max((len(one.cluster or "") for one in shown), default=0)
    for one in _together(shown):
        status = click.style(f"{one.status:11}", fg=_COLOURS[one.status])
        click.echo(f"  {status}  {one.cluster or '':{width}}  {one.check}: {one.text}")
        if one.fix is not None:
            click.echo(f"  {'':11}  {'':{width}}  -> {one.fix}")
    if fine := len(findings) - len(shown):
        status = click.style(f"{Status.OK:11}", fg=_COLOURS[Status.OK])
        click.echo(f"  {status}  {fine} check{'s' if fine > 1 else ''}; --show-ok lists {'them' if fine > 1 else 'it'}")


_COLOURS = {Status.OK: "green", Status.WARNING: "yellow", Status.FAILED: "red", Status.NOT_CHECKED: None}
