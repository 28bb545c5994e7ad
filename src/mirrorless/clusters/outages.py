"""Which clusters do not answer, for a process that runs for long: one attempt at a time connects to such a cluster.

Without this every client of every flow would connect again once a second for as long as a cluster is down, and log in
again as often after a password was changed. While the context of `watched` lasts, the first failed request lets a
thread of the cluster connect with a new client. If that fails, the cluster is *away*: its clients are closed, work that
needs it waits (`wait`), and only this thread connects, after pauses that grow. The settings are read again for every
attempt, so that a password or certificate that was replaced is used. Outside of the context nothing is ever away.
"""

from __future__ import annotations

import gc
import math
import socket
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeVar
from weakref import WeakSet

from confluent_kafka import KafkaError

from mirrorless.errors import ClusterError, ClusterUnavailable, MirrorlessError
from mirrorless.settings.key_normalizer import addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mirrorless.settings import Cluster, Flow

_CONFIRM_S: Final = 3.0
"""A cluster is away if an attempt fails, and another one so much later: a broker that restarts is not."""
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 5.0
_FIRST_LOGIN_PAUSE_S: Final = 5.0
_LONGEST_LOGIN_PAUSE_S: Final = 60.0
"""After a refused login: brokers, or the directory behind them, lock accounts after several."""
_LOOK_S: Final = 1.0
"""How often the files of a login are read while the login is refused."""
_REMIND_S: Final = 600.0
_USED_S: Final = 60.0
"""Clients that were in use are not any more: by then, their requests have failed."""
_SURE_S: Final = 60.0
"""A cluster that has just answered an attempt is not suspected: what failed has another reason."""
_CONNECT_S: Final = 5.0
_CLOSED_S: Final = 0.3
REFUSED: Final = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL})


_Member = TypeVar("_Member")


class Attempts(Protocol):
    """How to connect to a cluster with a new client."""

    def connect(self, cluster: Cluster) -> None:
        """Connect and log in; raises `ClusterError`, whose `code` is librdkafka's, or another `MirrorlessError`."""

    def login_digest(self, cluster: Cluster) -> str | None:
        """Return a digest of what local files say about the login; None if reading it has a price."""


class Tell(Protocol):
    """Shows a line about a cluster; `is_error` is false once it answers again."""

    def __call__(self, alias: str, text: str, *, is_error: bool) -> None:
        """Show the line."""


class _Closing(Protocol):
    def close_unused(self) -> None: ...


class _Polled(Protocol):
    def poll(self) -> None: ...


@dataclass(slots=True)
class _State:
    """Of one cluster: `since` is when it stopped to answer (monotonic), `generation` counts the clients' renewals."""

    cluster: Cluster
    suspected: bool = False
    since: float | None = None
    refused: bool = False
    reason: str = ""
    sure_until: float = 0.0
    generation: int = 0


_caches: Final[WeakSet[_Closing]] = WeakSet()
_polled: Final[WeakSet[_Polled]] = WeakSet()
_adding: Final = threading.Lock()
"""Held while something is added to the two sets, or they are copied: a set that grows cannot be read."""
_own = threading.local()
_watch: _Watch | None = None


