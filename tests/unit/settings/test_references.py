"""References to values kept elsewhere are resolved where a client is made, and shown nowhere."""

from __future__ import annotations

import logging
import pickle
from typing import TYPE_CHECKING

import pytest

from mirrorless.clusters.client_settings import for_confluent, for_kafka_python
from mirrorless.errors import ConfigurationError
from mirrorless.settings import Settings, load
from mirrorless.settings.load import understand
from mirrorless.settings.references import resolve

if TYPE_CHECKING:
    from pathlib import Path

BASE = """
clusters = A, B
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
A->B.enabled = true
"""
LOGIN = """
A.security.protocol = SASL_PLAINTEXT
A.sasl.mechanism = PLAIN
A.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username="al" password="%s";
"""


def loaded(folder: Path, text: str) -> Settings:
    path = folder / "mm2.properties"
    path.write_text(BASE + text)
    return load(path)


def test_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MM2_PASSWORD", "swordfish")
    source = loaded(tmp_path, LOGIN % "${env:MM2_PASSWORD}").flow("A->B").source

    assert for_confluent(source, role="admin")["sasl.password"] == "swordfish"
    assert for_kafka_python(source, role="consumer")["sasl_plain_password"] == "swordfish"  # noqa: S105


def test_a_file_as_kafka_reads_it(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("other = x\npassword = sword\\u0066ish\n")

    assert resolve(f"${{file:{secrets}:password}}", key="k") == "swordfish"
    assert resolve(f"<${{file:{secrets}:other}} ${{directory:{tmp_path}:secrets.properties}}", key="k").startswith(
        "<x oth"
    )


def test_resolving_is_late_and_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MM2_PASSWORD", raising=False)
    source = loaded(tmp_path, LOGIN % "${env:MM2_PASSWORD}").flow("A->B").source

    monkeypatch.setenv("MM2_PASSWORD", "one")
    assert for_confluent(source, role="admin")["sasl.password"] == "one"
    monkeypatch.setenv("MM2_PASSWORD", "two")
    assert for_confluent(source, role="admin")["sasl.password"] == "two"


def test_nothing_that_is_shown_or_sent_has_the_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MM2_PASSWORD", "swordfish")
    text = LOGIN % "${env:MM2_PASSWORD}" + "A.client.id = ${env:MM2_PASSWORD}\n"
    with caplog.at_level(logging.DEBUG):
        settings = loaded(tmp_path, text)
        for_confluent(settings.flow("A->B").source, role="admin")

    shown = f"{settings!r} {settings.model_dump_json()} {understand(settings.file)!r} {caplog.text}"
    assert "swordfish" not in shown
    assert b"swordfish" not in pickle.dumps(settings)


@pytest.mark.parametrize(
    "line",
    [
        "A.security.protocol = ${env:MM2_PASSWORD}",
        "A.request.timeout.ms = ${env:MM2_PASSWORD}",
        "A.bootstrap.servers = ${env:MM2_PASSWORD}",
        "A.security.protocol = SSL\nA.ssl.endpoint.identification.algorithm = ${env:MM2_PASSWORD}",
        "A.security.protocol = SSL\nA.ssl.truststore.type = ${env:MM2_PASSWORD}\nA.ssl.truststore.location = /x",
        "A.security.protocol = SSL\nA.ssl.truststore.type = PEM\nA.ssl.truststore.certificates = ${env:MM2_PASSWORD}",
        "A.security.protocol = SASL_SSL\nA.sasl.mechanism = ${env:MM2_PASSWORD}",
        "A.security.protocol = SASL_SSL\nA.sasl.mechanism = PLAIN\nA.sasl.jaas.config = ${env:MM2_PASSWORD}",
        "replication.factor = ${env:MM2_PASSWORD}",
        "topics = (${env:MM2_PASSWORD}",
        "A->B.refresh.topics.enabled = ${env:MM2_PASSWORD}",
        "mirrorless.start.timestamp = ${env:MM2_PASSWORD}",
    ],
)
def test_no_error_quotes_what_a_reference_stands_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setenv("MM2_PASSWORD", "swordfish")
    with pytest.raises(ConfigurationError) as caught:
        for_confluent(loaded(tmp_path, line).flow("A->B").source, role="admin")

    assert "swordfish" not in str(caught.value).lower()
    assert "\n" not in str(caught.value)


def test_any_setting_may_be_a_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MM2_BROKERS", "x:1; y:2")
    monkeypatch.setenv("MM2_TOPICS", "a, b")
    monkeypatch.setenv("MM2_ON", "true")
    settings = loaded(
        tmp_path,
        "A.bootstrap.servers = ${env:MM2_BROKERS}\nA->B.enabled = ${env:MM2_ON}\ntopics = ${env:MM2_TOPICS}\n",
    )

    flow = settings.flow("A->B")
    assert flow.topics == ("a", "b")
    assert flow.source.bootstrap_servers == "${env:MM2_BROKERS}"
    assert for_confluent(flow.source, role="admin")["bootstrap.servers"] == "x:1,y:2"


def test_a_provider_may_have_a_name_and_limits_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    for folder in ("", "in/"):
        (tmp_path / f"{folder}s.properties").write_text("password = swordfish\n")
    declared = f"""
    config.providers = vault, e
    config.providers.vault.class = org.apache.kafka.common.config.provider.FileConfigProvider
    config.providers.vault.param.allowed.paths = {tmp_path}/in
    config.providers.e.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider
    config.providers.e.param.allowlist.pattern = MM2_.*
    """
    monkeypatch.setenv("MM2_ID", "me")
    text = LOGIN % f"${{vault:{tmp_path}/in/s.properties:password}}" + "A.client.id = ${e:MM2_ID}"
    client = for_confluent(loaded(tmp_path, declared + text).flow("A->B").source, role="admin")
    assert (client["sasl.password"], client["client.id"]) == ("swordfish", "me")

    for path in ("s.properties", "in/../s.properties"):
        with pytest.raises(ConfigurationError, match=r"A\.sasl\.jaas\.config: .*allowed\.paths does not allow "):
            loaded(tmp_path, declared + LOGIN % f"${{vault:{tmp_path}/{path}:password}}")
    with pytest.raises(ConfigurationError, match=r"A\.client\.id: .*allowlist\.pattern does not allow it"):
        loaded(tmp_path, declared + "A.client.id = ${e:HOME}")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("A.client.id = ${azure:x:y}", "A.client.id: config provider azure is not declared; built in: env, file"),
        (
            'A.sasl.jaas.config = M required password="a${swordfish:x:y}";',
            "A.sasl.jaas.config: config provider *** is not declared; built in: ",
        ),
        (
            "config.providers = vault\nA.ssl.key.password = ${vault:x:y}",
            "A.ssl.key.password: config provider vault is not declared; built in: env, file",
        ),
        (
            "config.providers = v\nconfig.providers.v.class = my.Vault",
            "config.providers.v.class=my.Vault: Java classes are not loaded; use one of EnvVarConfigProvider",
        ),
        (
            "config.providers=v\nconfig.providers.v.class=x.FileConfigProvider\nconfig.providers.v.param.x=1",
            "config.providers.v.param.x: this restriction is not supported; remove it",
        ),
        ("tasks.max = ${env:MM2_NONE}", "tasks.max=${env:MM2_NONE}: environment variable MM2_NONE is not set"),
        ("tasks.max = ${file:/none:a}", "tasks.max=${file:/none:a}: /none cannot be read: No such file or directory"),
        ("tasks.max = ${file:a}", "tasks.max=${file:***}: must be ${file:path:key}"),
    ],
)
def test_what_cannot_be_resolved_is_one_line(tmp_path: Path, text: str, line: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, text)

    assert str(caught.value).startswith(f"{tmp_path / 'mm2.properties'}: {line}")


def test_a_key_that_a_file_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("password = swordfish")
    with pytest.raises(ConfigurationError, match=r"has no key passwort$"):
        resolve(f"${{file:{tmp_path / 's'}:passwort}}", key="k")
