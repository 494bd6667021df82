"""The box formats of the model families as one table, and the way from their numbers to pixels.

A leaf module: ``acc_at_iou.py`` imports it and it imports nothing beside it, because `evaluate`
copies only the files that the main script names.
"""

import math
import re
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

AUTO = "auto"
TOLERANCE = 0.1


class Frame(Enum):
    """What a coordinate counts."""

    IMAGE = "pixels of the picture"
    INPUT = "pixels of the resized picture that the model saw"
    BINS = "parts of the picture's width or height"


class Format(NamedTuple):
    """How a model family writes a box.

    Attributes:
        wrapper: How the numbers are written: ``text`` (brackets, JSON, names), or the special
            tokens ``loc4`` (``<loc0070>``), ``loc`` (``<loc_70>``), ``patch``
            (``<patch_index_0070>``) or ``angle`` (``{<12><34><26><45>|<0>}``).
        order: Meaning of the four numbers, where the reply does not name them.
        frame: What a coordinate counts.
        bins: Parts of the whole side, for ``Frame.BINS``.
        offset: Added to a coordinate before the division (bin centers).
        reads_units: Whether decimals up to 1 are parts of the side all the same.
    """

    wrapper: str = "text"
    order: str = "xyxy"
    frame: Frame = Frame.BINS
    bins: float = 1000.0
    offset: float = 0.0
    reads_units: bool = False


_PER_MILLE = Format()
_UNIT = Format(bins=1.0)
FORMATS: dict[str, Format] = {
    "qwen_vl": _PER_MILLE,
    "qwen2_vl": _PER_MILLE,
    "qwen2_5_vl": Format(frame=Frame.INPUT),
    "qwen3_vl": _PER_MILLE,
    "internvl": Format(reads_units=True),
    "gemini": Format(order="yxyx"),
    "paligemma": Format(wrapper="loc4", order="yxyx", bins=1023.0),
    "florence2": Format(wrapper="loc", offset=0.5),
    "kosmos2": Format(wrapper="patch", bins=32.0),
    "deepseek_vl2": Format(bins=999.0),
    "cogvlm": _PER_MILLE,
    "minicpm_v": _PER_MILLE,
    "glm_v": _PER_MILLE,
    "glm_4_1v": _PER_MILLE,
    "glm_4_5v": _PER_MILLE,
    "geochat": Format(wrapper="angle", bins=100.0),
    "kimi_vl": _UNIT,
    "shikra": _UNIT,
    "llava": _UNIT,
    "moondream": _UNIT,
    "claude": Format(frame=Frame.INPUT),
    **{
        f"{scale}_{order}": Format(order=order, frame=frame, bins=bins)
        for scale, frame, bins in (
            ("pixel", Frame.IMAGE, 1.0),
            ("unit", Frame.BINS, 1.0),
            ("percent", Frame.BINS, 100.0),
            ("permille", Frame.BINS, 1000.0),
        )
        for order in ("xyxy", "yxyx", "xywh", "cxcywh")
    },
}

# Only what one family alone writes, or (``<box>``) what means the same in every family that does.
_MARKS = (
    (re.compile(r"<loc\d{4}>"), "paligemma"),
    (re.compile(r"<loc_\d{1,4}>"), "florence2"),
    (re.compile(r"<patch_index_\d{4}>"), "kosmos2"),
    (re.compile(r"<\|det\|>"), "deepseek_vl2"),
    (re.compile(r"<\|box_start\|>"), "qwen2_vl"),
    (re.compile(r"<\|begin_of_box\|>"), "glm_v"),
    (re.compile(r"\{(?:<\d{1,3}>){4}\|"), "geochat"),
    (re.compile(r"[\"']box_2d[\"']"), "gemini"),
    (re.compile(r"[\"']x_min[\"']"), "moondream"),
    (re.compile(r"<box>"), "internvl"),
)


def recognize(text: str) -> str | None:
    """Return the format that a reply's own wrapper names, None if it names none."""
    return next((name for mark, name in _MARKS if mark.search(text)), None)


def are_units(values: Sequence[float], has_point: bool) -> bool:
    """Tell whether numbers can only be parts of a side: decimals, none above 1."""
    return has_point and all(abs(value) <= 1.0 for value in values)


def _corners(values: Sequence[float], order: str) -> list[float]:
    a, b, c, d = values
    if order == "yxyx":
        return [b, a, d, c]
    if order == "xywh":
        return [a, b, a + c, b + d]
    if order == "cxcywh":
        return [a - c / 2, b - d / 2, a + c / 2, b + d / 2]
    return [a, b, c, d]


def _turned(box_xyxy: Sequence[float], degrees: float) -> list[float]:
    """Turn a box about its center, counter-clockwise on the screen, as GeoChat's demo draws it."""
    x1, y1, x2, y2 = box_xyxy
    x, y = (x1 + x2) / 2, (y1 + y2) / 2
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return [
        value
        for dx, dy in ((x1 - x, y1 - y), (x2 - x, y1 - y), (x2 - x, y2 - y), (x1 - x, y2 - y))
        for value in (x + cos * dx + sin * dy, y - sin * dx + cos * dy)
    ]


def to_pixels(
    values: Sequence[float],
    form: Format,
    *,
    order: str,
    image_size: Sequence[float] | None,
    input_size: Sequence[float] | None,
    limit: float,
    degrees: float | None = None,
    upright: bool = False,
) -> list[float] | None:
    """Return a box in pixels of the original picture, None if it is not a valid one.

    Args:
        values: 4 numbers of a box or 8 of a quad, as the reply has them.
        form: The format they are in.
        order: Their order: the format's own, or the one that the reply's names give.
        image_size: Width and height of the picture, in pixels; needed unless the frame is
            ``Frame.IMAGE``.
        input_size: Width and height of the resized picture, in pixels; for ``Frame.INPUT`` only.
        limit: Largest pixel where the picture has no size.
        degrees: Angle of a turned box; the result is then a quad.
        upright: Whether the upright hull stands for a quad.

    Returns:
        ``[x1, y1, x2, y2]``, corners sorted, cut at the picture's edges; or the 8 numbers of a
        quad, not cut. None if a number is not finite, lies more than a tenth of the side outside
        the picture, or if a width or height is negative.
    """
    if len(values) == 8:
        step = -1 if order == "yxyx" else 1
        corners = [value for i in range(0, 8, 2) for value in values[i : i + 2][::step]]
    else:
        corners = _corners(values, order)
        if order in ("xywh", "cxcywh") and (values[2] < 0 or values[3] < 0):
            return None
    pixels = []
    for i, value in enumerate(corners):
        side = image_size[i % 2] if image_size else limit
        if form.frame is Frame.BINS:
            value = (value + form.offset) / form.bins * side
        elif form.frame is Frame.INPUT and input_size:
            value = value / input_size[i % 2] * side
        if not -TOLERANCE * side <= value <= (1 + TOLERANCE) * side:
            return None
        is_kept = len(corners) == 8 and not upright
        pixels.append(value if is_kept else min(max(value, 0.0), float(side)))
    if len(pixels) == 8 and not upright:
        return pixels
    x1, x2 = min(pixels[0::2]), max(pixels[0::2])
    y1, y2 = min(pixels[1::2]), max(pixels[1::2])
    return [x1, y1, x2, y2] if degrees is None else _turned((x1, y1, x2, y2), degrees)
