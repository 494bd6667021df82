"""How the rows of rrs are verified."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from soubench.builders.publishing.export import NAME_FEATURES
from soubench.builders.rrs.record import record_id
from soubench.builders.rrs.verify import verify
from soubench.builders.verification import Problem, Row

SPLIT = "test"


def problems(
    tables: Mapping[str, Mapping[str, pa.Table]], manifest: Mapping[str, Any], prompt: Path | None
) -> Iterator[Problem]:
    """Yield what is wrong with the rows; see ``soubench.builders.rrs.verify``."""
    rows = {config: splits[SPLIT] for config, splits in tables.items()}
    # Exports without pictures have more columns, which no answer depends on.
    own = {
        config: table.drop_columns([c for c in table.column_names if c in NAME_FEATURES])
        for config, table in rows.items()
    }
    yield from verify({config: table.to_pylist() for config, table in own.items()}, manifest)


def knows_words(manifest: Mapping[str, Any], prompt: Path | None) -> bool:
    """Say that nothing is left unchecked: the words of the questions are part of no rule here."""
    return True


def pictures_of(manifest: Mapping[str, Any], row: Row) -> Sequence[Mapping[str, Any]]:
    """Return names and hashes of a row's pictures; a corrupted copy is not the source's file."""
    found: Sequence[Mapping[str, Any]] = manifest["pictures"].get(record_id(row["id"]), ())
    if (pixels := manifest["pixels"].get(row["id"])) is not None:
        return [{**picture, "as_is": False, "pixels_sha256": pixels} for picture in found]
    return found
