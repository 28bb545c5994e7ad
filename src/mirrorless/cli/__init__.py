"""The command line: one command a file, the tree of commands is the tree of files."""

from __future__ import annotations

import sys
import traceback

import click

from mirrorless.cli.lazy import LazyGroup
from mirrorless.cli.status_codes import COULD_NOT
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


@click.group(name="mirrorless", cls=LazyGroup, commands_in=_COMMANDS)
@click.version_option(package_name="mirrorless", prog_name="mirrorless", message="%(prog)s %(version)s")
def root() -> None:
    """Replicate Kafka topics, configs, ACLs and consumer group offsets, as MirrorMaker 2 does, without Kafka Connect.

    To try it: `mirrorless kafka up primary backup --config mm2.properties`, and in another terminal
    `mirrorless run mm2.properties`.

    Exit status of every command: 0 if there is nothing to act on; 1 if it found something (differences, pending
    changes, failed checks, halted partitions); 2 if it could not do its work (invalid input, a cluster that does not
    answer, a missing package).
    """


def main() -> None:
    """Run the command line; an error that was raised on purpose is one line on standard error."""
    try:
        status = root.main(prog_name="mirrorless", standalone_mode=False)
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
    sys.exit(status)
