"""For VLMEvalKit: one TSV with the pictures inside, as its custom datasets are read.

Where every row is multiple choice, the TSV has a column per option and the tool makes its own
prompt of them; else the question column holds all of soubench's words, and the tool asks them as
they are (its class for custom VQA).
"""

import csv
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase as LETTERS
from typing import Any

import pandas as pd  # type: ignore[import-untyped]  # ships no types

from soubench.builders.errors import PublishError
from soubench.inference.chat import Picture, pictures_of
from soubench.inference.dataset_rows import LoadedRows
from soubench.inference.exports.folder import (
    Exported,
    Pictures,
    file_name,
    stored,
    write_readme,
)
from soubench.inference.questions import PICTURE_COLUMNS, Question, question_of

CHOICES_README = """\
**VLMEvalKit makes its own prompt** of the columns: `Hint: ..`, `Question: ..`, `Options:`, a line
`A. ..` per option, and a sentence of its own; some of its models have yet another one. The column
`hint` holds the system prompt of soubench (what a small object is, the categories), which the tool
puts before the question. So scores from here stand beside those of `soubench predict` only with
that said. `soubench export .. --to lmms-eval` asks in the very words of soubench."""
TEXT_README = """\
The column `question` holds all that soubench asks, its system prompt first, and the tool's class
for custom VQA sends it as it is. Some of its models add a sentence of their own to every VQA
question (`use_custom_prompt`). The tool has no score for these answers: `--mode all` stops after
the predictions with `NotImplementedError`, which is as expected."""


def write(loaded: LoadedRows, target: Path) -> Exported:
    """Write the folder.

    Raises:
        PublishError: The tool would read a text as something else.
    """
    asked = [question_of(row) for row in loaded.columns()]
    is_choice = all(q.answer_type == "mcq" for q in asked)
    name = file_name(loaded)
    path = target / f"{name}.tsv"
    pictures = _Pictures([name for name in PICTURE_COLUMNS if name in loaded.picture_columns])
    letters = LETTERS[: max(len(q.options) for q in asked)] if is_choice else ""
    columns = [*(["hint"] if is_choice else []), "question", *letters]
    columns = ["index", "id", "split", "category", "l2-category", *columns, "answer"]
    texts = []
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, delimiter="\t", lineterminator="\n")
        lines.writerow([*columns, "image_path", "image"])
        for i, (row, question) in enumerate(zip(loaded.undecoded(), asked, strict=True)):
            cells = {"index": str(i), "id": question.id, "split": loaded.split}
            cells |= _texts(row, question, is_choice=is_choice)
            texts.append([cells.get(column, "") for column in columns])
            lines.writerow([*texts[-1], *pictures.cells(row, i)])
    _check(path, columns, texts)
    write_readme(
        target, "vlmevalkit", loaded, name=name, words=CHOICES_README if is_choice else TEXT_README
    )
    return Exported(len(asked), len(pictures.known.names), (path.name,))


def _texts(row: Mapping[str, Any], question: Question, *, is_choice: bool) -> dict[str, str]:
    cells = {
        "category": str(row.get("task") or question.answer_type),
        "l2-category": str(row.get("sub_dimension") or row.get("subset") or question.answer_type),
        "answer": question.answer,
    }
    if not is_choice:
        return cells | {"question": "\n".join(filter(None, (question.system, question.text)))}
    cells |= {"question": question.question, "hint": question.system}
    return cells | dict(zip(LETTERS, question.options, strict=False))


class _Pictures:
    """Writes the cells ``image_path`` and ``image``.

    The tool decodes each picture and stores it under its name; as PNG, its pixels stay the same.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns
        self.known = Pictures()
        self._index: dict[str, int] = {}

    def cells(self, row: Mapping[str, Any], index: int) -> tuple[str, str]:
        pictures = pictures_of(row, self._columns)
        taken = [self.known.take(picture) for picture in pictures]
        names = [f"{Path(name).stem}.png" for name, _ in taken]
        if len(names) == 1:
            first = self._index.setdefault(names[0], index)
            # The tool takes a short cell for the index of the row that has the picture.
            return names[0], str(first) if first != index else _base64(pictures[0], taken[0][1])
        pairs = zip(pictures, taken, strict=True)
        return str(names), str([_base64(picture, data) for picture, (_, data) in pairs])


def _base64(picture: Picture, data: bytes | None) -> str:
    return b64encode(data if data is not None else stored(picture)[0]).decode("ascii")


def _check(path: Path, columns: Sequence[str], texts: Sequence[Sequence[str]]) -> None:
    """Read the texts as the tool does, which takes some for numbers and others for nothing."""
    found = pd.read_csv(path, sep="\t", usecols=columns)
    for column, values in zip(columns, zip(*texts, strict=True), strict=True):
        for line, (read, written) in enumerate(zip(found[column], values, strict=True)):
            if ("" if pd.isna(read) else str(read)) != written:
                raise PublishError(
                    f"{texts[line][1]}: VLMEvalKit would read {written!r} in column {column!r} as "
                    f"{read!r}, since it takes such texts for numbers or for nothing. Export with "
                    "--to lmms-eval, or a config without this row."
                )
