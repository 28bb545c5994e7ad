"""The report of a drill as text, JSON and a page that needs nothing else."""

from __future__ import annotations

import json
import random
import re
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from mirrorless.cli import drill as command
from mirrorless.doctor.findings import Status
from mirrorless.errors import ClusterUnavailable
from mirrorless.operations.drill import report as drill_report
from mirrorless.operations.drill.facts import BacklogFacts, NotCopied
from mirrorless.operations.drill.gather_records import positions_of
from mirrorless.operations.drill.page import page
from mirrorless.operations.drill.report import as_text, configuration_hash, report_of, to_json
from mirrorless.operations.drill.samples import WINDOW_RECORDS, some, window_starts
from mirrorless.operations.results import SHOWN_LINES, CheckResult, UnreadPart
from tests.support.drill_facts import facts, flow_with, forecast, plan_of, status_with

if TYPE_CHECKING:
    from mirrorless.operations.drill.report import DrillReport

BEGAN_MS = 1_790_000_000_000
LAGGING = BacklogFacts(
    partitions={("orders", 0): NotCopied(3, True, 8_000), ("orders", 1): NotCopied(4, True, 6_500)}, read_ms=10_000
)


def report(**changes: object) -> DrillReport:
    return report_of(facts(**{"backlog": LAGGING} | changes), began_ms=BEGAN_MS, ended_ms=BEGAN_MS + 4_000)


def test_the_rpo_is_that_of_the_oldest_record_and_the_rto_what_was_measured() -> None:
    one = report(flow=flow_with(rpo_seconds=60.0))
    assert (one.rpo_records, one.rpo_seconds, one.rpo_partition) == (7, 3.5, "orders-1")
    assert one.rto_seconds == 1.5
    text = as_text(one)
    assert "RPO now: 7 records, 3.5 s (orders-1), limit 60 s" in text
    assert "RTO at least: 1.5 s; without detecting the outage and deciding; " in text
    assert text.startswith("a->b: drill of 2026-09-21 14:13:20 UTC\n")
    assert report(backlog=UnreadPart("no answer")).rpo_text == "unknown"


def test_json_has_everything() -> None:
    fields = json.loads(to_json([report()], {"c->b": "no answer"}))["flows"]
    assert fields["c->b"] == {"error": "no answer"}
    one = fields["a->b"]
    assert one["rpo"] == {"records": 7, "exact": True, "seconds": 3.5, "partition": "orders-1", "limit_seconds": None}
    assert one["rto"]["does_not_include"]
    assert {check["check"] for check in one["checks"]} >= {"lag", "positions of groups", "rights of principals"}
    assert one["groups"] == [
        {"group": "billing", "partitions": 1, "untranslated": 0, "read_again": 0, "skipped": 0, "not_copied": 2}
    ]
    assert set(one["versions"]) == {"mirrorless", "confluent-kafka", "kafka-python"}
    assert re.fullmatch("[0-9a-f]{64}", one["configuration_sha256"])


def test_a_package_without_metadata_has_an_unknown_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        if package == "mirrorless":  # as in the layer of the functions
            raise PackageNotFoundError(package)
        return "1"

    monkeypatch.setattr(drill_report, "version", version)
    assert dict(report().versions) == {"mirrorless": "unknown", "confluent-kafka": "1", "kafka-python": "1"}


def test_the_hash_changes_with_a_setting_and_not_with_a_secret() -> None:
    flow = flow_with()
    other = flow.source.model_copy(update={"client": {"sasl.jaas.config": "password=other"}})
    assert configuration_hash(flow) != configuration_hash(flow_with(rpo_seconds=1.0))
    assert configuration_hash(flow) == configuration_hash(
        type(flow)(source=other, target=flow.target, topics=flow.topics)
    )


def test_the_page_needs_no_other_host_and_shows_names_as_they_are() -> None:
    plan = plan_of(forecast(group="<b>&", target_offset=None, how="none", read_again=None))
    shown = page([report(plan=plan)], {"c->b": "no <answer>"})
    assert not re.findall(r"https?://|<script|<link|src=|@import|url\(", shown)
    assert "prefers-color-scheme: dark" in shown
    assert "color-scheme: light dark" in shown
    assert "&lt;b&gt;&amp;" in shown
    assert "<b>&" not in shown
    assert "no &lt;answer&gt;" in shown
    assert "secret" not in shown


