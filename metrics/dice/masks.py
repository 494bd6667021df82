"""Read masks in any common form as COCO run lengths; those that are run lengths stay so.

Used by `dice` and `mask_iou`. A leaf module: `evaluate` copies only what the main script imports.
"""

import json
import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Number
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image
from pycocotools import mask as coco

# pycocotools counts pixels in 32 bits.
MAX_PX = 2**31 - 1
# No run of MAX_PX pixels needs more characters of five bits.
_MAX_CHARS_PER_RUN = 7
_INDEX_MODES = ("1", "L", "P", "I", "I;16")
_FENCE = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)
_FORMS = (
    "{'size': [height, width], 'counts': ...}, {'size': [height, width], 'polygons': [[x, y, ...], "
    "...]}, either as JSON text, a 2-D array, or the path of a PNG"
)

SizeHw = tuple[int, int]
_BOOLS = frozenset({bool, np.bool_})


class NotAMask(ValueError):
    """The value has the type of a mask, but no mask can be read from it."""


class Mask(NamedTuple):
    """A binary mask as COCO's compressed run lengths, column by column, no run of length 0.

    Attributes:
        height: Rows in pixels.
        width: Columns in pixels.
        counts: The compressed run lengths, background first.
        n_px: Pixels of the foreground.
    """

    height: int
    width: int
    counts: str
    n_px: int

    @property
    def size_hw(self) -> SizeHw:
        """Height and width in pixels."""
        return self.height, self.width


class Overlap(NamedTuple):
    """Pixels of two masks.

    Attributes:
        intersection: In both.
        prediction: In the prediction.
        reference: In the reference.
    """

    intersection: int
    prediction: int
    reference: int

    @property
    def union(self) -> int:
        """Pixels in either mask."""
        return self.prediction + self.reference - self.intersection


class Pair(NamedTuple):
    """The masks of one row.

    Attributes:
        predictions: One mask per class; none if the prediction could not be read.
        references: One mask per class.
        reason: Why the prediction could not be read; "" if it could.
    """

    predictions: list[Mask]
    references: list[Mask]
    reason: str

    def overlaps(self) -> list[Overlap]:
        """Count pixels per class; a prediction that could not be read covers none."""
        if self.reason:
            return [Overlap(0, 0, mask.n_px) for mask in self.references]
        return [overlap(*both) for both in zip(self.predictions, self.references, strict=True)]


class EmptyPairs(NamedTuple):
    """Pairs of masks of which one or both have no pixel, unread predictions apart.

    Attributes:
        n_both_empty: Neither has one.
        n_only_prediction_empty: The reference has some.
        n_only_reference_empty: The prediction has some.
    """

    n_both_empty: int
    n_only_prediction_empty: int
    n_only_reference_empty: int


