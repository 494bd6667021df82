"""Check the rows of a call at the door, where their numbers are still known.

`evaluate` turns None, NaN and integers into text without a word once the first row looks right, so
they are refused before it sees them. A leaf module (see ``reply.py``).
"""

import operator
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MIN_OPTIONS = 2
MAX_OPTIONS = 26
Label = str | int
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


def _is_row_wise(values: object) -> bool:
    """Tell whether a value is a sequence of rows; a set has no order, a dict gives its keys."""
    return isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping | Set)


def _column(name: str, values: Iterable[Any] | None) -> Sequence[Any]:
    if values is None or not _is_row_wise(values):
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
    if not _is_row_wise(value):
        msg = f"row {row}: options: expected a list of texts, got {_short(value)}"
        raise ValueError(msg)
    texts: list[Any] = list(value)  # type: ignore[call-overload]  # checked above
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


def check_labels(name: str, values: Iterable[Any], n_rows: int) -> list[Label]:
    """Return one label per row as text or int; numbers of numpy become plain ones.

    Args:
        name: The option's name, for messages.
        values: The labels, in the order in which the rows were added.
        n_rows: How many rows there are.

    Raises:
        ValueError: There is not one label per row, or one is neither text nor an integer.
    """
    labels = [_label(name, value, row) for row, value in enumerate(_column(name, values))]
    if len(labels) != n_rows:
        msg = (
            f"{name}: expected one label for each of the {n_rows} rows, added ones included, got "
            f"{len(labels)}"
        )
        raise ValueError(msg)
    return labels


def _label(name: str, value: object, row: int) -> Label:
    if isinstance(value, str):
        return value
    if not isinstance(value, bool):
        try:
            return operator.index(value)  # type: ignore[arg-type]  # a TypeError is the answer
        except TypeError:
            pass
    msg = f"row {row}: {name}: expected a label, text or integer, got {_short(value)}"
    raise ValueError(msg)
