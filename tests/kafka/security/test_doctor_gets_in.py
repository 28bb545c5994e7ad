"""The doctor says at which step a cluster cannot be entered, in the words of the copy, and leaves out what follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.doctor.connectivity import BROKERS, LOGIN, NAMES, PORTS, SETTINGS, TLS, reach
from mirrorless.doctor.findings import Status
from mirrorless.local.broker import free_ports
from mirrorless.settings import Cluster
from tests.kafka.security.conftest import USER, USER_PASSWORD
from tests.support.certificates import PASSWORD

if TYPE_CHECKING:
    from mirrorless.doctor.findings import Finding
    from tests.kafka.security.conftest import Secured

STEPS = [SETTINGS, NAMES, PORTS, TLS, LOGIN, BROKERS]


def reached(settings: dict[str, str]) -> list[Finding]:
    client = {key: value for key, value in settings.items() if key != "bootstrap.servers"}
    found, metadata = reach(Cluster(alias="A", bootstrap_servers=settings["bootstrap.servers"], client=client))
    assert [one.check for one in found] == STEPS
    assert (metadata is not None) == all(one.status in (Status.OK, Status.WARNING) for one in found)
    assert not any(secret in one.text for one in found for secret in (USER_PASSWORD, PASSWORD))
    return found


def failure(settings: dict[str, str]) -> Finding:
    """The step that failed; all before it are fine, all behind it were not tried."""
    found = reached(settings)
    (failed,) = [one for one in found if one.status is Status.FAILED]
    at = STEPS.index(failed.check)
    assert {one.status for one in found[:at]} <= {Status.OK}
    assert [(one.status, one.text) for one in found[at + 1 :]] == [
        (Status.NOT_CHECKED, f"{failed.check} failed") for _ in found[at + 1 :]
    ]
    return failed


def test_both_ways_in(secured: Secured) -> None:
    for settings in (secured.source_settings(), secured.target_settings()):
        assert {one.status for one in reached(settings)} == {Status.OK}


def test_a_setting_that_cannot_be_honoured(secured: Secured) -> None:
    failed = failure(secured.source_settings() | {"sasl.mechanism": "GSSAPI"})

    assert failed.check == SETTINGS
    assert "sasl.mechanism" in failed.text


def test_a_name_that_does_not_resolve(secured: Secured) -> None:
    failed = failure(secured.source_settings() | {"bootstrap.servers": "kafka.invalid:9092"})

    assert failed.check == NAMES
    assert failed.text.startswith("kafka.invalid:9092 does not resolve")


def test_a_port_where_nobody_listens(secured: Secured) -> None:
    (port,) = free_ports(1)
    failed = failure(secured.source_settings() | {"bootstrap.servers": f"127.0.0.1:{port}"})

    assert failed.check == PORTS
    assert failed.text == f"127.0.0.1:{port} refuses connections (Connection refused)"


def test_one_bootstrap_server_of_two_is_down(secured: Secured) -> None:
    (port,) = free_ports(1)
    servers = f"127.0.0.1:{port},{secured.source.secure_servers('scram')}"
    found = {one.check: one for one in reached(secured.source_settings() | {"bootstrap.servers": servers})}

    assert found[PORTS].status is Status.WARNING
    assert str(port) in found[PORTS].text
    assert found[LOGIN].status is Status.OK


@pytest.mark.parametrize(
    ("listener", "text", "fix"),
    [
        ("expired", "the broker's certificate has expired", "renew it on the broker"),
        (
            "elsewhere",
            "the broker's certificate is not for 127.0.0.1",
            "use the certificate's name in bootstrap.servers, or set ssl.endpoint.identification.algorithm to an empty "
            "value",
        ),
    ],
)
def test_a_certificate_that_is_not_good(secured: Secured, listener: str, text: str, fix: str) -> None:
    failed = failure(secured.target_settings(listener))

    assert failed.check == TLS
    assert failed.text.endswith(text)
    assert failed.fix == fix


def test_tls_where_there_is_none(secured: Secured) -> None:
    failed = failure(secured.source_settings() | {"bootstrap.servers": secured.source.bootstrap_servers})

    assert failed.check == TLS
    assert failed.text.endswith("the broker does not use TLS on this port")


def test_a_wrong_password(secured: Secured) -> None:
    failed = failure(secured.source_settings(password="tunafish"))  # noqa: S106 -- a wrong one

    assert failed.check == LOGIN
    assert f"the login of {USER} was refused" in failed.text
    assert failed.fix is not None
    assert failed.fix.startswith("check user and password in sasl.jaas.config")
    assert "tunafish" not in failed.text + failed.fix


def test_no_certificate_of_our_own(secured: Secured) -> None:
    settings = {key: value for key, value in secured.target_settings().items() if "keystore" not in key}
    failed = failure(settings)

    assert failed.check == LOGIN
    assert failed.text.endswith("the broker requires a client certificate")
    assert failed.fix == "set ssl.keystore.location to a key store"
