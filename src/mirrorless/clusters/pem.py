"""Certificates and keys as PEM text, and temporary files for libraries that require files."""

from __future__ import annotations

import atexit
import base64
import hashlib
import os
import re
import shutil
import ssl
import tempfile
import textwrap
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_BLOCK: Final = re.compile(r"-----BEGIN (?P<kind>[A-Z0-9 ]+)-----(?P<body>.*?)-----END (?P=kind)-----", re.DOTALL)
CERTIFICATE: Final = "CERTIFICATE"
PRIVATE_KEY: Final = "PRIVATE KEY"
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
"""Tags in DER."""


@dataclass(frozen=True, slots=True)
class Store:
    """The content of a key store or trust store: PEM texts, the key's with its password, if any."""

    certificates: str
    key: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)


def encode(kind: str, der: bytes) -> str:
    """Return a DER structure as PEM."""
    body = "\n".join(textwrap.wrap(base64.b64encode(der).decode("ascii"), 64))
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n"


def certificates(ders: Iterable[bytes]) -> str:
    """Return certificates as one PEM text."""
    return "".join(encode(CERTIFICATE, der) for der in ders)


def read(text: str) -> Store:
    """Extract certificates and a key from PEM text, also if all of it is on one line, as Java allows.

    Raises ValueError, which quotes nothing, for text that has neither.
    """
    blocks = [(match["kind"], _block(match["kind"], match["body"])) for match in _BLOCK.finditer(text)]
    keys = [block for kind, block in blocks if kind.endswith(PRIVATE_KEY)]
    if not blocks:
        raise ValueError("is not PEM: no -----BEGIN ...-----")
    return Store("".join(block for kind, block in blocks if kind == CERTIFICATE), keys[0] if keys else None)


def _block(kind: str, body: str) -> str:
    if ":" in body:  # the headers of a key in OpenSSL's old form, whose line ends matter
        return f"-----BEGIN {kind}-----{body}-----END {kind}-----\n"
    lines = textwrap.wrap("".join(body.split()), 64)
    return "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""])


def expiry(text: str) -> datetime:
    """Return until when the first certificate of a PEM text is valid (RFC 5280, `Validity.notAfter`).

    Raises ValueError for a text without a certificate.
    """
    try:
        body = next(match["body"] for match in _BLOCK.finditer(text) if match["kind"] == CERTIFICATE)
        fields = _content(base64.b64decode("".join(body.split())))
        certified = _content(fields)
        before_validity = 4 if certified[0] == _VERSION else 3  # version, serial number, algorithm, issuer
        for _ in range(before_validity):
            certified = certified[_size(certified) :]
        validity = _content(certified)
        after = validity[_size(validity) :]
        at = _content(after).decode("ascii")
    except (StopIteration, IndexError, ValueError):
        raise ValueError("has no certificate") from None
    return datetime.strptime(at, "%y%m%d%H%M%SZ" if after[0] == _UTC_TIME else "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _content(der: bytes) -> bytes:
    """The content of the first DER element."""
    header = 2 + (der[1] & 0x7F if der[1] & 0x80 else 0)
    return der[header : _size(der)]


def _size(der: bytes) -> int:
    """Bytes of the first DER element, with its header."""
    if not der[1] & 0x80:
        return 2 + der[1]
    many = der[1] & 0x7F
    return 2 + many + int.from_bytes(der[2 : 2 + many], "big")


def as_file(text: str) -> str:
    """Return the path of a file with this text, readable only for this user, until the process ends."""
    path = _folder(os.getpid()) / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.pem"
    if not path.exists():
        # In one step, because another thread may be about to use it.
        descriptor, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        Path(temporary).replace(path)
    return str(path)


@cache
def _folder(process_id: int) -> Path:
    folder = tempfile.mkdtemp(prefix="mirrorless-tls-")

    def remove() -> None:
        if os.getpid() == process_id:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return Path(folder)


def key_context(certificates: str, key: str, password: str | None) -> ssl.SSLContext:
    """Return a context with this key: `certificates` is a path, `key` a PEM text.

    Raises ValueError, without secrets, if key and certificates do not match or the password is wrong.
    """
    if "ENCRYPTED" in key and not password:
        raise ValueError("its key is encrypted; set ssl.key.password")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Python's ssl reads keys from files only; this one exists only during the call.
    with tempfile.NamedTemporaryFile("w", prefix="mirrorless-", suffix=".pem") as file:
        file.write(key)
        file.flush()
        try:
            context.load_cert_chain(certificates, file.name, password or "")
        except ssl.SSLError as error:
            reason = error.reason or "not a key"
            if reason == "KEY_VALUES_MISMATCH":
                raise ValueError("its key does not belong to its first certificate") from None
            if "ENCRYPTED" in key:
                raise ValueError("its key cannot be opened: ssl.key.password is wrong") from None
            raise ValueError(f"its key cannot be used: {reason.lower().replace('_', ' ')}") from None
        except (OSError, ValueError):
            raise ValueError("its key cannot be used") from None
    return context
