"""A verdict for people and for machines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import boto3
import pyarrow.parquet as pq
import pytest

from mirrorless.verify.comparison import ComparedWindow
from mirrorless.verify.findings import Difference, DifferenceKind, Method, PartitionResult, VerificationResult, by_topic
from mirrorless.verify.page import page
from mirrorless.verify.parquet import write_parquet
from mirrorless.verify.repair import Step
from mirrorless.verify.report import summary, to_json
from mirrorless.verify.report_file import write
from mirrorless.verify.window import Window
from tests.support.aws import aws_server

if TYPE_CHECKING:
    from pathlib import Path

_PARQUET = ("partitions.parquet", "differences.parquet", "windows.parquet")


def difference(kind: DifferenceKind = DifferenceKind.MISSING, **fields: object) -> Difference:
    return Difference(kind=kind, topic="orders", remote_topic="a.orders", partition=1, **fields)  # type: ignore[arg-type]


def verdict(*differences: Difference, troubles: tuple[str, ...] = (), topic: str = "orders") -> VerificationResult:
    partition = PartitionResult(
        topic=topic, partition=1, remote_topic=f"a.{topic}", method=Method.WINDOWS, records=7, windows=2, different=1
    )
    return VerificationResult(
        flow="a->b", began_ms=0, ended_ms=1500, partitions=(partition,), differences=differences, troubles=troubles
    )


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (verdict(), 0),
        (verdict(difference()), 1),
        (verdict(troubles=("no answer",)), 2),
        (verdict(difference(), troubles=("no answer",)), 1),
    ],
)
def test_the_exit_status(found: VerificationResult, status: int) -> None:
    assert found.status == status


def test_a_line_for_the_log_has_the_metrics() -> None:
    line = summary(verdict(difference()))
    assert (line["event"], line["records-compared"], line["differences"], line["seconds"]) == ("Verified", 7, 1, 1.5)


def test_json_and_parquet(tmp_path: Path) -> None:
    found = verdict(difference(records=2, upstream=5, downstream=4))
    write(str(tmp_path / "new" / "result.json"), to_json([found]).encode())
    (flow,) = json.loads((tmp_path / "new" / "result.json").read_text())["flows"]
    assert (flow["result"], flow["records-compared"]) == ("differences", 7)
    assert flow["differences"][0]["text"] == "missing: 2 records"
    window = Window(0, 3, 2, 17, 18, 0, 2, 0, 1, 99)
    write_parquet(
        str(tmp_path / "parquet"), [(found, [ComparedWindow(topic="orders", partition=1, round=0, window=window)])]
    )
    (row,) = pq.read_table(tmp_path / "parquet" / "windows.parquet").to_pylist()
    assert (row["records"], row["remote_records"], row["same"]) == (3, 2, False)
    assert pq.read_table(tmp_path / "parquet" / "differences.parquet")["upstream"].to_pylist() == [5]
    assert pq.read_table(tmp_path / "parquet" / "partitions.parquet").num_rows == 1


def test_reports_go_to_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    with aws_server() as environment:
        for key, value in environment.items():
            monkeypatch.setenv(key, value)
        client = boto3.client("s3")
        client.create_bucket(Bucket="reports")
        write("s3://reports/verify/result.json", to_json([verdict()]).encode())
        write_parquet("s3://reports/verify", [(verdict(), [])])
        found = {one["Key"] for one in client.list_objects_v2(Bucket="reports")["Contents"] if one["Size"]}
    assert found == {f"verify/{name}" for name in ("result.json", *_PARQUET)}


def test_the_page_holds_everything_and_needs_nothing() -> None:
    found = verdict(
        difference(DifferenceKind.CHANGED, fields=("value",), upstream=1_234), troubles=("<b>x</b>",), topic="<i>"
    )
    html = page([found], [[Step("orders-1", "changed", "copy it & again")]])
    assert "changed in value" in html
    assert "1,234" in html
    assert "&lt;b&gt;x&lt;/b&gt;" in html
    assert "<i>" not in html
    assert "copy it &amp; again" in html
    assert html.count("<svg") == 2
    assert "http" not in html
    assert "<script" not in html


def test_many_topics_and_differences_stay_readable() -> None:
    many = VerificationResult(
        flow="a->b",
        began_ms=0,
        ended_ms=1,
        partitions=tuple(
            PartitionResult(topic=f"t{n}", partition=0, remote_topic="r", method=Method.WINDOWS) for n in range(60)
        ),
        differences=tuple(difference() for _ in range(1_500)),
    )
    html = page([many])
    assert "The longest 40 of 60." in html
    assert "First 1,000 of 1,500" in html


def test_partitions_add_up_by_topic() -> None:
    (topic,) = by_topic(verdict(difference(), difference(DifferenceKind.CONFIG)))
    assert (topic.records, topic.windows, topic.different, topic.differences) == (7, 2, 1, 1)
