"""Check columns of texts at the door, where the numbers of their rows are still known.

`evaluate` turns None, NaN and integers into text without a word once the first row looks right, so
they are refused before it sees them. A leaf module (see ``shape_text.py``).
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class TextRows(NamedTuple):
    """Checked columns of equal length.

    Attributes:
        predictions: Replies.
        references: Target texts.
    """

    predictions: list[str]
    references: list[str]


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:40]}...{shown[-10:]}"


def _texts(name: str, values: Iterable[Any] | None, first_row: int) -> list[str]:
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping):
        msg = (
            f"{name}: expected a list with one text per row, got {_short(values)}; "
            "call compute(predictions=[text, ...], references=[text, ...])"
        )
        raise ValueError(msg)
    texts = list(values)
    for row, text in enumerate(texts, first_row):
        if not isinstance(text, str):
            msg = (
                f"row {row}: {name}: expected the text of all shapes of one picture, got "
                f"{_short(text)}; a text that is missing is the empty string ''"
            )
            raise ValueError(msg)
    # A lone surrogate cannot be stored; broken detokenizers emit them.
    return [
        text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
        for text in texts
    ]


def check_text_rows(
    predictions: Iterable[Any] | None, references: Iterable[Any] | None, *, first_row: int = 0
) -> TextRows:
    """Return the columns as plain lists of str; inputs stay untouched.

    Args:
        predictions: One reply per row.
        references: One target text per row.
        first_row: Number of the first row in messages.

    Raises:
        ValueError: A column is missing, columns differ in length, or an entry is no text; the
            message names the row.
    """
    rows = TextRows(
        _texts("predictions", predictions, first_row),
        _texts("references", references, first_row),
    )
    n_predictions, n_references = len(rows.predictions), len(rows.references)
    if n_predictions != n_references:
        msg = (
            f"expected as many predictions as references, got {n_predictions} and {n_references}; "
            f"row {first_row + min(n_predictions, n_references)} is the first that lacks one"
        )
        raise ValueError(msg)
    return rows
