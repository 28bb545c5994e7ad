"""Reads Strimzi's `KafkaMirrorMaker2`, in its API versions `v1beta2` and `v1`, and `KafkaConnector`.

Strimzi makes Connect connectors of it, named `A->B.MirrorSourceConnector`; these are made here in the same way. Secrets
stay references: to the key of a Secret whose YAML is given too, or to a file of a folder where the Secret is mounted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.errors import ConfigurationError
from mirrorless.settings.classes import JAVA_PACKAGE
from mirrorless.settings.connectors import PAUSED, Worker, called, connector_of, line
from mirrorless.settings.masking import shown_field
from mirrorless.settings.properties import PropertyEntry
from mirrorless.settings.strimzi_clusters import Secrets, StrimziCluster
from mirrorless.settings.yaml_text import YamlText, YamlValue, line_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mirrorless.settings.connectors import Connector

KINDS: Final = ("KafkaMirrorMaker2", "KafkaConnector")
_CONNECTORS: Final = {
    "sourceConnector": "MirrorSourceConnector",
    "checkpointConnector": "MirrorCheckpointConnector",
    "heartbeatConnector": "MirrorHeartbeatConnector",
}
_PATTERNS: Final = {
    "topicsPattern": "topics",
    "topicsBlacklistPattern": "topics.exclude",
    "topicsExcludePattern": "topics.exclude",
    "groupsPattern": "groups",
    "groupsBlacklistPattern": "groups.exclude",
    "groupsExcludePattern": "groups.exclude",
}
_OF_MIRRORS: Final = frozenset({*_CONNECTORS, *_PATTERNS, "source", "sourceCluster", "targetCluster"})
"""The fields of an item of `spec.mirrors`."""
_DEFAULT_OFFSETS: Final = "mirrormaker2-cluster-offsets"
_OF_WORKERS: Final = ("config.storage.", "status.storage.", "offset.storage.", "producer.")


class Resource:
    """One resource; collects warnings, which name the resource's field by its path."""

    def __init__(self, document: Mapping[str, YamlValue], *, file: str, secrets: Secrets) -> None:
        self._file = file
        self._secrets = secrets
        self._spec = self._mapping(document.get("spec"), "spec")
        metadata = self._mapping(document.get("metadata"), "metadata")
        self._kind = document.get("kind")
        self._name = str(metadata.get("name") or "")
        self.warnings: list[str] = []

    def connectors(self) -> Iterator[Connector]:
        """Yield the connectors of MirrorMaker 2 that Strimzi makes of it."""
        if self._kind == "KafkaConnector":
            yield from self._connector(self._spec, "spec", {}, kind=None)
            return
        mirrors = self._spec.get("mirrors")
        if not isinstance(mirrors, list) or not mirrors:
            raise self._error("spec.mirrors", "is missing; list the sources to replicate")
        for number, one in enumerate(mirrors):
            path = f"spec.mirrors[{number}]"
            mirror = self._mapping(one, path)
            self.warnings += [
                f"{self._file}:{line_of(mirror)}: {path}.{shown_field(field)}: has no effect, nor with Strimzi: "
                f"settings are read from the config of {', '.join(_CONNECTORS)}"
                for field in mirror
                if field not in _OF_MIRRORS
            ]
            ends = self._ends(mirror, path)
            for field, kind in _CONNECTORS.items():
                if field in mirror:
                    spec = self._mapping(mirror[field], f"{path}.{field}")
                    patterns = self._texts(mirror, path, _PATTERNS)
                    yield from self._connector(spec, f"{path}.{field}", ends, kind=kind, patterns=patterns)

    def worker(self) -> Worker:
        """Return what Connect's worker is configured with: the offsets topic, and the producer of the copy."""
        if self._kind == "KafkaConnector":
            return Worker()
        path, target = self._target()
        settings = {key: entry for key, entry in self._config(target, path).items() if key.startswith(_OF_WORKERS)}
        topic = target.get("offsetStorageTopic")
        if isinstance(topic, YamlText):
            settings["offset.storage.topic"] = self._entry(topic, f"{path}.offsetStorageTopic")
        default = PropertyEntry(_DEFAULT_OFFSETS, 0, f"{self._file}: Strimzi's default", "offset.storage.topic")
        settings.setdefault("offset.storage.topic", default)
        return Worker(settings)

    def _target(self) -> tuple[str, Mapping[str, YamlValue]]:
        if "target" in self._spec:
            return "spec.target", self._mapping(self._spec["target"], "spec.target")
        return self._cluster(self._spec.get("connectCluster"), "spec.connectCluster")

    def _ends(self, mirror: Mapping[str, YamlValue], path: str) -> dict[str, PropertyEntry]:
        target_path, target = self._target()
        if isinstance(mirror.get("source"), dict):
            source_path, source = f"{path}.source", self._mapping(mirror["source"], f"{path}.source")
        else:
            source_path, source = self._cluster(mirror.get("sourceCluster"), f"{path}.sourceCluster")
            if mirror.get("targetCluster") is not None:
                target_path, target = self._cluster(mirror["targetCluster"], f"{path}.targetCluster")
                self._check_worker(mirror["targetCluster"])
        found: dict[str, PropertyEntry] = {}
        for side, where, cluster in (("source", source_path, source), ("target", target_path, target)):
            spec = StrimziCluster(cluster, where, file=self._file, secrets=self._secrets)
            found |= {f"{side}.cluster.{key}": entry for key, entry in spec.settings().items()}
            self.warnings += spec.warnings
        return found

    def _check_worker(self, target: YamlValue) -> None:
        """Warn if Connect's worker, and with it the progress that Strimzi kept, is not on the target."""
        worker = self._spec.get("connectCluster")
        if isinstance(worker, YamlText) and worker != target:
            self.warnings.append(
                f"{self._file}:{worker.line}: spec.connectCluster={line(worker)}: Connect keeps its progress there, "
                f"and progress is only read on the target, {line(str(target))}: the copy begins as configured by "
                "auto.offset.reset and mirrorless.start.timestamp"
            )

    def _cluster(self, alias: YamlValue, path: str) -> tuple[str, Mapping[str, YamlValue]]:
        clusters = self._spec.get("clusters")
        for number, one in enumerate(clusters if isinstance(clusters, list) else ()):
            if isinstance(one, dict) and alias is not None and one.get("alias") == alias:
                return f"spec.clusters[{number}]", one
        raise self._error(path, "names no cluster of spec.clusters" if alias else "is missing", alias)

    def _connector(
        self,
        spec: Mapping[str, YamlValue],
        path: str,
        ends: Mapping[str, PropertyEntry],
        *,
        kind: str | None,
        patterns: Mapping[str, PropertyEntry] | None = None,
    ) -> Iterator[Connector]:
        settings = {**ends, **self._config(spec, path), **(patterns or {})}
        settings |= self._texts(spec, path, {"tasksMax": "tasks.max", "class": "connector.class"})
        name = self._name or None
        if kind is not None:
            settings["connector.class"] = PropertyEntry(JAVA_PACKAGE + kind, line_of(spec), self._file, path)
            aliases = [settings[f"{side}.cluster.alias"].value for side in ("source", "target")]
            name = f"{'->'.join(aliases)}.{kind}"
        where = f"{self._file}: {self._kind} {line(self._name)}: {path}"
        stopped = self._stopped(spec, path)
        made = connector_of(name, settings | stopped, file=self._file, where=where)
        if made is None:
            self.warnings.append(f"{self._file}: connector {called(name)}: ignored, not a connector of MirrorMaker 2")
        else:
            self.warnings += [
                f"{entry.place}: {entry.written}: as with Strimzi, {made.flow} does not copy; remove it to copy"
                for entry in stopped.values()
                if made.copies
            ]
            yield made

    def _stopped(self, spec: Mapping[str, YamlValue], path: str) -> dict[str, PropertyEntry]:
        """Return the settings of a connector that is paused or stopped: a flow that is paused, a task that is off."""
        for field, values in (("state", ("paused", "stopped")), ("pause", ("true",))):
            value = spec.get(field)
            if isinstance(value, YamlText) and (field == "state" or "state" not in spec) and value in values:
                at = f"{path}.{field}={value}"
                return {PAUSED: PropertyEntry("true", value.line, self._file, at)}
        return {}

    def _config(self, spec: Mapping[str, YamlValue], path: str) -> dict[str, PropertyEntry]:
        config = self._mapping(spec.get("config"), f"{path}.config")
        return self._texts(config, f"{path}.config", {key: key.strip() for key in config})

    def _texts(self, fields: Mapping[str, YamlValue], path: str, keys: Mapping[str, str]) -> dict[str, PropertyEntry]:
        found = {}
        for field, key in keys.items():
            value = fields.get(field)
            if isinstance(value, dict | list):
                raise self._error(f"{path}.{shown_field(field)}", "must be a string, a number, true or false")
            if value is not None:
                found[key] = self._entry(value, f"{path}.{shown_field(field)}")
        return found

    def _entry(self, value: YamlText, path: str) -> PropertyEntry:
        return PropertyEntry(self._secrets.replaced(str(value)).strip(), value.line, self._file, path)

    def _mapping(self, value: YamlValue, path: str) -> Mapping[str, YamlValue]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._error(path, "must be a mapping")
        return value

    def _error(self, path: str, reason: str, value: YamlValue = None) -> ConfigurationError:
        shown = line(str(value)) if isinstance(value, YamlText) else None
        return ConfigurationError(reason, file=self._file, key=path, value=shown)
