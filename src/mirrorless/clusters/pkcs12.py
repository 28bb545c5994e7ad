"""Reads PKCS12 stores with the package `cryptography`, which is imported only if there is one."""

from __future__ import annotations

import importlib
from typing import Any

from mirrorless.clusters.pem import Store


def read(data: bytes, *, password: str | None, with_key: bool) -> Store:
    """Read a store: its key with the chain, or, without a key, its certificates to trust.

    In a store with both, the key's own certificate is among the trusted ones, as in Java.

    Raises ValueError, without secrets, for a wrong password and for a file that is not a PKCS12 store.
    """
    try:
        pkcs12 = importlib.import_module("cryptography.hazmat.primitives.serialization.pkcs12")
        serialization = importlib.import_module("cryptography.hazmat.primitives.serialization")
    except ImportError:
        raise ValueError("is a PKCS12 store, which needs the package cryptography: pip install mirrorless") from None
    secret = None if password is None else password.encode()
    try:
        store = pkcs12.load_pkcs12(data, secret)
    except Exception:  # noqa: BLE001 -- the library's errors have no common type, and no more details
        raise ValueError("cannot be opened: the store's password is wrong, or the file is damaged") from None
    others = [one.certificate for one in store.additional_certs]
    own = [] if store.cert is None else [store.cert.certificate]
    found = _chain(own[0], others) if own and with_key else [*own, *others]
    pem = serialization.Encoding.PEM
    certificates = "".join(certificate.public_bytes(pem).decode("ascii") for certificate in found)
    if store.key is None or not with_key:
        return Store(certificates)
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return Store(certificates, store.key.private_bytes(pem, form, plain).decode("ascii"))


def _chain(first: Any, others: list[Any]) -> list[Any]:  # noqa: ANN401 -- certificates of a package imported late
    """Return the certificates in the order of TLS: each signed by the next, whatever the store's order is."""
    chain = [first]
    while signers := [one for one in others if one not in chain and _signed(chain[-1], by=one)]:
        chain.append(signers[0])
    return chain


def _signed(certificate: Any, *, by: Any) -> bool:  # noqa: ANN401
    """Whether a certificate is signed by another one; a name alone may be of an authority's earlier key."""
    try:
        certificate.verify_directly_issued_by(by)
    except Exception:  # noqa: BLE001 -- three types of errors, all mean no
        return False
    return True
