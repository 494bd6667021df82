"""How the rows of plant-leaves are verified."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from soubench.builders.plants.prompt import load_prompt
from soubench.builders.plants.verify import verify
from soubench.builders.verification import Problem, Row


def problems(
    tables: Mapping[str, Mapping[str, pa.Table]], manifest: Mapping[str, Any], prompt: Path | None
) -> Iterator[Problem]:
    """Yield what is wrong with the rows; see ``soubench.builders.plants.verify``."""
    words = load_prompt(prompt)
    rows = {
        config: {split: table.to_pylist() for split, table in splits.items()}
        for config, splits in tables.items()
    }
    yield from verify(rows, manifest, words.question if knows_words(manifest, prompt) else None)


def knows_words(manifest: Mapping[str, Any], prompt: Path | None) -> bool:
    """Say whether the prompt file is the one that the rows were made with."""
    return bool(load_prompt(prompt).digest == manifest["head"]["prompt"])


def pictures_of(manifest: Mapping[str, Any], row: Row) -> Sequence[Mapping[str, Any]]:
    """Return name and hash of a row's picture."""
    found = manifest["pictures"].get(row["id"])
    return [found] if found else []
