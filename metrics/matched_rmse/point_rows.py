"""Check columns of points or texts at the door, where the numbers of their rows are still known.

A leaf module (see ``point_text.py``).
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_HOW_TO_CALL = "call compute(predictions=[[(x, y), ...], ...], references=[[(x, y), ...], ...])"


class PointRows(NamedTuple):
    """Checked columns of equal length, each all texts or all lists of [x, y].

    Attributes:
        predictions: Replies, or points.
        references: Target texts, or points.
    """

    predictions: list[str] | list[list[list[float]]]
    references: list[str] | list[list[list[float]]]


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:40]}...{shown[-10:]}"


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _point(value: Any) -> list[float] | None:  # noqa: ANN401  # whatever a caller may hand in
    try:
        x, y = value
        if isinstance(value, bytes | dict | set) or isinstance(x, str | bool):
            return None
        point = [float(x), float(y)]
    except (TypeError, ValueError, OverflowError):
        return None
    is_number = (
        not isinstance(y, str | bool) and math.isfinite(point[0]) and math.isfinite(point[1])
    )
    return point if is_number else None


def _points(name: str, values: Iterable[Any], row: int) -> list[list[float]]:
    points = []
    for i, value in enumerate(values):
        point = _point(value)
        if point is None:
            msg = (
                f"row {row}: {name}: point {i}: expected a point of two finite numbers (x, y), got "
                f"{_short(value)}"
            )
            raise ValueError(msg)
        points.append(point)
    return points


def _column(
    name: str, values: Iterable[Any] | None, first_row: int, is_text: bool | None
) -> list[str] | list[list[list[float]]]:
    if values is None or not _is_list(values):
        msg = (
            f"{name}: expected a list with one entry per row, got {_short(values)}; {_HOW_TO_CALL}"
        )
        raise ValueError(msg)
    rows = list(values)
    if is_text is None:
        is_text = bool(rows) and isinstance(rows[0], str)
    for row, value in enumerate(rows, first_row):
        if not (isinstance(value, str) if is_text else _is_list(value)):
            kind = "a text" if is_text else "a list of points (x, y)"
            others = ", as in the rows before" if row else ""
            msg = (
                f"row {row}: {name}: expected {kind}{others}, got {_short(value)}; a column holds "
                "either texts or lists of points; a missing reply is '' or []"
            )
            raise ValueError(msg)
    if is_text:
        # A lone surrogate cannot be stored; broken detokenizers emit them.
        return [text.encode("utf-8", "replace").decode("utf-8") for text in rows]
    return [_points(name, value, row) for row, value in enumerate(rows, first_row)]


def check_point_rows(
    predictions: Iterable[Any] | None,
    references: Iterable[Any] | None,
    *,
    first_row: int = 0,
    texts: tuple[bool | None, bool | None] = (None, None),
) -> PointRows:
    """Return the columns as plain lists; inputs stay untouched.

    Args:
        predictions: A reply, or a list of points (x, y) in pixels, for each row.
        references: The same of the truth.
        first_row: Number of the first row in messages.
        texts: Whether earlier rows of each column were texts; None if there were none.

    Raises:
        ValueError: A column is missing or mixed, columns differ in length, or a point is not two
            finite numbers; the message names the row.
    """
    rows = PointRows(
        _column("predictions", predictions, first_row, texts[0]),
        _column("references", references, first_row, texts[1]),
    )
    n_predictions, n_references = len(rows.predictions), len(rows.references)
    if n_predictions != n_references:
        msg = (
            f"expected as many predictions as references, got {n_predictions} and {n_references}; "
            f"row {first_row + min(n_predictions, n_references)} is the first that lacks one"
        )
        raise ValueError(msg)
    return rows
