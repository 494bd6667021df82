"""Any detection set in the COCO format, with whatever categories its file names."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from soubench.builders.scene import Mask, ReadReport, Scene
from soubench.builders.sources._coco import CocoRules, read_coco_like
from soubench.builders.sources._values import shorten, to_number, to_numbers

CATEGORIES = None
_MIN_POLYGON_NUMBERS = 6
_MAX_RUN_DIGITS = 12


def read(root: Path, split: str, report: ReadReport) -> Iterator[Scene]:
    """Read a split; ``iscrowd`` and an ``ignore`` key both mark what does not count.

    Args:
        root: The dataset's folder, a folder in it, or the JSON file itself.
        split: Name of the split: a word of the JSON file's name, or of its folder's.
        report: Filled as the scenes are drawn.

    Yields:
        Scenes by relative picture path without suffix, which is also the group. Categories are
        the file's, in the order of their ids.

    Raises:
        FormatError: If no label file fits, several do, or it is not of this format.
    """
    return read_coco_like(root, split, report, _RULES)


class MalformedMaskError(ValueError):
    """A segmentation that makes its whole record untrustworthy."""


def read_segmentation(value: object, notice: Callable[[str], None]) -> Mask | None:
    """Read a ``segmentation`` in any of the shapes that tools write.

    Args:
        value: A list of polygons, one flat polygon, a run-length encoding, or nothing.
        notice: Called with the reason of every repair.

    Returns:
        The mask, its size (0, 0) for polygons; None where there is no usable outline.

    Raises:
        MalformedMaskError: If it is no segmentation at all, or its run lengths do not add up.
    """
    if value is None or value == []:
        return None
    if isinstance(value, dict):
        return _read_rle(value)
    if not isinstance(value, list):
        raise MalformedMaskError(f"segmentation {shorten(value)}")
    parts: list[Any] = value
    if not isinstance(value[0], list):
        notice("flat_polygon")
        parts = [value]
    polygons: list[tuple[float, ...]] = []
    damaged = False
    for part in parts:
        numbers = to_numbers(part)
        if numbers is not None and _is_polygon(numbers):
            polygons.append(numbers)
        else:
            damaged = True
    if damaged:
        notice("invalid_polygon")
    return Mask(size_hw=(0, 0), polygons=tuple(polygons)) if polygons else None


def _is_polygon(numbers: tuple[float, ...]) -> bool:
    enough = len(numbers) >= _MIN_POLYGON_NUMBERS and len(numbers) % 2 == 0
    return enough and all(map(math.isfinite, numbers))


def _read_rle(value: dict[str, Any]) -> Mask:
    size, counts = to_numbers(value.get("size")), value.get("counts")
    if size is None or len(size) != 2 or not all(s >= 1 and s.is_integer() for s in size):
        raise MalformedMaskError(f"run-length size {shorten(value.get('size'))}")
    height, width = int(size[0]), int(size[1])
    rle: tuple[int, ...] | str
    if isinstance(counts, str):
        lengths, rle = _decode_counts(counts), counts
    else:
        numbers = [to_number(count) for count in counts] if isinstance(counts, list) else [None]
        lengths = [int(n) if n is not None and n.is_integer() else -1 for n in numbers]
        rle = tuple(lengths)
    if min(lengths, default=-1) < 0 or sum(lengths) != height * width:
        raise MalformedMaskError(
            f"run lengths {shorten(counts)} do not add up to {height}×{width} = {height * width}"
        )
    return Mask(size_hw=(height, width), rle_counts=rle)


def _decode_counts(text: str) -> list[int]:
    """Decode COCO's compressed string: 5 bits a character, differences from the third run on.

    A string that does not follow the code gives a list with a negative number.
    """
    lengths: list[int] = []
    value = shift = 0
    for character in text:
        code = ord(character) - 48
        if not 0 <= code < 64 or shift > _MAX_RUN_DIGITS * 5:
            return [-1]
        value |= (code & 0x1F) << shift
        shift += 5
        if code & 0x20:
            continue
        if code & 0x10:
            value -= 1 << shift
        lengths.append(value + lengths[-2] if len(lengths) > 2 else value)
        value = shift = 0
    return lengths if shift == 0 else [-1]


_RULES = CocoRules(
    source="coco",
    layout="annotations/instances_<split>.json, or <split>/<name>.json beside its pictures",
    wanted=None,
    prefer_name="instances",
    by_folder=True,
    keyed_by_path=True,
    read_mask=read_segmentation,
)
