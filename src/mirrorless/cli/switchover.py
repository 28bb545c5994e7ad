"""`mirrorless switchover`, `failover` and `failback`: move applications to the other cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from mirrorless.cli.operation_output import check_outputs, confirm, finish, progress_on_standard_error
from mirrorless.cli.options import (
    file_argument,
    groups_option,
    json_option,
    output_option,
    target_option,
    topics_option,
    verbose_option,
)
from mirrorless.cli.status_codes import FOUND
from mirrorless.errors import OperationError
from mirrorless.operation_log.records import OperationKind
from mirrorless.operations.cluster_pair import ClusterPair
from mirrorless.operations.dry_run import dry_run_lines, preflight_lines
from mirrorless.operations.refusals import Terms
from mirrorless.operations.run import begin
from mirrorless.operations.steps.context import StepFailed
from mirrorless.settings import load

if TYPE_CHECKING:
    from mirrorless.settings import Settings

_Option: TypeAlias = Callable[[Callable[..., None]], Callable[..., None]]
_SECONDS: Final = click.FloatRange(min=0.0)


_both: Final[tuple[_Option, ...]] = (
    file_argument,
    target_option(required=True),
    click.option("--from", "source", metavar="ALIAS", help="Only flows from this cluster."),
    topics_option,
    groups_option(),
    click.option("--dry-run", is_flag=True, help="Check, print what each step would change, and write nothing."),
    click.option("--yes", is_flag=True, help="Do not ask for confirmation."),
    output_option,
    json_option,
    verbose_option,
)
_moving: Final[tuple[_Option, ...]] = (
    click.option(
        "--drain-timeout",
        type=_SECONDS,
        default=90.0,
        show_default=True,
        help="Undo everything if open transactions, or the copy, take longer; seconds.",
    ),
    click.option(
        "--wait-groups",
        type=_SECONDS,
        default=10.0,
        show_default=True,
        help="How long groups with members have to read to the end and leave; seconds.",
    ),
    click.option(
        "--accept",
        "accepted",
        metavar="CHECK",
        multiple=True,
        help="Continue although this check of the preflight fails; repeat it for several.",
    ),
)


def _with(*options: _Option) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@click.command
@_with(
    *_both,
    *_moving,
    click.option("--one-way", is_flag=True, help="Move although the file has no flow back."),
)
def switchover(file: str, **given: Any) -> None:  # noqa: ANN401 -- click's values
    """Move applications to another cluster as planned.

    No record is lost. Groups that stop in time read none twice; the report says what the others read again.

    Checks everything, blocks writers on the source, copies what is left, commits the translated offsets of consumer
    groups, proves that nothing was written meanwhile, prepares the target, and switches clients (mirrorless.fence,
    mirrorless.switch). Until the target is opened every failure is undone.

    Where the file has no flow back, --one-way is needed.

    Exit status 0: completed; 1: not completed, everything is as it was, or a check of --dry-run failed; 2: interrupted,
    run `mirrorless operation FILE continue`.
    """
    _run(file, OperationKind.SWITCHOVER, given)


@click.command
@_with(*_both)
def failover(file: str, **given: Any) -> None:  # noqa: ANN401 -- click's values
    """Move applications to another cluster: the source is down.

    Or it is abandoned.
    Groups continue from the translation of their last known position; the report has the age of the newest replicated
    record, and how many records each group may read again. Nothing is needed of the source.

    Exit status 0: completed; 1: not completed, everything is as it was; 2: interrupted, run
    `mirrorless operation FILE continue`.
    """
    _run(file, OperationKind.FAILOVER, given)


@click.command
@_with(
    *_both,
    *_moving,
    click.option(
        "--stranded",
        type=click.Choice(["list", "topic", "leave", "reset"]),
        default="list",
        show_default=True,
        help="What becomes of records never replicated, with kept names.",
    ),
)
def failback(file: str, **given: Any) -> None:  # noqa: ANN401 -- click's values
    """Return to a cluster after a failover.

    First its records that were never replicated are found, then applications move as in a switchover.

    Where remote topics have names of their own they are copied: the flow from the old cluster continues where it
    stopped. With kept names --stranded decides: list reports them and stops if there are any, topic copies them to
    <topic>.stranded on the live cluster, leave keeps them in the old log, reset empties the old topics and copies the
    live ones.

    Exit status 0: completed; 1: not completed, everything is as it was; 2: interrupted, run
    `mirrorless operation FILE continue`.
    """
    _run(file, OperationKind.FAILBACK, given)


def _run(file: str, kind: OperationKind, given: dict[str, Any]) -> None:
    check_outputs(given["outputs"])
    settings = load(file)
    terms = Terms(
        topics=given["topics"],
        groups=given["groups"],
        drain_timeout_s=given.get("drain_timeout", 0.0),
        wait_groups_s=given.get("wait_groups", 0.0),
        accepted=given.get("accepted", ()),
        stranded=given.get("stranded", "list"),
        source=given["source"],
    )
    target = given["target"]
    with closing(ClusterPair.to(settings, target, given["source"])) as pair:
        has_way_back = pair.reverse is not None
    no_way_back = None
    if not (has_way_back or given.get("one_way", True)):
        no_way_back = (
            f"{kind} to {target} has no way back: {settings.file} has no flow from {target}; add it, or give --one-way"
        )
    if given["dry_run"]:
        _dry_run(settings, kind, target, terms, no_way_back)
        return
    if no_way_back is not None:
        raise OperationError(no_way_back)
    if not given["yes"] and sys.stdin.isatty():
        _show(dry_run_lines(settings, kind, target, terms))
    confirm(f"{kind} to {target} moves applications", yes=given["yes"])
    ended = begin(settings, kind, target, terms, progress_on_standard_error())
    finish(ended, as_json=given["as_json"], outputs=given["outputs"])


def _dry_run(settings: Settings, kind: OperationKind, target: str, terms: Terms, no_way_back: str | None) -> None:
    """Print what each step would do, and what would be refused, which exits with 1; writes nothing."""
    _show(dry_run_lines(settings, kind, target, terms))
    try:
        _show(preflight_lines(settings, kind, target, terms))
        if no_way_back is not None:
            raise OperationError(no_way_back)
    except StepFailed as error:
        _show([f"  preflight: failed: {error}", *(f"    {line}" for line in error.lines)])
        sys.exit(FOUND)
    except OperationError as error:
        _show([f"  refused: {error}"])
        sys.exit(FOUND)
    click.echo("nothing was written")


def _show(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)
