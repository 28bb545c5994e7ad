"""Reports of drills in a folder, on disk or in S3: `<folder>/<A>-<B>/<start in ms>/result.json` and `result.html`.

What is read may be by anyone who can write to the folder, so it is checked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mirrorless.doctor.findings import Status
from mirrorless.operations.drill.page import page
from mirrorless.operations.drill.report import to_json
from mirrorless.verify.report_file import folders, read, write

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.operations.drill.report import DrillReport

LISTED: Final = 20
"""So many reports of a flow are listed, the newest."""
_LONGEST_TEXT: Final = 1_000
_MOST_CHECKS: Final = 100
_NUMBER: Final = re.compile(r"[0-9]{13}")


class Form(StrEnum):
    """A form of a stored report, as the suffix of its file."""

    JSON = "json"
    HTML = "html"


def store(folder: str, report: DrillReport) -> str:
    """Write the report of one flow in both forms; returns its own folder. Raises `OSError`."""
    place = _place(folder, report.flow, report.began_ms)
    write(f"{place}/result.html", page([report], {}).encode())
    write(f"{place}/result.json", to_json([report], {}).encode())  # last: it is what is listed
    return place


def stored(folder: str, flow: str) -> list[int]:
    """Return the starts, in ms, of the newest stored drills of a flow, the newest first; raises `OSError`."""
    numbers = (int(one) for one in folders(_of_flow(folder, flow)) if _NUMBER.fullmatch(one))
    return sorted(numbers, reverse=True)[:LISTED]


def content(folder: str, flow: str, began_ms: int, form: Form) -> bytes:
    """Return a stored report as it is; raises `OSError`."""
    return read(f"{_place(folder, flow, began_ms)}/result.{form}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDrill:
    """What is shown of a stored report; `problems` are checks that are not ok, as status, check and text.

    `rpo_records`, `rpo_seconds` and `rto_seconds` are as in `DrillReport`.
    """

    flow: str
    began_ms: int
    ended_ms: int
    status: Status
    problems: tuple[tuple[Status, str, str], ...]
    rpo_records: int | None
    rpo_exact: bool
    rpo_seconds: float | None
    rto_seconds: float


def parsed(text: bytes, *, flow: str, began_ms: int) -> StoredDrill | None:
    """Return the report of a flow in a stored file; None if it is another flow's. Raises `ValueError` if it is none.

    Two flows have the same folder if their names differ only in where the dashes are.
    """
    try:
        found = _File.model_validate_json(text).flows
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"][2:] or first["loc"]))[:_LONGEST_TEXT]
        raise ValueError(f"is no report of a drill: {where or 'the file'}: {first['msg'][:_LONGEST_TEXT]}") from None
    one = found.get(flow)
    if one is None:
        return None
    if one.began_ms != began_ms:
        raise ValueError(f"is the report of {one.began_ms}")
    return StoredDrill(
        flow=flow,
        began_ms=began_ms,
        ended_ms=one.ended_ms,
        status=one.status,
        problems=tuple(_problems(one.checks)),
        rpo_records=one.rpo.records,
        rpo_exact=one.rpo.exact,
        rpo_seconds=one.rpo.seconds,
        rto_seconds=one.rto.seconds,
    )


def _problems(checks: Iterable[_Check]) -> list[tuple[Status, str, str]]:
    found: list[tuple[Status, str, str]] = [
        (one.status, one.check[:_LONGEST_TEXT], one.text[:_LONGEST_TEXT])
        for one in checks
        if one.status is not Status.OK
    ]
    return found[:_MOST_CHECKS]


def _of_flow(folder: str, flow: str) -> str:
    return f"{folder.rstrip('/')}/{flow.replace('->', '-')}"


def _place(folder: str, flow: str, began_ms: int) -> str:
    return f"{_of_flow(folder, flow)}/{began_ms}"


# The largest whole number that JavaScript has exactly.
_Count = Annotated[int, Field(ge=0, le=2**53 - 1)]
_Figure = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class _Check(_Strict):
    check: str
    status: Status
    text: str


class _Rpo(_Strict):
    records: _Count | None
    exact: bool
    seconds: _Figure | None


class _Rto(_Strict):
    seconds: _Figure


class _Report(_Strict):
    began_ms: _Count
    ended_ms: _Count
    status: Status
    rpo: _Rpo
    rto: _Rto
    checks: tuple[_Check, ...]


class _File(_Strict):
    flows: dict[str, _Report]
