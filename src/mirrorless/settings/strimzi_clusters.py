"""Client settings of a cluster in Strimzi's resources: addresses, TLS, authentication, and its own `config`."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mirrorless.errors import ConfigurationError
from mirrorless.settings.client_keys import ROLE_PREFIXES
from mirrorless.settings.connectors import line
from mirrorless.settings.masking import shown_field
from mirrorless.settings.properties import PropertyEntry
from mirrorless.settings.yaml_text import YamlText, YamlValue, line_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOUNTED: Final = "/etc/mirrorless/secrets"
_KUBERNETES: Final = re.compile(r"\$\{(?:secrets|strimzisecrets):(?:[^}/:]+/)?([^}:]+):([^}:]+)\}")
_TO_MOUNTED: Final = re.compile(rf"\$\{{directory:({re.escape(_MOUNTED)}/[^:]+):[^}}]+\}}")
_LOGIN: Final = "org.apache.kafka.common.security"
_MECHANISMS: Final = {
    "plain": ("PLAIN", f"{_LOGIN}.plain.PlainLoginModule"),
    "scram-sha-256": ("SCRAM-SHA-256", f"{_LOGIN}.scram.ScramLoginModule"),
    "scram-sha-512": ("SCRAM-SHA-512", f"{_LOGIN}.scram.ScramLoginModule"),
}
_TYPES: Final = (*_MECHANISMS, "tls", "oauth", "custom")
_OF_WORKERS: Final = (
    "config.storage.",
    "status.storage.",
    "offset.storage.",
    "group.id",
    "key.converter",
    "value.converter",
)


class Secrets:
    """Kubernetes Secrets: those whose YAML was given, with its file, and the names of those that have to be mounted."""

    def __init__(self, given: Mapping[str, tuple[str, frozenset[str]]]) -> None:
        self._given = given
        self.mounted: dict[str, None] = {}

    def reference(self, name: str, key: str) -> str:
        """Return the reference to a value."""
        if name in self._given:
            return f"${{secret:{self._given[name][0]}:{name}/{key}}}"
        self.mounted[name] = None
        return f"${{directory:{_MOUNTED}/{name}:{key}}}"

    def matching(self, name: str, pattern: str) -> list[str]:
        """Return the keys that match a glob; without the Secret, the glob, which its folder is searched for."""
        if name in self._given:
            return sorted(key for key in self._given[name][1] if fnmatch.fnmatchcase(key, pattern))
        return [pattern]

    def replaced(self, text: str) -> str:
        """Return a text with references of Kubernetes' config provider replaced."""
        return _KUBERNETES.sub(lambda match: self.reference(match[1], match[2]), text)

    def warnings(self, file: str) -> list[str]:
        """Return a line for each Secret that has to be mounted."""
        return [
            f"{file}: Secret {line(name)}: mount it at {_MOUNTED}/{line(name)}, or give its YAML as another file"
            for name in self.mounted
        ]


def is_not_mounted(reference: str) -> bool:
    """Whether a reference is to a Secret that is not mounted here, which is a warning where no client is made."""
    found = _TO_MOUNTED.fullmatch(reference)
    return found is not None and not Path(found[1]).is_dir()


