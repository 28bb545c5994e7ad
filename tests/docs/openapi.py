"""The description of the page's API, from the classes of its rows; `make reference` writes it beside the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

import mirrorless
from mirrorless.web.security import CSRF_HEADER
from mirrorless.web.snapshot import (
    ApplicationsRow,
    ClusterRow,
    DrillRow,
    Event,
    FenceRow,
    FlowRow,
    GroupRow,
    HaltedRow,
    OperationRow,
    PartitionRow,
    PositionRow,
    ProblemRow,
    ReadingRow,
    SettingsOf,
    Snapshot,
    TopicRow,
)

FILE: Final = Path(mirrorless.__file__).parent / "web" / "static" / "openapi.json"
_ROWS: Final = {
    "clusters": ClusterRow,
    "flows": FlowRow,
    "topics": TopicRow,
    "halted": HaltedRow,
    "problems": ProblemRow,
    "applications": ApplicationsRow,
    "fences": FenceRow,
    "readings": ReadingRow,
    "groups": GroupRow,
    "operations": OperationRow,
    "drills": DrillRow,
    "events": Event,
    "settings": SettingsOf,
    "partitions": PartitionRow,
    "positions": PositionRow,
}
_SUMMARIES: Final = {
    "clusters": "All clusters of the configuration",
    "flows": "All flows",
    "topics": "All replicated topics",
    "halted": "Halted partitions, with the reason",
    "problems": "What needs an operator, the most urgent first, with what fixes it",
    "applications": "On which cluster of each pair applications are, by the last completed operation",
    "fences": "Fences, which block writers of topics",
    "readings": "When tables were last read, and why one cannot be read",
    "groups": "Consumer groups of the sources, and what they would read again",
    "operations": "Switchovers, failovers and failbacks",
    "drills": "Stored reports of drills, the newest first",
    "events": "The latest events, the oldest first",
    "settings": "Settings in effect, with secrets masked",
    "partitions": "The partitions of one topic",
    "positions": "The positions of one group on source and target",
}
_BY_FLOW: Final = {"flows", "topics", "halted", "problems", "readings", "groups", "drills"}
_QUERY: Final = {"partitions": ("flow", "topic"), "positions": ("flow", "group")}
_WHOLE: Final = {"events", "settings", "partitions", "positions"}
_TEXT: Final = {"type": "string"}
_UNREAD: Final = {
    "type": "object",
    "additionalProperties": _TEXT,
    "description": "Why rows may be missing or old, by flow or by part; empty if everything was read",
}
_REF: Final = "#/components/schemas/{model}"


def document() -> dict[str, Any]:
    """Return the description as OpenAPI 3.1."""
    kinds: list[Any] = [Snapshot, *_ROWS.values()]
    _, found = TypeAdapter.json_schemas(
        [(kind.__name__, "serialization", TypeAdapter(kind)) for kind in kinds], ref_template=_REF
    )
    schemas: dict[str, Any] = {name: _closed(schema) for name, schema in found["$defs"].items()}
    schemas["Error"] = _object(error=_TEXT)
    schemas["Session"] = _object(
        version=_TEXT,
        file={"type": ["string", "null"]},
        token_required={"type": "boolean"},
        actions={"type": "boolean"},
        csrf={"type": ["string", "null"]},
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Mirrorless",
            "version": "1",
            "description": "Everything on the live page. Times end in `_ms` (since 1970) or `_s` (a duration).",
        },
        "paths": {
            **{f"/api/{name}": {"get": _table(name)} for name in _ROWS},
            "/api/snapshot": {"get": _get("Everything but settings, partitions and positions", _ref("Snapshot"))},
            "/api/stream": {"get": _stream()},
            "/api/report": {"get": _report("The report of one operation; with form=html as a page", "operation")},
            "/api/drill": {"get": _report("A stored report of a drill; with form=html as a page", "flow", "began_ms")},
            "/api/session": {"get": _open(_get("Whether a token is required", _ref("Session"))), "post": _sign_in()},
            "/api/flows/{action}": {"post": _act()},
            "/api/openapi.json": {"get": _open(_get("This description", {"type": "object"}))},
            "/healthz": {"get": _open(_status("Whether the page is refreshed"))},
            "/readyz": {"get": _open(_status("Whether every flow was read once"))},
        },
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def text() -> str:
    """Return the content of the file."""
    return json.dumps(document(), indent=1, sort_keys=True) + "\n"


def _object(**properties: Any) -> dict[str, Any]:  # noqa: ANN401 -- schemas
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
    }


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Refuse fields that are not described."""
    return {**schema, "additionalProperties": False} if schema.get("type") == "object" else schema


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": _REF.format(model=name)}


