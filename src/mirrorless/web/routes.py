"""What each path answers: the page's files, JSON of everything on the page, the stream of updates, and two actions."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from importlib import resources
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from mirrorless.clusters.target_state import TargetState
from mirrorless.errors import MirrorlessError
from mirrorless.operations.drill.stored import Form
from mirrorless.operations.report import as_fields, page
from mirrorless.web.encoding import encode
from mirrorless.web.security import CSRF_HEADER, REPORT_POLICY, Access, Guard, is_same_origin, refusal
from mirrorless.web.snapshot import Level

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

    from mirrorless.web.feed import Feed, Update
    from mirrorless.web.gather import Gatherer
    from mirrorless.web.snapshot import Snapshot

_KEEP_ALIVE_S: Final = 15.0
_LARGEST_BODY: Final = 4_096
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
}
_ACTIONS: Final = {"pause": TargetState.PAUSED, "resume": TargetState.STARTED}


class Routes:
    """The handlers of all paths, over one `feed` and its `gatherer`."""

    def __init__(self, feed: Feed, gatherer: Gatherer, access: Access) -> None:
        self._feed = feed
        self._gatherer = gatherer
        self._access = access
        self._waiting: set[asyncio.Future[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._settings = encode({"settings": gatherer.settings()})
        self._files = static_files()

    def application(self) -> Guard:
        """Return the application, with the checks around it."""
        routes = [
            Route("/", self._static),
            Route("/{name}", self._static),
            Route("/healthz", self._health),
            Route("/readyz", self._readiness),
            Route("/api/openapi.json", self._static),
            Route("/api/session", self._session, methods=["GET"]),
            Route("/api/session", self._sign_in, methods=["POST"]),
            Route("/api/stream", self._stream),
            Route("/api/snapshot", self._snapshot),
            Route("/api/clusters", self._table),
            Route("/api/flows", self._table),
            Route("/api/topics", self._table),
            Route("/api/halted", self._table),
            Route("/api/problems", self._table),
            Route("/api/applications", self._table),
            Route("/api/fences", self._table),
            Route("/api/readings", self._table),
            Route("/api/groups", self._table),
            Route("/api/operations", self._table),
            Route("/api/drills", self._table),
            Route("/api/events", self._events),
            Route("/api/settings", self._settings_of_all),
            Route("/api/partitions", self._partitions),
            Route("/api/positions", self._positions),
            Route("/api/report", self._report),
            Route("/api/drill", self._drill),
            Route("/api/flows/{action}", self._act, methods=["POST"]),
        ]
        # Fixed paths come first: a file's name would match them too.
        routes.sort(key=lambda route: "{" in route.path)
        return Guard(Starlette(routes=routes), self._access)

    async def listen(self) -> None:
        """Wake up streams at each update from now on; called in the server's event loop."""
        loop = self._loop = asyncio.get_running_loop()

        def updated() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._wake)

        self._feed.listen(updated)

    def _wake(self) -> None:
        for one in self._waiting:
            if not one.done():
                one.set_result(None)
        self._waiting.clear()

    async def _static(self, request: Request) -> Response:
        name = request.path_params.get("name") or request.url.path.rpartition("/")[2] or "index.html"
        content = self._files.get(name)
        if content is None:
            return refusal(404, "no such page")
        return Response(content, media_type=_TYPES[name.rpartition(".")[2]], headers={"Cache-Control": "no-cache"})

    async def _health(self, _: Request) -> Response:
        alive = self._feed.is_alive
        return _json({"status": "ok" if alive else "the page is not refreshed"}, 200 if alive else 503)

    async def _readiness(self, _: Request) -> Response:
        unread = self._gatherer.unread()
        return _json({"status": "not ready" if unread else "ok", "unread": unread}, 503 if unread else 200)

    async def _session(self, request: Request) -> Response:
        access = self._access
        known = access.is_known(request.headers, request.cookies)
        return _json(
            {
                "version": version("mirrorless"),
                "file": self._gatherer.location if known else None,
                "token_required": not known,
                "actions": access.actions,
                "csrf": access.csrf() if known and access.actions else None,
            }
        )

    async def _sign_in(self, request: Request) -> Response:
        if not is_same_origin(request.headers) or not self._access.has_token(request.headers):
            return refusal(401, "the token is missing or wrong")
        answer = Response(status_code=204)
        answer.set_cookie(
            self._access.cookie,
            self._access.session(),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    async def _stream(self, _: Request) -> Response:
        return StreamingResponse(self._updates(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def _updates(self) -> AsyncIterator[bytes]:
        seen = 0
        yield b"retry: 2000\n\n"
        while not self._feed.is_closed:
            update = self._feed.latest
            if update is not None and update.version != seen:
                is_next = seen and update.version == seen + 1
                yield update.delta if is_next else await run_in_threadpool(_whole, update)
                seen = update.version
                continue
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.add(waiter)
            try:
                await asyncio.wait_for(waiter, _KEEP_ALIVE_S)
            except TimeoutError:
                yield b": keep-alive\n\n"
            finally:
                self._waiting.discard(waiter)

    async def _snapshot(self, _: Request) -> Response:
        snapshot = self._feed.snapshot
        return _not_read() if snapshot is None else _text(await run_in_threadpool(encode, snapshot))

    async def _table(self, request: Request) -> Response:
        snapshot = self._feed.snapshot
        if snapshot is None:
            return _not_read()
        name = request.url.path.rpartition("/")[2]
        rows = getattr(snapshot, name)
        flow = request.query_params.get("flow")
        if flow is not None:
            rows = tuple(one for one in rows if getattr(one, "flow", getattr(one, "name", None)) == flow)
        unread = self._unread(snapshot, name)
        return _text(await run_in_threadpool(encode, {name: rows, "unread": unread}))

    def _unread(self, snapshot: Snapshot, table: str) -> dict[str, str]:
        """Why a table may lack rows now, by flow or by part: an empty one does not mean that there is nothing."""
        flows = {one.name: one.error for one in snapshot.flows if one.error is not None}
        parts = dict(note.partition(": ")[::2] for note in snapshot.notes)
        unread = self._gatherer.unread()
        return {
            "clusters": {},
            "operations": {part: text for part, text in parts.items() if part == "operations"},
            "groups": unread | flows | {part: text for part, text in parts.items() if part.startswith("groups of ")},
            "drills": {
                part: text for part, text in parts.items() if part != "operations" and not part.startswith("groups of ")
            },
        }.get(table, unread | flows)

    async def _events(self, _: Request) -> Response:
        return _text(encode({"events": self._feed.events()}))

    async def _settings_of_all(self, _: Request) -> Response:
        return _text(self._settings)

    async def _partitions(self, request: Request) -> Response:
        rows = await run_in_threadpool(self._gatherer.partitions, *_query(request, "flow", "topic"))
        return refusal(404, "no such flow or topic") if rows is None else _text(encode({"partitions": rows}))

    async def _positions(self, request: Request) -> Response:
        rows = self._gatherer.positions(*_query(request, "flow", "group"))
        return refusal(404, "no such flow or group") if rows is None else _text(encode({"positions": rows}))

    async def _report(self, request: Request) -> Response:
        (number,) = _query(request, "operation")
        ended = self._gatherer.operation(number)
        if ended is None:
            return refusal(404, "no such operation")
        if request.query_params.get("form") == "html":
            return HTMLResponse(page(ended), headers={"Content-Security-Policy": REPORT_POLICY})
        return _json(as_fields(ended))

    async def _drill(self, request: Request) -> Response:
        flow, began_ms = _query(request, "flow", "began_ms")
        form = Form.HTML if request.query_params.get("form") == "html" else Form.JSON
        try:
            content = await run_in_threadpool(self._gatherer.drill_report, flow, began_ms, form)
        except OSError as error:
            return refusal(503, str(error))
        if content is None:
            return refusal(404, "no such drill")
        return Response(content, media_type=_TYPES[form], headers={"Content-Security-Policy": REPORT_POLICY})

    async def _act(self, request: Request) -> Response:
        reason = self._access.may_act(request)
        if reason is not None:
            return refusal(403, reason)
        action, body = request.path_params["action"], await _body(request)
        flow = body.get("flow") if isinstance(body, dict) else None
        if action not in _ACTIONS or flow not in self._gatherer.flow_names:
            return refusal(404, "no such action or flow")
        state = _ACTIONS[action]
        try:
            found = await run_in_threadpool(self._gatherer.set_state, flow, state)
        except MirrorlessError as error:
            return refusal(503 if error.retriable else 409, str(error))
        if found is not state:
            return refusal(409, f"{flow} waits for its turn: applications write to its target, an operation starts it")
        self._feed.note(Level.INFO, flow, "action", f"{action} was requested on the page")
        return _json({"flow": flow, "state": state.value})


def static_files() -> dict[str, bytes]:
    """Return the page's files by name."""
    folder = resources.files("mirrorless.web") / "static"
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}


async def _body(request: Request) -> Any:  # noqa: ANN401 -- whatever JSON can hold
    """Return the JSON of a request, None if it is none or is long."""
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > _LARGEST_BODY:
            return None
    try:
        return json.loads(content)
    except ValueError:
        return None


def _query(request: Request, *names: str) -> tuple[str, ...]:
    return tuple(request.query_params.get(name, "") for name in names)


def _whole(update: Update) -> bytes:
    return update.whole


def _text(content: str) -> Response:
    return Response(content, media_type="application/json")


def _json(value: Any, status: int = 200) -> Response:  # noqa: ANN401 -- whatever JSON can hold
    return Response(json.dumps(value), status_code=status, media_type="application/json")


def _not_read() -> Response:
    return refusal(503, "nothing was read yet")


__all__ = ["CSRF_HEADER", "Routes", "static_files"]
