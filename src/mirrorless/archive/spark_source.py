"""An archive as a DataFrame: its committed records as they were at a time, a Spark partition for each object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from mirrorless.archive.object_store import ArchiveError, open_store
from mirrorless.archive.view import ArchiveView
from mirrorless.batches.header import scan
from mirrorless.kafka_python.structs import DefaultRecordBatch
from mirrorless.settings.patterns import Patterns, split_list
from mirrorless.settings.values import timestamp_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.types import StructType

    from mirrorless.archive.view import ReadPiece
    from mirrorless.batches.header import BatchHeader

_ROWS: Final = 10_000
_HEADER: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_TYPES: Final[dict[str, pa.DataType]] = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(_HEADER),
}
_COLUMNS: Final = pa.schema(_TYPES)
_SCHEMA: Final = (
    "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>"
)
_Row = tuple[str, int, int, int, bytes | None, bytes | None, list[dict[str, Any]]]


class ArchivedObject(InputPartition):
    """One object's part of a partition: offsets from `first` up to `end`; `aborted` are as in its footer."""

    def __init__(self, location: str, topic: str, partition: int, piece: ReadPiece) -> None:
        super().__init__(None)
        self.location = location
        self.topic = topic
        self.partition = partition
        self.name = piece.link.name
        self.size_bytes = piece.footer.size_bytes
        self.first = piece.first
        self.end = piece.end
        self.aborted = piece.footer.aborted


class ArchiveSource(DataSource):
    """Data source `mirrorless.archive`; options: `location`, and if wanted `topics` (patterns) and `until` (a time)."""

    @classmethod
    def name(cls) -> str:
        """Name to give to `format`, once it is registered."""
        return "mirrorless.archive"

    def schema(self) -> str:
        """Columns as of Spark's Kafka source, without `timestampType`."""
        return _SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 -- Spark's
        """The reader; raises `ArchiveError` if the archive cannot be read."""
        until = self.options.get("until")
        return ArchiveReader(
            self.options["location"],
            topics=self.options.get("topics", ".*"),
            until_ms=None if until is None else int(str(timestamp_ms(until))),
        )


class ArchiveReader(DataSourceReader):
    """Reads objects whole. An archive that lacks something is refused: an analysis would be wrong silently."""

    def __init__(self, location: str, *, topics: str, until_ms: int | None) -> None:
        self._location = location
        self._topics = topics
        self._until_ms = until_ms

    def partitions(self) -> list[InputPartition]:
        """Return the objects to read; raises `ArchiveError` if one of them is missing or damaged."""
        view = ArchiveView(open_store(self._location), self._until_ms)
        patterns = Patterns(split_list(self._topics))
        found: list[InputPartition] = []
        for (topic, partition), log in view.logs.items():
            if not patterns.match(topic):
                continue
            if log.lacking is not None:
                raise ArchiveError(f"{topic}-{partition}: {log.lacking}")
            found += [ArchivedObject(self._location, topic, partition, piece) for piece in log.pieces]
        return found

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the committed records of one object, in their order; none of None, which Spark gives for no object."""
        if partition is None:
            return
        assert isinstance(partition, ArchivedObject)
        data = open_store(partition.location).read(partition.name, 0, partition.size_bytes)
        rows: list[_Row] = []
        for header, at in scan(data):
            if header.is_control or is_aborted(header, partition.aborted):
                continue
            rows += _rows(partition, data[at : at + header.size_bytes])
            if len(rows) >= _ROWS:
                yield _batch(rows)
                rows = []
        if rows:
            yield _batch(rows)


def is_aborted(header: BatchHeader, aborted: list[tuple[int, int, int]]) -> bool:
    """Whether a batch belongs to one of these transactions: producer id, first offset, marker or -1."""
    if not header.is_transactional:
        return False
    return any(
        producer == header.producer_id and first <= header.base_offset and (end < 0 or header.base_offset < end)
        for producer, first, end in aborted
    )


def _rows(place: ArchivedObject, batch: bytes) -> list[_Row]:
    return [
        (
            place.topic,
            place.partition,
            record.offset,
            record.timestamp * 1000,
            record.key,
            record.value,
            [{"key": key, "value": value} for key, value in record.headers],
        )
        for record in DefaultRecordBatch(batch)
        if place.first <= record.offset < place.end
    ]


def _batch(rows: list[_Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _COLUMNS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_COLUMNS)
