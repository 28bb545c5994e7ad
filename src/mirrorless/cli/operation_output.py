"""What the commands of operations have in common: confirmation, progress while they run, and the report at the end."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Final

import click

from mirrorless.cli.status_codes import COULD_NOT, FINE, FOUND
from mirrorless.errors import OperationError
from mirrorless.operations.report import as_text, page, to_json
from mirrorless.operations.run import OperationProgress
from mirrorless.verify.report_file import write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mirrorless.operations.run import Ended

_FORMS: Final[dict[str, Callable[[Ended], str]]] = {".json": to_json, ".html": page, ".txt": as_text}


def confirm(text: str, *, yes: bool) -> None:
    """Ask on a terminal; without one `--yes` is needed. Raises click's Abort, or `OperationError`."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise OperationError(f"{text}: give --yes to confirm it")
    click.confirm(f"{text}. Continue?", abort=True, err=True)


def check_outputs(outputs: Sequence[str]) -> None:
    """Refuse a file whose suffix is not known; raises click's BadParameter."""
    for one in outputs:
        if not one.endswith(tuple(_FORMS)):
            raise click.BadParameter(f"{one}: must end in {', '.join(_FORMS)}", param_hint="--output")


def progress_on_standard_error() -> OperationProgress:
    """Return a progress that prints a line for each step; JSON lines where standard error is no terminal."""
    began = time.monotonic()
    plain = sys.stderr.isatty()

    def step(name: str, text: str) -> None:
        seconds = time.monotonic() - began
        if plain:
            click.echo(f"{seconds:7.1f} s  {name}{f': {text}' if text else ' …'}", err=True)
        else:
            line = {"seconds": round(seconds, 3), "step": name, "state": "done" if text else "begun", "result": text}
            click.echo(json.dumps(line), err=True)

    def say(text: str) -> None:
        line = {"seconds": round(time.monotonic() - began, 3), "message": text}
        click.echo(f"           {text}" if plain else json.dumps(line), err=True)

    return OperationProgress(step=step, say=say)


def finish(ended: Ended, *, as_json: bool, outputs: Sequence[str]) -> None:
    """Print the report, write it to files, and exit: 0 completed, 1 undone, 2 to be continued."""
    click.echo(to_json(ended) if as_json else as_text(ended), nl=False)
    try:
        for one in outputs:
            write(one, next(form for suffix, form in _FORMS.items() if one.endswith(suffix))(ended).encode())
    except OSError as error:
        click.echo(f"error: {error}", err=True)
    if ended.error is None:
        sys.exit(FINE)
    sys.exit(FOUND if ended.is_restored else COULD_NOT)
