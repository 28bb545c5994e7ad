"""Who we are and whom we trust: the `sasl.` and `ssl.` settings of Java clients.

Supported: PLAIN and SCRAM with user and password; TLS with PEM files. Whatever else is set is refused with what to do
instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mirrorless.clusters import jaas

if TYPE_CHECKING:
    from mirrorless.clusters.java_settings import JavaSettings

_LOGIN_MODULES: Final = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
}

# What Java takes instead of, or together with, the location of a store.
_INSTEAD: Final = {
    "ssl.truststore.certificates": "write the certificates to a PEM file and name it in ssl.truststore.location",
    "ssl.truststore.password": "a PEM file has no store password; remove it",
    "ssl.keystore.certificate.chain": "write key and certificates to one PEM file and name it in ssl.keystore.location",
    "ssl.keystore.key": "write key and certificates to one PEM file and name it in ssl.keystore.location",
    "ssl.keystore.password": "a PEM file has no store password; give the key's in ssl.key.password and remove this",
}


@dataclass(frozen=True, slots=True)
class Login:
    """How to log in; all None without SASL."""

    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Stores:
    """PEM files: `trust` has the certificates to trust (None: the system's), `key` our key and its certificates."""

    trust: str | None = None
    key: str | None = None
    key_password: str | None = field(default=None, repr=False)
    check_hostname: bool | None = None


def read_login(settings: JavaSettings, *, used: bool) -> Login:
    """Read `sasl.`, which counts only if `used`; raises ConfigurationError for what is missing or not supported."""
    if not used:
        settings.pass_over(prefix="sasl.")
        return Login()
    mechanism = settings.choice("sasl.mechanism", default="GSSAPI", allowed=tuple(_LOGIN_MODULES))  # Java's default
    module = _LOGIN_MODULES[mechanism]
    text = settings.text("sasl.jaas.config")
    if text is None:
        settings.refuse("sasl.jaas.config", f'is not set; use {module} required username="..." password="...";')
    try:
        login = jaas.parse(text)
    except ValueError as error:
        settings.refuse("sasl.jaas.config", str(error))
    if login.short_name != module:
        settings.refuse("sasl.jaas.config", f"{mechanism} goes with {module}; name that login module")
    if login.options.get("tokenauth", "").lower() == "true":
        settings.refuse("sasl.jaas.config", "delegation tokens are not supported; log in with user and password")
    for option in ("username", "password"):
        if not login.options.get(option):
            settings.refuse("sasl.jaas.config", f'has no {option}; add {option}="..."')
    return Login(mechanism, login.options["username"], login.options["password"])


def read_stores(settings: JavaSettings, *, used: bool) -> Stores:
    """Read `ssl.`, which counts only if it is `used`; raises ConfigurationError for what is not supported."""
    if not used:
        settings.pass_over(prefix="ssl.")
        return Stores()
    trust = _pem_file(settings, "truststore")
    key = _pem_file(settings, "keystore")
    for setting, advice in _INSTEAD.items():
        if settings.raw(setting) is not None:
            settings.refuse(setting, advice)
    key_password = settings.raw("ssl.key.password")
    return Stores(trust, key, key_password if key else None, _check_hostname(settings))


def _pem_file(settings: JavaSettings, store: str) -> str | None:
    location, kind = settings.text(f"ssl.{store}.location"), settings.text(f"ssl.{store}.type") or "JKS"
    if location is not None and kind.upper() != "PEM":
        advice = f"a {kind} file cannot be read; convert it to PEM, name that file and set ssl.{store}.type=PEM"
        settings.refuse(f"ssl.{store}.location", advice)
    return location


def _check_hostname(settings: JavaSettings) -> bool | None:
    text = settings.raw("ssl.endpoint.identification.algorithm")
    if text is None:
        return None
    if text.strip().lower() not in ("", "https"):
        settings.refuse("ssl.endpoint.identification.algorithm", "must be https, or empty to accept any host name")
    return bool(text.strip())
