"""Reads a configuration file in any accepted form into typed flows: text -> spelling -> precedence -> model."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Final

from mirrorless.errors import ConfigurationError
from mirrorless.settings import locations, mirrormaker1
from mirrorless.settings.file_forms import read_files
from mirrorless.settings.key_normalizer import KeyNormalizer
from mirrorless.settings.model import FLOW_KEYS, WORKER_KEYS
from mirrorless.settings.reader import Reader, Understanding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from mirrorless.settings.model import Settings
    from mirrorless.settings.properties import PropertyEntry


ENGINE_VARIABLE: Final = "MIRRORLESS_ENGINE"


def load(*files: str | PathLike[str]) -> Settings:
    """Read a configuration and check everything that is used.

    `files` is an mm2.properties, or one or several files of Connect's JSON; or the value of `Settings.file`, which
    stands for all of them. The environment variable `MIRRORLESS_ENGINE` replaces `mirrorless.engine` of every flow, for
    this process and those that it starts. Raises ConfigurationError, in one line with file, key and value, for the
    first error.
    """
    understood = understand(*files)
    if understood.settings is None or understood.errors:
        raise understood.errors[0]
    engine = os.environ.get(ENGINE_VARIABLE)
    return understood.settings if engine is None else understood.settings.with_engine(engine)


def understand(*files: str | PathLike[str]) -> Understanding:
    """Read a configuration as `load` does, but return all errors, warnings and notes; raises nothing."""
    location = locations.together(files)
    try:
        entries, warnings = _entries(location)
        return Reader(
            location,
            _spelling().tidy(entries),
            warnings=warnings,
        ).understand()
    except ConfigurationError as error:
        return Understanding(settings=None, errors=(error,))


def understand_texts(texts: Sequence[tuple[str, str]]) -> Understanding:
    """Read texts, given with names, as `understand` reads files."""
    try:
        entries, warnings = read_files(texts)
        return Reader(texts[0][0], _spelling().tidy(entries), warnings=warnings).understand()
    except ConfigurationError as error:
        return Understanding(settings=None, errors=(error,))


def _entries(location: str) -> tuple[Mapping[str, PropertyEntry], tuple[str, ...]]:
    if location.startswith(mirrormaker1.PREFIX):
        return mirrormaker1.read_mirrormaker1(location)
    return read_files([(file, locations.read(file)) for file in locations.apart(location)])


@cache
def _spelling() -> KeyNormalizer:
    return KeyNormalizer(flow_keys=FLOW_KEYS, worker_keys=WORKER_KEYS)
