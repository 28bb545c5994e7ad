"""The command line: one command a file, the tree of commands is the tree of files."""

from __future__ import annotations

import sys
import threading
import traceback

import click

from mirrorless.cli import interrupts
from mirrorless.cli.lazy import LazyGroup
from mirrorless.cli.status_codes import COULD_NOT
from mirrorless.clusters import first_contact
from mirrorless.errors import MirrorlessError

_COMMANDS = {
    "apply": ("mirrorless.cli.apply", "apply"),
    "completion": ("mirrorless.cli.completion", "completion"),
    "config": ("mirrorless.cli.config", "group"),
    "consume": ("mirrorless.cli.consume", "consume"),
    "demo": ("mirrorless.cli.demo", "demo"),
    "doctor": ("mirrorless.cli.doctor", "doctor"),
    "drill": ("mirrorless.cli.drill", "drill"),
    "failback": ("mirrorless.cli.switchover", "failback"),
    "failover": ("mirrorless.cli.switchover", "failover"),
    "failover-plan": ("mirrorless.cli.failover_plan", "failover_plan"),
    "kafka": ("mirrorless.cli.kafka", "group"),
    "offsets": ("mirrorless.cli.offsets", "group"),
    "operation": ("mirrorless.cli.operation", "operation"),
    "pause": ("mirrorless.cli.pause", "pause"),
    "plan": ("mirrorless.cli.plan", "plan"),
    "resume": ("mirrorless.cli.resume", "resume"),
    "run": ("mirrorless.cli.run", "run"),
    "status": ("mirrorless.cli.status", "status"),
    "switchover": ("mirrorless.cli.switchover", "switchover"),
    "verify": ("mirrorless.cli.verify", "verify"),
    "web": ("mirrorless.cli.web", "web"),
}


_ONLY_ASK = frozenset({"apply", "consume", "failover-plan", "offsets", "pause", "plan", "resume", "status", "verify"})
"""Commands that give a cluster up soon: they can be run again."""
_MOVE = frozenset({"drill", "failback", "failover", "operation", "switchover"})
_END_BY_THEMSELVES = frozenset({"demo", "failback", "failover", "kafka", "operation", "run", "switchover", "web"})
"""Commands that undo, or finish, something after Ctrl-C."""


@click.group(name="mirrorless", cls=LazyGroup, commands_in=_COMMANDS)
@click.version_option(package_name="mirrorless", prog_name="mirrorless", message="%(prog)s %(version)s")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Replicate Kafka topics, configs, ACLs and consumer group offsets, as MirrorMaker 2 does, without Kafka Connect.

    To try it: `mirrorless kafka up primary backup --config mm2.properties`, and in another terminal
    `mirrorless run mm2.properties`.

    Exit status of every command: 0 if there is nothing to act on; 1 if it found something (differences, pending
    changes, failed checks, halted partitions); 2 if it could not do its work (invalid input, a cluster that does not
    answer, a missing package).
    """
    if ctx.invoked_subcommand in _END_BY_THEMSELVES:
        interrupts.must_end_by_itself()
    if ctx.invoked_subcommand in _ONLY_ASK:
        ctx.with_resource(first_contact.shown(_failed_connection, patience_s=first_contact.PATIENCE_S))
    elif ctx.invoked_subcommand in _MOVE:
        ctx.with_resource(first_contact.shown(_failed_connection))


def _failed_connection(alias: str, reason: str) -> None:
    click.echo(f"cluster {alias}: {reason}; trying again", err=True)


def main() -> None:
    """Run the command line; an error that was raised on purpose is one line on standard error."""
    earlier = threading.enumerate()
    with interrupts.watched():
        status = _run()
    if interrupts.has_waiting_threads(earlier):
        interrupts.leave(status or 0)
    sys.exit(status)


def _run() -> int | None:
    status: int | None
    try:
        status = root.main(prog_name="mirrorless", standalone_mode=False)
    except SystemExit as asked:  # a command's own status
        status = asked.code if isinstance(asked.code, int) else 0
    except click.ClickException as error:
        error.show()
        status = COULD_NOT
    except click.Abort:
        click.echo("error: interrupted", err=True)
        status = COULD_NOT
    except MirrorlessError as error:
        click.echo(f"error: {error}", err=True)
        status = COULD_NOT
    except Exception:  # noqa: BLE001 -- Python's own status of a crash is the one for findings
        traceback.print_exc()
        status = COULD_NOT
    return status
