"""`mirrorless failover-plan`: what a failover would cost now."""

from __future__ import annotations

import json
import re
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import click
from rich.table import Table

from mirrorless.cli.tables import print_table
from mirrorless.errors import ClusterError, ConfigurationError
from mirrorless.offsets.failover_plan import failover_plan as make_plan
from mirrorless.settings import load

if TYPE_CHECKING:
    from mirrorless.offsets.failover_plan import FailoverPlan, Forecast


@click.command
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--to", "target", required=True, metavar="ALIAS", help="The cluster to fail over to.")
@click.option("--group", "groups", default=".*", metavar="PATTERN", help="Only groups of these names.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def failover_plan(file: str, *, target: str, groups: str, as_json: bool) -> None:
    """Forecast for every group what it would read again and what would be lost, if it went over now.

    Nothing is written. If the source does not answer, the last checkpoints are shown.
    """
    settings = load(file)
    flows = [flow for flow in settings.flows if flow.target.alias == target]
    if not flows:
        raise ConfigurationError(f"no enabled flow leads to {target}", file=file)
    try:
        pattern = re.compile(groups)
    except re.error as error:
        raise click.BadParameter(str(error), param_hint="--group") from None
    failed = False
    for flow in flows:
        try:
            plan = make_plan(flow, groups=lambda name: pattern.fullmatch(name) is not None)
        except ClusterError as error:
            click.echo(f"error: {flow.name}: {error}", err=True)
            failed = True
            continue
        now_ms = int(time.time() * 1000)
        for trouble in plan.troubles:
            click.echo(f"warning: {plan.flow}: {trouble}", err=True)
        if as_json:
            for one in plan.forecasts:
                click.echo(json.dumps({"flow": plan.flow} | asdict(one) | {"newest_age_ms": _age_ms(one, now_ms)}))
        else:
            _print(plan, now_ms)
    sys.exit(int(failed))


def _print(plan: FailoverPlan, now_ms: int) -> None:
    table = Table(
        *("group", "topic", "source offset", "target offset", "how", "read again", "not copied", "newest copied"),
        title=plan.flow if plan.source_answers else f"{plan.flow}: by checkpoints, the source does not answer",
    )
    for one in plan.forecasts:
        age_ms = _age_ms(one, now_ms)
        table.add_row(
            one.group,
            f"{one.topic}-{one.partition}",
            str(one.source_offset),
            "none" if one.target_offset is None else str(one.target_offset),
            one.how,
            _or_unknown(one.read_again, exact=one.read_again == 0),
            _or_unknown(one.not_copied, exact=one.not_copied_exact),
            "nothing" if age_ms is None else f"{age_ms / 1000:.1f} s ago",
        )
    print_table(table)


def _or_unknown(number: int | None, *, exact: bool) -> str:
    if number is None:
        return "not known"
    return str(number) if exact else f"up to {number}"


def _age_ms(one: Forecast, now_ms: int) -> int | None:
    return None if one.newest_ms is None else max(0, now_ms - one.newest_ms)
