"""Java client settings arrive at both libraries in their own words; what cannot be honoured is refused."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from mirrorless.clusters.client_settings import Role, for_confluent, for_kafka_python
from mirrorless.clusters.java_settings import TUNING_KEYS
from mirrorless.errors import ConfigurationError
from mirrorless.settings import Cluster
from mirrorless.settings.client_keys import COMMON_CLIENT_KEYS

with warnings.catch_warnings():
    # kafka-python reads its message schemas with functions that Python 3.11 and 3.12 call deprecated
    warnings.filterwarnings("ignore", message="(read|open)_text is deprecated", category=DeprecationWarning)
    from kafka.net.manager import KafkaConnectionManager

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def cluster(client: dict[str, str] | None = None, *, servers: str = "a:9092,b:9092") -> Cluster:
    return Cluster(alias="A", bootstrap_servers=servers, client=client or {})


def sasl(mechanism: str, config: str, protocol: str = "SASL_PLAINTEXT") -> dict[str, str]:
    return {"security.protocol": protocol, "sasl.mechanism": mechanism, "sasl.jaas.config": config}


def test_a_bare_cluster() -> None:
    assert for_confluent(cluster(), role="admin") == {
        "bootstrap.servers": "a:9092,b:9092",
        "client.id": "mirrorless",
        "security.protocol": "PLAINTEXT",
        "allow.auto.create.topics": False,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1_000,
        "socket.timeout.ms": 30_000,
        "socket.connection.setup.timeout.ms": 10_000,
    }
    assert for_kafka_python(cluster(), role="consumer") == {
        "bootstrap_servers": ["a:9092", "b:9092"],
        "client_id": "mirrorless",
        "security_protocol": "PLAINTEXT",
        "reconnect_backoff_ms": 50,
        "reconnect_backoff_max_ms": 1_000,
    }


def test_a_role_beats_the_plain_key_and_extra_beats_both() -> None:
    client = {"client.id": "every", "consumer.client.id": "reader", "producer.bootstrap.servers": "p:1"}

    assert for_confluent(cluster(client), role="consumer")["client.id"] == "reader"
    assert for_confluent(cluster(client), role="producer")["client.id"] == "every"
    assert for_confluent(cluster(client), role="producer")["bootstrap.servers"] == "p:1"
    assert for_confluent(cluster(client), role="consumer", extra={"client.id": "x", "group.id": "g"}).items() >= {
        ("client.id", "x"),
        ("group.id", "g"),
    }


def test_the_rack_is_that_of_consumers() -> None:
    client = {"client.rack": "use1-az1"}
    assert for_confluent(cluster(client), role="consumer")["client.rack"] == "use1-az1"
    assert for_kafka_python(cluster(client), role="consumer")["client_rack"] == "use1-az1"
    for role in ("admin", "producer"):
        assert "client.rack" not in for_confluent(cluster(client), role=role)
        assert "client_rack" not in for_kafka_python(cluster(client), role=role)
    own = cluster(client | {"consumer.client.rack": "use1-az2"})
    assert for_kafka_python(own, role="consumer")["client_rack"] == "use1-az2"
    assert "client_rack" not in for_kafka_python(cluster({"consumer.client.rack": " "}), role="consumer")
    Consumer(for_confluent(own, role="consumer", extra={"group.id": "g"})).close()


@pytest.mark.parametrize("role", ["admin", "consumer", "producer"])
def test_no_client_creates_topics(role: Role) -> None:
    asked = cluster({"consumer.allow.auto.create.topics": "true"})
    assert for_confluent(asked, role=role)["allow.auto.create.topics"] is False
    assert (
        for_confluent(asked, role=role, extra={"allow.auto.create.topics": True})["allow.auto.create.topics"] is False
    )


def test_numbers() -> None:
    client = {
        "request.timeout.ms": " 5000 ",
        "reconnect.backoff.ms": "70",
        "reconnect.backoff.max.ms": "900",
        "connections.max.idle.ms": "60000",
        "metadata.max.age.ms": "1000",
    }

    assert for_confluent(cluster(client), role="admin").items() >= {
        ("socket.timeout.ms", 5000),
        ("reconnect.backoff.ms", 70),
        ("reconnect.backoff.max.ms", 900),
        ("connections.max.idle.ms", 60000),
        ("topic.metadata.refresh.interval.ms", 1000),
    }
    assert for_kafka_python(cluster(client), role="admin").items() >= {
        ("request_timeout_ms", 5000),
        ("reconnect_backoff_ms", 70),
        ("reconnect_backoff_max_ms", 900),
        ("connections_max_idle_ms", 60000),
        ("metadata_max_age_ms", 1000),
    }


@pytest.mark.parametrize(
    ("client", "least", "greatest"),
    [
        ({}, 50, 1000),
        ({"reconnect.backoff.ms": "20000"}, 20000, 20000),
        ({"reconnect.backoff.max.ms": "20"}, 20, 20),
        ({"reconnect.backoff.max.ms": "2000"}, 50, 2000),
        ({"reconnect.backoff.ms": "200", "reconnect.backoff.max.ms": "100"}, 100, 100),
    ],
)
def test_backoff_has_java_s_two_ends(client: dict[str, str], least: int, greatest: int) -> None:
    settings = for_kafka_python(cluster(client), role="admin")

    assert (settings["reconnect_backoff_ms"], settings["reconnect_backoff_max_ms"]) == (least, greatest)
    AdminClient(for_confluent(cluster(client), role="admin"))


def test_connections_that_never_go_idle() -> None:
    client = {"connections.max.idle.ms": "-1"}

    assert for_confluent(cluster(client), role="admin")["connections.max.idle.ms"] == 0
    assert for_kafka_python(cluster(client), role="admin")["connections_max_idle_ms"] == 2**31 - 1


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"])
def test_user_and_password(mechanism: str) -> None:
    module = PLAIN if mechanism == "PLAIN" else SCRAM
    client = sasl(mechanism, f'{module} required username="al" password="sword\\"fish;";', "sasl_ssl")

    assert for_confluent(cluster(client), role="admin").items() >= {
        ("security.protocol", "SASL_SSL"),
        ("sasl.mechanism", mechanism),
        ("sasl.username", "al"),
        ("sasl.password", 'sword"fish;'),
    }
    assert for_kafka_python(cluster(client), role="admin").items() >= {
        ("security_protocol", "SASL_SSL"),
        ("sasl_mechanism", mechanism),
        ("sasl_plain_username", "al"),
        ("sasl_plain_password", 'sword"fish;'),
    }


def test_settings_of_java_s_own_ways_are_passed_over() -> None:
    client = {
        "security.protocol": "SSL",
        "ssl.provider": "SunJSSE",
        "ssl.protocol": "TLSv1.3",
        "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
        "ssl.trustmanager.algorithm": "PKIX",
        "ssl.truststore.password": "of no store",
        "sasl.login.refresh.window.factor": "0.8",
    }

    assert for_confluent(cluster(client), role="admin")["security.protocol"] == "SSL"


def test_host_names_are_checked_unless_that_is_switched_off() -> None:
    client = {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "HTTPS"}

    assert for_confluent(cluster(client), role="admin")["ssl.endpoint.identification.algorithm"] == "https"
    assert for_kafka_python(cluster(client), role="admin")["ssl_check_hostname"] is True


def test_settings_of_a_protocol_that_is_not_used_have_no_effect() -> None:
    client = {
        "ssl.truststore.location": "/tls/ca.jks",
        "ssl.unheard.of": "x",
        "sasl.mechanism": "GSSAPI",
        "sasl.jaas.config": "nonsense",
    }

    assert for_confluent(cluster(client), role="admin") == for_confluent(cluster(), role="admin")


def test_settings_that_only_tune_are_passed_over() -> None:
    client = {f"consumer.{key}": "whatever" for key in TUNING_KEYS}

    assert for_kafka_python(cluster(client), role="consumer") == for_kafka_python(cluster(), role="consumer")


def test_what_the_file_gives_to_every_client_is_honoured_or_passed_over() -> None:
    client = dict.fromkeys(sorted(COMMON_CLIENT_KEYS), "1000")

    assert for_confluent(cluster(client), role="admin")["client.id"] == "1000"


FULL: dict[str, str] = {
    **sasl("PLAIN", f"{PLAIN} required username=al password=swordfish;"),
    "client.id": "x",
    "request.timeout.ms": "10",
    "reconnect.backoff.ms": "0",
    "connections.max.idle.ms": str(2**40),
    "metadata.max.age.ms": str(2**40),
}


def test_librdkafka_takes_what_it_is_given() -> None:
    AdminClient(for_confluent(cluster(FULL), role="admin"))
    Producer(for_confluent(cluster(FULL), role="producer"))
    Consumer(for_confluent(cluster(FULL), role="consumer", extra={"group.id": "g"})).close()


def test_kafka_python_knows_every_parameter() -> None:
    client = FULL | {"security.protocol": "SASL_SSL", "ssl.endpoint.identification.algorithm": "https"}

    assert for_kafka_python(cluster(client), role="admin").keys() <= KafkaConnectionManager.DEFAULT_CONFIG.keys()


TLS = {"security.protocol": "SSL"}
MECHANISMS = "PLAIN or SCRAM-SHA-256 or SCRAM-SHA-512 or OAUTHBEARER or AWS_MSK_IAM"


@pytest.mark.parametrize(
    ("client", "line"),
    [
        (
            {"security.protocol": "TLS"},
            "A.security.protocol=TLS: TLS is not supported; use PLAINTEXT or SSL or SASL_PLAINTEXT or SASL_SSL",
        ),
        (
            {"security.protocol": "SASL_SSL"},
            f"A.sasl.mechanism=GSSAPI: GSSAPI is not supported; use {MECHANISMS}",
        ),
        (
            sasl("OAUTHBEARER", "x"),
            "A.sasl.jaas.config=***: the login module must be followed by one of "
            "required, requisite, sufficient, optional",
        ),
        (
            sasl("PLAIN", ""),
            'A.sasl.jaas.config=***: is not set; use PlainLoginModule required username="..." password="...";',
        ),
        (
            sasl("PLAIN", f"{SCRAM} required username=al password=swordfish;"),
            "A.sasl.jaas.config=***: PLAIN requires login module PlainLoginModule",
        ),
        (
            sasl("SCRAM-SHA-256", f"{SCRAM} required username=al password=swordfish tokenauth=true;"),
            "A.sasl.jaas.config=***: delegation tokens are not supported; log in with user and password",
        ),
        (
            sasl("PLAIN", f"{PLAIN} required password=swordfish;"),
            'A.sasl.jaas.config=***: has no username; add username="..."',
        ),
        (
            sasl("PLAIN", f"{PLAIN} required username=swordfish;"),
            'A.sasl.jaas.config=***: has no password; add password="..."',
        ),
        (
            sasl("PLAIN", f"{PLAIN} required username=al password=swordfish"),
            "A.sasl.jaas.config=***: a semicolon is missing at the end",
        ),
        (
            sasl("PLAIN", f"{PLAIN} required username=al password=swordfish;")
            | {"sasl.login.callback.handler.class": "swordfish"},
            "A.sasl.login.callback.handler.class: this setting is not supported here; remove it",
        ),
        (
            TLS | {"ssl.truststore.location": "/none/ca.jks"},
            "A.ssl.truststore.location=/none/ca.jks: cannot be read: No such file or directory",
        ),
        (
            TLS | {"admin.ssl.keystore.location": "/none/me.p12", "ssl.keystore.type": "PKCS12"},
            "A.admin.ssl.keystore.location=/none/me.p12: cannot be read: No such file or directory",
        ),
        (
            TLS | {"ssl.keystore.key": "swordfish"},
            "A.ssl.keystore.certificate.chain: is not set; key and certificates must be set together",
        ),
        (
            TLS | {"ssl.keystore.key": "swordfish", "ssl.keystore.certificate.chain": "x"},
            "A.ssl.keystore.type=JKS: must be PEM, because ssl.keystore.key is",
        ),
        (
            TLS | {"ssl.truststore.certificates": "swordfish", "ssl.truststore.type": "PEM"},
            "A.ssl.truststore.certificates=swordfish: is not PEM: no -----BEGIN ...-----",
        ),
        (
            TLS | {"ssl.truststore.certificates": "x", "ssl.truststore.location": "/ca"},
            "A.ssl.truststore.location=/ca: cannot be combined with ssl.truststore.certificates; remove one of them",
        ),
        (
            TLS | {"ssl.enabled.protocols": "TLSv1,TLSv1.1"},
            "A.ssl.enabled.protocols=TLSv1,TLSv1.1: must include TLSv1.2; TLSv1.3 is used if the broker supports it",
        ),
        (TLS | {"ssl.protocol": "SSLv3"}, "A.ssl.protocol=SSLv3: is not supported; use TLSv1.2 or TLSv1.3"),
        (TLS | {"ssl.cipher.suites": "x"}, "A.ssl.cipher.suites: this setting is not supported here; remove it"),
        (
            TLS | {"ssl.endpoint.identification.algorithm": "ldaps"},
            "A.ssl.endpoint.identification.algorithm=ldaps: must be https, or empty to accept any host name",
        ),
        (TLS | {"ssl.odd": "swordfish"}, "A.ssl.odd: this setting is not supported here; remove it"),
        ({"admin.odd": "swordfish"}, "A.admin.odd: this setting is not supported here; remove it"),
        ({"request.timeout.ms": "soon"}, "A.request.timeout.ms=soon: must be a whole number, 10 to 300000"),
        ({"request.timeout.ms": "300001"}, "A.request.timeout.ms=300001: must be 10 to 300000"),
        ({"metadata.max.age.ms": "-1"}, "A.metadata.max.age.ms=-1: must be 0 or more"),
    ],
)
def test_what_cannot_be_honoured_is_refused_in_one_line(client: dict[str, str], line: str) -> None:
    translations: list[Any] = [for_confluent, for_kafka_python]
    for translate in translations:
        with pytest.raises(ConfigurationError) as caught:
            translate(cluster(client), role="admin")
        assert str(caught.value) == line


def test_a_setting_of_another_role_is_not_looked_at() -> None:
    assert for_confluent(cluster({"consumer.odd": "x"}), role="admin") == for_confluent(cluster(), role="admin")
