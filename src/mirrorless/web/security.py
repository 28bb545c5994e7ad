"""Who may read the page and act on it: the token, its cookie, requests of other sites, and headers of every answer."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

SHORTEST_TOKEN: Final = 16
CSRF_HEADER: Final = "X-CSRF-Token"
OPEN_PATHS: Final = ("/api/session", "/api/openapi.json")
"""What answers without the token: the page needs them to ask for it."""
_NAMES_OF_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
REPORT_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "sandbox"
)
"""For reports, which are pages without a script and with their own style. Those of drills are files that others may
have written: `sandbox` also refuses a refresh that leads to another page."""
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


def new_token() -> str:
    """Return a token that cannot be guessed."""
    return secrets.token_urlsafe(24)


def is_loopback(address: str) -> bool:
    """Whether an address to listen on can be reached from this machine only."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What requests need: `token` (None for none), and whether their Host must be a name of this machine.

    `cookie` is the name of the session's cookie, which browsers send to all ports of a host. `actions` says whether
    flows may be paused and resumed.
    """

    token: str | None = field(default=None, repr=False)
    on_loopback: bool = True
    actions: bool = False
    cookie: str = "mirrorless"

    def session(self) -> str:
        """Value of the cookie that stands for the token."""
        return self._derived("session")

    def csrf(self) -> str:
        """Value of the header that a request with the cookie needs to act: no other site can read it."""
        return self._derived("csrf")

    def is_known(self, headers: Headers, cookies: dict[str, str]) -> bool:
        """Whether a request has the token, or the cookie that stands for it."""
        if self.token is None or self.has_token(headers):
            return True
        return _equal(cookies.get(self.cookie, ""), self.session())

    def has_token(self, headers: Headers) -> bool:
        """Whether a request has the token itself, which no other site can make a browser send."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        return self.token is not None and kind.lower() == "bearer" and _equal(given.strip(), self.token)

    def may_act(self, request: Request) -> str | None:
        """Return why a request may not act; None if it may. It is known already."""
        if not self.actions or self.token is None:
            return "actions are not enabled; start with --web-actions"
        if not is_same_origin(request.headers):
            return "requests of other sites may not act"
        if self.has_token(request.headers) or _equal(request.headers.get(CSRF_HEADER, ""), self.csrf()):
            return None
        return f"the header {CSRF_HEADER} is missing or wrong; reload the page"

    def _derived(self, use: str) -> str:
        key = (self.token or "").encode()
        return hmac.new(key, f"mirrorless web {use}".encode(), hashlib.sha256).hexdigest()


class Guard:
    """Checks every request before `app` gets it, and adds the headers to every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = self._refusal(scope)
        await (refused or self._app)(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        if self._access.on_loopback and _host(headers) not in _NAMES_OF_LOOPBACK:
            return refusal(421, "the Host header must be localhost, 127.0.0.1 or [::1]; see docs/web.md for a proxy")
        path = scope["path"]
        needs_token = path.startswith("/api/") and path not in OPEN_PATHS
        if needs_token and not self._access.is_known(headers, _cookies(headers)):
            return refusal(401, "the token is missing or wrong", **{"WWW-Authenticate": "Bearer"})
        return None


def refusal(status: int, text: str, **headers: str) -> JSONResponse:
    """Return an error as every path answers it."""
    return JSONResponse({"error": text}, status_code=status, headers=headers)


def is_same_origin(headers: Headers) -> bool:
    """Whether a request is from this page or from no page: browsers say so, and pages cannot change it."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is None or re.sub(r"^https?://", "", origin) == headers.get("host")


def _host(headers: Headers) -> str:
    return re.sub(r":\d*$", "", headers.get("host", "").strip().lower())


def _cookies(headers: Headers) -> dict[str, str]:
    pairs = (one.strip().partition("=") for one in headers.get("cookie", "").split(";"))
    return {name: value for name, _, value in pairs}


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())
