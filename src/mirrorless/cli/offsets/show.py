"""`mirrorless offsets show`: the range of offsets that can be translated, by partition."""

from __future__ import annotations

import click

from mirrorless.cli.options import chosen_flows, file_argument, flow_option, json_option, print_json, verbose_option
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.topics import partition_counts
from mirrorless.filters import replicated_topics
from mirrorless.local.listing import Listing
from mirrorless.offsets.turn_translation import translator_of
from mirrorless.settings import Flow, load

_FIELDS = ("topic", "partition", "from", "to", "downstream", "target_end", "runs", "mirrormaker_syncs")


@click.command
@file_argument
@flow_option
@json_option
@verbose_option
def show(file: str, *, name: str | None, as_json: bool) -> None:
    """Show which offsets can be translated, by partition.

    For each source partition prints the range of source offsets (from, to) and its number of runs. Offsets inside a
    run are translated at once; for those between two runs, records are counted on the source when they are asked
    for. Where only MirrorMaker 2 wrote offset syncs there are no runs, and translation is approximate, as in
    MirrorMaker 2.
    """
    found = {flow.name: _rows(flow) for flow in chosen_flows(load(file), name)}
    if as_json:
        flows = {flow: [dict(zip(_FIELDS, row, strict=True)) for row in rows] for flow, rows in found.items()}
        print_json({"flows": flows})
        return
    for flow, rows in found.items():
        _print(flow, rows)


def _print(flow: str, rows: list[tuple[str | int | None, ...]]) -> None:
    columns = [field.replace("_", " ") for field in _FIELDS]
    listing = Listing(*columns, numbers=columns[1:], title=flow)
    for topic, *numbers in rows:
        listing.add(str(topic), *("" if number is None else f"{number:,}" for number in numbers))
    listing.print()


def _rows(flow: Flow) -> list[tuple[str | int | None, ...]]:
    source, target = Admin(flow.source), Admin(flow.target)
    selects = replicated_topics(flow)
    places = [
        (topic, partition)
        for topic, count in sorted(partition_counts(source.metadata()).items())
        if selects(topic)
        for partition in range(count)
    ]
    translator = translator_of(flow, source=source, target=target)
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