def short(value: object) -> str:
    """Show a value in a message, its middle left out if it is long."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:40]}...{shown[-10:]}"


def _to_coco(mask: Mask) -> dict[str, Any]:
    return {"size": [mask.height, mask.width], "counts": mask.counts}


def _from_coco(rle: Mapping[str, Any]) -> Mask:
    height, width = rle["size"]
    return Mask(int(height), int(width), rle["counts"].decode("ascii"), int(coco.area(rle)))


def overlap(prediction: Mask, reference: Mask) -> Overlap:
    """Count the pixels of two masks of one size, on their run lengths."""
    shared = coco.merge([_to_coco(prediction), _to_coco(reference)], intersect=True)
    return Overlap(int(coco.area(shared)), prediction.n_px, reference.n_px)


def count_empty(overlaps: Iterable[Overlap]) -> EmptyPairs:
    """Count the pairs in which a mask has no pixel."""
    kinds = [(bool(pair.prediction), bool(pair.reference)) for pair in overlaps]
    return EmptyPairs(
        kinds.count((False, False)), kinds.count((False, True)), kinds.count((True, False))
    )


def encode(foreground: npt.NDArray[Any]) -> Mask:
    """Encode a boolean array (height, width)."""
    return _from_coco(coco.encode(np.asfortranarray(foreground, dtype=np.uint8)))


def resolve(value: object) -> Any:  # noqa: ANN401  # any of the forms
    """Return what a text stands for, the object of its JSON or a path; the rest as it is.

    Args:
        value: A mask in any form, or a list of masks.

    Raises:
        NotAMask: The text is neither JSON nor names a PNG.
        TypeError: The value has no type that could hold a mask.
    """
    if not isinstance(value, str):
        is_array = hasattr(value, "__array__") or hasattr(value, "__array_interface__")
        has_form = isinstance(value, os.PathLike | Mapping | list | tuple) or is_array
        if isinstance(value, Number | np.generic) or not has_form:
            msg = (
                f"expected a mask ({_FORMS}), got {short(value)}; a prediction that is missing is "
                "the empty string ''"
            )
            raise TypeError(msg)
        return value
    text = value.strip()
    fenced = _FENCE.fullmatch(text)
    text = fenced.group(1) if fenced else text
    if text.startswith(("{", "[")):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            msg = f"the JSON {short(text)} cannot be read: {error}"
            raise NotAMask(msg) from None
    if not text.lower().endswith(".png"):
        msg = f"the text {short(text)} is neither JSON nor the path of a PNG"
        raise NotAMask(msg)
    return Path(text)


def read_mask(value: object, expected_hw: SizeHw | None = None) -> Mask:
    """Read one mask in any form; what is not zero is foreground.

    Run lengths are checked and kept, polygons drawn by pycocotools as in COCO. Only arrays and
    pictures are handled as pixels.

    Args:
        value: The mask: a mapping with ``counts`` (compressed or a list) or ``polygons`` (flat
            lists of x, y in pixels, united), its JSON, a 2-D array or nested list, or a PNG path.
        expected_hw: The size it must have, which a mapping may then leave out.

    Raises:
        NotAMask: No mask of that size can be read from it.
        TypeError: The value has no type that could hold a mask.
    """
    value = resolve(value)
    if not isinstance(value, Mapping):
        return encode(read_array(value, expected_hw) != 0)
    if "counts" in value:
        return _read_run_lengths(value["counts"], _read_size(value, expected_hw))
    if "polygons" in value:
        return _read_polygons(value["polygons"], _read_size(value, expected_hw))
    msg = f"expected the key 'counts' or 'polygons', got the keys {short(list(value))}"
    raise NotAMask(msg)


def _read_size(value: Mapping[Any, Any], expected_hw: SizeHw | None) -> SizeHw:
    given: Any = value.get("size", expected_hw)
    try:
        height, width = (0 if isinstance(side, bool) else operator.index(side) for side in given)
    except (TypeError, ValueError):
        height = width = 0
    if height < 1 or width < 1 or height * width > MAX_PX:
        msg = (
            "expected 'size': [height, width], two whole numbers of pixels of at least 1 and at "
            f"most {MAX_PX:,} pixels in all, got {short(given)}"
        )
        raise NotAMask(msg)
    _check_size((height, width), expected_hw)
    return height, width


def _check_size(size_hw: SizeHw, expected_hw: SizeHw | None) -> None:
    if expected_hw is not None and size_hw != expected_hw:
        msg = (
            f"the mask is {size_hw[0]} high and {size_hw[1]} wide, expected {expected_hw[0]} high "
            f"and {expected_hw[1]} wide as in the row's reference; resize it first"
        )
        raise NotAMask(msg)


def _read_run_lengths(counts: object, size_hw: SizeHw) -> Mask:
    """Check run lengths, background first; pycocotools would read beyond broken ones."""
    if isinstance(counts, str | bytes):
        runs = _unpack(counts)
    else:
        runs = _flat_numbers(counts, "iu", "'counts': expected text or a list of whole numbers")
    n_px = size_hw[0] * size_hw[1]
    # Each run is bounded before they are added, so that the sum cannot overflow.
    total = None if ((runs < 0) | (runs > n_px)).any() else int(runs.sum(dtype=np.int64))
    if total != n_px:
        got = "a run below 0 or longer than the mask" if total is None else f"{total} pixels"
        msg = f"the run lengths must add up to {size_hw[0]} x {size_hw[1]} = {n_px}, got {got}"
        raise NotAMask(msg)
    has_zero_run = bool((runs[1:] == 0).any())
    if isinstance(counts, str | bytes) and not has_zero_run:
        text = counts if isinstance(counts, str) else counts.decode("ascii")
        return Mask(*size_hw, text, int(runs[1::2].sum()))
    if has_zero_run:
        runs = _without_zero_runs(runs)
    rle = coco.frPyObjects({"size": list(size_hw), "counts": runs}, *size_hw)
    return _from_coco(rle)


def _unpack(counts: str | bytes) -> npt.NDArray[np.int64]:
    """Return the run lengths of COCO's text form (pycocotools ``rleFrString``), vectorized.

    A number is a run of characters of five bits each, lowest first; the sixth bit says that more
    follow, the fifth of the last is the sign. From the fourth number on, each is the difference
    to the one two before.
    """
    try:
        data = counts.encode("ascii") if isinstance(counts, str) else counts
    except UnicodeEncodeError:
        data = b""
    chars = np.frombuffer(data, dtype=np.uint8) - np.uint8(48)
    ends = np.flatnonzero((chars & 32) == 0)
    # Characters below "0" have wrapped around to large numbers.
    if not chars.size or chars.max() > 63 or chars[-1] & 32:
        msg = f"'counts' {short(counts)} is not COCO's compressed form"
        raise NotAMask(msg)
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    if lengths.max() > _MAX_CHARS_PER_RUN:
        msg = f"'counts' {short(counts)} holds a number of {lengths.max()} characters"
        raise NotAMask(msg)
    numbers = (chars[starts] & 31).astype(np.int64)
    for place in range(1, lengths.max()):
        longer = np.flatnonzero(lengths > place)
        digits = (chars[starts[longer] + place] & 31).astype(np.int64)
        numbers[longer] += digits << (5 * place)
    is_negative = (chars[ends] & 16) != 0
    numbers[is_negative] -= 1 << (5 * lengths[is_negative])
    numbers[1::2] = np.cumsum(numbers[1::2])
    numbers[2::2] = np.cumsum(numbers[2::2])
    return numbers


def _without_zero_runs(runs: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Join the runs beside a run of length 0, which stop pycocotools' ``merge`` too early."""
    kept = np.flatnonzero(runs)
    values = kept % 2
    starts = np.flatnonzero(np.diff(values, prepend=-1))
    joined = np.add.reduceat(runs[kept].astype(np.int64), starts)
    return np.concatenate(([0], joined)) if values[0] else joined


