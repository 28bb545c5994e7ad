"""Arguments and options that several commands have; one name has one type and one meaning in all of them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from mirrorless import client_logs
from mirrorless.settings.patterns import compile_patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mirrorless.settings import Flow, Settings

_Value = TypeVar("_Value")


class Renamed(click.Option):
    """An option with former names, which are accepted and not shown."""

    def __init__(self, *arguments: Any, former: Sequence[str], **options: Any) -> None:  # noqa: ANN401 -- click's signature
        super().__init__(*arguments, **options)
        self._former = former

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:  # noqa: ANN401 -- click does not export its class
        """Add it with all names."""
        shown = self.opts
        self.opts = [*shown, *self._former]
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.opts = shown


DEFAULT_PORT: Final = 8480
_LEADING_FLAGS: Final = re.compile(r"^\(\?[a-z]+\)")
CONFIG_VARIABLE: Final = "MIRRORLESS_CONFIG"
"""Names the configuration where FILE is left out; Lambda functions have it too."""
file_argument: Final = click.argument("file", envvar=CONFIG_VARIABLE)
files_argument: Final = click.argument("files", nargs=-1, required=True, envvar=CONFIG_VARIABLE)
flow_option: Final = click.option(
    "--flow", "name", metavar="FLOW", help="Only this flow of FILE, such as 'primary->backup'."
)
json_option: Final = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on standard output, and nothing else there."
)
output_option: Final = click.option(
    "--output",
    "outputs",
    metavar="FILE",
    multiple=True,
    help="Write the report to FILE, on disk or in S3, in the form of its suffix, such as .json or .html; repeat it for "
    "several.",
)
topics_option: Final = click.option(
    "--topics",
    cls=Renamed,
    former=["--topic"],
    default=".*",
    show_default=True,
    metavar="PATTERNS",
    help="Only source topics that match one of these patterns (a,b).",
)
spark_master_option: Final = click.option(
    "--spark-master",
    metavar="URL",
    help="Spark master, such as 'local-cluster[2,1,1024]'; by default Spark runs inside this process.",
)


def _show_logs(context: click.Context, parameter: click.Parameter, given: bool) -> None:  # noqa: ARG001 -- click's signature
    if given:
        client_logs.show()


verbose_option: Final = click.option(
    "--verbose",
    is_flag=True,
    expose_value=False,
    callback=_show_logs,
    help="Show the logs of both Kafka client libraries on standard error.",
)
_WEB_OPTIONS: Final = (
    click.option(
        "--web-port",
        cls=Renamed,
        former=["--port"],
        type=click.IntRange(0, 65535),
        default=DEFAULT_PORT,
        show_default=True,
        metavar="PORT",
        help="Port of the page; 0 selects a free one.",
    ),
    click.option(
        "--web-address",
        metavar="ADDRESS",
        default="127.0.0.1",
        show_default=True,
        help="Address that the page listens on; any other than loopback requires the token.",
    ),
    click.option(
        "--web-token",
        metavar="TOKEN",
        envvar="MIRRORLESS_WEB_TOKEN",
        help="Token that the page asks for, 16 characters or more; where one is needed and none is given, it is "
        "generated and printed. $MIRRORLESS_WEB_TOKEN has it otherwise.",
    ),
    click.option("--web-actions", is_flag=True, help="Let the page pause and resume flows, with the token."),
    click.option("--web-cert", metavar="FILE", help="Certificate of the page's server, with its chain: PEM."),
    click.option("--web-key", metavar="FILE", help="Private key of the page's server: PEM."),
)


def web_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of the page's server."""
    for option in reversed(_WEB_OPTIONS):
        command = option(command)
    return command


config_file_option: Final = click.option(
    "--config",
    "config",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write an mm2.properties for these clusters, ready for `mirrorless run`.",
)


def groups_option(*, required: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option for consumer groups; where it is not required, all groups are the default."""
    return click.option(
        "--groups",
        cls=Renamed,
        former=["--group"],
        metavar="PATTERNS",
        required=required,
        default=None if required else ".*",
        show_default=not required,
        callback=_checked,
        help="Only consumer groups that match one of these patterns (a,b).",
    )


def _checked(context: click.Context, parameter: click.Parameter, given: str) -> str:
    """Refuse patterns that do not compile, as a wrong option."""
    try:
        compile_patterns([given])
    except ValueError as error:
        raise click.BadParameter(f"{given}: {error}", context, parameter) from None
    return given


def any_of(patterns: str) -> re.Pattern[str]:
    """Return one pattern for a checked list of them."""
    compiled = compile_patterns([patterns])
    if len(compiled) == 1:
        return compiled[0]
    names = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s"}
    flags = ("".join(letter for flag, letter in names.items() if one.flags & flag) for one in compiled)
    return re.compile(
        "|".join(
            f"(?{letters}:{_LEADING_FLAGS.sub('', one.pattern)})" for letters, one in zip(flags, compiled, strict=True)
        )
    )


def target_option(*, required: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option for a flow's target."""
    return click.option("--to", "target", required=required, metavar="ALIAS", help="Only flows to this cluster.")


def with_flow(settings: Settings, name: str | None) -> Settings:
    """Return the configuration with the flow that `--flow` names only; raises ConfigurationError if there is none."""
    return settings if name is None else settings.with_flow(name)


def chosen_flows(settings: Settings, name: str | None) -> list[Flow]:
    """Return the flow that `--flow` names, or all; raises ConfigurationError if there is none of that name."""
    return list(settings.flows) if name is None else [settings.flow(name)]


def renamed(old: str, new: str, *, before: _Value | None, now: _Value | None) -> _Value | None:
    """Return the value of an option that had another name, and warn where the old name was used."""
    if before is None:
        return now
    if now is not None:
        raise click.UsageError(f"{old} is the former name of {new}: give {new} only")
    warn(f"{old} is deprecated and will be removed in the next release: use {new}")
    return before


def warn(text: str) -> None:
    """Print a warning on standard error."""
    click.echo(f"warning: {text}", err=True)


def print_json(document: Any) -> None:  # noqa: ANN401 -- whatever JSON can hold
    """Print a command's only document."""
    click.echo(json.dumps(document, indent=2))
