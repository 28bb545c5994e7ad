"""What to install for a command whose packages are missing: `pip install mirrorless` brings those of most."""

from __future__ import annotations

from typing import Final, NamedTuple

import click

from mirrorless.cli.status_codes import COULD_NOT


class Extra(NamedTuple):
    """A package by the name that people know, and the extra of `mirrorless` that has it."""

    package: str
    extra: str


EXTRAS: Final = {
    "aws_lambda_powertools": Extra("Powertools for AWS Lambda", "run"),
    "aws_msk_iam_sasl_signer": Extra("the signer of MSK IAM", "aws"),
    "boto3": Extra("boto3", "aws"),
    "botocore": Extra("boto3", "aws"),
    "cryptography": Extra("cryptography", "aws"),
    "pandas": Extra("pandas", "run"),
    "prometheus_client": Extra("the Prometheus client", "run"),
    "psutil": Extra("psutil", "run"),
    "pyarrow": Extra("PyArrow", "run"),
    "pyspark": Extra("PySpark", "run"),
    "yaml": Extra("PyYAML", "run"),
}
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