class _Watch:
    """The clusters of a run."""

    def __init__(
        self, clusters: Iterable[Cluster], current: Callable[[], Iterable[Cluster]], attempts: Attempts, tell: Tell
    ) -> None:
        self._current = current
        self._attempts = attempts
        self._tell = tell
        self._states = {one.alias: _State(one) for one in clusters}
        self._changed = threading.Condition()
        self._ended = False

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def suspect(self, alias: str, *, refused: bool) -> bool:
        """Let a thread find out whether a cluster answers; returns whether it is away, or may be."""
        with self._changed:
            state = self._states.get(alias)
            if state is None or self._ended:
                return False
            if state.suspected or state.since is not None:
                return True
            if not refused and time.monotonic() < state.sure_until:
                return False
            state.suspected = True
        threading.Thread(target=self._follow, args=(state, refused), name=f"cluster {alias}", daemon=True).start()
        return True

    def state(self, alias: str) -> _State | None:
        return self._states.get(alias)

    def any_away(self) -> bool:
        return any(one.suspected or one.since is not None for one in self._states.values())

    def wait(self, aliases: Iterable[str], stopping: Callable[[], bool]) -> None:
        """Wait until no such cluster is away, or may be."""
        states = [self._states[alias] for alias in aliases if alias in self._states]
        with self._changed:
            while any(one.suspected or one.since is not None for one in states) and not self._ended and not stopping():
                self._changed.wait(_LOOK_S)

    def _follow(self, state: _State, refused: bool) -> None:
        """Connect until the cluster answers; in a thread of its own."""
        _own.attempts = True
        began = time.monotonic()
        try:
            self._attempt_until_it_answers(state, began, refused=refused)
        finally:
            if state.suspected or state.since is not None:  # an error of ours must not stop the copy for good
                self._back(state, began, renew=True)

    def _attempt_until_it_answers(self, state: _State, began: float, *, refused: bool) -> None:
        found = self._attempted(state)
        if found is None:
            # The clients that failed have other settings than this one, if their login was refused.
            self._back(state, began, renew=refused)
            return
        if not state.refused:
            self._pause(_CONFIRM_S)
            found = self._attempted(state)
        if found is None or self._ended:
            self._back(state, began, renew=False)
            return
        self._away(state, began, found)
        reminded, pause_s = time.monotonic(), 0.0
        again = reminded + _USED_S
        while not self._ended:
            if time.monotonic() >= again:
                again = math.inf
                _close_unused()
            pause_s = self._next_pause(state, pause_s)
            self._pause_until_changed(state, pause_s)
            was_refused = state.refused
            if self._ended or (found := self._attempted(state)) is None:
                break
            state.reason = found
            if state.refused != was_refused:
                pause_s, reminded = 0.0, time.monotonic()
                self._say(state, _line(state))
            elif time.monotonic() - reminded >= _REMIND_S:
                reminded = time.monotonic()
                self._say(state, f"still does not answer, for {reminded - began:.0f} s: {found}")
        self._back(state, began, renew=True)

    def _next_pause(self, state: _State, pause_s: float) -> float:
        if state.refused:
            return min(max(2 * pause_s, _FIRST_LOGIN_PAUSE_S), _LONGEST_LOGIN_PAUSE_S)
        return min(max(2 * pause_s, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)

    def _away(self, state: _State, began: float, reason: str) -> None:
        with self._changed:
            state.since, state.suspected, state.reason = began, False, reason
            state.generation += 1
        self._say(state, _line(state))
        _close_unused()

    def _back(self, state: _State, began: float, *, renew: bool) -> None:
        with self._changed:
            was_away = state.since is not None
            state.since, state.suspected, state.refused = None, False, False
            state.sure_until = time.monotonic() + _SURE_S
            if renew:
                state.generation += 1
            self._changed.notify_all()
        if was_away and not self._ended:
            self._tell(state.cluster.alias, f"answers again after {time.monotonic() - began:.0f} s", is_error=False)
        elif renew:
            _close_unused()

    def _attempted(self, state: _State) -> str | None:
        """Connect once with the current settings; returns why that failed."""
        with suppress(MirrorlessError):  # the configuration is being edited: the previous one is used
            alias = state.cluster.alias
            state.cluster = next((one for one in self._current() if one.alias == alias), state.cluster)
        try:
            _reach(state.cluster)
            self._attempts.connect(state.cluster)
        except ClusterError as error:
            state.refused = error.code in REFUSED
            return error.reason
        except MirrorlessError as error:
            state.refused = True  # its settings cannot be used, as while a file is being replaced
            return str(error)
        return None

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        with self._changed:
            while (left := until - time.monotonic()) > 0 and not self._ended:
                self._changed.wait(left)

    def _pause_until_changed(self, state: _State, seconds: float) -> None:
        """Wait so long, or if the login was refused until its settings change."""
        if not state.refused:
            self._pause(seconds)
            return
        until = time.monotonic() + seconds
        before = self._attempts.login_digest(state.cluster)
        while (left := until - time.monotonic()) > 0 and not self._ended:
            self._pause(min(left, _LOOK_S))
            if before is not None and self._attempts.login_digest(state.cluster) != before:
                return

    def _say(self, state: _State, text: str) -> None:
        self._tell(state.cluster.alias, text, is_error=True)


def _line(state: _State) -> str:
    if state.refused:
        return (
            f"refuses the login or certificate: {state.reason}; the configuration and its files are read again before "
            "each attempt, and copying continues by itself"
        )
    return f"does not answer: {state.reason}; an attempt is made every few seconds, and copying continues by itself"


def _all(members: WeakSet[_Member]) -> list[_Member]:
    with _adding:
        return list(members)


def _close_unused() -> None:
    for cache in _all(_caches):
        cache.close_unused()
    # Errors keep the clients that raised them in cycles of frames, and an idle process collects none.
    gc.collect()


def _reach(cluster: Cluster) -> None:
    """Raise `ClusterUnavailable` if no bootstrap server accepts a connection, which costs less than a client."""
    reason = "no bootstrap server"
    for address in addresses(cluster.bootstrap_servers):
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S) as connection:
                if not _is_closed_at_once(connection):
                    return
            reason = (
                f"{address} closes connections at once, as brokers do at their limit (max.connections.per.ip, "
                "max.connections); raise the limit, or let fewer clients of this address connect"
            )
        except (OSError, ValueError) as error:
            text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            reason = f"{address}: {text}; check the address, and that the broker is up"
    raise ClusterUnavailable(reason, cluster=cluster.alias)


