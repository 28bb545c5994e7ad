"""Certificates and keys: the `ssl.` settings of Java clients."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NoReturn

from mirrorless.clusters import jks, pem, pkcs12
from mirrorless.settings.patterns import split_list

if TYPE_CHECKING:
    from mirrorless.clusters.java_settings import JavaSettings

_KINDS: Final = ("JKS", "PKCS12", "PEM")
_DER_SEQUENCE: Final = 0x30
# Implementation details of Java, which do not apply to either library.
_JAVA_S_OWN: Final = (
    "ssl.provider",
    "ssl.keymanager.algorithm",
    "ssl.trustmanager.algorithm",
    "ssl.secure.random.implementation",
)
_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")


@dataclass(frozen=True, slots=True)
class Stores:
    """Paths of PEM files: `trust` has the trusted certificates (None: the system's), `certificates` the client's.

    The key is a file, `key_file`, if the settings refer to one in PEM; otherwise it is a PEM text, which is in a file
    only while Python opens it.
    """

    trust: str | None = None
    certificates: str | None = None
    key_file: str | None = None
    key: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    check_hostname: bool | None = None


def read_stores(settings: JavaSettings, *, used: bool) -> Stores:
    """Read `ssl.`, which is used only if `used`; raises ConfigurationError for what is not supported."""
    if not used:
        settings.pass_over(prefix="ssl.")
        return Stores()
    for key in _JAVA_S_OWN:
        settings.pass_over(prefix=key)
    _check_versions(settings)
    trust = _trust(settings)
    key_password = settings.raw("ssl.key.password")
    check_hostname = _check_hostname(settings)
    path = settings.text("ssl.keystore.location")
    store = _inline_key(settings) or _store(settings, "keystore", key_password=key_password)
    if store is None:
        return Stores(trust, check_hostname=check_hostname)
    if store.key is None or not store.certificates:
        key = "ssl.keystore.location" if path else "ssl.keystore.key"
        settings.refuse(key, f"has no {'key' if store.key is None else 'certificate'}; a key store needs both")
    certificates = pem.as_file(store.certificates)
    # Stores in Java's other formats are open by now.
    left = key_password if "ENCRYPTED" in store.key else None
    try:
        pem.key_context(certificates, store.key, left)
    except ValueError as error:
        settings.refuse("ssl.keystore.location" if path else "ssl.keystore.key", str(error))
    if path and _kind(path, settings, "keystore") == "PEM":
        return Stores(trust, path, path, None, left, check_hostname)
    return Stores(trust, certificates, None, store.key, left, check_hostname)


def _trust(settings: JavaSettings) -> str | None:
    inline = settings.raw("ssl.truststore.certificates")
    if inline is not None:
        _only_pem(settings, "truststore", "certificates")
        return pem.as_file(_parsed(settings, "ssl.truststore.certificates", inline).certificates)
    store = _store(settings, "truststore", key_password=None)
    if store is None:
        return None
    key = "ssl.truststore.location"
    if not store.certificates:
        settings.refuse(key, "has no certificate; use the file of the CAs that signed the brokers' certificates")
    path = settings.text(key) or ""
    return path if _kind(path, settings, "truststore") == "PEM" else pem.as_file(store.certificates)


def _inline_key(settings: JavaSettings) -> pem.Store | None:
    key, chain = settings.raw("ssl.keystore.key"), settings.raw("ssl.keystore.certificate.chain")
    if key is None and chain is None:
        return None
    if key is None or chain is None:
        missing = "ssl.keystore.key" if key is None else "ssl.keystore.certificate.chain"
        settings.refuse(missing, "is not set; key and certificates must be set together")
    _only_pem(settings, "keystore", "key")
    found = _parsed(settings, "ssl.keystore.key", key).key
    certificates = _parsed(settings, "ssl.keystore.certificate.chain", chain).certificates
    return pem.Store(certificates, found)


def _only_pem(settings: JavaSettings, store: str, what: str) -> None:
    for other in (f"ssl.{store}.location", f"ssl.{store}.password"):
        if settings.text(other) is not None:
            settings.refuse(other, f"cannot be combined with ssl.{store}.{what}; remove one of them")
    if (settings.text(f"ssl.{store}.type") or "JKS").upper() != "PEM":
        settings.refuse(f"ssl.{store}.type", f"must be PEM, because ssl.{store}.{what} is", default="JKS")


def _parsed(settings: JavaSettings, key: str, text: str) -> pem.Store:
    try:
        return pem.read(text)
    except ValueError as error:
        settings.refuse(key, str(error))


def _store(
    settings: JavaSettings, store: Literal["keystore", "truststore"], *, key_password: str | None
) -> pem.Store | None:
    key = f"ssl.{store}.location"
    path, password = settings.text(key), settings.raw(f"ssl.{store}.password")
    if path is None:
        settings.pass_over(prefix=f"ssl.{store}.")
        return None
    kind = _kind(path, settings, store)
    try:
        data = Path(path).read_bytes()
        with_key = store == "keystore"
        if kind == "JKS":
            return jks.read(data, password=password, key_password=key_password, with_key=with_key)
        if kind == "PKCS12":
            return pkcs12.read(data, password=password, with_key=with_key)
        if password is not None:
            advice = "set the key's in ssl.key.password and remove this" if store == "keystore" else "remove it"
            settings.refuse(f"ssl.{store}.password", f"a PEM file has no store password; {advice}")
        return pem.read(data.decode())
    except UnicodeDecodeError:
        settings.refuse(key, "is not text, so not PEM")
    except ValueError as error:
        settings.refuse(key, str(error))


def _kind(path: str, settings: JavaSettings, store: str) -> str:
    """Return the type of the file, by its content: Java too opens JKS and PKCS12 with each other's type."""
    key = f"ssl.{store}.type"
    settings.choice(key, default="JKS", allowed=_KINDS)
    try:
        with Path(path).open("rb") as file:
            start = file.read(4)
    except (OSError, ValueError) as error:
        _unreadable(settings, store, error)
    if start == jks.MAGIC:
        return "JKS"
    return "PKCS12" if start[:1] == bytes([_DER_SEQUENCE]) else "PEM"


def _unreadable(settings: JavaSettings, store: str, error: Exception) -> NoReturn:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a path"
    settings.refuse(f"ssl.{store}.location", f"cannot be read: {reason}")


def _check_versions(settings: JavaSettings) -> None:
    """Refuse settings that need an older TLS, or forbid 1.2; with both, the newest common version is used."""
    protocol = settings.text("ssl.protocol")
    if protocol is not None and protocol not in ("TLS", *_VERSIONS):
        settings.refuse("ssl.protocol", f"is not supported; use {' or '.join(_VERSIONS)}")
    enabled = settings.text("ssl.enabled.protocols")
    if enabled is not None and "TLSv1.2" not in split_list(enabled):
        settings.refuse("ssl.enabled.protocols", "must include TLSv1.2; TLSv1.3 is used if the broker supports it")


def _check_hostname(settings: JavaSettings) -> bool | None:
    text = settings.raw("ssl.endpoint.identification.algorithm")
    if text is None:
        return None
    if text.strip().lower() not in ("", "https"):
        settings.refuse("ssl.endpoint.identification.algorithm", "must be https, or empty to accept any host name")
    return bool(text.strip())
