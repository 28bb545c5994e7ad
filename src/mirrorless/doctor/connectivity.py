"""Connects to a cluster step by step: settings, DNS, ports, TLS, login, and then each broker's advertised address."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters import client_settings
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.pem import CERTIFICATE, encode, expiry
from mirrorless.doctor.findings import Finding, Status, some_of
from mirrorless.errors import ClusterError, ConfigurationError, MirrorlessError
from mirrorless.kafka_python.security import ssl_context

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from confluent_kafka.admin import ClusterMetadata

    from mirrorless.clusters.client_settings import Role
    from mirrorless.settings import Cluster

_CONNECT_S: Final = 3.0
_PATIENCE_S: Final = (3.0, 10.0)
_AT_ONCE: Final = 32
_SOON: Final = timedelta(days=14)
SETTINGS, NAMES, PORTS, TLS, LOGIN, BROKERS = "settings", "names", "ports", "TLS", "login", "brokers"
_STEPS: Final = (SETTINGS, NAMES, PORTS, TLS, LOGIN, BROKERS)
_ROLES: Final[tuple[Role, ...]] = ("admin", "consumer", "producer")
_Address = tuple[str, int]


def reach(cluster: Cluster) -> tuple[list[Finding], ClusterMetadata | None]:
    """Connect to a cluster as a client does; returns the findings, and the cluster's metadata if the login worked."""
    steps = _Steps(cluster.alias)
    try:
        for role in _ROLES:
            client_settings.check(cluster, role=role)
        config = client_settings.for_kafka_python(cluster, role="admin")
    except MirrorlessError as error:
        text, _, fix = str(error).partition("; ")
        steps.failed(SETTINGS if isinstance(error, ConfigurationError) else LOGIN, text, fix or "correct the setting")
        return steps.all(), None
    steps.ok(SETTINGS, f"{config['security_protocol']}{_mechanism(config)}")
    places = [_address(server) for server in config["bootstrap_servers"]]
    places = steps.some(NAMES, places, _resolves, fix="correct bootstrap.servers, or this machine's DNS")
    if places:
        places = steps.some(PORTS, places, _opens, fix="correct the port, or allow this machine in the firewall")
    if not places:
        return steps.all(), None
    return _enter(steps, cluster, config, places[0])


def _enter(
    steps: _Steps, cluster: Cluster, config: Mapping[str, Any], place: _Address
) -> tuple[list[Finding], ClusterMetadata | None]:
    metadata, refusal = _metadata(cluster)
    if not config["security_protocol"].endswith("SSL"):
        steps.ok(TLS, f"not used with {config['security_protocol']}")
    elif metadata is None and (reason := _handshake(config, place)) is not None:
        text, fix = _split(refusal or reason)
        steps.failed(TLS, text, fix or "compare security.protocol and the stores with the broker's listener")
        return steps.all(), None
    else:
        steps.certificates(_expiries(config, place))
    if metadata is None:
        text, fix = _split(refusal)
        steps.failed(LOGIN, text, fix or "compare security.protocol and sasl.mechanism with the broker's listener")
        return steps.all(), None
    steps.ok(LOGIN, f"cluster {metadata.cluster_id}")
    hosts = {f"{one.host}:{one.port}": (str(one.host), int(one.port)) for one in metadata.brokers.values()}
    fix = "make the brokers reachable from this machine: DNS, firewall, or advertised.listeners"
    reached = steps.some(BROKERS, list(hosts.values()), _opens, fix=fix, all_needed=True)
    return steps.all(), metadata if reached else None


