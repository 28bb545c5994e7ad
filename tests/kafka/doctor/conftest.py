"""Two clusters with TLS and an authorizer: SCRAM at the source, certificates at the target; nobody has a right yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.local.broker import SecureListener
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from tests.kafka.security.conftest import SCRAM, tls
from tests.support.certificates import Authority
from tests.support.guarded import Guarded

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    authority = Authority.make(tmp_path_factory.mktemp("guarded"))
    broker = authority.issue("broker")
    scram = {
        **tls(authority, broker, sasl_enabled_mechanisms="SCRAM-SHA-512"),
        "scram-sha-512.sasl.jaas.config": f"{SCRAM};",
    }
    by_login = SecureListener(name="scram", protocol="SASL_SSL", settings=scram)
    listeners = {
        "source": (by_login,),
        "target": (
            SecureListener(name="mtls", protocol="SSL", settings=tls(authority, broker, ssl_client_auth="required")),
            by_login,
        ),
    }
    specs = [
        ClusterSpec(name=name, users={"admin": "admin-secret"}, secure=secure) for name, secure in listeners.items()
    ]
    with start_clusters(specs) as clusters:
        yield Guarded(clusters["source"], clusters["target"], authority, authority.issue("client"))