def _read_polygons(polygons: object, size_hw: SizeHw) -> Mask:
    if not isinstance(polygons, list | tuple):
        msg = f"'polygons': expected a list of flat lists [x, y, ...], got {short(polygons)}"
        raise NotAMask(msg)
    rings = [_read_ring(ring, size_hw) for ring in polygons]
    if not rings:
        return encode(np.zeros(size_hw, dtype=np.uint8))
    return _from_coco(coco.merge(coco.frPyObjects(rings, *size_hw)))


def _read_ring(ring: object, size_hw: SizeHw) -> list[float]:
    points = _flat_numbers(ring, "iuf", "polygon: expected a flat list [x, y, ...]")
    if points.size % 2 or points.size < 6:
        msg = f"polygon: expected x and y of at least 3 points, got {points.size} numbers"
        raise NotAMask(msg)
    xy = points.reshape(-1, 2)
    sides = np.array(size_hw[::-1])
    # NaN fails too. Drawing takes time and memory by the length of the outline.
    if not ((xy >= -sides) & (xy <= 2 * sides)).all():
        msg = (
            f"polygon: expected x, y in pixels, at most one picture size ({size_hw[1]} x "
            f"{size_hw[0]}) outside, got {short(points.tolist())}"
        )
        raise NotAMask(msg)
    flat: list[float] = points.tolist()
    return flat


def _flat_numbers(values: object, kinds: str, expectation: str) -> npt.NDArray[Any]:
    numbers = _as_array(values) if isinstance(values, list | tuple | np.ndarray) else None
    # NumPy makes numbers of bools that stand among numbers.
    if isinstance(values, list | tuple) and _BOOLS.intersection(map(type, values)):
        numbers = None
    if numbers is None or numbers.ndim != 1 or not numbers.size or numbers.dtype.kind not in kinds:
        msg = f"{expectation}, got {short(values)}"
        raise NotAMask(msg)
    return numbers


def _as_array(value: object) -> npt.NDArray[Any]:
    try:
        return np.asarray(value)
    except (ValueError, TypeError, OverflowError, OSError) as error:
        msg = f"no array can be made of {short(value)}: {error}"
        raise NotAMask(msg) from None


