"""Figures of the papers (``published/``), as lines to stand beside measured ones."""

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from soubench.inference.tables import Line

MARK = " *"
NOTE = "* figures of the paper: pictures and prompts differ; no rank."


@cache
def published_rows(name: str) -> tuple[Mapping[str, str], ...]:
    """Return the rows of a published table.

    Args:
        name: File name without its suffix, such as ``sou_vqa_table3``.
    """
    path = files("soubench.inference") / "published" / f"{name}.csv"
    with path.open(encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


def reference_line(
    labels: tuple[str, ...], row: Mapping[str, str], columns: Sequence[str]
) -> Line | None:
    """Return figures of a paper as a line, in the order of ``columns``; None if it has none.

    Args:
        labels: Labels; the last one, the model, gets the mark.
        row: The published row.
        columns: Columns of the file; those that it does not have are left empty.
    """
    cells = tuple(float(row[c]) if row.get(c) else None for c in columns)
    if all(cell is None for cell in cells):
        return None
    return Line((*labels[:-1], labels[-1] + MARK), cells, {}, is_reference=True)
