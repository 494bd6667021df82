"""Check the rows of plant-leaves against themselves, without decoding a picture."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from soubench.builders.errors import FormatError
from soubench.builders.plants.build import SPLITS, fingerprint
from soubench.builders.plants.targets import FORMATS, Center, in_order_of_reading, parse
from soubench.builders.verification import Problem, Row

_COMMON = ("id", "question", "leaf_count", "centers_xy", "subset", "plant_id")
"""Columns that both configs share."""


def verify(
    configs: Mapping[str, Mapping[str, Iterable[Row]]],
    manifest: Mapping[str, Any],
    question: str | None,
) -> Iterator[Problem]:
    """Yield every problem, config by config, then those of the dataset as a whole.

    Args:
        configs: Output format -> split -> its rows in their order, without ``image``.
        manifest: What the build says of itself, see ``soubench.builders.plants.build.manifest``.
        question: The words of the question; None where they are not known.
    """
    emitted: dict[str, dict[str, Any]] = {}
    for name, splits in configs.items():
        plants: dict[str, str] = {}
        seen: set[str] = set()
        for split, rows in splits.items():
            for row in rows:
                if row["id"] in seen:
                    yield Problem(row["id"], "id", "this id has come before")
                seen.add(row["id"])
                yield from _row_problems(row, name, split, question)
                home = plants.setdefault(f"{row['subset']}/{row['plant_id']}", split)
                if home != split:
                    yield Problem(row["id"], "plant_id", f"this plant is in {home}, too")
                known = emitted.setdefault(row["id"], {k: row[k] for k in _COMMON})
                if any(known[k] != row[k] for k in _COMMON):
                    yield Problem(row["id"], "config", "the configs do not agree on this row")
                known |= {"split": split, name: row["target"]}
    if set(emitted) != set(manifest["pictures"]):
        yield Problem("", "config", "the rows are not those of the manifest")
        return
    if set(configs) != set(FORMATS):
        yield Problem("", "config", f"expected the configs {', '.join(FORMATS)}")
        return
    pictures = manifest["pictures"]
    hashed = fingerprint(
        manifest["head"],
        (row | {"picture": pictures[row_id]["sha256"]} for row_id, row in emitted.items()),
    )
    if hashed != manifest["fingerprint"]:
        message = f"expected {manifest['fingerprint']}, the rows give {hashed}"
        yield Problem("", "fingerprint", message)


def _row_problems(
    row: Row, output_format: str, split: str, question: str | None
) -> Iterator[Problem]:
    centers = [Center(x, y) for x, y in row["centers_xy"]]
    if question is not None and row["question"] != question:
        yield Problem(row["id"], "question", f"expected {question!r}")
    if row["leaf_count"] != len(centers):
        yield Problem(row["id"], "leaf_count", f"there are {len(centers)} centers")
    if centers != in_order_of_reading(centers):
        yield Problem(row["id"], "centers_xy", "they are not in the order of reading")
    if row["subset"] not in {subset.value for subset in SPLITS[split]}:
        yield Problem(row["id"], "subset", f"{split} is not made of it")
    try:
        said = parse(row["target"], output_format)
    except FormatError as error:
        yield Problem(row["id"], "target", str(error))
        return
    if said != centers:
        yield Problem(row["id"], "target", "it does not say where the centers are")