def read_array(value: object, expected_hw: SizeHw | None = None) -> npt.NDArray[Any]:
    """Return an array (height, width) of whole numbers of at least 0, from an array or a PNG.

    Args:
        value: An array, what NumPy makes one of, or a path.
        expected_hw: The size it must have.

    Raises:
        NotAMask: No such array can be read.
    """
    array = _read_png(Path(value)) if isinstance(value, os.PathLike) else _as_array(value)
    if array.ndim != 2 or not array.size or array.size > MAX_PX or array.dtype.kind not in "biuf":
        msg = (
            f"expected an array of numbers with 2 dimensions, got {array.ndim} dimensions "
            f"{array.shape} of {array.dtype}"
        )
        raise NotAMask(msg)
    _check_size((array.shape[0], array.shape[1]), expected_hw)
    if array.dtype.kind == "f" and not (np.isfinite(array) & (array == np.floor(array))).all():
        msg = "the array holds NaN, infinity or fractions; apply a threshold to probabilities first"
        raise NotAMask(msg)
    if array.dtype.kind in "if" and array.min() < 0:
        msg = f"the array holds numbers below 0, the least is {array.min()}"
        raise NotAMask(msg)
    return array


def _read_png(path: Path) -> npt.NDArray[Any]:
    try:
        # A device or a pipe could block; a name with a NUL is a ValueError.
        if not path.is_file():
            msg = f"there is no file {short(str(path))}"
            raise NotAMask(msg)
        with Image.open(path, formats=("PNG",)) as picture:
            if picture.mode not in _INDEX_MODES:
                msg = (
                    f"{path} has mode {picture.mode}, expected one channel ({_INDEX_MODES}); "
                    "save the mask as such"
                )
                raise NotAMask(msg)
            return np.asarray(picture)
    except NotAMask:
        raise
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        msg = f"the file {short(str(path))} cannot be read as a PNG: {error}"
        raise NotAMask(msg) from None


def check_columns(first_row: int, **columns: object) -> list[list[Any]]:
    """Return the columns as lists of one length; entries stay untouched.

    Args:
        first_row: Number of the first row in messages.
        columns: The columns by name.

    Raises:
        ValueError: A column is missing or no list, or the lengths differ.
    """
    for name, values in columns.items():
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            msg = f"{name}: expected a list with one entry per row, got {short(values)}"
            raise ValueError(msg)
    lists = [list(values) for values in columns.values() if isinstance(values, Iterable)]
    lengths = {name: len(values) for name, values in zip(columns, lists, strict=True)}
    if len(set(lengths.values())) > 1:
        msg = (
            f"expected columns of one length, got {lengths}; row "
            f"{first_row + min(lengths.values())} is the first that lacks an entry"
        )
        raise ValueError(msg)
    return lists


def read_pair(
    row: int,
    prediction: object,
    reference: object,
    read: Callable[[object, SizeHw | None], list[Mask]],
) -> Pair:
    """Read the masks of one row.

    Args:
        row: Its number, for messages.
        prediction: What ``read`` takes; it must have the reference's size.
        reference: The same.
        read: Reads the masks of a prediction or a reference, given the size they must have.

    Raises:
        ValueError: The reference holds no masks, or one of the two has a type that cannot. A
            prediction of the right type that holds none is kept with the reason.
    """
    column = "references"
    try:
        references = read(reference, None)
        column = "predictions"
        return Pair(read(prediction, references[0].size_hw), references, "")
    except (NotAMask, TypeError) as error:
        if column == "predictions" and isinstance(error, NotAMask):
            return Pair([], references, str(error))
        msg = f"row {row}: {column}: {error}"
        raise ValueError(msg) from None


def dump_prediction(pair: Pair) -> str:
    """Write the prediction as the text that `evaluate` keeps."""
    return json.dumps(pair.reason or pair.predictions)


def load_pair(prediction: str, references: Sequence[Sequence[Any]]) -> Pair:
    """Make a pair from the text of ``dump_prediction`` and the parsed JSON of its references."""
    value = json.loads(prediction)
    reason = value if isinstance(value, str) else ""
    return Pair(
        [] if reason else [Mask(*mask) for mask in value],
        [Mask(*mask) for mask in references],
        reason,
    )


def describe_unparsed(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """List the rows whose prediction could not be read, with the reason."""
    return [{"row": row, "reason": pair.reason} for row, pair in enumerate(pairs) if pair.reason]