def _is_closed_at_once(connection: socket.socket) -> bool:
    """Whether a server closes a new connection: a broker says nothing before it is asked."""
    connection.settimeout(_CLOSED_S)
    try:
        return not connection.recv(1)
    except TimeoutError:
        return False


@contextmanager
def watched(
    clusters: Iterable[Cluster], current: Callable[[], Iterable[Cluster]], attempts: Attempts, tell: Tell
) -> Iterator[None]:
    """Watch clusters while the context lasts; `current` reads them from the configuration again."""
    global _watch  # noqa: PLW0603 -- clients know nothing of the run that they are a part of
    before, _watch = _watch, _Watch(clusters, current, attempts, tell)
    try:
        yield
    finally:
        _watch.end()
        _watch = before


def suspect(alias: str, *, refused: bool = False) -> bool:
    """Report that a cluster did not answer, or `refused` a login; returns whether it is away, or may be.

    Then that is reported elsewhere.
    """
    return _watch is not None and not getattr(_own, "attempts", False) and _watch.suspect(alias, refused=refused)


def close_with_outages(cache: _Closing) -> None:
    """Let clients that this keeps between two uses be closed when a cluster is away, if they are not in use."""
    with _adding:
        _caches.add(cache)


def poll_client(client: _Polled) -> None:
    """Let `poll` ask this client, whose connections may be refused without a request: it connects again by itself."""
    with _adding:
        _polled.add(client)


def noticed(alias: str, error: KafkaError) -> None:
    """Note an error of a client's connections: a client that is refused a login would try again every second."""
    if error.code() in REFUSED:
        suspect(alias, refused=True)


def poll() -> None:
    """Let idle clients report refused logins, each of which they would repeat every second."""
    for one in _all(_polled):
        one.poll()


def is_away(alias: str) -> bool:
    """Whether a cluster does not answer, which was reported."""
    state = None if _watch is None else _watch.state(alias)
    return state is not None and state.since is not None


def refuses(alias: str) -> bool:
    """Whether a cluster is away because it refuses our login or certificate."""
    state = None if _watch is None else _watch.state(alias)
    return state is not None and state.since is not None and state.refused


def require(cluster: Cluster, *, if_refused: bool = False) -> None:
    """Raise `ClusterUnavailable` at once if a cluster is away, or only if it refuses the login."""
    if getattr(_own, "attempts", False) or _watch is None:
        return
    state = _watch.state(cluster.alias)
    if state is not None and state.since is not None and (state.refused or not if_refused):
        raise ClusterUnavailable(state.reason, cluster=cluster.alias)


def generation(*aliases: str) -> tuple[int, ...]:
    """Return a value that changes whenever clients of one of the clusters have to be made again."""
    if _watch is None:
        return ()
    states = [_watch.state(alias) for alias in aliases]
    return tuple(one.generation for one in states if one is not None)


def any_away() -> bool:
    """Whether any cluster is away, or may be."""
    return _watch is not None and _watch.any_away()


def wait(flow: Flow, *, stopping: Callable[[], bool]) -> None:
    """Wait until both ends of a flow answer, as far as that is known."""
    if _watch is not None:
        _watch.wait((flow.source.alias, flow.target.alias), stopping)
