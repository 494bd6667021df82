"""The label files of the plant set: rotated boxes, leaf counts, metadata and index pictures."""

from dataclasses import dataclass
from math import floor
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL.PngImagePlugin import PngImageFile

from soubench.builders.errors import FormatError, PictureError
from soubench.builders.images import inspect_picture
from soubench.builders.plants.boxes import Point, convex_hull
from soubench.builders.plants.targets import Center
from soubench.builders.scene import Quad
from soubench.builders.sources._values import read_text, to_number

LEAF_COLUMNS = 9
PLANT_COLUMNS = 8
METADATA_COLUMNS = 4
MAX_COORDINATE_PX = 1_000_000
"""Boxes reach out of pictures, but not this far."""
MAX_LEAF_ID = 2**31 - 1
"""Index pictures hold no larger value."""
INDEX_MODES = frozenset({"1", "L", "P", "I", "I;16", "I;16B"})


class Notice(NamedTuple):
    """Something that a reader met: left out (``drop``) or kept with a notice (``repair``)."""

    kind: Literal["drop", "repair"]
    reason: str
    where: str


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf.

    Attributes:
        leaf_id: Its index in the label picture; ids have gaps.
        quad_xy8: Corners of its rotated box: the file's minus 1, so the centers of corner pixels
            where the top left pixel is (0, 0). They may lie outside the picture.
    """

    leaf_id: int
    quad_xy8: Quad

    @property
    def center(self) -> Center:
        """The mean of the corners, halves rounded up."""
        return Center(*(floor(sum(self.quad_xy8[i::2]) / 4 + 0.5) for i in (0, 1)))


def read_leaf_boxes(path: Path, where: str) -> tuple[list[Leaf], list[Notice]]:
    """Read a ``_bbox.csv`` of leaves: id, then four 1-based corners, no header.

    Args:
        path: The file.
        where: Its name in notices.

    Returns:
        The usable leaves in the order of the file, and what was dropped: ``row_not_9_columns``,
        ``row_of_tray_plant`` (8 columns, no id), ``row_not_numbers``, ``row_out_of_range``,
        ``box_without_area``, ``leaf_id_repeated`` (the first one stays).

    Raises:
        FormatError: The file cannot be read.
    """
    leaves: dict[int, Leaf] = {}
    notices: list[Notice] = []
    for line, row in _rows(path).items():
        found = _leaf(row)
        if isinstance(found, Leaf) and found.leaf_id in leaves:
            found = "leaf_id_repeated"
        if isinstance(found, Leaf):
            leaves[found.leaf_id] = found
        else:
            notices.append(Notice("drop", found, f"{where}:{line}"))
    return list(leaves.values()), notices


def _rows(path: Path) -> dict[int, list[str]]:
    """Split a file without header into trimmed fields, by line number; blank lines are no rows."""
    lines = read_text(path).splitlines()
    return {
        number: [field.strip() for field in line.split(",")]
        for number, line in enumerate(lines, start=1)
        if line.strip()
    }


def _leaf(row: list[str]) -> Leaf | str:
    if len(row) != LEAF_COLUMNS:
        return "row_of_tray_plant" if len(row) == PLANT_COLUMNS else "row_not_9_columns"
    numbers = [number for field in row if (number := to_number(field)) is not None]
    if len(numbers) != LEAF_COLUMNS or numbers[0] < 1 or not numbers[0].is_integer():
        return "row_not_numbers"
    if numbers[0] > MAX_LEAF_ID or max(map(abs, numbers[1:])) > MAX_COORDINATE_PX:
        return "row_out_of_range"
    x1, y1, x2, y2, x3, y3, x4, y4 = [number - 1 for number in numbers[1:]]
    # Twice the area is the cross product of the diagonals. Corners are pixels, so a real leaf of
    # one pixel's width counts as flat too: its label then disagrees and the picture is left out.
    if (x3 - x1) * (y4 - y2) == (x4 - x2) * (y3 - y1):
        return "box_without_area"
    return Leaf(int(numbers[0]), (x1, y1, x2, y2, x3, y3, x4, y4))


def read_leaf_counts(path: Path) -> dict[str, int]:
    """Read ``Leaf_counts.csv``: name and space-padded count, no header.

    Raises:
        FormatError: A count is missing or no whole number, or a plant has two different ones.
    """
    counts: dict[str, int] = {}
    for line, row in _rows(path).items():
        count = to_number(row[1]) if len(row) == 2 else None
        if count is None or count < 0 or not count.is_integer():
            raise FormatError(
                f"{path}:{line}: expected a plant and its number of leaves, found "
                f"{', '.join(row)!r}. Fill in the count or delete the line."
            )
        if counts.setdefault(row[0], int(count)) != count:
            raise FormatError(
                f"{path}:{line}: {row[0]} has {counts[row[0]]} leaves in an earlier line and "
                f"{int(count)} here. Delete the wrong line."
            )
    return counts


class Metadata(NamedTuple):
    """What ``Metadata.csv`` says of one plant picture.

    Attributes:
        kind: Ara2013: genotype; tobacco: species and cultivar.
        treatment: Ara2013: always ``No``; tobacco: a code such as ``T7 933``.
        hours: Hours after germination, as spelled.
    """

    kind: str
    treatment: str
    hours: str


def read_metadata(path: Path) -> dict[str, Metadata]:
    """Read ``Metadata.csv``: name, kind, treatment, hours, padded, no header.

    Raises:
        FormatError: A line has not four fields, or says something else than an earlier one.
    """
    found: dict[str, Metadata] = {}
    for line, row in _rows(path).items():
        if len(row) != METADATA_COLUMNS:
            raise FormatError(
                f"{path}:{line}: expected name, genotype or cultivar, treatment and hours, found "
                f"{len(row)} fields. Repair or delete the line."
            )
        entry = Metadata(*(" ".join(field.split()) for field in row[1:]))
        if found.setdefault(row[0], entry) != entry:
            raise FormatError(
                f"{path}:{line}: {row[0]} is described differently in an earlier line. "
                "Delete the wrong line."
            )
    return found


@dataclass(frozen=True, slots=True, eq=False)
class LabelPicture:
    """What an index picture says.

    Attributes:
        size_wh: Its width and height in px.
        ids: The ids of its leaves.
        row_ends: ``(N, 3)`` id, x and y of the first and the last pixel that each leaf has in
            each row, by id; px, the top left pixel being (0, 0).
    """

    size_wh: tuple[int, int]
    ids: frozenset[int]
    row_ends: npt.NDArray[np.int64]

    def hull(self, leaf_id: int) -> list[Point]:
        """Return the corners of the convex hull of a leaf's pixel centers."""
        start, end = np.searchsorted(self.row_ends[:, 0], (leaf_id, leaf_id + 1))
        return convex_hull([(x, y) for _, x, y in self.row_ends[start:end].tolist()])