class _Steps:
    """Findings in order; steps after a failed one are not checked."""

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._found: list[Finding] = []

    def ok(self, check: str, text: str) -> None:
        self._add(check, Status.OK, text)

    def certificates(self, expiries: Mapping[str, datetime]) -> None:
        """The handshake worked; a certificate that expires soon is a warning."""
        text = "; ".join(
            f"the {whose} certificate is valid until {at:%Y-%m-%d}" for whose, at in sorted(expiries.items())
        )
        if any(at - datetime.now(UTC) < _SOON for at in expiries.values()):
            fix = "renew it in its files before that day: running processes read them again when a login fails"
            self._add(TLS, Status.WARNING, text, fix)
        else:
            self.ok(TLS, text or "the broker's certificate is valid")

    def failed(self, check: str, text: str, fix: str) -> None:
        self._add(check, Status.FAILED, text, fix)

    def some(
        self,
        check: str,
        places: Sequence[_Address],
        works: Callable[[_Address], str | None],
        *,
        fix: str,
        all_needed: bool = False,
    ) -> list[_Address]:
        """Try all addresses; one that works is enough unless all are needed; the others are named."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            reasons = dict(zip(places, pool.map(works, places), strict=True))
        good = [place for place, reason in reasons.items() if reason is None]
        bad = [f"{host}:{port} {reason}" for (host, port), reason in reasons.items() if reason is not None]
        if not bad:
            self.ok(check, some_of([f"{host}:{port}" for host, port in good]))
        elif good and not all_needed:
            self._add(check, Status.WARNING, some_of(bad), fix)
        else:
            self.failed(check, some_of(bad), fix)
        return good

    def all(self) -> list[Finding]:
        """The findings, and the steps that were not checked because of a failure."""
        done = {one.check for one in self._found}
        for check in _STEPS:
            if check not in done:
                self._add(check, Status.NOT_CHECKED, f"{self._found[-1].check} failed" if not done else self._why())
        return self._found

    def _why(self) -> str:
        return next(f"{one.check} failed" for one in self._found if one.status is Status.FAILED)

    def _add(self, check: str, status: Status, text: str, fix: str | None = None) -> None:
        self._found.append(Finding(check=check, status=status, text=text, cluster=self._alias, fix=fix))


def _metadata(cluster: Cluster) -> tuple[ClusterMetadata | None, str]:
    admin, refusal = Admin(cluster), ""
    for patience_s in _PATIENCE_S:
        try:
            return admin.metadata(timeout_s=patience_s), ""
        except ClusterError as error:
            refusal = str(error)
            if "; " in refusal:  # the refusal has what to change; waiting would not help
                break
    return None, refusal


def _split(line: str) -> tuple[str, str]:
    """Divide a line of `Admin`'s into what is wrong, without the cluster's name, and what to change."""
    text, _, fix = line.rpartition("; ") if "; " in line else (line, "", "")
    return text.partition(": ")[2] if text.startswith("cluster ") else text, fix


def _handshake(config: Mapping[str, Any], place: _Address) -> str | None:
    """Return why TLS fails; None if it does not."""
    context = ssl_context(config)
    try:
        with (
            socket.create_connection(place, timeout=_CONNECT_S) as plain,
            context.wrap_socket(plain, server_hostname=place[0]),
        ):
            return None
    except OSError as error:  # ssl.SSLError is one
        return str(error)


def _expiries(config: Mapping[str, Any], place: _Address) -> dict[str, datetime]:
    """Return until when the certificates of the broker and of our key are valid, where that can be read."""
    found: dict[str, datetime] = {}
    if own := config.get("ssl_certfile"):
        with suppress(OSError, ValueError):
            found["client's"] = expiry(Path(own).read_text())
    with (
        suppress(OSError, ValueError),
        socket.create_connection(place, timeout=_CONNECT_S) as plain,
        ssl_context(config).wrap_socket(plain, server_hostname=place[0]) as encrypted,
    ):
        certificate = encrypted.getpeercert(binary_form=True)
        if certificate is not None:
            found["broker's"] = expiry(encode(CERTIFICATE, certificate))
    return found


def _resolves(place: _Address) -> str | None:
    try:
        socket.getaddrinfo(*place, type=socket.SOCK_STREAM)
    except OSError as error:
        return f"does not resolve ({error.strerror or error})"
    return None


def _opens(place: _Address) -> str | None:
    if (reason := _resolves(place)) is not None:
        return reason
    try:
        socket.create_connection(place, timeout=_CONNECT_S).close()
    except TimeoutError:
        return f"does not answer in {_CONNECT_S:.0f} s"
    except OSError as error:
        return f"refuses connections ({error.strerror or error})"
    return None


def _address(server: str) -> _Address:
    host, _, port = server.rpartition(":")
    return host.rpartition("//")[2].strip("[]"), int(port)


def _mechanism(config: Mapping[str, Any]) -> str:
    mechanism = config.get("sasl_mechanism")
    return f" with {mechanism}" if mechanism else ""
