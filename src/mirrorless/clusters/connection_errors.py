"""What librdkafka says of a connection that failed, in words that name what to change.

Of a certificate it only says that it could not be verified; OpenSSL tells Python why, so the broker is asked once
more.
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
    """Return the end of an error's line: which right to grant, if `code` says that one is missing; else nothing."""
    return f"; grant {right}" if code in _UNAUTHORIZED else ""


def unwritten(error: KafkaError, *, creator: str = "topic discovery") -> str:
    """Return why a record was not written to a topic; `creator` is what creates the topic where it is missing."""
    if error.code() in _MISSING:
        return f"the topic is missing; {creator} creates it again"
    # What is known when a record is queued and what comes back for it are the same to whoever reads it.
    return f"{error.str().removeprefix('Unable to produce message: ')}{grant(error.code(), 'WRITE on it')}"


class Plainly:
    """Puts librdkafka's errors of one cluster's connections into plain words; holds no secret."""

    def __init__(self, *, trust: str | None, check_hostname: bool, username: str | None, has_key: bool) -> None:
        self._trust = trust
        self._check_hostname = check_hostname
        self._username = username
        self._has_key = has_key
        self._without_tls: set[str] = set()

    def told_to(self, callback: Callable[[KafkaError], None]) -> Callable[[KafkaError], None]:
        """Return librdkafka's `error_cb` that hands plain errors to this one; codes stay as they are."""

        def tell(error: KafkaError) -> None:
            callback(KafkaError(error.code(), self.say(error.str())))

        return tell

    def say(self, text: str) -> str:
        """Return one line that says what to change; the text itself, without its timings, where nothing is known."""
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
                "does not accept our certificate; check who signed the one in ssl.keystore.location"
                if self._has_key
                else "asks for a certificate; name a store with ours in ssl.keystore.location"
            )
            return f"{at}: the broker {advice}"
        guessed = "PLAINTEXT broker listener" in rest
        if guessed:
            self._without_tls.add(at)
        # librdkafka guesses so now and then only; in between it says that the connection was closed.
        if guessed or (at in self._without_tls and "closed by peer" in rest):
            return f"{at}: the broker does not speak TLS here; correct security.protocol or the port"
        if connect := _CONNECT.match(rest):
            return f"{at}: {connect['reason']}; check that the address is right and a broker is up there"
        return f"{at}: {rest}"

    def _certificate(self, host: str, port: int) -> str:
        reason = self._verification(host, port)
        if "expired" in reason:
            return "the broker's certificate has expired; it must be renewed there"
        if "not yet valid" in reason:
            return "the broker's certificate is not valid yet; compare the clocks"
        if "mismatch" in reason:
            return (
                f"the broker's certificate is not for {host}; name the broker in bootstrap.servers as its certificate "
                "does, or set ssl.endpoint.identification.algorithm to nothing"
            )
        return (
            f"nobody whom we trust signed the broker's certificate{f' ({reason})' if reason else ''}; "
            "name a store with its authority in ssl.truststore.location"
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
