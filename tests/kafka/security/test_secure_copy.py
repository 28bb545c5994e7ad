"""A flow between clusters that let nobody in without a login, and the line that says why they do not let us in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.errors import ClusterUnavailable
from mirrorless.kafka_python.event_loop import EventLoop
from mirrorless.protocol.cluster_client import ClusterClient
from mirrorless.settings import Cluster, load
from tests.kafka.security.conftest import BEARER, USER, USER_PASSWORD
from tests.support.certificates import PASSWORD
from tests.support.metadata import discover_topics
from tests.support.processes import Mirrorless
from tests.support.world import World, fill

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.security.conftest import Secured

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required username=a password=b;"


def secure_world(secured: Secured, folder: Path, source: dict[str, str], target: dict[str, str]) -> World:
    """A flow whose file reaches both clusters by their secure listeners only."""
    world = World(secured.source, secured.target, folder)
    for alias, settings in ((world.source_alias, source), (world.target_alias, target)):
        world.extra |= {f"{alias}.{key}": value.replace("\\", "\\\\") for key, value in settings.items()}
    return world


def refusal(settings: dict[str, str]) -> str:
    """What is printed where a cluster does not let us in."""
    servers = settings["bootstrap.servers"]
    client = {key: value for key, value in settings.items() if key != "bootstrap.servers"}
    with pytest.raises(ClusterUnavailable) as caught:
        Admin(Cluster(alias="A", bootstrap_servers=servers, client=client)).metadata(timeout_s=3)
    line = str(caught.value)
    # A broker that refuses a login or a certificate has answered.
    assert line.startswith((f"cluster A: no answer from {servers}: ", f"cluster A: {servers}: "))
    assert "\n" not in line
    return line.removeprefix("cluster A: ").removeprefix("no answer from ").removeprefix(f"{servers}: ")


def test_records_go_over(secured: Secured, tmp_path: Path) -> None:
    world = secure_world(secured, tmp_path, secured.source_settings(), secured.target_settings())
    topic = world.topic(partitions=2)
    fill(secured.source, topic, (b"%d" % number for number in range(1000)), partitions=2)

    reports = world.copy()

    assert [report.error for report in reports] == [None, None]
    assert world.assert_equal(topic) == 1000


def test_records_go_over_with_a_password_kept_elsewhere(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = secured.source_settings()["sasl.jaas.config"]
    monkeypatch.setenv("MM2_LOGIN", login)
    source = secured.source_settings() | {"sasl.jaas.config": "${env:MM2_LOGIN}"}
    world = secure_world(secured, tmp_path, source, secured.target_settings())
    topic = world.topic()
    fill(secured.source, topic, [b"a", b"b"])

    world.copy()

    assert world.assert_equal(topic) == 2
    assert login not in world.file.read_text()


def test_a_whole_run(secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MM2_LOGIN", secured.source_settings()["sasl.jaas.config"])
    source = secured.source_settings() | {"sasl.jaas.config": "${env:MM2_LOGIN}"}
    world = secure_world(secured, tmp_path, source, secured.target_settings())
    topic = world.topic(partitions=2)
    fill(secured.source, topic, (b"%d" % number for number in range(1000)), partitions=2)

    with Mirrorless(world.file, "--available-now") as process:
        assert process.wait() == 0
        assert world.assert_equal(topic) == 1000
        for secret in (USER_PASSWORD, PASSWORD):
            assert secret not in process.text()


def test_a_bearer_token_opens_for_both_libraries(secured: Secured) -> None:
    cluster = Cluster(
        alias="A",
        bootstrap_servers=secured.target.secure_servers("bearer"),
        client={
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f'{BEARER} unsecuredLoginStringClaim_sub="alice";',
        },
    )
    assert len(Admin(cluster).metadata().brokers) == 1

    net = EventLoop()
    wire = ClusterClient(net, cluster="A", config=for_kafka_python(cluster, role="consumer"))
    net.run(wire.connect(timeout_ms=20_000, topics=[]))
    assert wire.cluster_id == secured.target.cluster_id
    wire.close()
    net.close()


def test_a_certificate_for_another_name_is_accepted_where_names_are_not_checked(secured: Secured) -> None:
    settings = secured.target_settings("elsewhere") | {"ssl.endpoint.identification.algorithm": ""}
    servers = settings.pop("bootstrap.servers")

    assert Admin(Cluster(alias="A", bootstrap_servers=servers, client=settings)).metadata().brokers


def test_a_wrong_password(secured: Secured) -> None:
    line = refusal(secured.source_settings(password="tunafish"))  # noqa: S106 -- a wrong one

    assert line.startswith(f"the login of {USER} was refused; check user and password in sasl.jaas.config (")
    assert "tunafish" not in line


def test_a_wrong_password_stops_a_flow_with_the_same_line(secured: Secured, tmp_path: Path) -> None:
    source = secured.source_settings(password="tunafish")  # noqa: S106 -- a wrong one
    world = secure_world(secured, tmp_path, source, secured.target_settings())
    with pytest.raises(ClusterUnavailable, match=rf"^cluster {world.source_alias}: .* the login of {USER} was refused"):
        discover_topics(load(world.write_settings()).flow(world.flow))


def test_an_expired_certificate(secured: Secured) -> None:
    assert refusal(secured.target_settings("expired")) == (
        "the broker's certificate has expired; renew it on the broker"
    )


def test_a_wrong_host_name(secured: Secured) -> None:
    assert refusal(secured.target_settings("elsewhere")) == (
        "the broker's certificate is not for 127.0.0.1; use the certificate's name in bootstrap.servers, or set "
        "ssl.endpoint.identification.algorithm to an empty value"
    )


def test_an_authority_that_nobody_trusts(secured: Secured) -> None:
    settings = {key: value for key, value in secured.source_settings().items() if "truststore" not in key}

    line = refusal(settings)
    assert line.startswith("the broker's certificate is not signed by a trusted CA (")
    assert line.endswith("; set ssl.truststore.location to a store with its CA")


def test_no_certificate_of_our_own(secured: Secured) -> None:
    settings = {key: value for key, value in secured.target_settings().items() if "keystore" not in key}

    assert refusal(settings) == ("the broker requires a client certificate; set ssl.keystore.location to a key store")


def test_tls_where_there_is_none(secured: Secured) -> None:
    settings = secured.source_settings() | {"bootstrap.servers": secured.source.bootstrap_servers}

    assert refusal(settings) == "the broker does not use TLS on this port; correct security.protocol or the port"


def test_a_mechanism_that_the_broker_does_not_have(secured: Secured) -> None:
    line = refusal(secured.source_settings() | {"sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN})

    assert line.endswith("Unsupported SASL mechanism: broker's supported mechanisms: SCRAM-SHA-512")
