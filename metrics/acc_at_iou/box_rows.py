"""Check the rows of a call at the door, where their numbers are still known.

Texts, boxes and lists of boxes may mix; `evaluate` can hold only one shape, so each row becomes a
``Row``. A leaf module (see ``formats.py``).
"""

import math
from collections.abc import Collection, Iterable, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

MAX_PIXEL = 1e7
_PLAIN_NUMBERS = frozenset({int, float})
HOW_TO_CALL = "call compute(predictions=[reply or box, ...], references=[[x1, y1, x2, y2], ...])"


class Row(NamedTuple):
    """One checked row.

    Attributes:
        text: The reply, "" where boxes are given.
        boxes: Predicted boxes or quads as numbers; empty where a reply is given.
        references: True boxes or quads in pixels of the picture, corners of boxes sorted.
        format: Name of the format, "" where none came with the row.
        image_size: Width and height in pixels, or empty.
        input_size: The same of the resized picture, or empty.
    """

    text: str
    boxes: list[list[float]]
    references: list[list[float]]
    format: str
    image_size: list[float]
    input_size: list[float]


def shorten(value: object) -> str:
    """Return a value as a message shows it."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:40]}...{shown[-10:]}"


def _column(name: str, values: Any) -> list[Any]:  # noqa: ANN401  # whatever a caller passes
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, str | bytes | dict) or not isinstance(values, Iterable):
        msg = (
            f"{name}: expected a list with one entry per row, got {shorten(values)}; {HOW_TO_CALL}"
        )
        raise ValueError(msg)
    return list(values)


def _plain(value: Any) -> Any:  # noqa: ANN401  # whatever a caller passes
    """Return arrays, tensors and tuples as lists, all levels."""
    if type(value) in _PLAIN_NUMBERS:
        return value
    if hasattr(value, "tolist"):
        value = value.tolist()
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _is_number(value: object) -> bool:
    # The first test only saves time: isinstance with an abstract class is slow.
    return type(value) in _PLAIN_NUMBERS or (
        isinstance(value, Real) and not isinstance(value, bool)
    )


def _shapes(value: object, where: str) -> list[list[float]]:
    """Return one shape or a list of them as a list of lists of 4 or 8 floats."""
    plain = _plain(value)
    shapes = [plain] if isinstance(plain, list) and plain and _is_number(plain[0]) else plain
    if not isinstance(shapes, list):
        msg = f"{where}: expected 4 numbers [x1, y1, x2, y2] or a list of such boxes, got "
        raise ValueError(msg + shorten(value))
    for shape in shapes:
        if not (
            isinstance(shape, list) and len(shape) in (4, 8) and all(_is_number(v) for v in shape)
        ):
            msg = f"{where}: expected boxes of 4 numbers or quads of 8, got {shorten(shape)}"
            raise ValueError(msg)
    return [[float(v) for v in shape] for shape in shapes]


def _references(value: object, row: int) -> list[list[float]]:
    where = f"row {row}: references"
    shapes = _shapes(value, where)
    if not shapes:
        msg = f"{where}: expected at least one box, got none; leave rows without a true box out"
        raise ValueError(msg)
    for shape in shapes:
        if not all(abs(v) <= MAX_PIXEL for v in shape):
            msg = f"{where}: expected finite pixels up to {MAX_PIXEL:g}, got {shorten(shape)}"
            raise ValueError(msg)
    return [
        shape
        if len(shape) == 8
        else [min(shape[0::2]), min(shape[1::2]), max(shape[0::2]), max(shape[1::2])]
        for shape in shapes
    ]


def _prediction(value: object, row: int) -> tuple[str, list[list[float]]]:
    if isinstance(value, str):
        # A lone surrogate cannot be stored; broken detokenizers emit them.
        return value.encode("utf-8", "replace").decode("utf-8"), []
    if value is None or isinstance(value, bytes | dict) or _is_number(value):
        msg = (
            f"row {row}: predictions: expected the reply as text, a box, or a list of boxes, got "
            f"{shorten(value)}; a reply that is missing is the empty string ''"
        )
        raise ValueError(msg)
    return "", _shapes(value, f"row {row}: predictions")


def _size(name: str, value: object, row: int) -> list[float]:
    plain = _plain(value)
    if plain is None:
        return []
    if (
        isinstance(plain, list)
        and len(plain) == 2
        and all(_is_number(v) and 0 < v <= MAX_PIXEL for v in plain)
    ):
        return [float(v) for v in plain]
    msg = f"row {row}: {name}: expected [width, height] in pixels, or None, got {shorten(value)}"
    raise ValueError(msg)


def check_options(
    n_rows: int,
    *,
    format: object = None,
    image_sizes: object = None,
    input_sizes: object = None,
    known: Collection[str],
    first_row: int = 0,
    n_last: int | None = None,
) -> list[tuple[str, list[float], list[float]]]:
    """Return format, image size and input size of each row.

    Args:
        n_rows: Number of rows.
        format: Name for all rows, a list of one name per row, or None.
        image_sizes: One [width, height] or None per row, in pixels; or None.
        input_sizes: The same for the resized picture.
        known: Names of formats.
        first_row: Number of the first row in messages.
        n_last: A list of this length stands for the last rows only; None for no such list.

    Raises:
        ValueError: A list has another length than the rows, or an entry is not what it should be.
    """
    is_one = format is None or isinstance(format, str)
    columns = {
        "format": [format] * n_rows if is_one else _column("format", format),
        "image_sizes": [None] * n_rows
        if image_sizes is None
        else _column("image_sizes", image_sizes),
        "input_sizes": [None] * n_rows
        if input_sizes is None
        else _column("input_sizes", input_sizes),
    }
    for name, values in columns.items():
        if n_last is not None and len(values) == n_last:
            columns[name] = [None] * (n_rows - n_last) + values
        elif len(values) != n_rows:
            msg = f"{name}: expected one entry for each of {n_rows} rows, got {len(values)}"
            raise ValueError(msg)
    for row, name in enumerate(columns["format"] if not is_one else [format]):
        if name is not None and (not isinstance(name, str) or name not in known):
            where = "format" if is_one else f"row {first_row + row}: format"
            msg = f"{where}: expected one of {', '.join(known)}; got {shorten(name)}"
            raise ValueError(msg)
    return [
        (
            str(columns["format"][i] or ""),
            _size("image_sizes", columns["image_sizes"][i], first_row + i),
            _size("input_sizes", columns["input_sizes"][i], first_row + i),
        )
        for i in range(n_rows)
    ]


def check_rows(
    predictions: object,
    references: object,
    *,
    format: object = None,
    image_sizes: object = None,
    input_sizes: object = None,
    known: Collection[str],
    first_row: int = 0,
) -> list[Row]:
    """Return checked rows; inputs stay untouched.

    Args:
        predictions: Per row a reply text, 4 or 8 numbers, or a list of those.
        references: Per row 4 or 8 numbers in pixels of the picture, or a list of those.
        format: See ``check_options``, as the following.
        image_sizes: Sizes of the pictures.
        input_sizes: Sizes of the resized pictures.
        known: Names of formats.
        first_row: Number of the first row in messages.

    Raises:
        ValueError: A column is missing, columns differ in length, or an entry is not what its
            column holds; the message names the row.
    """
    replies = _column("predictions", predictions)
    truths = _column("references", references)
    if len(replies) != len(truths):
        shortest = first_row + min(len(replies), len(truths))
        msg = (
            f"expected as many predictions as references, got {len(replies)} and {len(truths)}; "
            f"row {shortest} is the first that lacks one"
        )
        raise ValueError(msg)
    options = check_options(
        len(replies),
        format=format,
        image_sizes=image_sizes,
        input_sizes=input_sizes,
        known=known,
        first_row=first_row,
    )
    rows = []
    for i, (reply, truth, option) in enumerate(zip(replies, truths, options, strict=True)):
        text, boxes = _prediction(reply, first_row + i)
        rows.append(Row(text, boxes, _references(truth, first_row + i), *option))
    return rows


def plain_arrays(predictions: object, references: object) -> npt.NDArray[np.float64] | None:
    """Return columns that are arrays of upright boxes side by side, None if they are not.

    The fast way for many boxes; what it does not take goes row by row, which also names what is
    wrong.

    Args:
        predictions: Anything; an array (N, 4) of numbers is taken.
        references: The same; in addition all numbers must be finite pixels.

    Returns:
        ``(N, 8)``: predicted corners as they came, then true corners, sorted; pixels.
    """
    columns = [predictions, references]
    arrays = [
        values
        for values in columns
        if isinstance(values, np.ndarray)
        and values.ndim == 2
        and values.shape[1] == 4
        and values.dtype.kind in "iuf"
    ]
    if len(arrays) < 2 or len(arrays[0]) != len(arrays[1]) or not len(arrays[0]):
        return None
    both = np.hstack(arrays).astype(np.float64)
    if not (np.abs(both[:, 4:]) <= MAX_PIXEL).all():
        return None
    both[:, 4:] = sorted_corners(both[:, 4:])
    return both


def sorted_corners(boxes_xyxy: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return boxes ``(N, 4)`` with the lesser x and y first."""
    first, second = boxes_xyxy[:, :2], boxes_xyxy[:, 2:]
    return np.hstack((np.minimum(first, second), np.maximum(first, second)))


def check_thresholds(thresholds: object) -> list[float]:
    """Return IoU thresholds as floats, each once.

    Args:
        thresholds: One number or a list of them, each 0 to 1.

    Raises:
        ValueError: It is anything else.
    """
    plain = _plain(list(thresholds) if isinstance(thresholds, range) else thresholds)
    values: Sequence[Any] = plain if isinstance(plain, list) else [plain]
    if not values or not all(_is_number(v) and math.isfinite(v) and 0 <= v <= 1 for v in values):
        msg = f"thresholds: expected numbers from 0 to 1, as in [0.5, 0.75], got {shorten(plain)}"
        raise ValueError(msg)
    # Adding 0.0 makes -0.0 the same key as 0.0.
    return list(dict.fromkeys(float(v) + 0.0 for v in values))


def check_flag(name: str, value: object) -> bool:
    """Return a flag.

    Args:
        name: Its name, for the message.
        value: True or False.

    Raises:
        ValueError: It is anything else, such as the text "False".
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    msg = f"{name}: expected True or False, got {shorten(value)}"
    raise ValueError(msg)