class StrimziCluster:
    """One cluster of a resource, at a path."""

    def __init__(self, spec: Mapping[str, YamlValue], path: str, *, file: str, secrets: Secrets) -> None:
        self._spec = spec
        self._path = path
        self._file = file
        self._secrets = secrets
        self.warnings: list[str] = []

    def settings(self) -> dict[str, PropertyEntry]:
        """Return alias, addresses and client settings, without a prefix."""
        found: dict[str, PropertyEntry] = {}
        for field, key in (("alias", "alias"), ("bootstrapServers", "bootstrap.servers")):
            value = self._spec.get(field)
            if not isinstance(value, YamlText):
                raise ConfigurationError("is missing", file=self._file, key=f"{self._path}.{field}")
            found[key] = PropertyEntry(str(value), value.line, self._file, f"{self._path}.{field}")
        tls = self._spec.get("tls")
        with_tls = tls is not None or ("tls" in self._spec)
        found |= self._tls(tls)
        protocol = "SSL" if with_tls else "PLAINTEXT"
        authentication = self._spec.get("authentication")
        if isinstance(authentication, dict):
            kind = str(authentication.get("type") or "")
            sasl = kind in (*_MECHANISMS, "oauth") or (kind == "custom" and authentication.get("sasl") == "true")
            protocol = f"SASL_{protocol}" if sasl else protocol
            found |= self._authentication(kind, authentication)
        found["security.protocol"] = self._made(protocol, self._spec, "tls" if with_tls else "")
        config = self._spec.get("config")
        for key, value in (config if isinstance(config, dict) else {}).items():
            if key.startswith(ROLE_PREFIXES) and not key.startswith("producer."):
                self.warnings.append(
                    f"{self._file}: {self._path}.config.{shown_field(key)}: has no effect, nor with Strimzi; set it in "
                    "the config of a connector"
                )
            elif isinstance(value, YamlText) and not key.startswith((*_OF_WORKERS, "producer.")):
                text = self._secrets.replaced(str(value))
                found[key] = PropertyEntry(text, value.line, self._file, f"{self._path}.config.{shown_field(key)}")
        return found

    def _tls(self, tls: YamlValue) -> dict[str, PropertyEntry]:
        certificates = tls.get("trustedCertificates") if isinstance(tls, dict) else None
        references = []
        for one in certificates if isinstance(certificates, list) else ():
            name = one.get("secretName") if isinstance(one, dict) else None
            if not isinstance(one, dict) or not isinstance(name, YamlText):
                raise self._error("tls.trustedCertificates", "each needs a secretName")
            key = one.get("certificate") or one.get("pattern") or "*.crt"
            matching = self._secrets.matching(name, str(key))
            if not matching:
                raise self._error("tls.trustedCertificates", f"Secret {line(name)} has no key that matches {key}")
            references += [self._secrets.reference(name, found) for found in matching]
        if not references:
            return {}
        return {
            "ssl.truststore.certificates": self._made("\n".join(references), tls, "tls.trustedCertificates"),
            "ssl.truststore.type": self._made("PEM", tls, "tls.trustedCertificates"),
        }

    def _authentication(self, kind: str, fields: Mapping[str, YamlValue]) -> dict[str, PropertyEntry]:
        if kind == "tls":
            at = "authentication.certificateAndKey"
            return {
                "ssl.keystore.certificate.chain": self._secret(fields, "certificateAndKey", "certificate"),
                "ssl.keystore.key": self._secret(fields, "certificateAndKey", "key"),
                "ssl.keystore.type": self._made("PEM", fields, at),
            }
        if kind in _MECHANISMS:
            mechanism, module = _MECHANISMS[kind]
            password = self._secret(fields, "passwordSecret", "password").value
            jaas = f'{module} required username="{_quoted(fields.get("username"))}" password="{password}";'
            return {
                "sasl.mechanism": self._made(mechanism, fields, "authentication.type"),
                "sasl.jaas.config": self._made(jaas, fields, "authentication.passwordSecret"),
            }
        if kind == "oauth":
            return self._oauth(fields)
        if kind == "custom":
            config = fields.get("config")
            return {
                key: PropertyEntry(
                    self._secrets.replaced(str(value)),
                    value.line,
                    self._file,
                    f"{self._path}.authentication.config.{shown_field(key)}",
                )
                for key, value in (config if isinstance(config, dict) else {}).items()
                if isinstance(value, YamlText)
            }
        raise self._error("authentication.type", f"must be one of {', '.join(_TYPES)}")

    def _oauth(self, fields: Mapping[str, YamlValue]) -> dict[str, PropertyEntry]:
        supported = ("type", "clientId", "clientSecret", "tokenEndpointUri", "scope")
        self.warnings += [
            f"{self._file}: {self._path}.authentication.{shown_field(key)}: is not supported and has no effect"
            for key in fields
            if key not in supported
        ]
        secret = self._secret(fields, "clientSecret", "key").value
        scope = f' scope="{_quoted(fields["scope"])}"' if fields.get("scope") else ""
        jaas = (
            f"{_LOGIN}.oauthbearer.OAuthBearerLoginModule required "
            f'clientId="{_quoted(fields.get("clientId"))}" clientSecret="{secret}"{scope};'
        )
        url = fields.get("tokenEndpointUri")
        handler = f"{_LOGIN}.oauthbearer.OAuthBearerLoginCallbackHandler"
        return {
            "sasl.mechanism": self._made("OAUTHBEARER", fields, "authentication.type"),
            "sasl.jaas.config": self._made(jaas, fields, "authentication.clientSecret"),
            "sasl.login.callback.handler.class": self._made(handler, fields, "authentication.type"),
            "sasl.oauthbearer.token.endpoint.url": self._made(str(url or ""), url, "authentication.tokenEndpointUri"),
        }

    def _secret(self, fields: Mapping[str, YamlValue], field: str, key: str) -> PropertyEntry:
        """Return the reference to the value that `field.secretName` and `field.<key>` name."""
        path = f"authentication.{field}"
        source = fields.get(field)
        name, inner = (source.get("secretName"), source.get(key)) if isinstance(source, dict) else (None, None)
        if not isinstance(name, YamlText) or not isinstance(inner, YamlText):
            raise self._error(path, f"needs secretName and {key}; a secret itself is not accepted here")
        return self._made(self._secrets.reference(name, inner), name, f"{path}.{key}")

    def _made(self, text: str, near: YamlValue | Mapping[str, YamlValue], field: str) -> PropertyEntry:
        at = line_of(near)
        return PropertyEntry(text, at, self._file, f"{self._path}.{field}" if field else self._path)

    def _error(self, field: str, reason: str) -> ConfigurationError:
        return ConfigurationError(reason, file=self._file, key=f"{self._path}.{field}")


def _quoted(value: YamlValue) -> str:
    return str(value or "").replace("\\", "\\\\").replace('"', '\\"')
