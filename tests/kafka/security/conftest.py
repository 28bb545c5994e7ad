"""Two clusters that let nobody in without a login: SCRAM over TLS at the source, certificates at the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from mirrorless.local.broker import SecureListener
from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from tests.support.certificates import PASSWORD, Authority

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

USER, USER_PASSWORD = "mirrorless", 'user\'s "own"'
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


@dataclass(frozen=True)
class Secured:
    """Both clusters, the authority that brokers and clients trust, and a client's key store."""

    source: EmbeddedCluster
    target: EmbeddedCluster
    authority: Authority
    client: Path

    def source_settings(self, *, password: str = USER_PASSWORD) -> dict[str, str]:
        """A cluster's settings, as files have them, for the source."""
        quoted = password.replace("\\", "\\\\").replace('"', '\\"')
        return {
            "bootstrap.servers": self.source.secure_servers("scram"),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{SCRAM} username="{USER}" password="{quoted}";',
            "ssl.truststore.location": str(self.authority.certificate),
            "ssl.truststore.type": "PEM",
        }

    def target_settings(self, listener: str = "mtls") -> dict[str, str]:
        """A cluster's settings, as files have them, for the target."""
        return {
            "bootstrap.servers": self.target.secure_servers(listener),
            "security.protocol": "SSL",
            "ssl.truststore.location": str(self.authority.trust_store("trust.jks", kind="JKS")),
            "ssl.truststore.password": PASSWORD,
            "ssl.keystore.location": str(self.authority.as_jks(self.client)),
            "ssl.keystore.password": PASSWORD,
        }


def tls(authority: Authority, store: Path, **more: str) -> dict[str, str]:
    """A listener's settings."""
    return {
        "ssl.keystore.location": str(store),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.location": str(authority.trust_store()),
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.password": PASSWORD,
        **{key.replace("_", "."): value for key, value in more.items()},
    }


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    authority = Authority.make(tmp_path_factory.mktemp("authority"))
    broker = authority.issue("broker")
    expired = authority.issue("expired", begin="-10d", days=5)
    elsewhere = authority.issue("elsewhere", host="dns:kafka.elsewhere.example")
    scram = {
        **tls(authority, broker, sasl_enabled_mechanisms="SCRAM-SHA-512"),
        "scram-sha-512.sasl.jaas.config": f"{SCRAM};",
    }
    bearer = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "oauthbearer.sasl.jaas.config": f'{BEARER} unsecuredLoginStringClaim_sub="broker";',
    }
    listeners = {
        "source": (SecureListener(name="scram", protocol="SASL_SSL", settings=scram),),
        "target": (
            SecureListener(name="mtls", protocol="SSL", settings=tls(authority, broker, ssl_client_auth="required")),
            SecureListener(name="expired", protocol="SSL", settings=tls(authority, expired)),
            SecureListener(name="elsewhere", protocol="SSL", settings=tls(authority, elsewhere)),
            SecureListener(name="bearer", protocol="SASL_PLAINTEXT", settings=bearer),
        ),
    }
    specs = [ClusterSpec(name=name, secure=secure) for name, secure in listeners.items()]
    with start_clusters(specs) as clusters:
        admin = AdminClient({"bootstrap.servers": clusters["source"].bootstrap_servers})
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        created = UserScramCredentialUpsertion(USER, info, USER_PASSWORD.encode())
        admin.alter_user_scram_credentials([created])[USER].result(30)
        yield Secured(clusters["source"], clusters["target"], authority, authority.issue("client"))
