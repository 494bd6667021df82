"""The part of a picture that a row is about, small enough for a page."""

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor
from typing import NamedTuple

from PIL import Image

from soubench.builders.errors import PictureError
from soubench.inference.chat import Picture
from soubench.inference.report.marks import Mark, Numbers
from soubench.inference.run_folder import Size

LONGEST_SIDE_PX = 384
SMALLEST_WINDOW_PX = 160
"""Small objects are shown with what is around them."""
MARGIN = 0.25
"""Room around the marks, as a share of their extent."""
MOST_STRETCHED = 0.6
"""Shorter side of a window as a share of the longer one, at least."""
JPEG_QUALITY = 85


class Window(NamedTuple):
    """A part of a picture, in px: its left top corner, width and height."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Crop:
    """A crop.

    Attributes:
        data: A JPEG file of at most `LONGEST_SIDE_PX`.
        window: What it shows.
    """

    data: bytes
    window: Window


@dataclass(frozen=True, slots=True)
class RowJob:
    """A row whose pictures are to be cut.

    Attributes:
        pictures: Its pictures, whole.
        marks: What is drawn on the first one.
        answers: Boxes and points of the answers, which the crop of the first one must show, too.
    """

    pictures: tuple[Picture, ...]
    marks: tuple[Mark, ...]
    answers: tuple[Numbers, ...]


@dataclass(frozen=True, slots=True)
class RowPictures:
    """The crops of a row, and what is drawn on the first one."""

    crops: tuple[Crop, ...]
    marks: tuple[Mark, ...]


def window_of(shapes: Iterable[Numbers], size_wh: Size) -> Window:
    """Choose the part of a picture that shows shapes with something around them.

    A picture that is no larger than a crop, or has no shapes, is shown whole.

    Args:
        shapes: Points, boxes, outlines in px of the picture.
        size_wh: Width and height of the picture in px.
    """
    listed = list(shapes)
    if not listed or max(size_wh) <= LONGEST_SIDE_PX:
        return Window(0, 0, *size_wh)
    spans = []
    for axis, side in enumerate(size_wh):
        values = [value for shape in listed for value in shape[axis::2]]
        low, high = max(0.0, min(values)), min(float(side), max(values))
        # What lies outside of the picture altogether cannot be shown.
        spans.append((min(low, side), max(high, 0.0)))
    lengths = [max((high - low) * (1 + MARGIN), SMALLEST_WINDOW_PX) for low, high in spans]
    lengths = [max(length, MOST_STRETCHED * max(lengths)) for length in lengths]
    (x, width), (y, height) = (
        _placed(low, high, length, side)
        for (low, high), length, side in zip(spans, lengths, size_wh, strict=True)
    )
    return Window(x, y, width, height)


def _placed(low: float, high: float, length: float, side: int) -> tuple[int, int]:
    """Center a stretch of the wanted length, move it inside, and return its start and length."""
    whole = min(ceil(length), side)
    start = floor((low + high - whole) / 2)
    return min(max(start, 0), side - whole), whole


def make_crops(jobs: Sequence[RowJob]) -> list[RowPictures | None]:
    """Cut, scale down and encode; None for a row without pictures or with one that is damaged.

    Each picture is decoded once for rows that follow each other. The same bytes for the same
    pictures under the same Pillow version.
    """
    open_last = lru_cache(maxsize=1)(Picture.open)
    return [_row_pictures(job, open_last) for job in jobs]


def _row_pictures(
    job: RowJob, open_picture: Callable[[Picture], Image.Image]
) -> RowPictures | None:
    shown = [*(shape for mark in job.marks for shape in mark.shapes), *job.answers]
    try:
        crops = tuple(
            _crop(open_picture(picture), shown if i == 0 else ())
            for i, picture in enumerate(job.pictures)
        )
    except PictureError:
        return None
    return RowPictures(crops, job.marks) if crops else None


def _crop(image: Image.Image, shapes: Iterable[Numbers]) -> Crop:
    window = window_of(shapes, image.size)
    x, y, width, height = window
    part = image.crop((x, y, x + width, y + height))
    part.thumbnail((LONGEST_SIDE_PX, LONGEST_SIDE_PX), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    part.save(buffer, "JPEG", quality=JPEG_QUALITY)
    return Crop(buffer.getvalue(), window)
