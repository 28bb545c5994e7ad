"""Key and trust stores in every kind that Java opens say the same, and one line says why one cannot be opened."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient

from mirrorless.clusters.client_settings import for_confluent, for_kafka_python
from mirrorless.clusters.pem import read
from mirrorless.errors import ConfigurationError
from mirrorless.settings import Cluster
from tests.support.certificates import PASSWORD, Authority

if TYPE_CHECKING:
    from collections.abc import Mapping

OF_THE_KEY, WRONG = "of-the-key", "wrong-fish"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def client(authority: Authority) -> Path:
    return authority.issue("client")


def confluent(settings: Mapping[str, str]) -> dict[str, Any]:
    cluster = Cluster(alias="A", bootstrap_servers="a:1", client={"security.protocol": "SSL", **settings})
    found = for_confluent(cluster, role="admin")
    context = for_kafka_python(cluster, role="admin").get("ssl_context")
    assert context is None or isinstance(context, ssl.SSLContext)
    AdminClient({**found, "log_level": 0})  # which opens them
    return found


def line(settings: Mapping[str, str]) -> str:
    with pytest.raises(ConfigurationError) as caught:
        confluent(settings)
    assert PASSWORD not in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def trust(path: Path, kind: str, password: str | None = PASSWORD) -> dict[str, str]:
    found = {"ssl.truststore.location": str(path), "ssl.truststore.type": kind}
    return found | ({"ssl.truststore.password": password} if password else {})


def key(path: Path, kind: str, password: str | None = PASSWORD, **more: str) -> dict[str, str]:
    found = {"ssl.keystore.location": str(path), "ssl.keystore.type": kind}
    found |= {name.replace("_", "."): value for name, value in more.items()}
    return found | ({"ssl.keystore.password": password} if password else {})


def test_a_jks_trust_store_is_the_authority_s_certificate(authority: Authority) -> None:
    store = authority.trust_store("trust.jks", kind="JKS")
    expected = read(authority.certificate.read_text()).certificates

    for password in (PASSWORD, None):
        found = confluent(trust(store, "JKS", password))
        assert Path(found["ssl.ca.location"]).read_text() == expected


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_a_pkcs12_trust_store_under_either_name(authority: Authority, kind: str) -> None:
    found = confluent(trust(authority.trust_store(), kind))

    assert Path(found["ssl.ca.location"]).read_text() == read(authority.certificate.read_text()).certificates


def test_a_store_with_a_key_that_is_trusted_too(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Authority.make(tmp_path / "other")
    store = authority.issue("both")
    authority.tool(store.name, "-importcert", "-noprompt", "-alias", "theirs", "-file", str(other.certificate))
    trusted = Path(confluent(trust(store, "PKCS12"))["ssl.ca.location"]).read_text()
    assert read(other.certificate.read_text()).certificates in trusted
    own = Path(confluent(key(store, "PKCS12"))["ssl.certificate.location"]).read_text()
    assert read(other.certificate.read_text()).certificates not in own


def test_a_password_that_comes_with_a_line_break(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    store = authority.trust_store("trust.jks", kind="JKS")
    found = confluent(trust(store, "JKS", f"${{directory:{tmp_path}:password}}"))
    assert Path(found["ssl.ca.location"]).read_text() == read(authority.certificate.read_text()).certificates


def test_without_cryptography_one_line_says_what_to_install(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives.serialization.pkcs12", None)

    assert line(trust(authority.trust_store(), "PKCS12")).endswith(
        "is a PKCS12 store, which needs the package cryptography: pip install mirrorless"
    )


@pytest.mark.parametrize("key_password", [PASSWORD, "another-one"])
def test_a_jks_key_store(authority: Authority, client: Path, key_password: str) -> None:
    store = authority.as_jks(client, key_password=key_password)
    more = {} if key_password == PASSWORD else {"ssl_key_password": key_password}
    found = confluent(key(store, "JKS", **more))

    plain = read(authority.as_pem(client).read_text())
    assert read(found["ssl.key.pem"]).key == plain.key
    assert Path(found["ssl.certificate.location"]).read_text() == plain.certificates


def test_a_pkcs12_key_store(authority: Authority, client: Path) -> None:
    found = confluent(key(client, "PKCS12"))

    plain = read(authority.as_pem(client).read_text())
    # That the key belongs to the certificate was tried; it may be written in more than one way.
    assert read(found["ssl.key.pem"]).key is not None
    assert Path(found["ssl.certificate.location"]).read_text() == plain.certificates


def test_pem_files_are_used_as_they_are(authority: Authority, client: Path) -> None:
    plain, covered = authority.as_pem(client), authority.as_pem(client, password=OF_THE_KEY)
    found = confluent(key(plain, "PEM", None) | trust(authority.certificate, "PEM", None))

    assert (found["ssl.key.location"], found["ssl.ca.location"]) == (str(plain), str(authority.certificate))
    found = confluent(key(covered, "PEM", None, ssl_key_password=OF_THE_KEY))
    assert (found["ssl.key.location"], found["ssl.key.password"]) == (str(covered), OF_THE_KEY)


@pytest.mark.parametrize("on_one_line", [False, True])
def test_pem_in_the_settings(authority: Authority, client: Path, *, on_one_line: bool) -> None:
    plain = read(authority.as_pem(client).read_text())
    assert plain.key is not None
    texts = [plain.certificates, plain.key, authority.certificate.read_text()]
    chain, private, trusted = [text.replace("\n", " ") if on_one_line else text for text in texts]
    found = confluent(
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": private,
            "ssl.keystore.certificate.chain": chain,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": trusted,
        }
    )

    assert found["ssl.key.pem"] == plain.key
    assert Path(found["ssl.certificate.location"]).read_text() == plain.certificates


def test_no_private_key_is_written_down(authority: Authority, client: Path) -> None:
    found = confluent(key(authority.as_jks(client), "JKS"))

    folder = Path(found["ssl.certificate.location"]).parent
    assert folder.stat().st_mode & 0o077 == 0
    assert not any("PRIVATE KEY" in path.read_text() for path in folder.iterdir())


def test_one_line_for_each_mistake(authority: Authority, client: Path, tmp_path: Path) -> None:
    jks, trusted = authority.as_jks(client), authority.trust_store("trust.jks", kind="JKS")
    covered = authority.as_pem(client, password=OF_THE_KEY)
    (tmp_path / "text").write_text("hello")
    (tmp_path / "cut.jks").write_bytes(jks.read_bytes()[:100])
    unfit = "cannot be opened: the store's password is wrong, or the file is damaged"

    assert line(key(jks, "JKS", WRONG)).endswith(f"A.ssl.keystore.location={jks}: {unfit}")
    assert line(trust(trusted, "JKS", WRONG)).endswith(f"A.ssl.truststore.location={trusted}: {unfit}")
    assert line(key(tmp_path / "cut.jks", "JKS", None)).endswith("is a damaged JKS store")
    assert line(key(jks, "JKS", ssl_key_password=WRONG)).endswith(
        "its key cannot be opened: the key's password is wrong"
    )
    assert line(key(covered, "PEM", None)).endswith("its key is encrypted; set ssl.key.password")
    assert line(key(covered, "PEM", None, ssl_key_password=WRONG)).endswith("ssl.key.password is wrong")
    assert line(key(trusted, "JKS")).endswith("has no key; a key store needs both")
    assert line(trust(tmp_path / "text", "PEM", None)).endswith("is not PEM: no -----BEGIN ...-----")
    assert line(trust(tmp_path / "none", "JKS")).endswith("none: cannot be read: No such file or directory")
    assert line(trust(authority.certificate, "PEM")).endswith("a PEM file has no store password; remove it")
    assert "BCFKS is not supported; use JKS or PKCS12 or PEM" in line(trust(trusted, "BCFKS"))


def test_a_pkcs12_store_and_a_wrong_password(client: Path) -> None:
    assert "the store's password is wrong" in line(key(client, "PKCS12", WRONG))


def test_a_key_of_somebody_else(authority: Authority, client: Path, tmp_path: Path) -> None:
    other = read(authority.as_pem(authority.issue("other")).read_text())
    mixed = tmp_path / "mixed.pem"
    mixed.write_text(read(authority.as_pem(client).read_text()).certificates + (other.key or ""))

    assert line(key(mixed, "PEM", None)).endswith("its key does not belong to its first certificate")
