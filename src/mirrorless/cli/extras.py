"""What to install for a command whose packages are missing: `pip install mirrorless` has all but those of Spark."""

from __future__ import annotations

from typing import Final, NamedTuple

import click

from mirrorless.cli.status_codes import COULD_NOT
from mirrorless.local.spark_host import SPARK_PACKAGES


class Extra(NamedTuple):
    """A package by the name that people know, and the extra of `mirrorless` that has it."""

    package: str
    extra: str


EXTRAS: Final = {module: Extra(package, "spark") for module, package in SPARK_PACKAGES.items()}
"""By the module that is imported."""


class MissingExtra(click.ClickException):
    """A command needs a package that is not installed."""

    exit_code = COULD_NOT

    def show(self, file: object = None) -> None:  # noqa: ARG002 -- click's signature
        """Print one line on standard error."""
        click.echo(f"error: {self.message}", err=True)


def missing_extra(command: str, error: ModuleNotFoundError) -> MissingExtra | None:
    """Return the error to show for a missing module, None if no extra of the package has it."""
    found = EXTRAS.get((error.name or "").partition(".")[0])
    if found is None:
        return None
    return MissingExtra(f"{command} needs {found.package}: pip install 'mirrorless[{found.extra}]'")
