"""Reads Java's own key store format, JKS, as written by `sun.security.provider.JavaKeyStore`.

Entries are plain except private keys, which are encrypted with a key stream of SHA-1s over password and salt; at the
end is a SHA-1 over the password and everything before it. There is no maintained library for it.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Final

from mirrorless.clusters.pem import PRIVATE_KEY, Store, certificates, encode

MAGIC: Final = b"\xfe\xed\xfe\xed"
_DIGEST_BYTES: Final = 20
_KEY, _CERTIFICATE = 1, 2
_SEQUENCE, _OCTET_STRING = 0x30, 0x04


def read(data: bytes, *, password: str | None, key_password: str | None, with_key: bool) -> Store:
    """Read a store: its key with the chain, or, without key, the certificates to trust.

    Raises ValueError, without secrets, for a wrong password, for several keys and for a file that is not a JKS store.
    """
    if password is not None:
        salted = password.encode("utf-16-be") + b"Mighty Aphrodite" + data[:-_DIGEST_BYTES]
        digest = hashlib.sha1(salted).digest()  # noqa: S324 -- the format's own
        if not hmac.compare_digest(digest, data[-_DIGEST_BYTES:]):
            raise ValueError("cannot be opened: the store's password is wrong, or the file is damaged")
    try:
        keys, trusted = _entries(data)
    except (struct.error, IndexError, UnicodeDecodeError):
        raise ValueError("is a damaged JKS store") from None
    if not keys or not with_key:
        return Store(certificates(trusted))
    if len(keys) > 1:
        raise ValueError(f"has {len(keys)} keys; keep one in it")
    covered, chain = keys[0]
    key = _uncovered(covered, key_password if key_password is not None else password or "")
    return Store(certificates(chain), encode(PRIVATE_KEY, key))


def _entries(data: bytes) -> tuple[list[tuple[bytes, list[bytes]]], list[bytes]]:
    reader = _JksReader(data)
    _, version, count = reader.unpack(">4sII")
    keys: list[tuple[bytes, list[bytes]]] = []
    trusted: list[bytes] = []
    for _ in range(count):
        (tag,) = reader.unpack(">I")
        reader.text()  # the alias
        reader.unpack(">Q")  # when it was made
        if tag == _KEY:
            key = reader.block()
            (length,) = reader.unpack(">I")
            keys.append((key, [reader.certificate(version) for _ in range(length)]))
        elif tag == _CERTIFICATE:
            trusted.append(reader.certificate(version))
        else:
            raise ValueError("is a damaged JKS store")
    return keys, trusted


class _JksReader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def unpack(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from(form, self._data, self._position)
        self._position += struct.calcsize(form)
        return found

    def take(self, length: int) -> bytes:
        taken = self._data[self._position : self._position + length]
        if len(taken) != length:
            raise IndexError
        self._position += length
        return taken

    def text(self) -> bytes:
        (length,) = self.unpack(">H")
        return self.take(length)

    def block(self) -> bytes:
        (length,) = self.unpack(">I")
        return self.take(length)

    def certificate(self, version: int) -> bytes:
        if version > 1:
            self.text()  # X.509
        return self.block()


def _uncovered(covered: bytes, password: str) -> bytes:
    """Return the PKCS8 key in an EncryptedPrivateKeyInfo of Sun's own algorithm (1.3.6.1.4.1.42.2.17.1.1)."""
    try:
        whole = _der(covered, _SEQUENCE)[0]
        _, rest = _der(whole, _SEQUENCE)  # the algorithm
        protected = _der(rest, _OCTET_STRING)[0]
    except IndexError:
        raise ValueError("is a damaged JKS store") from None
    secret = password.encode("utf-16-be")
    stream, body = protected[:_DIGEST_BYTES], protected[_DIGEST_BYTES:-_DIGEST_BYTES]
    plain = bytearray()
    for start in range(0, len(body), _DIGEST_BYTES):
        stream = hashlib.sha1(secret + stream).digest()  # noqa: S324 -- the format's own
        plain += bytes(a ^ b for a, b in zip(body[start : start + _DIGEST_BYTES], stream, strict=False))
    digest = hashlib.sha1(secret + plain).digest()  # noqa: S324 -- the format's own
    if not hmac.compare_digest(digest, protected[-_DIGEST_BYTES:]):
        raise ValueError("its key cannot be opened: the key's password is wrong")
    return bytes(plain)


def _der(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """Return the content of a DER element and what follows it; IndexError if the tag differs or it is truncated."""
    if data[0] != tag:
        raise IndexError
    length, start = data[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start])
    if start + length > len(data):
        raise IndexError
    return data[start : start + length], data[start + length :]
