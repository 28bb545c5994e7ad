"""Reports of drills that are stored are found again; what others put beside them is refused."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from mirrorless.doctor.findings import Status
from mirrorless.operations.drill.facts import BacklogFacts, NotCopied
from mirrorless.operations.drill.report import report_of, to_json
from mirrorless.operations.drill.stored import LISTED, Form, content, parsed, store, stored
from tests.support.aws import aws_server
from tests.support.drill_facts import facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mirrorless.operations.drill.report import DrillReport

BEGAN_MS = 1_790_000_000_000
LAGGING = BacklogFacts(partitions={("orders", 1): NotCopied(7, True, 6_500)}, read_ms=10_000)


def report(began_ms: int = BEGAN_MS) -> DrillReport:
    return report_of(facts(backlog=LAGGING), began_ms=began_ms, ended_ms=began_ms + 4_000)


@pytest.fixture(params=["disk", "s3"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "disk":
        yield str(tmp_path / "drills")
        return
    with aws_server() as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        boto3.setup_default_session()
        boto3.client("s3").create_bucket(Bucket="reports")
        yield "s3://reports/drill/all/"


def test_a_stored_report_is_listed_and_read(folder: str) -> None:
    assert stored(folder, "a->b") == []
    for number in range(LISTED + 2):
        place = store(folder, report(BEGAN_MS + number))
    assert place == f"{folder.rstrip('/')}/a-b/{BEGAN_MS + LISTED + 1}"
    assert stored(folder, "a->b") == [BEGAN_MS + LISTED + 1 - number for number in range(LISTED)]
    assert stored(folder, "a->c") == []
    assert content(folder, "a->b", BEGAN_MS, Form.HTML).startswith(b"<!doctype html>")
    one = parsed(content(folder, "a->b", BEGAN_MS, Form.JSON), flow="a->b", began_ms=BEGAN_MS)
    assert one is not None
    assert (one.ended_ms, one.status, one.rpo_records, one.rpo_seconds) == (BEGAN_MS + 4_000, "warning", 7, 3.5)
    assert (one.rpo_exact, one.rto_seconds) == (True, 1.5)
    assert [(status, check) for status, check, _ in one.problems] == [(Status.WARNING, "without the source")]


def test_what_cannot_be_read_is_an_error_of_one_line(folder: str) -> None:
    with pytest.raises(OSError, match=r"^[^\n]*(No such file|NoSuchKey)[^\n]*$"):
        content(folder, "a->b", BEGAN_MS, Form.JSON)


def test_the_report_of_a_flow_with_the_same_folder_is_not_taken() -> None:
    assert parsed(to_json([report()], {}).encode(), flow="a-b->c", began_ms=BEGAN_MS) is None
    assert parsed(to_json([], {}).encode(), flow="a->b", began_ms=BEGAN_MS) is None


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    fields = json.loads(to_json([report()], {}))
    change(fields["flows"]["a->b"])
    return json.dumps(fields).encode()


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{", b"[]", b'{"flows": []}', b'{"flows": {"a->b": {"error": "no answer"}}}', b"\xff\xfe", b"null"),
        b"[" * 100_000,
        changed(lambda one: one.update(began_ms=1)),
        changed(lambda one: one.update(ended_ms=10**400)),
        changed(lambda one: one.update(status="<script>")),
        changed(lambda one: one["rpo"].update(seconds=float("nan"))),
        changed(lambda one: one["rpo"].update(records="7")),
        changed(lambda one: one["rto"].update(seconds=float("inf"))),
        changed(lambda one: one.update(checks=[{"check": "lag", "status": "ok", "text": {"a": 1}}])),
        changed(lambda one: one.update(checks=[{"check": "\ud800", "status": "ok", "text": ""}])),
    ],
)
def test_another_file_is_refused_in_one_line(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"^is no report of a drill: [^\n]+$|^is the report of 1$"):
        parsed(text, flow="a->b", began_ms=BEGAN_MS)


def test_long_texts_are_cut() -> None:
    check = {"check": "c" * 5_000, "status": "failed", "text": "t" * 5_000}
    one = parsed(changed(lambda fields: fields.update(checks=[check] * 500)), flow="a->b", began_ms=BEGAN_MS)
    assert one is not None
    assert one.problems == ((Status.FAILED, "c" * 1_000, "t" * 1_000),) * 100


def test_only_folders_with_the_time_of_a_drill_are_listed(tmp_path: Path) -> None:
    for name in ("..1790000000000", "179", "17900000000001", "x", "٣٧٩٠٠٠٠٠٠٠٠٠٠"):
        (tmp_path / "a-b" / name).mkdir(parents=True)
    (tmp_path / "a-b" / f"{BEGAN_MS}").write_text("a file")
    (tmp_path / "a-b" / f"{BEGAN_MS + 1}").symlink_to(tmp_path)
    assert stored(str(tmp_path), "a->b") == []


def test_only_files_are_read(tmp_path: Path) -> None:
    place = tmp_path / "a-b" / str(BEGAN_MS)
    place.mkdir(parents=True)
    (tmp_path / "secret").write_text("a secret")
    (place / "result.html").symlink_to(tmp_path / "secret")
    os.mkfifo(place / "result.json")
    for form in Form:
        with pytest.raises(OSError, match=r"symbolic links|is not a file"):
            content(str(tmp_path), "a->b", BEGAN_MS, form)


def test_a_file_that_is_too_long_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "a-b" / str(BEGAN_MS)
    place.mkdir(parents=True)
    with (place / "result.json").open("wb") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(OSError, match="has more than 16777216 bytes"):
        content(str(tmp_path), "a->b", BEGAN_MS, Form.JSON)
