"""An admin client for one cluster; its failures are one line with the cluster and the reason."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakValueDictionary

from confluent_kafka import KafkaError, KafkaException

from mirrorless.client_logs import LIBRDKAFKA
from mirrorless.clusters import clients, first_contact, outages
from mirrorless.clusters.client_settings import for_confluent
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.known_topics import note_topics

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient, ClusterMetadata

    from mirrorless.settings import Cluster

TIMEOUT_S = 30.0
METADATA_TIMEOUT_S = 15.0
_LOOK_S = 0.05
_Answer = TypeVar("_Answer")
_AUTHORIZATION = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one of a batch of requests failed: a code of `KafkaError` and one line."""

    code: int
    text: str


class _Heard:
    """The last reason why a connection failed.

    Separate from `Admin`, which would otherwise be in a reference cycle with its client: the garbage collector may run
    in a thread of librdkafka, and the library aborts the process if its client is closed there.
    """

    def __init__(self, alias: str) -> None:
        self.reason: str | None = None
        self.code: int | None = None
        self.all_down_s: float | None = None
        self._alias = alias

    def note(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.all_down_s = self.all_down_s or time.monotonic()
        else:
            self.reason, self.code = error.str(), error.code()
            outages.noticed(self._alias, error)

    def forget(self) -> None:
        """The cluster has answered: what failed before explains nothing that fails later."""
        self.reason = self.code = self.all_down_s = None


class _Connected:
    """A client of librdkafka, with threads and connections of its own, closed with the last `Admin` that uses it."""

    def __init__(self, settings: dict[str, Any], heard: _Heard) -> None:
        self.heard = heard
        self.client = clients.admin(settings)
        self.has_answered = False


_connected: Final[WeakValueDictionary[tuple[object, ...], _Connected]] = WeakValueDictionary()
"""The clients in use, by alias, generation and settings."""
_connecting: Final = threading.Lock()


def _client_of(cluster: Cluster, extra: Mapping[str, Any]) -> _Connected:
    heard = _Heard(cluster.alias)
    settings = for_confluent(cluster, role="admin", extra={"error_cb": heard.note, "logger": LIBRDKAFKA} | dict(extra))
    if extra:
        return _Connected(settings, heard)
    # Functions among the values follow from the other settings; files may be replaced under the same names.
    plain = sorted((name, repr(value)) for name, value in settings.items() if not callable(value))
    key = cluster.alias, outages.generation(cluster.alias), *plain
    with _connecting:
        found = _connected.get(key)
        if found is None:
            found = _connected[key] = _Connected(settings, heard)
        return found


class Admin:
    """A confluent-kafka AdminClient for `cluster`; `client` is for batched calls, whose futures go through `result`.

    Those of one cluster with equal settings share a client, in any thread; one with `extra`, librdkafka's own settings,
    has a client of its own.
    """

    def __init__(self, cluster: Cluster, *, extra: Mapping[str, Any] | None = None) -> None:
        self.alias = cluster.alias
        self._servers = cluster.bootstrap_servers
        self._connected = _client_of(cluster, extra or {})
        self._heard, self.client = self._connected.heard, self._connected.client
        outages.poll_client(self)

    def poll(self) -> None:
        """Take what the client has noticed of its connections, which it otherwise reports with the next failure."""
        self.client.poll(0)

    @property
    def noticed(self) -> ClusterUnavailable | None:
        """The last error of the client's connections, as `poll` took it."""
        reason = self._heard.reason
        if reason is None:
            return None
        return ClusterUnavailable(reason, cluster=self.alias, code=self._heard.code)

    def metadata(self, *, timeout_s: float = METADATA_TIMEOUT_S) -> ClusterMetadata:
        """Brokers, topics and partitions of the whole cluster; raises `ClusterUnavailable`."""
        try:
            has_answered = self._connected.has_answered
            found = self.client.list_topics(timeout=timeout_s) if has_answered else self._first(timeout_s)
        except KafkaException as error:
            raise self.failure(error) from error
        self._connected.has_answered = True
        self._heard.forget()
        note_topics(self._servers, found.topics.keys())
        return found

    def _first(self, timeout_s: float) -> ClusterMetadata:
        """Connect: in a thread, so that what fails meanwhile is shown at once, and a signal is not delayed.

        Raises `ClusterUnavailable` before the time is over for a refused login, and as `first_contact` has it.
        """
        if (gone := first_contact.gave_up(self.alias, self._servers)) is not None:
            raise ClusterUnavailable(gone, cluster=self.alias, code=KafkaError._TRANSPORT)
        answer = _Answered(self.client, timeout_s)
        while not answer.wait(_LOOK_S):
            self.poll()
            heard, patience_s = self._heard, first_contact.patience_s()
            if heard.reason is None:
                continue
            first_contact.failed(self.alias, heard.reason)
            if heard.code in outages.REFUSED:
                first_contact.give_up(self.alias, self._servers, heard.reason)
                raise ClusterUnavailable(heard.reason, cluster=self.alias, code=heard.code)
            is_down = patience_s is not None and heard.all_down_s is not None
            if is_down and time.monotonic() - (heard.all_down_s or 0) > (patience_s or 0):
                reason = self._no_answer(heard.reason)
                first_contact.give_up(self.alias, self._servers, reason)
                raise ClusterUnavailable(reason, cluster=self.alias, code=heard.code)
        return answer.metadata

    def _no_answer(self, reason: str) -> str:
        return f"no answer from {self._servers}: {reason.removeprefix(f'{self._servers}: ')}"

    def result(self, future: Future[_Answer], *, timeout_s: float = TIMEOUT_S) -> _Answer:
        """Wait for one answer; raises `ClusterError` or `ClusterUnavailable`."""
        try:
            return future.result(timeout=timeout_s)
        except TimeoutError as error:
            raise self.timed_out(timeout_s) from error
        except KafkaException as error:
            raise self.failure(error) from error

    def refusal(self, future: Future[Any], *, fine: int | None = None) -> Refusal | None:
        """Wait for one of a batch: None if it succeeded or failed with code `fine`, else the error."""
        try:
            future.result(timeout=TIMEOUT_S)
        except TimeoutError:
            return Refusal(KafkaError._TIMED_OUT, f"no answer from {self._servers} in {TIMEOUT_S:.0f} s")
        except KafkaException as error:
            reason = error.args[0]
            if reason.code() != fine:
                # For missing rights, brokers return a dump of the request (KafkaApis through the controller).
                text = KafkaError(reason.code()).str() if reason.code() in _AUTHORIZATION else reason.str()
                return Refusal(reason.code(), f"{text} ({reason.name()})")
        return None

    def timed_out(self, timeout_s: float = TIMEOUT_S) -> ClusterUnavailable:
        """Return the error of an unanswered request."""
        return ClusterUnavailable(f"no answer from {self._servers} in {timeout_s:.0f} s", cluster=self.alias)

    def failure(self, exception: KafkaException) -> ClusterError:
        """Return the error of a failed request, in one line."""
        self.client.poll(0)
        error = exception.args[0]
        if error.retriable() or error.code() < 0:
            reason = self._heard.reason or _unexplained(error)
            code = self._heard.code or error.code()
            told = reason if code in outages.REFUSED else self._no_answer(reason)
            return ClusterUnavailable(told, cluster=self.alias, code=code)
        return ClusterError(error.str(), cluster=self.alias)


def _unexplained(error: KafkaError) -> str:
    """Return the reason of a failed request of which no connection has reported an error."""
    if error.code() != KafkaError._TRANSPORT:
        return error.str()
    return (
        "it accepts connections and closes them; compare security.protocol and sasl.mechanism with the broker's "
        "listener: a port for SASL or TLS closes plaintext connections"
    )


class _Answered:
    """The answer to a first request for metadata, which a daemon thread waits for: it may be given up."""

    def __init__(self, client: AdminClient, timeout_s: float) -> None:
        self._client = client
        self._timeout_s = timeout_s
        self._found: ClusterMetadata | BaseException | None = None
        self._thread = threading.Thread(target=self._ask, name="first contact", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait at most so long; returns whether there is an answer."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def metadata(self) -> ClusterMetadata:
        """The answer; raises `KafkaException` if there was none."""
        if isinstance(self._found, BaseException):
            raise self._found
        assert self._found is not None
        return self._found

    def _ask(self) -> None:
        try:
            self._found = self._client.list_topics(timeout=self._timeout_s)
        except BaseException as error:  # noqa: BLE001 -- raised where the answer is wanted
            self._found = error