def read_label_picture(path: Path, *, max_pixels: int) -> LabelPicture:
    """Read a ``_label.png``: pixel index 0 is background, each other index is one leaf.

    Raises:
        FormatError: The picture holds colors, from which no ids can be told.
        PictureError: It cannot be read, or is too large; the reasons are those of
            ``inspect_picture`` with ``label_`` for ``picture_``.
    """
    values = _indices(path, "label", max_pixels=max_pixels)
    height, width = values.shape
    ys, xs = np.nonzero(values)
    order = np.argsort(values[ys, xs], kind="stable")
    pixels = np.column_stack((values[ys, xs], xs, ys))[order]
    # Within an id the pixels come row by row: a row ends where the id or y changes.
    new = np.any(np.diff(pixels[:, [0, 2]], axis=0) != 0, axis=1)
    first, last = np.append(True, new)[: len(pixels)], np.append(new, True)[: len(pixels)]
    row_ends = np.concatenate((pixels[first], pixels[last]))
    row_ends = row_ends[np.argsort(row_ends[:, 0], kind="stable")]
    return LabelPicture((width, height), frozenset(row_ends[:, 0].tolist()), row_ends)


def count_center_points(path: Path, *, max_pixels: int) -> int:
    """Count the points of a ``_centers.png``.

    Raises:
        FormatError: The picture holds colors.
        PictureError: As for `read_label_picture`, with ``centers_`` for ``picture_``.
    """
    return int(np.count_nonzero(_indices(path, "centers", max_pixels=max_pixels)))


def _indices(
    path: Path, kind: Literal["label", "centers"], *, max_pixels: int
) -> npt.NDArray[np.int64]:
    try:
        info = inspect_picture(path, max_pixels=max_pixels)
    except PictureError as error:
        raise PictureError(f"{kind}_{error.reason.removeprefix('picture_')}", str(error)) from error
    if info.format != "PNG" or info.mode not in INDEX_MODES:
        what = {"label": "one value per leaf", "centers": "0 where there is no center"}[kind]
        raise FormatError(
            f"{path}: expected an index image (palette or gray PNG, {what}), found {info.format} "
            f"in mode {info.mode}, from which the indices cannot be told. "
            "Use the original file, or map its colors back to indices."
        )
    # Not Image.open: its limit is global to the process, and ours has been applied already.
    try:
        with PngImageFile(path) as image:
            return np.asarray(image).astype(np.int64)
    except (OSError, SyntaxError, ValueError) as error:
        raise PictureError(f"{kind}_unreadable", f"{path}: cannot be decoded: {error}") from error
