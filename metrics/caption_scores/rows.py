"""Check the rows of a call at the door, where their numbers are still known.

`evaluate` turns None, NaN and integers into text without a word once the first row looks right, so
they are refused before it sees them. A leaf module: it imports no other module of this folder.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_HOW_TO_CALL = "call compute(predictions=['text', ...], references=['text' or ['text', ...], ...])"


class Rows(NamedTuple):
    """Checked columns of equal length.

    Attributes:
        predictions: One text per row.
        references: One or more texts per row.
    """

    predictions: list[str]
    references: list[list[str]]


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:40]}...{shown[-10:]}"


def _column(name: str, values: Iterable[Any] | None) -> list[Any]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        msg = (
            f"{name}: expected a list with one entry per row, got {_short(values)}; {_HOW_TO_CALL}"
        )
        raise ValueError(msg)
    return list(values)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        msg = f"{where}: expected text, got {_short(value)}; a text that is missing is ''"
        raise ValueError(msg)
    # A lone surrogate cannot be stored; broken detokenizers emit them.
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def _references(value: object, where: str) -> list[str]:
    if isinstance(value, str):
        return [_text(value, where)]
    if isinstance(value, bytes | Mapping) or not isinstance(value, Iterable):
        msg = f"{where}: expected a text or a list of texts, got {_short(value)}"
        raise ValueError(msg)
    texts = [_text(text, f"{where}, text {i}") for i, text in enumerate(value)]
    if not texts:
        msg = f"{where}: expected at least one text, got {_short(value)}; use '' for an empty one"
        raise ValueError(msg)
    return texts


def check_rows(
    predictions: Iterable[Any] | None, references: Iterable[Any] | None, *, first_row: int = 0
) -> Rows:
    """Return the columns as plain lists, each row's references as a list; inputs stay untouched.

    Args:
        predictions: One text per row.
        references: Per row one text, or a list of them; rows may differ in number.
        first_row: Number of the first row in messages.

    Raises:
        ValueError: A column is missing, columns differ in length, or an entry is not text; the
            message names the row.
    """
    texts = _column("predictions", predictions)
    groups = _column("references", references)
    if len(texts) != len(groups):
        msg = (
            f"expected as many predictions as references, got {len(texts)} and {len(groups)}; "
            f"row {first_row + min(len(texts), len(groups))} is the first that lacks one "
            "(several references are listed row by row, not stream by stream as in sacrebleu)"
        )
        raise ValueError(msg)
    return Rows(
        [_text(text, f"row {first_row + i}: predictions") for i, text in enumerate(texts)],
        [_references(group, f"row {first_row + i}: references") for i, group in enumerate(groups)],
    )
