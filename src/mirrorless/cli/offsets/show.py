"""`mirrorless offsets show`: what is known of each partition's offsets."""

from __future__ import annotations

import json

import click
from rich.table import Table

from mirrorless.cli.tables import print_table
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.topics import partition_counts
from mirrorless.filters import replicated_topics
from mirrorless.offsets.translation_service import Translator
from mirrorless.settings import Flow, load

_FIELDS = ("topic", "partition", "from", "to", "downstream", "target_end", "runs", "mirrormaker_syncs")


@click.command
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--flow", "name", metavar="A->B", help="One of FILE's flows; all of them if it is left out.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def show(file: str, *, name: str | None, as_json: bool) -> None:
    """Print for each source partition which offsets translate: from, to (upstream), and in how many runs.

    Offsets inside a run have their answer at hand; those between two runs are counted on the source when they are asked
    for. Where only MirrorMaker 2 wrote syncs there are no runs, and its approximation is all there is.
    """
    settings = load(file)
    for flow in settings.flows if name is None else [settings.flow(name)]:
        rows = _rows(flow)
        if as_json:
            for row in rows:
                click.echo(json.dumps({"flow": flow.name} | dict(zip(_FIELDS, row, strict=True))))
        else:
            table = Table(*(field.replace("_", " ") for field in _FIELDS), title=flow.name)
            for row in rows:
                table.add_row(*("" if field is None else str(field) for field in row))
            print_table(table)


def _rows(flow: Flow) -> list[tuple[str | int | None, ...]]:
    source, target = Admin(flow.source), Admin(flow.target)
    selects = replicated_topics(flow)
    places = [
        (topic, partition)
        for topic, count in sorted(partition_counts(source.metadata()).items())
        if selects(topic)
        for partition in range(count)
    ]
    translator = Translator(flow, source=source, target=target)
    try:
        translator.refresh(places)
        rows: list[tuple[str | int | None, ...]] = []
        for place in places:
            runs = translator.line(place).runs
            plain = {id(sync) for sync in translator.syncs.slots.slots(place) if sync.run is None}
            first, last = (runs[0], runs[-1]) if runs else (None, None)
            rows.append(
                (
                    *place,
                    None if first is None else first.first_upstream,
                    None if last is None else last.end_upstream,
                    None if last is None else last.end_downstream,
                    translator.target_ends.get(place),
                    len(runs),
                    len(plain),
                )
            )
    finally:
        translator.close()
    return rows
