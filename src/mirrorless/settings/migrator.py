"""Reads a pipeline of Redpanda Connect with a `redpanda_migrator` input and output, as far as the meaning is the same.

It copies topics under the same names, with their configs and ACLs, and translates group offsets. Topics and groups are
regular expressions that match a part of a name, in Go's syntax, or names. `${NAME}` is an environment variable.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mirrorless.errors import ConfigurationError
from mirrorless.settings.masking import shown_field
from mirrorless.settings.properties import ARROW, NOBODYS, PropertyEntry
from mirrorless.settings.yaml_text import YamlText, YamlValue, documents, line_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_COMPONENTS: Final = ("redpanda_migrator", "redpanda_migrator_bundle", "kafka_migrator", "kafka_migrator_bundle")
_LIKE_IT: Final = re.compile(r"^(?:input|output)\s*:[ \t]*(?:#.*)?$", re.MULTILINE)
_NAMED: Final = re.compile(rf"^\s+(?:{'|'.join(_COMPONENTS)})\s*:", re.MULTILINE)
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_]\w*)\}")
_INTERPOLATED: Final = re.compile(r"\$\{!")
_SAME_NAME: Final = re.compile(r"\$\{!\s*(?:@kafka_topic|metadata\(\s*\"kafka_topic\"\s*\)(?:\.[^}]*)?)\s*\}")
_LOGIN: Final = "org.apache.kafka.common.security"
_MODULES: Final = {
    "PLAIN": f"{_LOGIN}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_LOGIN}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_LOGIN}.scram.ScramLoginModule",
}
_READ: Final = {
    "input": (
        "seed_brokers",
        "tls",
        "sasl",
        "topics",
        "regexp_topics",
        "regexp_topics_include",
        "regexp_topics_exclude",
        "start_from_oldest",
        "consumer_group",
        "rack_id",
        "client_id",
        "label",
    ),
    "output": (
        "seed_brokers",
        "tls",
        "sasl",
        "topic",
        "topic_prefix",
        "topic_replication_factor",
        "replication_factor_override",
        "replication_factor",
        "sync_topic_acls",
        "consumer_groups",
        "client_id",
        "label",
        "key",
        "partition",
        "partitioner",
        "timestamp_ms",
        "max_in_flight",
        "input_resource",
    ),
}
_SOURCE, _TARGET = "source", "target"
_FLOW: Final = f"{_SOURCE}{ARROW}{_TARGET}"


def is_migrator(text: str) -> bool:
    """Whether a text is such a pipeline."""
    return len(_LIKE_IT.findall(text)) > 1 and _NAMED.search(text) is not None


def read_migrator(text: str, *, file: str) -> tuple[Mapping[str, PropertyEntry], tuple[str, ...]]:
    """Return the entries and warnings; raises ConfigurationError for what cannot be read or has no counterpart."""
    found = documents(text, file=file)
    if len(found) != 1 or not isinstance(found[0], dict):
        raise ConfigurationError("must have one document", file=file)
    return _Pipeline(found[0], file).read()


class _Pipeline:
    def __init__(self, document: Mapping[str, YamlValue], file: str) -> None:
        self._document = document
        self._file = file
        self._entries: dict[str, PropertyEntry] = {}
        self._warnings: list[str] = []

    def read(self) -> tuple[Mapping[str, PropertyEntry], tuple[str, ...]]:
        """Read both ends, and refuse what changes records."""
        pipeline = self._document.get("pipeline")
        processors = pipeline.get("processors") if isinstance(pipeline, dict) else None
        if processors:
            raise self._error(
                "pipeline.processors", "records are copied unchanged; leave this flow to Redpanda Connect"
            )
        made = {
            "clusters": f"{_SOURCE},{_TARGET}",
            f"{_FLOW}.enabled": "true",
            f"{_FLOW}.replication.policy.class": "IdentityReplicationPolicy",
            "emit.heartbeats.enabled": "false",
            f"{_FLOW}.heartbeats.replication.enabled": "false",
            f"{_FLOW}.sync.group.offsets.enabled": "true",
            f"{_FLOW}.replication.factor": "-1",
        }
        for key, text in made.items():
            self._entries[key] = PropertyEntry(text, NOBODYS, f"{self._file}: as redpanda_migrator", key)
        for side, alias in (("input", _SOURCE), ("output", _TARGET)):
            path, fields = self._component(side)
            self._connection(fields, path, alias)
            self._unread(fields, path, side)
            if side == "input":
                self._topics(fields, path)
            else:
                self._output(fields, path)
        return self._entries, tuple(self._warnings)

    def _component(self, side: str) -> tuple[str, Mapping[str, YamlValue]]:
        outer = self._document.get(side)
        for name in _COMPONENTS:
            fields = outer.get(name) if isinstance(outer, dict) else None
            if isinstance(fields, dict):
                inner = fields.get(name.removesuffix("_bundle"))
                if name.endswith("_bundle") and isinstance(inner, dict):
                    self._unread({key: one for key, one in fields.items() if one is not inner}, f"{side}.{name}", "")
                    return f"{side}.{name}.{name.removesuffix('_bundle')}", inner
                return f"{side}.{name}", fields
        raise self._error(side, f"has none of {', '.join(_COMPONENTS)}")

    def _connection(self, fields: Mapping[str, YamlValue], path: str, alias: str) -> None:
        brokers = fields.get("seed_brokers")
        listed = [
            str(one) for one in (brokers if isinstance(brokers, list) else [brokers]) if isinstance(one, YamlText)
        ]
        self._set(f"{alias}.bootstrap.servers", ",".join(listed), f"{path}.seed_brokers", brokers)
        tls = fields.get("tls")
        with_tls = isinstance(tls, dict) and tls.get("enabled") == "true"
        if isinstance(tls, dict):
            self._tls(tls, f"{path}.tls", alias)
        sasl = fields.get("sasl")
        mechanisms = [one for one in (sasl if isinstance(sasl, list) else []) if isinstance(one, dict)]
        protocol = "SSL" if with_tls else "PLAINTEXT"
        if mechanisms and str(mechanisms[0].get("mechanism")).lower() != "none":
            protocol = f"SASL_{protocol}"
            self._sasl(mechanisms[0], f"{path}.sasl[0]", alias)
        self._set(f"{alias}.security.protocol", protocol, f"{path}.tls", tls)
        for field, key in (("client_id", "client.id"), ("rack_id", "consumer.client.rack")):
            if isinstance(value := fields.get(field), YamlText) and value:
                self._set(f"{alias}.{key}", value, f"{path}.{field}", value)

    def _tls(self, tls: Mapping[str, YamlValue], path: str, alias: str) -> None:
        for field in tls:
            if field not in ("enabled", "root_cas_file", "root_cas", "skip_cert_verify"):
                self._warn(f"{path}.{shown_field(field)}", "is not read")
        if isinstance(value := tls.get("root_cas_file"), YamlText) and value:
            self._set(f"{alias}.ssl.truststore.location", value, f"{path}.root_cas_file", value)
            self._set(f"{alias}.ssl.truststore.type", "PEM", f"{path}.root_cas_file", value)
        if isinstance(value := tls.get("root_cas"), YamlText) and value:
            self._set(f"{alias}.ssl.truststore.certificates", value, f"{path}.root_cas", value)
            self._set(f"{alias}.ssl.truststore.type", "PEM", f"{path}.root_cas", value)
        if tls.get("skip_cert_verify") == "true":
            self._warn(f"{path}.skip_cert_verify", "is not supported: certificates are always verified")

    def _sasl(self, fields: Mapping[str, YamlValue], path: str, alias: str) -> None:
        mechanism = str(fields.get("mechanism") or "")
        if mechanism not in _MODULES:
            self._warn(f"{path}.mechanism", "is not read; set the client settings of this cluster")
            return
        login = {
            key: str(fields.get(key) or "").replace("\\", "\\\\").replace('"', '\\"')
            for key in ("username", "password")
        }
        jaas = f'{_MODULES[mechanism]} required username="{login["username"]}" password="{login["password"]}";'
        self._set(f"{alias}.sasl.mechanism", mechanism, f"{path}.mechanism", fields.get("mechanism"))
        self._set(f"{alias}.sasl.jaas.config", jaas, f"{path}.password", fields.get("password"))

    def _topics(self, fields: Mapping[str, YamlValue], path: str) -> None:
        patterns = fields.get("regexp_topics") == "true"
        for field, key, regular in (
            ("topics", "topics", patterns),
            ("regexp_topics_include", "topics", True),
            ("regexp_topics_exclude", "topics.exclude", True),
        ):
            value = fields.get(field)
            if isinstance(value, list) and value:
                texts = [str(one) for one in value if isinstance(one, YamlText)]
                if any("," in one for one in texts):
                    raise self._error(f"{path}.{field}", "a comma separates patterns here; write several patterns")
                if not regular and any(":" in one for one in texts):
                    raise self._error(f"{path}.{field}", "partitions and offsets of a topic cannot be chosen")
                self._set(
                    f"{_FLOW}.{key}", ",".join(map(_whole if regular else re.escape, texts)), f"{path}.{field}", value
                )
        if fields.get("start_from_oldest") == "false":
            value = fields["start_from_oldest"]
            self._set(f"{_SOURCE}.consumer.auto.offset.reset", "latest", f"{path}.start_from_oldest", value)
        if fields.get("consumer_group"):
            self._warn(f"{path}.consumer_group", "its offsets are not read, so the copy starts from the beginning")

    def _output(self, fields: Mapping[str, YamlValue], path: str) -> None:
        topic = fields.get("topic")
        if isinstance(topic, YamlText) and topic and _SAME_NAME.fullmatch(topic.strip()) is None:
            raise self._error(f"{path}.topic", "topics can only keep their names; remove it, or use another tool")
        prefix = fields.get("topic_prefix")
        if isinstance(prefix, YamlText) and prefix:
            raise self._error(
                f"{path}.topic_prefix", "is not supported; the default policy of an mm2.properties has a prefix"
            )
        for field in ("topic_replication_factor", "replication_factor"):
            if isinstance(value := fields.get(field), YamlText):
                self._set(f"{_FLOW}.replication.factor", value, f"{path}.{field}", value)
        acls = fields.get("sync_topic_acls")
        if isinstance(acls, YamlText):
            self._set(f"{_FLOW}.sync.topic.acls.enabled", acls, f"{path}.sync_topic_acls", acls)
        groups = fields.get("consumer_groups")
        if groups == "false" or (isinstance(groups, dict) and groups.get("enabled") == "false"):
            self._set(f"{_FLOW}.sync.group.offsets.enabled", "false", f"{path}.consumer_groups.enabled", groups)
        if isinstance(groups, dict):
            for field, key in (("include", "groups"), ("exclude", "groups.exclude")):
                if isinstance(value := groups.get(field), list) and value:
                    text = ",".join(_whole(str(one)) for one in value if isinstance(one, YamlText))
                    self._set(f"{_FLOW}.{key}", text, f"{path}.consumer_groups.{field}", value)
            for field in groups:
                if field not in ("enabled", "include", "exclude"):
                    self._warn(f"{path}.consumer_groups.{shown_field(field)}", "is not read")

    def _unread(self, fields: Mapping[str, YamlValue], path: str, side: str) -> None:
        for field in fields:
            if field not in _READ.get(side, ()):
                self._warn(f"{path}.{shown_field(field)}", "is not read, it has no counterpart")

    def _set(self, key: str, text: str, path: str, value: YamlValue) -> None:
        if _INTERPOLATED.search(text):
            raise self._error(path, "expressions are not supported")
        text = _VARIABLE.sub(r"${env:\1}", text)
        self._entries[key] = PropertyEntry(text, line_of(value), self._file, path)

    def _warn(self, path: str, reason: str) -> None:
        self._warnings.append(f"{self._file}: {path}: {reason}")

    def _error(self, path: str, reason: str) -> ConfigurationError:
        return ConfigurationError(reason, file=self._file, key=path)


def _whole(pattern: str) -> str:
    """Return a pattern for the whole name of one that Go searches in it."""
    if re.search(r"(?<!\\)\|", pattern):
        return (
            f".*(?:{pattern}).*"
            if not pattern.startswith("^") and not pattern.endswith("$")
            else f"(?=.*(?:{pattern})).*"
        )
    begin = "" if pattern.startswith("^") else ".*"
    end = "" if pattern.endswith("$") and not pattern.endswith("\\$") else ".*"
    return f"{begin}{pattern.removeprefix('^')[: -1 if not end else None]}{end}"
