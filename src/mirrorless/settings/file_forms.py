"""Recognizes the form of each file and reads all of them into entries as of one mm2.properties file."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mirrorless.errors import ConfigurationError
from mirrorless.settings import (
    config_maps,
    connect_json,
    connectors,
    migrator,
    msk_replicator,
    properties,
    standalone,
    strimzi,
)
from mirrorless.settings.key_normalizer import CLUSTERS
from mirrorless.settings.kubernetes_secrets import each, secret_keys
from mirrorless.settings.strimzi_clusters import Secrets
from mirrorless.settings.yaml_text import documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mirrorless.settings.connectors import Connector, Worker
    from mirrorless.settings.properties import PropertyEntry
    from mirrorless.settings.yaml_text import YamlValue

_KUBERNETES: Final = re.compile(
    r"^[ \t-]*[\"']?kind[\"']?\s*:\s*[\"']?(?:KafkaMirrorMaker2|KafkaConnector|ConfigMap|Secret|\w*List)\b",
    re.MULTILINE,
)
_OF_ANY_KIND: Final = re.compile(r"^apiVersion\s*:\s*[\w.-]+/\w+\s*$(?s:.*)^kind\s*:\s*\w+\s*$", re.MULTILINE)
"""A resource of another operator, which no line may be taken from."""
_JSON_KIND: Final = re.compile(
    r"[{,]\s*\"kind\"\s*:\s*\"(?:KafkaMirrorMaker2|KafkaConnector|ConfigMap|Secret|\w*List)\""
)
_Entries = tuple["Mapping[str, PropertyEntry]", tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Part:
    """A file with its content: documents of YAML, JSON, or a properties file."""

    file: str
    kubernetes: list[YamlValue] | None = None
    json: object = None
    entries: Mapping[str, PropertyEntry] | None = None


def read_files(texts: Sequence[tuple[str, str]]) -> _Entries:
    """Read files, given as name and text, of which several have to be connectors, a worker and Secrets.

    Returns the entries and warnings. Raises ConfigurationError for files that cannot be read, or not together.
    """
    if len(texts) == 1 and (alone := _alone(*texts[0])) is not None:
        return alone
    parts = [part for file, text in texts for part in _parts(file, text)]
    whole = [part for part in parts if part.entries is not None and CLUSTERS in part.entries]
    if len(texts) == len(whole) == 1 and whole[0].entries is not None:
        return whole[0].entries, tuple(line for part in parts for line in _ignored(part))
    if len(parts) == 1 and parts[0].entries is not None and not standalone.is_connector(parts[0].entries):
        standalone.refuse_worker(parts[0].entries, file=texts[0][0])
        return parts[0].entries, ()
    secrets = Secrets(_secrets(parts))
    found: list[Connector] = []
    warnings: list[str] = []
    worker: Worker | None = None
    for part in parts:
        if part.kubernetes is not None:
            of_file, told = _resources(part.file, part.kubernetes, secrets)
            found += of_file
            warnings += told
        elif part.entries is None:
            of_file, told = connect_json.read_json(part.json, file=part.file)
            found += of_file
            warnings += told
        elif standalone.is_connector(part.entries):
            connector = standalone.connector(part.entries, file=part.file)
            if connector is None:
                warnings.append(f"{part.file}: ignored, not a connector of MirrorMaker 2")
            else:
                found.append(connector)
        elif standalone.is_worker(part.entries) and worker is None:
            worker = standalone.worker(part.entries)
        else:
            raise standalone.refuse_other(part.file)
    warnings += secrets.warnings(texts[0][0])
    merged = connectors.merge(found, file=texts[0][0], worker=worker, warnings=warnings)
    return merged.entries, merged.warnings


def _alone(file: str, text: str) -> _Entries | None:
    """Read a form of which there is only one file."""
    if migrator.is_migrator(text):
        return migrator.read_migrator(text, file=file)
    if connect_json.is_json(text) and not _is_kubernetes(text):
        value = connect_json.parsed(text, file=file)
        if msk_replicator.is_replicator(value):
            return msk_replicator.read_replicator(value, file=file)
    return None


def _parts(file: str, text: str) -> Iterator[_Part]:
    """Yield a file, and what its ConfigMaps hold."""
    part = _part(file, text)
    mapped = [
        one
        for document in part.kubernetes or ()
        for one in config_maps.mapped_texts(document, file=file, lines=text.splitlines())
    ]
    if not mapped or any(_kind(one) in strimzi.KINDS for one in part.kubernetes or ()):
        yield part
        return
    others = [one for one in part.kubernetes or () if _kind(one) != config_maps.KIND]
    if others:
        yield replace(part, kubernetes=others)
    for one in mapped:
        inner = _part(one.name, one.text)
        if inner.entries is not None and one.above is not None:
            moved = {key: _moved(entry, file, one.above) for key, entry in inner.entries.items()}
            inner = replace(inner, file=file, entries=moved)
        yield inner


def _moved(entry: PropertyEntry, file: str, above: int) -> PropertyEntry:
    earlier = None if entry.earlier is None else _moved(entry.earlier, file, above)
    return replace(entry, file=file, line=above + entry.line, earlier=earlier)


def _part(file: str, text: str) -> _Part:
    if _is_kubernetes(text):
        return _Part(file, kubernetes=list(each(documents(text, file=file))))
    if connect_json.is_json(text):
        return _Part(file, json=connect_json.parsed(text, file=file))
    return _Part(file, entries=properties.parse(text, file=file))


def _is_kubernetes(text: str) -> bool:
    if connect_json.is_json(text):
        return _JSON_KIND.search(text) is not None
    return _KUBERNETES.search(text) is not None or _OF_ANY_KIND.search(text) is not None


def _secrets(parts: Sequence[_Part]) -> dict[str, tuple[str, frozenset[str]]]:
    found = {}
    for part in parts:
        for document in part.kubernetes or ():
            if (named := secret_keys(document)) is not None:
                # The reference is also resolved by processes in other folders.
                file = part.file if ":" in part.file else str(Path(part.file).absolute())
                found[named[0]] = (file, named[1])
    return found


def _resources(file: str, found: list[YamlValue], secrets: Secrets) -> tuple[list[Connector], list[str]]:
    made: list[Connector] = []
    warnings: list[str] = []
    for document in found:
        if isinstance(document, dict) and _kind(document) in strimzi.KINDS:
            resource = strimzi.Resource(document, file=file, secrets=secrets)
            worker = resource.worker()
            of_resource = [replace(one, worker=worker) for one in resource.connectors()]
            made += of_resource
            warnings += resource.warnings
    warnings += _ignored(_Part(file, kubernetes=found))
    if not made and not any(secret_keys(one) for one in found):
        kinds = f"no resource of kind {' or '.join(strimzi.KINDS)} with connectors"
        raise ConfigurationError(f"has {kinds}, and no ConfigMap with an mm2.properties in its data", file=file)
    return made, warnings


def _ignored(part: _Part) -> Iterator[str]:
    for kind in map(_kind, part.kubernetes or ()):
        if kind not in (*strimzi.KINDS, "Secret"):
            yield f"{part.file}: a document of kind {connectors.line(str(kind or 'unknown'))} is ignored"


def _kind(document: YamlValue) -> YamlValue:
    return document.get("kind") if isinstance(document, dict) else None
