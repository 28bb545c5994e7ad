"""`mirrorless operation`: show, continue or abort what another process began, from any machine."""

from __future__ import annotations

import difflib
import os
from typing import Final

import click

from mirrorless.cli.operation_output import check_outputs, confirm, finish, progress_on_standard_error
from mirrorless.cli.options import CONFIG_VARIABLE, json_option, output_option, print_json, verbose_option
from mirrorless.operations.close import close_fence
from mirrorless.operations.report import as_fields, as_text
from mirrorless.operations.run import Ended, abort, resume, show
from mirrorless.settings import load

_ACTIONS: Final = ("show", "continue", "abort", "close")


@click.command
@click.argument("file", required=False)
@click.argument("action", required=False, metavar="[show|continue|abort|close]")
@click.option("--take-over", is_flag=True, help="Do not wait for the process that runs it: it is known to be dead.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@output_option
@json_option
@verbose_option
def operation(
    file: str | None, *, action: str | None, take_over: bool, yes: bool, outputs: tuple[str, ...], as_json: bool
) -> None:
    """Show, continue or abort an operation, from any machine.

    An operation is a switchover, failover or failback between the clusters of FILE.

    ACTION is one of:
    show (the default): the operations that both clusters have, the newest last;
    continue: do what is left, also after the process that began it was killed;
    abort: undo everything, as long as applications have not begun to move;
    close: remove the fence that a completed switchover left on the old cluster; with kept names in both directions,
    start the flow to it too.

    Exit status 0: done; 1: undone, everything is as it was; 2: it could not be done.
    """
    check_outputs(outputs)
    location, action = _in_order(file, action)
    settings = load(location)
    if action == "show":
        found, failures = show(settings)
        ended = [Ended(operation=one, warnings=tuple(dict.fromkeys(one.warnings))) for one in found]
        if as_json:
            print_json({"operations": [as_fields(one) for one in ended], "unreachable": failures})
        else:
            click.echo("".join(map(as_text, ended)) or "no operation\n", nl=False)
            for alias, text in failures.items():
                click.echo(f"warning: {alias}: {text}", err=True)
        return
    if action == "close":
        confirm("closing lets writers write to the old cluster again", yes=yes)
        for line in close_fence(settings) or ["no fence is left"]:
            click.echo(line)
        return
    if action == "abort":
        confirm("aborting undoes everything that the operation did", yes=yes)
    progress = progress_on_standard_error()
    do = resume if action == "continue" else abort
    finish(do(settings, take_over=take_over, progress=progress), as_json=as_json, outputs=outputs)


def _in_order(*words: str | None) -> tuple[str, str]:
    """Return FILE and ACTION, given in any order; the word of an action is one, also where FILE is left out."""
    given = [one for one in words if one is not None]
    actions = [one for one in given if one in _ACTIONS]
    files = [one for one in given if one not in _ACTIONS]
    if len(files) > 1:
        close = difflib.get_close_matches(files[1], _ACTIONS, n=1)
        advice = f"; did you mean {close[0]}?" if close else ""
        raise click.BadParameter(f"{files[1]} is not one of {', '.join(_ACTIONS)}{advice}", param_hint="ACTION")
    location = files[0] if files else os.environ.get(CONFIG_VARIABLE)
    if not location or len(actions) > 1:
        raise click.UsageError("Missing argument 'FILE'.")
    return location, actions[0] if actions else _ACTIONS[0]
