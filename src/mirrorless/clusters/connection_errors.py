"""Translates librdkafka's connection errors into messages that say what to change.

For a certificate, librdkafka only reports that verification failed; OpenSSL gives Python the reason, so a second
connection is made.
"""

from __future__ import annotations

import re
import socket
import ssl
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

_TIMEOUT_S: Final = 3.0
_UNAUTHORIZED: Final = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)
_MISSING: Final = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
)
_PLACE: Final = re.compile(r"^(?:\w+://)?(?P<host>\[[^\]]+\]|[^/:\s]+):(?P<port>[0-9]+)/\w+: ")
_CONNECT: Final = re.compile(r"^Connect to \S+ failed: (?P<reason>.+)$")
_REFUSED: Final = re.compile(r"SASL authentication error|SASL .* authentication failed", re.IGNORECASE)
_NO_CERTIFICATE: Final = re.compile(r"alert (?:bad certificate|certificate required|handshake failure)", re.IGNORECASE)
_ELAPSED: Final = re.compile(r" \(after \d+ms in state \w+(?:, \d+ identical error\(s\) suppressed)?\)$")


def grant(code: int, right: str) -> str:
    """Return the end of an error line: the right to grant, if `code` says that one is missing; else nothing."""
    return f"; grant {right}" if code in _UNAUTHORIZED else ""


def unwritten(error: KafkaError, *, creator: str = "topic discovery") -> str:
    """Return why a record was not written to a topic; `creator` is what creates a missing topic."""
    if error.code() in _MISSING:
        return f"the topic does not exist; {creator} recreates it"
    # Errors when a record is queued and errors of its delivery get the same text.
    return f"{error.str().removeprefix('Unable to produce message: ')}{grant(error.code(), 'WRITE on it')}"


class Plainly:
    """Translates librdkafka's errors of one cluster's connections into plain messages; has no secret."""

    def __init__(self, *, trust: str | None, check_hostname: bool, username: str | None, has_key: bool) -> None:
        self._trust = trust
        self._check_hostname = check_hostname
        self._username = username
        self._has_key = has_key
        self._without_tls: set[str] = set()

    def told_to(self, callback: Callable[[KafkaError], None]) -> Callable[[KafkaError], None]:
        """Return librdkafka's `error_cb` that passes translated errors to this one; codes are unchanged."""

        def tell(error: KafkaError) -> None:
            callback(KafkaError(error.code(), self.say(error.str())))

        return tell

    def say(self, text: str) -> str:
        """Return one line that says what to change; for unknown errors the text itself, without its timings."""
        place = _PLACE.match(text)
        rest = _ELAPSED.sub("", text[place.end() :] if place else text)
        if place is None:
            return rest
        at = f"{place['host']}:{place['port']}"
        if "certificate verify failed" in rest:
            return f"{at}: {self._certificate(place['host'].strip('[]'), int(place['port']))}"
        if _REFUSED.search(rest):
            who = f" of {self._username}" if self._username else ""
            told = rest.partition("error: ")[2] or rest
            return f"{at}: the login{who} was refused; check user and password in sasl.jaas.config ({told})"
        if _NO_CERTIFICATE.search(rest):
            advice = (
                "does not accept the client certificate; check the CA of the certificate in ssl.keystore.location"
                if self._has_key
                else "requires a client certificate; set ssl.keystore.location to a key store"
            )
            return f"{at}: the broker {advice}"
        guessed = "PLAINTEXT broker listener" in rest
        if guessed:
            self._without_tls.add(at)
        # librdkafka reports this only sometimes; in between it reports a closed connection.
        if guessed or (at in self._without_tls and "closed by peer" in rest):
            return f"{at}: the broker does not use TLS on this port; correct security.protocol or the port"
        if connect := _CONNECT.match(rest):
            return f"{at}: {connect['reason']}; check the address, and that the broker is up"
        return f"{at}: {rest}"

    def _certificate(self, host: str, port: int) -> str:
        reason = self._verification(host, port)
        if "expired" in reason:
            return "the broker's certificate has expired; renew it on the broker"
        if "not yet valid" in reason:
            return "the broker's certificate is not valid yet; compare the clocks"
        if "mismatch" in reason:
            return (
                f"the broker's certificate is not for {host}; use the certificate's name in bootstrap.servers, "
                "or set ssl.endpoint.identification.algorithm to an empty value"
            )
        return (
            f"the broker's certificate is not signed by a trusted CA{f' ({reason})' if reason else ''}; "
            "set ssl.truststore.location to a store with its CA"
        )

    def _verification(self, host: str, port: int) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self._check_hostname
        try:
            if self._trust is not None:
                context.load_verify_locations(self._trust)
            else:
                context.load_default_certs()
            with (
                socket.create_connection((host, port), timeout=_TIMEOUT_S) as plain,
                context.wrap_socket(plain, server_hostname=host),
            ):
                return ""
        except ssl.SSLCertVerificationError as error:
            return error.verify_message
        except OSError:
            return ""
