"""Serves the page in a thread of its own, until its context ends."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import uvicorn

from mirrorless.errors import PrerequisiteError
from mirrorless.web.feed import Feed
from mirrorless.web.gather import Gatherer
from mirrorless.web.routes import Routes
from mirrorless.web.security import Access, is_loopback, new_token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.settings import Settings

_START_S: Final = 10.0
_PAGES: Final = 500
"""Connections at once; of more, each is answered with status 503."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTerms:
    """Where and for whom the page is served; `port` 0 selects a free one, `cert` and `key` are files for TLS."""

    port: int = 0
    address: str = "127.0.0.1"
    token: str | None = None
    actions: bool = False
    cert: str | None = None
    key: str | None = None

    def resolved(self) -> ServerTerms:
        """Return the terms with a new token where one is needed: on other addresses than loopback, and for actions."""
        if self.token is None and (self.actions or not is_loopback(self.address)):
            return replace(self, token=new_token())
        return self


class WebServer:
    """The server, which listens already; `url` has a generated token, in the part that browsers do not send."""

    def __init__(self, feed: Feed, gatherer: Gatherer, asked: ServerTerms) -> None:
        terms = asked.resolved()
        self.feed, self.gatherer = feed, gatherer
        self._socket = _listen(terms.address, terms.port)
        port = self._socket.getsockname()[1]
        self.port = int(port)
        on_loopback = is_loopback(terms.address)
        host = "localhost" if on_loopback else _shown_host(terms.address)
        scheme = "http" if terms.cert is None else "https"
        self.url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/"
        self.url += "" if asked.token == terms.token else f"#token={terms.token}"
        access = Access(token=terms.token, on_loopback=on_loopback, actions=terms.actions, cookie=f"mirrorless_{port}")
        self._routes = Routes(feed, gatherer, access)
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._routes.application(),
                ssl_certfile=terms.cert,
                ssl_keyfile=terms.key,
                http="h11",
                loop="asyncio",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                limit_concurrency=_PAGES,
                timeout_graceful_shutdown=1,
            )
        )
        self._thread = threading.Thread(target=self._run, name="web: server", daemon=True)
        self._listens = threading.Event()

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()
        self._listens.wait(_START_S)

    def end(self) -> None:
        """End all connections."""
        self._server.should_exit = True
        self._thread.join(2)
        self._socket.close()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        await self._routes.listen()
        self._listens.set()  # the socket takes connections since it was made
        await self._server.serve(sockets=[self._socket])


@contextmanager
def served(
    settings: Settings, terms: ServerTerms, *, copies_here: bool = False, every_s: float = 2.0
) -> Iterator[WebServer]:
    """Read the configuration's clusters and serve the page while the context lasts.

    Raises `PrerequisiteError` if the port is in use or a file for TLS cannot be used.
    """
    check_files(terms)
    gatherer = Gatherer(settings, copies_here=copies_here, every_s=every_s)
    feed = Feed(gatherer.snapshot, every_s=every_s)
    server = WebServer(feed, gatherer, terms)
    with gatherer, feed:
        server.start()
        try:
            yield server
        finally:
            feed.close()
            server.end()


def check_files(terms: ServerTerms) -> None:
    """Raise `PrerequisiteError` for files of TLS that cannot be used."""
    if terms.cert is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(terms.cert, terms.key)
    except (OSError, ssl.SSLError) as error:
        named = f"{Path(terms.cert)}{f' and {Path(terms.key)}' if terms.key else ''}"
        raise PrerequisiteError(f"cannot use {named} for TLS: {error}") from None


def _listen(address: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((address, port), family=family, backlog=128)
    except OSError as error:
        raise PrerequisiteError(
            f"cannot listen on {address} port {port} for the page: {error.strerror}; use another port"
        ) from None


def _shown_host(address: str) -> str:
    """Return a name that other machines may know this one by, if it listens on all of its addresses."""
    return socket.gethostname() if address in ("0.0.0.0", "::") else address  # noqa: S104 -- compared, not bound