def test_long_lists_are_cut_in_text_only() -> None:
    one = CheckResult(check="x", status=Status.OK, text="", lines=tuple(map(str, range(SHOWN_LINES + 5))))
    assert len(one.shown) == SHOWN_LINES + 1
    assert one.shown[-1] == "and 5 more; the JSON report has all of them"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mm2.properties"
    path.write_text("clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true\n")
    return str(path)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, 0),
        ({"counts": {"orders": (2, 1)}}, 1),
        ({"status": UnreadPart("no answer")}, 2),
        ({"status": UnreadPart("no answer"), "counts": {"orders": (2, 1)}}, 1),
        ({"status": status_with(runs=())}, 0),
    ],
)
def test_the_exit_status(
    changes: dict[str, object], status: int, file: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command, "drill_flow", lambda *_, **__: report(**changes))
    outputs = [str(tmp_path / f"reports/drill{suffix}") for suffix in (".json", ".html", ".txt")]
    arguments = [argument for one in outputs for argument in ("--output", one)]
    result = CliRunner().invoke(command.drill, [file, "--to", "b", *arguments])
    assert result.exit_code == status, result.output
    text = Path(outputs[2]).read_text()
    assert result.stdout == text
    assert json.loads(Path(outputs[0]).read_text())["flows"]["a->b"]["began_ms"] == BEGAN_MS
    assert Path(outputs[1]).read_text().startswith("<!doctype html>")


def test_a_cluster_that_does_not_answer(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ClusterUnavailable("no answer from a:1", cluster="a")

    monkeypatch.setattr(command, "drill_flow", refuse)
    result = CliRunner().invoke(command.drill, [file, "--to", "b", "--json"])
    assert result.exit_code == 2
    assert json.loads(result.stdout)["flows"]["a->b"]["error"] == "cluster a: no answer from a:1"
    assert "error: flow a->b: cluster a: no answer" in result.stderr


def test_wrong_arguments(file: str) -> None:
    assert CliRunner().invoke(command.drill, [file, "--to", "c"]).exit_code != 0
    assert "not both" in CliRunner().invoke(command.drill, [file, "--to", "b", "--json", "--html"]).output
    assert ".json, .html, .txt" in CliRunner().invoke(command.drill, [file, "--to", "b", "--output", "x.pdf"]).output


def test_groups_at_the_same_position_share_it() -> None:
    first, second = positions_of([forecast(), forecast(group="audit"), forecast(group="late", target_offset=61)])
    assert first.who[:2] == ("group billing, translation (run)", "group billing, checkpoint")
    assert "group audit, translation (run)" in first.who
    assert (second.target_offset, second.who) == (61, ("group late, translation (run)",))


def test_a_checkpoint_of_an_earlier_offset_may_be_inexact() -> None:
    now, before = positions_of([forecast(checkpoint_source_offset=50, checkpoint_offset=40)])
    assert (now.read_again, now.source_offset) == (0, 70)
    assert (before.source_offset, before.target_offset, before.read_again > 0) == (50, 40, True)


def test_windows_are_at_both_ends_and_between_them() -> None:
    chance = random.Random(1)
    starts = window_starts({("t", 0): (10, 1_000), ("t", 1): (5, 5), ("t", 2): (0, 20)}, chance=chance)
    assert set(starts) == {("t", 0), ("t", 2)}
    assert starts["t", 0][0] == 10
    assert starts["t", 0][-1] == 1_000 - WINDOW_RECORDS
    assert all(10 <= one <= 950 for one in starts["t", 0])
    assert starts["t", 2] == (0,)


def test_some_keeps_the_order() -> None:
    assert some("abc", most=3, chance=random.Random(1)) == ["a", "b", "c"]
    chosen = some(range(100), most=10, chance=random.Random(1))
    assert (len(chosen), chosen) == (10, sorted(chosen))
