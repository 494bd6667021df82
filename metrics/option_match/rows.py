"""Check the rows of a call at the door, where their numbers are still known.

`evaluate` turns None, NaN and integers into text without a word once the first row looks right, so
they are refused before it sees them. A leaf module (see ``reply.py``).
"""

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MIN_OPTIONS = 2
MAX_OPTIONS = 26
_HOW_TO_CALL = (
    "call compute(predictions=[reply, ...], references=['A', ...], options=[['text', ...], ...])"
)


class Rows(NamedTuple):
    """Checked columns of equal length.

    Attributes:
        predictions: Replies.
        references: Capital letters.
        options: Option texts of each row.
    """

    predictions: list[str]
    references: list[str]
    options: list[list[str]]


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:40]}...{shown[-10:]}"


def _column(name: str, values: Iterable[Any] | None) -> Sequence[Any]:
    if values is None or isinstance(values, str | bytes) or not isinstance(values, Iterable):
        msg = (
            f"{name}: expected a list with one entry per row, got {_short(values)}; {_HOW_TO_CALL}"
        )
        raise ValueError(msg)
    return list(values)


def _reply(value: object, row: int) -> str:
    if not isinstance(value, str):
        msg = (
            f"row {row}: predictions: expected the reply as text, got {_short(value)}; "
            "a reply that is missing is the empty string ''"
        )
        raise ValueError(msg)
    # A lone surrogate cannot be stored; broken detokenizers emit them.
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def _option_texts(value: object, row: int) -> list[str]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        msg = f"row {row}: options: expected a list of texts, got {_short(value)}"
        raise ValueError(msg)
    texts = list(value)
    if not MIN_OPTIONS <= len(texts) <= MAX_OPTIONS:
        msg = (
            f"row {row}: options: expected {MIN_OPTIONS} to {MAX_OPTIONS} texts, got {len(texts)}: "
            f"{_short(texts)}"
        )
        raise ValueError(msg)
    for letter, text in zip(ALPHABET, texts, strict=False):
        if not isinstance(text, str):
            msg = (
                f"row {row}: options: expected text for option {letter}, got {_short(text)}; "
                "write numbers as text"
            )
            raise ValueError(msg)
    return [
        text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
        for text in texts
    ]


def _reference(value: object, n_options: int, row: int) -> str:
    valid = ALPHABET[:n_options]
    if isinstance(value, str):
        if len(value) == 1 and value.upper() in valid:
            return value.upper()
    elif not isinstance(value, bool):
        try:
            index = operator.index(value)  # type: ignore[arg-type]  # a TypeError is the answer
        except TypeError:
            index = -1
        if 0 <= index < n_options:
            return valid[index]
    msg = (
        f"row {row}: references: expected a letter A to {valid[-1]}, or its index 0 to "
        f"{n_options - 1} (the row has {n_options} options), got {_short(value)}; "
        "map the answers to letters first"
    )
    raise ValueError(msg)


def check_rows(
    predictions: Iterable[Any] | None,
    references: Iterable[Any] | None,
    options: Iterable[Any] | None,
    *,
    first_row: int = 0,
) -> Rows:
    """Return the columns as plain lists, references as capital letters; inputs stay untouched.

    Args:
        predictions: One reply per row.
        references: One letter per row, or its index among the options, as a ClassLabel gives it.
        options: The option texts of each row, 2 to 26, in the order of their letters.
        first_row: Number of the first row in messages.

    Raises:
        ValueError: A column is missing, columns differ in length, or an entry is not what its
            column holds; the message names the row.
    """
    columns = {
        "predictions": _column("predictions", predictions),
        "references": _column("references", references),
        "options": _column("options", options),
    }
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        shortest = min(lengths.values())
        msg = (
            f"expected as many predictions as references and options, got {lengths}; "
            f"row {first_row + shortest} is the first that lacks one"
        )
        raise ValueError(msg)
    texts = [_option_texts(value, first_row + i) for i, value in enumerate(columns["options"])]
    return Rows(
        [_reply(value, first_row + i) for i, value in enumerate(columns["predictions"])],
        [
            _reference(value, len(row_texts), first_row + i)
            for i, (value, row_texts) in enumerate(zip(columns["references"], texts, strict=True))
        ],
        texts,
    )
