"""The pictures of rows: which rows get one, the crops, and what is drawn on them."""

import os
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from string import ascii_uppercase as LETTERS
from typing import Any
from urllib.parse import quote

from soubench.builders.parallel import chunks, in_order
from soubench.inference.chat import pictures_of
from soubench.inference.predict import choose_rows
from soubench.inference.questions import Question
from soubench.inference.report.crops import Crop, RowJob, RowPictures, make_crops
from soubench.inference.report.marks import Mark, Numbers, marks_of, shapes_in
from soubench.inference.report.rows import Key, Listed, key_of, state_of
from soubench.inference.scores import Verdict

ROWS_PER_JOB = 24
"""Rows of one picture follow each other; those of a job decode it once."""
ROWS_PER_WORKER = 400
"""A process is started for so many rows; for fewer it would take longer than the work."""


def describe(made: RowPictures, pictures: Sequence[str]) -> list[dict[str, Any]]:
    """Return what the page has to know of the pictures of a row.

    Args:
        made: The crops.
        pictures: Name or address of each.
    """
    return [
        _view(crop, made.marks if i == 0 else (), picture)
        for i, (crop, picture) in enumerate(zip(made.crops, pictures, strict=True))
    ]


def shares_of(listed: Sequence[Listed], most: int) -> list[int]:
    """Divide the rows with pictures among the sections as evenly as these allow."""
    shares = [0] * len(listed)
    left = most
    for rank, i in enumerate(sorted(range(len(listed)), key=lambda i: len(listed[i].questions))):
        shares[i] = min(len(listed[i].questions), left // (len(listed) - rank))
        left -= shares[i]
    return shares


def draw_rows(rows: Listed, count: int, seed: int) -> list[int]:
    """Choose rows for pictures: those that some run got wrong first, evenly over the sub-tasks."""
    missed = {
        rows.place[key_of(verdict)]
        for run in rows.section.runs
        for verdict in run.verdicts
        if state_of(verdict) != "right"
    }
    everything = range(len(rows.questions))
    wrong = [i for i in everything if i in missed]
    right = [i for i in everything if i not in missed]
    chosen = _choose(rows, wrong, count, seed)
    return chosen + _choose(rows, right, count - len(chosen), seed)


def _choose(rows: Listed, places: Sequence[int], count: int, seed: int) -> list[int]:
    if count <= 0 or not places:
        return []
    asked = [{"id": rows.questions[i].id, "task": "\x1f".join(rows.strata[i])} for i in places]
    return [places[i] for i in choose_rows(asked, count, seed)]


def row_pictures(
    rows: Listed, chosen: Sequence[int], workers: int
) -> Iterator[tuple[int, RowPictures | None]]:
    """Yield place and pictures of each chosen row, in order; None where one cannot be read."""
    said: dict[Key, list[Verdict]] = {}
    for run in rows.section.runs:
        for verdict in run.verdicts:
            said.setdefault(key_of(verdict), []).append(verdict)
    stored: dict[int, tuple[Any, tuple[str, ...]]] = {}

    def job(place: int) -> RowJob:
        loaded, index = rows.sources[place]
        if id(loaded) not in stored:
            stored[id(loaded)] = loaded.undecoded(), loaded.picture_columns
        undecoded, columns = stored[id(loaded)]
        row = undecoded[index]
        there = bool(columns) and all(row[name] is not None for name in columns)
        return RowJob(
            pictures_of(row, columns) if there else (),
            marks_of(row),
            _answer_shapes(rows.questions[place], said[key_of(rows.facts[place])]),
        )

    batches = (tuple(map(job, batch)) for batch in chunks(chosen, ROWS_PER_JOB))
    processes = max(1, min(workers, len(chosen) // ROWS_PER_WORKER))
    made = in_order(make_crops, batches, workers=processes)
    return zip(chosen, (pictures for batch in made for pictures in batch), strict=True)


def _answer_shapes(question: Question, verdicts: Iterable[Verdict]) -> tuple[Numbers, ...]:
    """Return the boxes and points that are right or were answered, to be seen in the crop."""
    if not question.options:
        return tuple(shape for v in verdicts if v.kind == "box" for shape in shapes_in(v.parsed))
    n = len(question.options)
    letters = [(question.answer, 0), *((v.parsed, v.rotation) for v in verdicts if v.parsed)]
    chosen = {(LETTERS.index(letter) + rotation) % n for letter, rotation in letters}
    return tuple(shape for i in sorted(chosen) for shape in shapes_in(question.options[i]))


def crop_name(crop: Crop) -> str:
    """Name a crop by its bytes: rows about the same part of a picture share it."""
    return blake2b(crop.data, digest_size=8).hexdigest()


def _view(crop: Crop, marks: Sequence[Mark], picture: str) -> dict[str, Any]:
    return {
        "picture": picture,
        "frame": list(crop.window),
        "marks": [{"role": m.role, "label": m.label, "shapes": _plain(m.shapes)} for m in marks],
    }


def _plain(shapes: Iterable[Numbers]) -> list[list[float]]:
    return [[int(x) if x == int(x) else x for x in shape] for shape in shapes]


def data_url(crop: Crop) -> str:
    """Return a crop as an address that holds it."""
    return f"data:image/jpeg;base64,{b64encode(crop.data).decode('ascii')}"


def write_beside(crop: Crop, folder: Path, page_folder: Path) -> str:
    """Write a crop into the folder of pictures; return its address as seen from the page."""
    file = folder / f"{crop_name(crop)}.jpg"
    if not file.exists():
        partial = file.with_name(f".{file.name}.incomplete")
        partial.write_bytes(crop.data)
        partial.replace(file)
    return quote(Path(os.path.relpath(file, page_folder)).as_posix())
