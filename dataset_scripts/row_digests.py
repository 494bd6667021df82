"""A hash of every row of a build, so that verification can name the row that is another one."""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
from datasets.naming import filenames_for_dataset_split

from soubench.builders.verification import Problem

Tables = Mapping[str, Mapping[str, pa.Table]]
"""Config -> split -> its rows."""
Digests = Mapping[str, Mapping[str, list[str]]]
"""Split -> row id, in order -> hashes of the rows of that id, of which each config may have one."""

NOT_HASHED = ("image", "images", "objects")
"""Pictures, and what is the same for all rows of a picture: they have hashes of their own."""
BATCH_ROWS = 1024


def read_config(name: str, folder: Path, info: datasets.DatasetInfo) -> dict[str, pa.Table]:
    """Return the splits of a config of the cache, in their order."""
    tables = {}
    for split, found in (info.splits or {}).items():
        files = filenames_for_dataset_split(
            str(folder), name, split, filetype_suffix="arrow", shard_lengths=found.shard_lengths
        )
        parts = [pa.ipc.open_stream(pa.memory_map(file)).read_all() for file in files]
        tables[split] = pa.concat_tables(parts)
    return tables


def largest_configs(tables: Tables) -> list[str]:
    """Return the configs with the most rows: all others repeat rows of theirs."""
    rows = {name: sum(table.num_rows for table in of.values()) for name, of in tables.items()}
    return [name for name, n in rows.items() if n == max(rows.values())]


def row_digests(tables: Tables, features: Mapping[str, Any]) -> dict[str, dict[str, list[str]]]:
    """Hash the rows of the largest configs.

    Args:
        tables: All configs.
        features: Columns of the rows; a table may have more, which are not hashed.
    """
    digests: dict[str, dict[str, list[str]]] = {}
    for config in largest_configs(tables):
        for split, table in tables[config].items():
            of_split = digests.setdefault(split, {})
            for row_id, digest in _hashed(table, features):
                known = of_split.setdefault(row_id, [])
                if digest not in known:
                    known.append(digest)
    return digests


def _hashed(table: pa.Table, features: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    columns = [c for c in table.column_names if c in features and c not in NOT_HASHED]
    for batch in table.select(columns).to_batches(max_chunksize=BATCH_ROWS):
        for row in batch.to_pylist():
            said = json.dumps(row, sort_keys=True, separators=(",", ":"))
            yield str(row["id"]), sha256(said.encode()).hexdigest()[:16]


def digest_problems(
    tables: Tables, features: Mapping[str, Any], expected: Digests, known: set[str]
) -> Iterator[Problem]:
    """Name the rows that the build has not made, lost, or made at another place.

    Args:
        tables: All configs that are there.
        features: Columns of the rows.
        expected: What the build made.
        known: Ids of rows of which a problem is known already.
    """
    seen: dict[str, set[str]] = {split: set() for split in expected}
    for config in largest_configs(tables):
        for split, table in tables[config].items():
            of_build = expected.get(split, {})
            place = {row_id: i for i, row_id in enumerate(of_build)}
            last = -1
            for row_id, digest in _hashed(table, features):
                if row_id not in of_build:
                    yield Problem(row_id, "row", f"the build has no such row in {split}")
                    continue
                seen[split].add(row_id)
                if digest not in of_build[row_id] and row_id not in known:
                    yield Problem(row_id, "row", "it is not that of the build")
                if place[row_id] <= last:
                    yield Problem(row_id, "row", f"{config}, {split}: it comes again, or too late")
                last = max(last, place[row_id])
    for split, of_build in expected.items():
        for row_id in of_build:
            if row_id not in seen[split]:
                yield Problem(row_id, "missing", f"there is no such row in {split}")


def first_difference(expected: pa.Table, found: pa.Table) -> str:
    """Return the id of the first row in which two tables differ; empty where they do not."""
    if expected.equals(found):
        return ""
    n = min(expected.num_rows, found.num_rows)
    for start in range(0, n, BATCH_ROWS):
        ours = expected.slice(start, BATCH_ROWS).to_pylist()
        theirs = found.slice(start, BATCH_ROWS).to_pylist()
        for one, other in zip(ours, theirs, strict=False):
            if one != other:
                return str(other.get("id"))
    longer = expected if expected.num_rows > n else found
    return str(longer["id"][n]) if longer.num_rows > n else str(found["id"][0])
