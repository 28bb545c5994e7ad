"""`mirrorless offsets reset`: copy a topic from another offset on."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict

import click

from mirrorless.cli.options import (
    Renamed,
    file_argument,
    flow_option,
    json_option,
    print_json,
    renamed,
    verbose_option,
)
from mirrorless.cli.status_codes import FOUND
from mirrorless.copy.api import Reset, Resetter, flow_of
from mirrorless.local.listing import Listing
from mirrorless.protocol.cluster_client import EARLIEST, LATEST
from mirrorless.settings import load
from mirrorless.settings.values import timestamp_ms

_COLUMNS = ("partition", "position", "continues at", "source ends at", "remote records", "epoch")


class _Start(click.ParamType[int]):
    name = "earliest|latest|TIME|OFFSET"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Negative numbers below the special ones are times."""
        text = str(value).strip()
        special = {"earliest": EARLIEST, "latest": LATEST}.get(text.lower())
        if special is not None:
            return special
        if re.fullmatch(r"[0-9]{1,18}", text):
            return int(text)
        try:
            return -int(str(timestamp_ms(text)))
        except ValueError:
            advice = "must be earliest, latest, an offset, or a time with its zone such as 2026-01-31T12:00:00Z"
            self.fail(f"{text}: {advice}", param, ctx)


@click.command
@file_argument
@flow_option
@click.option(
    "--topic",
    cls=Renamed,
    former=["--topics"],
    required=True,
    metavar="TOPIC",
    help="Topic of the source cluster: one name, no pattern.",
)
@click.option(
    "--partition",
    "partitions",
    type=click.IntRange(min=0),
    multiple=True,
    help="Only this partition; repeat it for several.",
)
@click.option("--offset", type=_Start(), metavar=_Start.name, help="Where copying continues.  [default: earliest]")
@click.option("--to", "former", type=_Start(), hidden=True)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
@verbose_option
def reset(
    file: str,
    *,
    name: str | None,
    topic: str,
    partitions: tuple[int, ...],
    offset: int | None,
    former: int | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Copy a topic again from another offset.

    Begins a new epoch of the given partitions, by default of all. Records in the remote topic stay; what is copied
    again is appended after them. To start from an empty topic, delete the remote topic first and let topic
    discovery recreate it. A running copy follows at its next lease. --flow is needed only if several flows
    replicate the topic; --json needs --yes.
    """
    if as_json and not yes:
        raise click.UsageError("--json needs --yes: nothing can be asked where a document is expected")
    offset = renamed("--to", "--offset", before=former, now=offset)
    settings = load(file)
    flow = settings.flow(name) if name else flow_of(settings.flows, topic)
    resetter = Resetter(flow)
    try:
        resets = resetter.plan(topic, EARLIEST if offset is None else offset, partitions=partitions)
        if not as_json:
            _show(resets)
        if not yes and not click.confirm(_question(resets)):
            click.echo("nothing was reset", err=True)
            sys.exit(FOUND)
        resetter.apply(resets)
    finally:
        resetter.close()
    if as_json:
        print_json({"flow": flow.name, "topic": topic, "partitions": [asdict(one) for one in resets]})
    else:
        count = f"{len(resets)} partition{'' if len(resets) == 1 else 's'}"
        click.echo(f"{topic}: {count} reset; {flow.name} follows at its next lease, within {flow.lease_seconds:g} s")


def _show(resets: list[Reset]) -> None:
    listing = Listing(*_COLUMNS, numbers=_COLUMNS)
    for one in resets:
        position = "none" if one.position is None else f"{one.position:,}"
        held = f"{one.remote_end - one.remote_begin:,}"
        listing.add(str(one.partition), position, f"{one.start:,}", f"{one.end:,}", held, str(one.epoch))
    listing.print()


def _question(resets: list[Reset]) -> str:
    repeated, skipped = sum(one.repeated for one in resets), sum(one.skipped for one in resets)
    says = []
    if repeated:
        says.append(f"{repeated:,} offsets that are already copied will be appended to {resets[0].remote_topic} again.")
    if skipped:
        says.append(f"{skipped:,} offsets that are not copied yet will be skipped.")
    return " ".join([*says, "Reset?"])
