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
    "apply": ("mirrorless.cli.apply", "apply", "Make the changes that `mirrorless plan` shows."),
    "archive": ("mirrorless.cli.archive", "group", "Archive clusters into object storage, and restore them."),
    "completion": (
        "mirrorless.cli.completion",
        "completion",
        "Print the script that completes commands and options in SHELL.",
    ),
    "config": (
        "mirrorless.cli.config",
        "group",
        "Check, convert and explain configuration files; no cluster is asked.",
    ),
    "consume": ("mirrorless.cli.consume", "consume", "Print the records of an internal topic."),
    "demo": ("mirrorless.cli.demo", "demo", "Replicate between two Kafka clusters on this machine."),
    "doctor": ("mirrorless.cli.doctor", "doctor", "Check that both ends of every flow are ready."),
    "drill": ("mirrorless.cli.drill", "drill", "Rehearse a failover to the target without stopping anything."),
    "failback": ("mirrorless.cli.switchover", "failback", "Return to a cluster after a failover."),
    "failover": ("mirrorless.cli.switchover", "failover", "Move applications to another cluster: the source is down."),
    "failover-plan": (
        "mirrorless.cli.failover_plan",
        "failover_plan",
        "Forecast what a failover would cost each consumer group.",
    ),
    "kafka": ("mirrorless.cli.kafka", "group", "Run Kafka clusters on this machine, to try things out."),
    "offsets": ("mirrorless.cli.offsets", "group", "Show, translate and reset offsets."),
    "operation": ("mirrorless.cli.operation", "operation", "Show, continue or abort an operation, from any machine."),
    "pause": ("mirrorless.cli.pause", "pause", "Pause flows until `mirrorless resume`."),
    "plan": ("mirrorless.cli.plan", "plan", "Show what `mirrorless apply` would change."),
    "resume": ("mirrorless.cli.resume", "resume", "Resume paused flows where they stopped."),
    "run": ("mirrorless.cli.run", "run", "Replicate the flows of FILES until Ctrl-C or SIGTERM."),
    "status": ("mirrorless.cli.status", "status", "Show state, lag and halted partitions of each flow."),
    "switchover": ("mirrorless.cli.switchover", "switchover", "Move applications to another cluster as planned."),
    "verify": ("mirrorless.cli.verify", "verify", "Compare both sides of each flow, record by record."),
    "web": ("mirrorless.cli.web", "web", "Serve a live page about the flows of FILE."),
}


_ONLY_ASK = frozenset({"apply", "consume", "failover-plan", "offsets", "pause", "plan", "resume", "status", "verify"})
"""Commands that give a cluster up soon: they can be run again."""
_MOVE = frozenset({"drill", "failback", "failover", "operation", "switchover"})
_END_BY_THEMSELVES = frozenset(
    {"archive", "demo", "failback", "failover", "kafka", "operation", "run", "switchover", "web"}
)
"""Commands that undo, or finish, something after Ctrl-C."""


@click.group(name="mirrorless", cls=LazyGroup, commands_in=_COMMANDS)
@click.version_option(package_name="mirrorless", prog_name="mirrorless", message="%(prog)s %(version)s")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Replicate Kafka topics, configs, ACLs and consumer group offsets, as MirrorMaker 2 does, without Kafka Connect.

    To try it: `mirrorless kafka up primary backup --config mm2.properties`, and in another terminal
    `mirrorless run mm2.properties`.

    Exit status: 0 if there is nothing to act on; 1 if something was found (differences, pending changes, failed checks,
    halted partitions), or undone; 2 if the work could not be done (invalid input, a cluster that does not answer, a
    missing package). The help of each command has its own.
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
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        status = COULD_NOT
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        advice = "" if context is None else f" (see `{context.command_path} --help`)"
        click.echo(f"error: {error.format_message().rstrip('.')}{advice}", err=True)
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
