"""`mirrorless failover-plan`: what a failover would cost now."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from mirrorless.cli.options import (
    any_of,
    file_argument,
    groups_option,
    json_option,
    print_json,
    target_option,
    verbose_option,
    warn,
)
from mirrorless.cli.status_codes import COULD_NOT, FINE
from mirrorless.errors import ClusterError, ConfigurationError
from mirrorless.local.listing import Listing
from mirrorless.offsets.failover_plan import failover_plan as make_plan
from mirrorless.offsets.failover_plan import skipping
from mirrorless.settings import load

if TYPE_CHECKING:
    from mirrorless.offsets.failover_plan import FailoverPlan, Forecast

_NUMBERS = ("source offset", "target offset", "continues at", "read again", "if not moved", "skipped", "not copied")


@click.command
@file_argument
@target_option(required=True)
@groups_option()
@json_option
@verbose_option
def failover_plan(file: str, *, target: str, groups: str, as_json: bool) -> None:
    """Forecast what a failover would cost each consumer group.

    Prints what each group would read again or skip, and what would be lost, if it moved to the target now. Writes
    nothing. If the source does not answer, the forecast is made from the last checkpoints. What the operation would do,
    step by step, is shown by `mirrorless failover --dry-run`.

    Exit status 0: every flow has a forecast; 2: a target does not answer, or no flow leads there.
    """
    settings, wanted = load(file), any_of(groups)
    flows = [flow for flow in settings.flows if flow.target.alias == target]
    if not flows:
        raise ConfigurationError(f"no enabled flow has the target {target}", file=file)
    found: dict[str, dict[str, Any]] = {}
    for flow in flows:
        try:
            plan = make_plan(flow, groups=lambda name: wanted.fullmatch(name) is not None)
        except ClusterError as error:
            found[flow.name] = {"error": str(error)}
            click.echo(f"error: flow {flow.name}: {error}", err=True)
            continue
        now_ms = int(time.time() * 1000)
        found[flow.name] = _fields(plan, now_ms)
        for trouble in (*plan.troubles, *skipping(plan.forecasts, flow.target)):
            warn(f"{plan.flow}: {trouble}")
        if not as_json:
            _print(plan, now_ms)
    if as_json:
        print_json({"flows": found})
    sys.exit(COULD_NOT if any("error" in one for one in found.values()) else FINE)


def _fields(plan: FailoverPlan, now_ms: int) -> dict[str, Any]:
    return {
        "source_answers": plan.source_answers,
        "groups": [asdict(one) | {"newest_age_ms": _age_ms(one, now_ms)} for one in plan.forecasts],
        "warnings": list(plan.troubles),
    }


def _print(plan: FailoverPlan, now_ms: int) -> None:
    listing = Listing(
        *("group", "topic", "source offset", "target offset", "how", "continues at", "read again"),
        *("if not moved", "skipped"),
        *("not copied", "newest copied"),
        numbers=_NUMBERS,
        title=plan.flow if plan.source_answers else f"{plan.flow}: from checkpoints, the source does not answer",
    )
    for one in plan.forecasts:
        age_ms = _age_ms(one, now_ms)
        listing.add(
            one.group,
            f"{one.topic}-{one.partition}",
            f"{one.source_offset:,}",
            "none" if one.target_offset is None else f"{one.target_offset:,}",
            one.how,
            "unknown" if one.continues_at is None else f"{one.continues_at:,}",
            _or_unknown(one.read_again, exact=one.read_again == 0),
            _or_unknown(one.read_again_now, exact=one.read_again_now == 0),
            _or_unknown(one.skipped, exact=one.skipped == 0),
            _or_unknown(one.not_copied, exact=one.not_copied_exact),
            "nothing" if age_ms is None else f"{age_ms / 1000:,.1f} s ago",
        )
    listing.print()


def _or_unknown(number: int | None, *, exact: bool) -> str:
    if number is None:
        return "unknown"
    return f"{number:,}" if exact else f"up to {number:,}"


def _age_ms(one: Forecast, now_ms: int) -> int | None:
    return None if one.newest_ms is None else max(0, now_ms - one.newest_ms)
