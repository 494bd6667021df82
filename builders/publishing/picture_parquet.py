"""Parquet files that hold each picture once, however many rows show it.

Rows are ordered by picture, row groups hold whole pictures, and Parquet's own dictionary stores
equal values of a row group once. `datasets` writes smaller dictionaries, which pictures overflow.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from soubench.builders.rrs.record import record_id

ROW_GROUP_BYTES = 8 << 20
"""Of distinct pictures. A reader holds every row's own copy: about six times as much."""
ROW_GROUP_ROWS = 1000
SHARD_BYTES = 450_000_000
DICTIONARY_BYTES = 1 << 30
"""More than any row group has; the format's own bound is 2 GiB."""
IMAGE_TYPE = pa.struct({"bytes": pa.binary(), "path": pa.string()})
CONFIG_COLUMN = "config"
"""Says which config a row belongs to, where several configs ask about the same pictures."""


class Embedded(NamedTuple):
    """A picture as it goes into a file: its bytes and its base name."""

    data: bytes
    name: str


class PictureRows(NamedTuple):
    """The rows of one picture, or of the few of a record, and the pictures of each row."""

    rows: pa.Table
    images: Sequence[Sequence[Embedded]]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that was written: its name, its size in bytes, and its SHA-256."""

    name: str
    num_bytes: int
    sha256: str


@dataclass(slots=True)
class Written:
    """What was written.

    Attributes:
        files: The files, in order.
        rows: Sub-task or config (empty where the files have neither column) -> number of rows.
        num_bytes: Sub-task or config -> bytes of its rows once loaded.
        distinct_bytes: Bytes of the pictures, each counted once.
        pictures: Number of distinct pictures.
    """

    files: list[StoredFile] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)
    num_bytes: Counter[str] = field(default_factory=Counter)
    distinct_bytes: int = 0
    pictures: int = 0


def by_picture(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Cut tables whose rows are ordered by picture into one table per picture, or per record."""
    pending: list[pa.Table] = []
    last = None
    for table in tables:
        keys = picture_keys(table)
        start = 0
        for i, key in enumerate(keys):
            if key != last:
                if i > start:
                    pending.append(table.slice(start, i - start))
                if pending:
                    yield pa.concat_tables(pending)
                pending, start, last = [], i, key
        if len(keys) > start:
            pending.append(table.slice(start))
    if pending:
        yield pa.concat_tables(pending)


def picture_keys(table: pa.Table) -> list[str]:
    """Return what rows about the same picture have in common, and other rows have not."""
    keys: list[str] = table["image_id" if "image_id" in table.column_names else "id"].to_pylist()
    return list(map(record_id, keys)) if picture_column(table.schema) == "images" else keys


def picture_column(schema: pa.Schema) -> str:
    """Return the name of the column with a picture, or with a list of them."""
    return "images" if "images" in schema.names else "image"


def picture_cells(table: pa.Table) -> list[list[dict[str, Any]]]:
    """Return the pictures of each row, as ``bytes`` and ``path``; none where the cell is null."""
    column = picture_column(table.schema)
    cells = table[column].to_pylist()
    if column == "images":
        return [cell or [] for cell in cells]
    return [[cell] if cell else [] for cell in cells]


def read_row_groups(paths: Iterable[Path]) -> Iterator[pa.Table]:
    """Yield the row groups of Parquet files, one at a time."""
    for path in paths:
        with pq.ParquetFile(path) as file:
            for i in range(file.num_row_groups):
                yield file.read_row_group(i)


def write_pictures(
    folder: Path, split: str, pictures: Iterable[PictureRows], schema: pa.Schema
) -> Written:
    """Write ``<folder>/<split>-0000i-of-0000N.parquet``, a few pictures in memory at a time.

    Args:
        folder: Where the files go; made if missing.
        split: Start of their names.
        pictures: Rows, picture by picture.
        schema: Columns of the files, with the ``huggingface`` metadata.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = Written()
    parts: list[Path] = []
    writer: pq.ParquetWriter | None = None
    shard_bytes = 0
    try:
        for group, distinct in _row_groups(pictures, schema):
            if writer is not None and shard_bytes + distinct > SHARD_BYTES:
                writer.close()
                writer = None
            if writer is None:
                parts.append(folder / f"{split}-{len(parts):05d}.part")
                writer = _writer(parts[-1], schema)
                shard_bytes = 0
            writer.write_table(group, row_group_size=group.num_rows)
            shard_bytes += distinct
            _count(group, written)
            written.distinct_bytes += distinct
    finally:
        if writer is not None:
            writer.close()
    for i, part in enumerate(parts):
        path = folder / f"{split}-{i:05d}-of-{len(parts):05d}.parquet"
        part.rename(path)
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
        written.files.append(StoredFile(path.name, path.stat().st_size, digest))
    return written


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=True,
        dictionary_pagesize_limit=DICTIONARY_BYTES,
    )


def _row_groups(
    pictures: Iterable[PictureRows], schema: pa.Schema
) -> Iterator[tuple[pa.Table, int]]:
    """Yield row groups of whole pictures, each with the bytes of its distinct pictures."""
    tables: list[pa.Table] = []
    images: list[Sequence[Embedded]] = []
    rows = distinct = 0
    for picture in pictures:
        size = sum(len(data) for data, _ in {image for of in picture.images for image in of})
        n = picture.rows.num_rows
        if tables and (distinct + size > ROW_GROUP_BYTES or rows + n > ROW_GROUP_ROWS):
            yield _row_group(tables, images, schema), distinct
            tables, images, rows, distinct = [], [], 0, 0
        tables.append(picture.rows)
        images.extend(picture.images)
        rows += n
        distinct += size
    if tables:
        yield _row_group(tables, images, schema), distinct


def _row_group(
    tables: Sequence[pa.Table], images: Sequence[Sequence[Embedded]], schema: pa.Schema
) -> pa.Table:
    table = pa.concat_tables(tables)
    column = picture_column(schema)
    cells: list[Any] = [
        [{"bytes": image.data, "path": image.name} for image in of] or None for of in images
    ]
    if column == "image":
        cells = [of and of[0] for of in cells]
    columns: list[Any] = [
        pa.array(cells, IMAGE_TYPE if column == "image" else schema.field(column).type)
        if name == column
        else table[name]
        if name in table.column_names
        else pa.nulls(table.num_rows, schema.field(name).type)
        for name in schema.names
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _count(group: pa.Table, written: Written) -> None:
    column = next((c for c in ("task", CONFIG_COLUMN) if c in group.column_names), "")
    for value in group[column].unique().to_pylist() if column else ("",):
        rows = group.filter(pc.equal(group[column], value)) if column else group
        written.rows[value] += rows.num_rows
        written.num_bytes[value] += rows.nbytes
    cells, keys = picture_cells(group), picture_keys(group)
    named = {(k, cell["path"]) for k, of in zip(keys, cells, strict=True) for cell in of}
    written.pictures += len(named)
