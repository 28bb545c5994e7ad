"""Stored drills are rows of the page, and those that cannot be read are notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.operations.drill.report import report_of
from mirrorless.operations.drill.stored import Form, store
from mirrorless.settings import load
from mirrorless.web.drills_reader import DrillsReader
from tests.support.drill_facts import facts

if TYPE_CHECKING:
    from pathlib import Path

BEGAN_MS = 1_790_000_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in (BEGAN_MS, BEGAN_MS + 60_000):
        store(str(tmp_path / "drills"), report_of(facts(), began_ms=number, ended_ms=number + 4_000))
    return tmp_path / "drills" / "a-b"


@pytest.fixture
def reader(folder: Path, tmp_path: Path) -> DrillsReader:
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true\n"
        f"b->a.enabled = true\na->b.mirrorless.drill.reports = {folder.parent}\n"
    )
    return DrillsReader(load(file), every_s=60)


def test_the_newest_is_first(reader: DrillsReader) -> None:
    reader.read()
    assert [(row.flow, row.began_ms, row.status) for row in reader.rows] == [
        ("a->b", BEGAN_MS + 60_000, "warning"),
        ("a->b", BEGAN_MS, "warning"),
    ]
    assert [one.check for one in reader.rows[0].problems] == ["without the source"]
    assert reader.notes == []


def test_a_report_is_read_once_and_a_broken_one_until_it_is_whole(reader: DrillsReader, folder: Path) -> None:
    whole = (folder / str(BEGAN_MS) / "result.json").read_text()
    (folder / str(BEGAN_MS) / "result.json").write_text(whole[:100])
    reader.read()
    assert [row.began_ms for row in reader.rows] == [BEGAN_MS + 60_000]
    (note,) = reader.notes
    assert note.startswith(f"drill {BEGAN_MS} of a->b: is no report of a drill: ")
    (folder / str(BEGAN_MS) / "result.json").write_text(whole)
    (folder / str(BEGAN_MS + 60_000) / "result.json").write_text("not read again")
    reader.read()
    assert [row.began_ms for row in reader.rows] == [BEGAN_MS + 60_000, BEGAN_MS]
    assert reader.notes == []


def test_a_folder_that_cannot_be_listed_hides_nothing_that_is_known(reader: DrillsReader, folder: Path) -> None:
    reader.read()
    folder.rename(folder.with_name("other"))
    folder.write_text("a file")
    reader.read()
    assert len(reader.rows) == 2
    (note,) = reader.notes
    assert note.startswith("drills of a->b: [Errno 20] Not a directory: ")


@pytest.mark.parametrize(
    ("flow", "number"), [("a->b", "../b"), ("a->b", f"{BEGAN_MS + 1}"), ("b->a", f"{BEGAN_MS}"), ("a->b", "")]
)
def test_only_what_is_listed_is_served(reader: DrillsReader, flow: str, number: str) -> None:
    reader.read()
    assert reader.content(flow, number, Form.HTML) is None
    assert (reader.content("a->b", f"{BEGAN_MS}", Form.HTML) or b"").startswith(b"<!doctype html>")
