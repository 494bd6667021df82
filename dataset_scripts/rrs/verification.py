"""How the rows of rrs are verified."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from soubench.builders.rrs.verify import record_id, verify
from soubench.builders.verification import Problem, Row

SPLIT = "test"


def problems(
    tables: Mapping[str, Mapping[str, pa.Table]], manifest: Mapping[str, Any], prompt: Path | None
) -> Iterator[Problem]:
    """Yield what is wrong with the rows; see ``soubench.builders.rrs.verify``."""
    yield from verify(
        {config: splits[SPLIT].to_pylist() for config, splits in tables.items()}, manifest
    )


def pictures_of(manifest: Mapping[str, Any], row: Row) -> list[Mapping[str, Any]] | None:
    """Return ``file_name``, ``sha256`` and ``as_is`` of a row's pictures; None for a copy."""
    if row["id"] in manifest["pixels"]:
        return None
    found: list[Mapping[str, Any]] | None = manifest["pictures"].get(record_id(row))
    return found
