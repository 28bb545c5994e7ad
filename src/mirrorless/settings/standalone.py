"""Reads the properties files of `connect-standalone` and `connect-distributed`: connectors, and a worker."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mirrorless.errors import ConfigurationError
from mirrorless.settings.client_keys import BOOTSTRAP_SERVERS
from mirrorless.settings.connectors import Worker, called, connector_of, line
from mirrorless.settings.properties import ARROW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.settings.connectors import Connector
    from mirrorless.settings.properties import PropertyEntry

_CLASS: Final = "connector.class"
# What each worker has, and no other file: the first is required by Connect.
_OF_WORKERS: Final = ("key.converter", "offset.storage.file.filename", "offset.storage.topic", "plugin.path")


def is_connector(entries: Mapping[str, PropertyEntry]) -> bool:
    """Whether a properties file is a connector's."""
    return _CLASS in entries and "clusters" not in entries


def is_worker(entries: Mapping[str, PropertyEntry]) -> bool:
    """Whether a properties file is a worker's."""
    return not {_CLASS, "clusters"} & entries.keys() and any(key in entries for key in _OF_WORKERS)


def refuse_worker(entries: Mapping[str, PropertyEntry], *, file: str) -> None:
    """Raise ConfigurationError for a worker's file without connectors, which is no mm2.properties."""
    if is_worker(entries) and BOOTSTRAP_SERVERS in entries and not any(ARROW in key for key in entries):
        raise ConfigurationError("is the file of a Connect worker; give those of its connectors with it", file=file)


def connector(entries: Mapping[str, PropertyEntry], *, file: str) -> Connector | None:
    """Return the connector of a properties file; None if it is not MirrorMaker 2's."""
    settings = {key: replace(entry, value=entry.value.strip(), written=key) for key, entry in entries.items()}
    name = settings["name"].value if "name" in settings and settings["name"].value else None
    shown = None if name is None else line(name)
    return connector_of(shown, settings, file=file, where=f"{file}: connector {called(shown)}")


def worker(entries: Mapping[str, PropertyEntry]) -> Worker:
    """Return the worker of a properties file."""
    return Worker({key: replace(one, value=one.value.strip(), written=key) for key, one in entries.items()})


def refuse_other(file: str) -> ConfigurationError:
    """Return the error for a file among several that is neither a connector nor a worker."""
    return ConfigurationError(
        "several files may only be connectors of Kafka Connect (JSON or properties) and at most one worker; give an "
        "mm2.properties alone",
        file=file,
    )
