"""`mirrorless offsets reset`: begin the copy of a topic anew, from an offset of one's choice."""

from __future__ import annotations

import re

import click
from rich.console import Console
from rich.table import Table

from mirrorless.copy.resume.reset import Reset, Resetter, flow_of
from mirrorless.protocol.cluster_client import EARLIEST, LATEST
from mirrorless.settings import load
from mirrorless.settings.values import timestamp_ms


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
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--topic", required=True, help="A topic of the source cluster.")
@click.option("--to", type=_Start(), default="earliest", show_default=True, help="Where the copy shall go on.")
@click.option(
    "--partition",
    "partitions",
    type=click.IntRange(min=0),
    multiple=True,
    help="Only this partition; may be given repeatedly.",
)
@click.option("--flow", "name", help="The flow, such as 'A->B', if more than one replicates the topic.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def reset(file: str, *, topic: str, to: int, partitions: tuple[int, ...], name: str | None, yes: bool) -> None:
    """Begin a new incarnation of TOPIC's copy: every partition goes on at the offset that --to says.

    With --partition only those that it names; the others go on as they are.

    What the remote topic holds stays there, and what is copied again comes after it; for a clean beginning delete
    the remote topic first and let topic discovery create it again. A running copy follows at its next lease.
    """
    settings = load(file)
    flow = settings.flow(name) if name else flow_of(settings.flows, topic)
    resetter = Resetter(flow)
    try:
        resets = resetter.plan(topic, to, partitions=partitions)
        _show(resets)
        if not yes:
            click.confirm(_question(resets), abort=True)
        resetter.apply(resets)
    finally:
        resetter.close()
    click.echo(f"{topic}: {len(resets)} partitions begin anew at the next lease of {flow.name}")


def _show(resets: list[Reset]) -> None:
    table = Table("partition", "position", "goes on at", "source ends at", "remote topic holds", "epoch")
    for one in resets:
        position = "none" if one.position is None else f"{one.position:,}"
        held = f"{one.remote_end - one.remote_begin:,}"
        table.add_row(str(one.partition), position, f"{one.start:,}", f"{one.end:,}", held, str(one.epoch))
    Console().print(table)


def _question(resets: list[Reset]) -> str:
    repeated, skipped = sum(one.repeated for one in resets), sum(one.skipped for one in resets)
    says = []
    if repeated:
        says.append(f"{repeated:,} offsets that were copied will be appended to {resets[0].remote_topic} once more.")
    if skipped:
        says.append(f"{skipped:,} offsets that were not copied will be left out.")
    return " ".join([*says, "Begin anew?"])
