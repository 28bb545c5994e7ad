"""The result as Parquet, with every window that was compared; needs PyArrow."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from mirrorless.verify.report_file import write

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mirrorless.verify.comparison import ComparedWindow
    from mirrorless.verify.findings import VerificationResult

_PARTITIONS: Final[dict[str, pa.DataType]] = {
    "flow": pa.string(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "remote_topic": pa.string(),
    "method": pa.string(),
    "records": pa.int64(),
    "size_bytes": pa.int64(),
    "windows": pa.int64(),
    "different": pa.int64(),
    "not_copied": pa.int64(),
    "first_upstream": pa.int64(),
    "end_upstream": pa.int64(),
    "first_downstream": pa.int64(),
    "end_downstream": pa.int64(),
    "expired_on_target": pa.bool_(),
    "notes": pa.list_(pa.string()),
    "trouble": pa.string(),
    "more": pa.bool_(),
}
_DIFFERENCES: Final[dict[str, pa.DataType]] = {
    "flow": pa.string(),
    "kind": pa.string(),
    "topic": pa.string(),
    "remote_topic": pa.string(),
    "partition": pa.int32(),
    "upstream": pa.int64(),
    "downstream": pa.int64(),
    "records": pa.int64(),
    "fields": pa.list_(pa.string()),
    "what": pa.string(),
    "translated": pa.int64(),
    "source_has": pa.string(),
    "target_has": pa.string(),
}
_WINDOWS: Final[dict[str, pa.DataType]] = {
    "flow": pa.string(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "round": pa.int32(),
    "number": pa.int64(),
    "records": pa.int64(),
    "remote_records": pa.int64(),
    "digest": pa.int64(),
    "remote_digest": pa.int64(),
    "first_upstream": pa.int64(),
    "last_upstream": pa.int64(),
    "first_downstream": pa.int64(),
    "last_downstream": pa.int64(),
    "size_bytes": pa.int64(),
    "same": pa.bool_(),
}


def write_parquet(location: str, verdicts: Sequence[tuple[VerificationResult, Sequence[ComparedWindow]]]) -> None:
    """Write partitions, differences and windows as Parquet files into a folder, on disk or in S3."""
    partitions = [{"flow": verdict.flow} | asdict(one) for verdict, _ in verdicts for one in verdict.partitions]
    differences = [{"flow": verdict.flow} | asdict(one) for verdict, _ in verdicts for one in verdict.differences]
    windows = [
        {"flow": verdict.flow, "topic": one.topic, "partition": one.partition, "round": one.round}
        | one.window._asdict()
        | {"same": one.window.same}
        for verdict, some in verdicts
        for one in some
    ]
    tables: tuple[tuple[str, list[dict[str, Any]], dict[str, pa.DataType]], ...] = (
        ("partitions", partitions, _PARTITIONS),
        ("differences", differences, _DIFFERENCES),
        ("windows", windows, _WINDOWS),
    )
    for name, rows, columns in tables:
        written = pa.BufferOutputStream()
        pq.write_table(_table(rows, columns), written)
        write(f"{location.rstrip('/')}/{name}.parquet", written.getvalue().to_pybytes())


def _table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, pa.DataType]) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], schema=pa.schema(list(columns.items())))