def _answer(text: str, schema: dict[str, Any], kind: str = "application/json") -> dict[str, Any]:
    return {"description": text, "content": {kind: {"schema": schema}}}


def _get(summary: str, schema: dict[str, Any], *query: tuple[str, bool]) -> dict[str, Any]:
    errors = {"401": _answer("The token is missing", _ref("Error")), "503": _answer("Not read yet", _ref("Error"))}
    return {
        "summary": summary,
        "parameters": [_parameter(name, is_required=is_required) for name, is_required in query],
        "responses": {"200": _answer(summary, schema), **errors},
    }


def _parameter(name: str, *, is_required: bool) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": is_required, "schema": _TEXT}


def _table(name: str) -> dict[str, Any]:
    rows = {"type": "array", "items": _ref(_ROWS[name].__name__)}
    required = tuple((one, True) for one in _QUERY.get(name, ()))
    by_flow = (("flow", False),) if name in _BY_FLOW else ()
    unread = {} if name in _WHOLE else {"unread": _UNREAD}
    return _get(_SUMMARIES[name], _object(**{name: rows}, **unread), *required, *by_flow)


def _open(operation: dict[str, Any]) -> dict[str, Any]:
    """Mark what needs no token."""
    return {**operation, "security": []}


def _status(summary: str) -> dict[str, Any]:
    body = {
        "type": "object",
        "properties": {"status": _TEXT, "unread": {"type": "object", "additionalProperties": _TEXT}},
        "required": ["status"],
        "additionalProperties": False,
    }
    return {"summary": summary, "responses": {"200": _answer("Yes", body), "503": _answer("No", body)}}


def _stream() -> dict[str, Any]:
    text = "Server-sent events: `snapshot` with everything at first, then `delta` with changed rows and `gone` keys"
    return {"summary": text, "responses": {"200": _answer(text, _TEXT, "text/event-stream")}}


def _report(summary: str, *query: str) -> dict[str, Any]:
    operation = _get(summary, {"type": "object"}, *((one, True) for one in query), ("form", False))
    operation["responses"]["200"]["content"]["text/html"] = {"schema": _TEXT}
    return operation


def _sign_in() -> dict[str, Any]:
    text = "Exchange the token, in the header Authorization, for a cookie"
    return {
        "summary": text,
        "responses": {"204": {"description": text}, "401": _answer("The token is wrong", _ref("Error"))},
    }


def _act() -> dict[str, Any]:
    header = {"name": CSRF_HEADER, "in": "header", "required": False, "schema": _TEXT}
    action = {"name": "action", "in": "path", "required": True, "schema": {"enum": ["pause", "resume"]}}
    return {
        "summary": f"Pause or resume a flow, with --web-actions; with the cookie, {CSRF_HEADER} is required",
        "parameters": [action, header],
        "requestBody": {"required": True, "content": {"application/json": {"schema": _object(flow=_TEXT)}}},
        "responses": {
            "200": _answer("It was written", _object(flow=_TEXT, state=_TEXT)),
            **{
                status: _answer(reason, _ref("Error"))
                for status, reason in (
                    ("401", "The token is missing"),
                    ("403", "Actions are not enabled, or the request is of another site"),
                    ("404", "No such action or flow"),
                    ("409", "The flow may not run now"),
                    ("503", "The target does not answer"),
                )
            },
        },
    }
