"""The tables of the reference pages, from the code: `python -m tests.docs.reference` writes them into docs/.

A page has `<!-- generated: NAME -->` before each table and `<!-- end -->` after it. Everything between the two is
written by this module; the rest of the page is written by hand.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from mirrorless import errors
from mirrorless.cli import root
from mirrorless.metadata.kinds import KINDS
from mirrorless.metrics import METRICS, Emitter, Metric
from mirrorless.rights import ROWS, Function, On, Row, Side, without_implied
from mirrorless.settings.explain import client_explanations, explanations
from tests.docs import llms, monitoring, openapi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

DOCS: Final = Path(__file__).parents[2] / "docs"

STAR: Final = r"\*"
"""A star that is no emphasis."""

_SECTION: Final = re.compile(r"(<!-- generated: (?P<name>[a-z_]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_ANGLE: Final = re.compile(r"(`[^`]*`)|([<>|])")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    head = list(head)
    lines = [head, ["---"] * len(head), *(list(row) for row in rows)]
    return "".join("| " + " | ".join(cells).replace("|  |", "| |") + " |\n" for cells in lines)


def escaped(text: str) -> str:
    """A text whose angle brackets and bars outside of code are neither HTML nor a table."""
    return _ANGLE.sub(lambda found: found[1] or {"<": "&lt;", ">": "&gt;", "|": "&#124;"}[found[2]], text)


def settings() -> str:
    """Every setting of a flow, with default and meaning."""
    return "| key | default | meaning |\n|---|---|---|\n" + "".join(f"{one.row}\n" for one in explanations())


def client_settings() -> str:
    """Every client setting that has an effect."""
    return "| key | default | meaning |\n|---|---|---|\n" + "".join(f"{one.row}\n" for one in client_explanations())


def metric_row(metric: Metric) -> str:
    """One metric as a row of a table."""
    dimensions = "; ".join(", ".join(one) for one in metric.dimensions)
    notes = [*(["MirrorMaker 2's"] if metric.mm2 else []), *(["running total"] if metric.counts else [])]
    notes += [] if metric.cloudwatch else ["Prometheus only"]
    return f"| `{metric.name}` | {metric.unit} | {dimensions} | {', '.join(notes)} | {metric.meaning} |\n"


def metrics() -> str:
    """Every metric, by what emits it."""
    titles = {
        Emitter.COPY: "copy and partition_copy",
        Emitter.COPY_FUNCTION: "copy",
        Emitter.FUNCTIONS: "All functions",
    }
    order = (Emitter.COPY, *(one for one in Emitter if one is not Emitter.COPY))
    sections = []
    for emitter in order:
        rows = "".join(metric_row(metric) for metric in METRICS if metric.emitter is emitter)
        head = "| metric | unit | dimensions | | meaning |\n|---|---|---|---|---|\n"
        sections.append(f"## {titles.get(emitter, emitter)}\n\n{head}{rows}")
    return "\n".join(sections)


def right_row(row: Row) -> str:
    """One right as a row of a table."""
    when = f"{row.why} ({row.condition})" if row.condition else row.why
    actions = ", ".join(f"`{action.partition(':')[2]}`" for action in row.iam_actions)
    return f"| {row.side} | {row.on} | `{row.operation}` | {actions} | {when} |\n"


def rights() -> str:
    """Every right, by the function or job that needs it."""
    head = "| on | what | operation | MSK IAM | for |\n|---|---|---|---|---|\n"
    return "\n".join(
        f"### {function}\n\n{head}{''.join(right_row(row) for row in ROWS if row.function is function)}"
        for function in Function
    )


def _rights_in_short(function: Function, side: Side) -> str:
    rows = without_implied(row for row in ROWS if row.function is function and row.side is side and row.required)
    found: dict[On, list[str]] = {}
    for row in rows:
        found.setdefault(row.on, []).append(f"`{row.operation}`{STAR if row.condition else ''}")
    return "; ".join(f"{on}: {', '.join(operations)}" for on, operations in found.items())


def rights_summary() -> str:
    """The required Kafka ACLs of each function or job, without those that another one implies."""
    return table(
        ("", "on the source", "on the target"),
        ((one, _rights_in_short(one, Side.SOURCE), _rights_in_short(one, Side.TARGET)) for one in Function),
    )


def kinds() -> str:
    """Every kind of what a cluster has beside topics and groups."""
    return table(
        ("kind", "what", "moved", "not moved", "rights on the cluster"),
        (
            (
                f"`{one.name}`",
                one.about,
                "reported only" if one.apply is None else one.switch,
                one.left,
                f"`{one.reads}`"
                + (f"; on the target `{one.writes}` to set them" if one.writes and not one.deletes else ""),
            )
            for one in KINDS
        ),
    )


def commands_of(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command below a group that is not a group itself, with its path."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command, info_name=path[-1])
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from commands_of(found, (*path, name))


def _option_row(option: click.Option, context: click.Context) -> tuple[str, str, str]:
    meaning = escaped(option.help or "")
    metavar = "" if option.is_flag else f" {option.make_metavar(context)}"
    if isinstance(option.type, click.Choice) and option.metavar is None:
        metavar = " NAME"
        meaning += f" One of {', '.join(f'`{choice}`' for choice in option.type.choices)}."
    names = ", ".join(f"`{name}{metavar}`" for name in (*option.opts, *option.secondary_opts))
    known = None if option.is_flag else option.to_info_dict()["default"]
    default = "required" if option.required else f"`{known}`" if isinstance(known, str | int) else ""
    return names, default, meaning


def command_section(command: click.Command, path: tuple[str, ...]) -> str:
    """One command: its usage, help and options."""
    context = click.Context(command, info_name=" ".join(path))
    usage = " ".join([*path, *command.collect_usage_pieces(context)])
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    help_text = escaped(inspect.cleandoc(command.help or ""))
    section = f"## {' '.join(path)}\n\n```\n{usage}\n```\n\n{help_text}\n"
    if options:
        section += "\n" + table(("option", "default", "meaning"), (_option_row(one, context) for one in options))
    return section


def commands() -> str:
    """Every command."""
    return "\n".join(command_section(command, path) for path, command in commands_of(root, ("mirrorless",)))


def error_classes() -> str:
    """Every error that is raised on purpose, children below their parents."""

    def rows(kind: type[errors.MirrorlessError], depth: int) -> Iterator[tuple[str, str, str]]:
        summary = inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].replace("\n", " ")
        yield "&emsp;" * depth + f"`{kind.__name__}`", "yes" if kind.retriable else "", escaped(summary)
        for child in kind.__subclasses__():
            if child.__module__ == errors.__name__:
                yield from rows(child, depth + 1)

    return table(("error", "retriable", "meaning"), rows(errors.MirrorlessError, 0))


SECTIONS: Final[dict[str, Callable[[], str]]] = {
    "settings": settings,
    "client_settings": client_settings,
    "metrics": metrics,
    "rights": rights,
    "rights_summary": rights_summary,
    "kinds": kinds,
    "commands": commands,
    "error_classes": error_classes,
}
"""What makes the text of a section, by its name."""


def updated(page: str) -> str:
    """A page with its generated sections as the code has them now."""
    return _SECTION.sub(lambda found: f"{found[1]}\n{SECTIONS[found['name']]().strip()}\n\n{found[3]}", page)


def by_hand(page: str) -> str:
    """A page with its generated sections blank; line numbers stay as they are."""
    return _SECTION.sub(lambda found: "\n" * found[0].count("\n"), page)


def sections_in(page: str) -> list[str]:
    """Names of the generated sections of a page."""
    return [found["name"] for found in _SECTION.finditer(page)]


def main() -> None:
    """Write every generated section and file; print the pages that changed."""
    for path in sorted(DOCS.rglob("*.md")):
        before = path.read_text(encoding="utf-8")
        after = updated(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(DOCS.parent)}\n")
    openapi.FILE.write_text(openapi.text(), encoding="utf-8")
    monitoring.write()
    llms.FILE.write_text(llms.text(), encoding="utf-8")


if __name__ == "__main__":
    main()
