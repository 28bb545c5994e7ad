"""Schemas of the rows between driver and slots, for Spark and for Arrow.

Both are derived from the dataclasses, so that the integer widths always agree.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from mirrorless.copy.partition.lease_rows import LeaseRow, Report

_TYPES: Final[dict[str, tuple[str, pa.DataType]]] = {
    "str": ("string", pa.string()),
    "int": ("bigint", pa.int64()),
    "bool": ("boolean", pa.bool_()),
}


def spark_schema(row: type[LeaseRow | Report]) -> str:
    """Spark's DDL for a row class, its fields in order."""
    return ", ".join(f"{name} {spark}" for name, spark, _ in _columns(row))


def arrow_schema(row: type[LeaseRow | Report]) -> pa.Schema:
    """Arrow's schema for a row class, of the same widths as Spark's."""
    return pa.schema([pa.field(name, arrow) for name, _, arrow in _columns(row)])


def _columns(row: type[LeaseRow | Report]) -> list[tuple[str, str, pa.DataType]]:
    return [(item.name, *_TYPES[str(item.type).split(" ", maxsplit=1)[0]]) for item in fields(row)]


def as_tuple(row: LeaseRow) -> tuple[Any, ...]:
    """A lease's row as Spark's data source wants it."""
    return tuple(getattr(row, item.name) for item in fields(row))
