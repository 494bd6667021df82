"""How the rows of primitive-shapes are verified."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from soubench.builders.shapes.build import load_questions
from soubench.builders.shapes.verify import verify
from soubench.builders.verification import Problem, Row


def problems(
    tables: Mapping[str, Mapping[str, pa.Table]], manifest: Mapping[str, Any], prompt: Path | None
) -> Iterator[Problem]:
    """Yield what is wrong with the rows; see ``soubench.builders.shapes.verify``."""
    questions, _ = load_questions(prompt)
    rows = {
        config: {split: table.to_pylist() for split, table in splits.items()}
        for config, splits in tables.items()
    }
    yield from verify(rows, manifest, questions if knows_words(manifest, prompt) else None)


def knows_words(manifest: Mapping[str, Any], prompt: Path | None) -> bool:
    """Say whether the prompt file is the one that the rows were made with."""
    return bool(load_questions(prompt)[1] == manifest["head"]["prompts"])


def pictures_of(manifest: Mapping[str, Any], row: Row) -> Sequence[Mapping[str, Any]]:
    """Return the hash of a row's picture."""
    split, _, index = row["id"].rpartition("/")
    digests = manifest["pictures"].get(split, ())
    if not index.isdecimal() or int(index) >= len(digests):
        return []
    return [{"sha256": digests[int(index)], "as_is": True}]
