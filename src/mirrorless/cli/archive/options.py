"""What the commands for archives have in common: which archives of FILE, and until which time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from mirrorless.archive.object_store import ObjectStore, open_store
from mirrorless.errors import ConfigurationError
from mirrorless.settings.values import timestamp_ms

if TYPE_CHECKING:
    from mirrorless.settings import Settings

archive_option: Final = click.option(
    "--archive", "alias", metavar="ALIAS", help="Only this archive of FILE, by its alias in `clusters`."
)
until_option: Final = click.option(
    "--until",
    metavar="TIME",
    help="As the cluster was at this time, such as 2026-01-31T12:00:00Z; default: the last time that is archived.",
)


def stores(settings: Settings, alias: str | None) -> dict[str, ObjectStore]:
    """Return the stores of all archives of a configuration, or of one; raises `ConfigurationError` if there is none."""
    chosen = {one: location for one, location in settings.archives if alias in (None, one)}
    if not chosen:
        known = ", ".join(one for one, _ in settings.archives) or "none"
        raise ConfigurationError(
            f"no such archive; archives: {known}; one is set by <alias>.archive = s3://bucket/prefix",
            file=settings.file,
            key="archive",
            value=alias,
        )
    return {one: open_store(location) for one, location in chosen.items()}


def moment(text: str | None) -> int | None:
    """Return a time in ms since the epoch; raises `click.BadParameter` for what is none."""
    if text is None:
        return None
    try:
        found = timestamp_ms(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--until") from None
    assert isinstance(found, int | str)
    return int(found)
