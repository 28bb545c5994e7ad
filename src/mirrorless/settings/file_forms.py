"""Recognizes the form of each file and reads all of them into entries as of one mm2.properties file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.settings import connect_json, connectors, properties, standalone

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mirrorless.settings.connectors import Connector, Worker
    from mirrorless.settings.properties import PropertyEntry


def read_files(texts: Sequence[tuple[str, str]]) -> tuple[Mapping[str, PropertyEntry], tuple[str, ...]]:
    """Read files, given as name and text, of which several have to be connectors and their worker.

    Returns the entries and warnings. Raises ConfigurationError for files that cannot be read, or not together.
    """
    found: list[Connector] = []
    warnings: list[str] = []
    worker: Worker | None = None
    parsed: Mapping[str, PropertyEntry] = {}
    for file, text in texts:
        if connect_json.is_json(text):
            of_file, told = connect_json.read_json(connect_json.parsed(text, file=file), file=file)
            found += of_file
            warnings += told
            continue
        parsed = properties.parse(text, file=file)
        if standalone.is_connector(parsed):
            connector = standalone.connector(parsed, file=file)
            if connector is None:
                warnings.append(f"{file}: ignored, not a connector of MirrorMaker 2")
            else:
                found.append(connector)
        elif len(texts) == 1:
            return parsed, ()
        elif standalone.is_worker(parsed) and worker is None:
            worker = standalone.worker(parsed)
        else:
            raise standalone.refuse_other(file)
    merged = connectors.merge(found, file=texts[0][0], worker=worker, warnings=warnings)
    return merged.entries, merged.warnings
