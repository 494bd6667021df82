"""VisDrone-DET: pictures taken by drones, one comma-separated text file per picture."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from soubench.builders.errors import FormatError
from soubench.builders.scene import ReadReport, Scene
from soubench.builders.sources._door import (
    MAX_COORDINATE_PX,
    RawObject,
    RawPicture,
    Source,
    make_scene,
)
from soubench.builders.sources._files import pair_by_stem
from soubench.builders.sources._values import read_text, shorten

CATEGORIES = (
    "pedestrian",
    "people",
    "bicycle",
    "car",
    "van",
    "truck",
    "tricycle",
    "awning-tricycle",
    "bus",
    "motor",
)
REGION_NAME = "ignored regions"
OTHERS_NAME = "others"
_NAMES = (REGION_NAME, *CATEGORIES, OTHERS_NAME)
_FIELDS = 8
_YOLO_FIELDS = 5
_COVERED_SHARE = 0.5


def read(root: Path, split: str, report: ReadReport) -> Iterator[Scene]:
    """Read a split, one label file after the other.

    Objects do not count if their score is 0, their class is 0 (ignored regions) or 11 (others),
    or half or more of their area lies in ignored regions.

    Args:
        root: Folder with ``VisDrone2019-DET-<split>``, that folder itself, or one that holds
            ``images`` and ``annotations``.
        split: ``train``, ``val`` or ``test-dev``.
        report: Filled as the scenes are drawn.

    Yields:
        Scenes by picture stem; the group is the sequence, the stem up to the first ``_``.

    Raises:
        FormatError: If no label folder fits, or a line is not of this format.
    """
    report.source, report.split, report.categories = "visdrone", split, CATEGORIES
    pairs = pair_by_stem(
        root,
        split,
        suffix=".txt",
        source="visdrone",
        layout="VisDrone2019-DET-<split>/annotations",
        report=report,
    )
    for pair in pairs:
        stem = pair.picture.stem
        scene = make_scene(
            RawPicture(
                path=pair.picture,
                image_id=stem,
                group_id=stem.split("_", 1)[0] or stem,
                label_size_wh=None,
                objects=_mark_covered(read_rows(pair.label, report)),
            ),
            Source("visdrone", split),
            report,
        )
        if scene is not None:
            yield scene


def read_rows(path: Path, report: ReadReport) -> list[RawObject]:
    """Read one label file.

    Args:
        path: The text file, rows ``x,y,w,h,score,category,truncation,occlusion``.
        report: Counts rows of an unknown category.

    Returns:
        One record for each row, with the number of its line as its id.

    Raises:
        FormatError: If a row does not have the eight fields of ground truth.
    """
    text = read_text(path).replace("\r\n", "\n").replace("\r", "\n")
    rows = (_read_row(line, path, n, report) for n, line in enumerate(text.split("\n"), 1))
    return [row for row in rows if row is not None]


def _read_row(line: str, path: Path, number: int, report: ReadReport) -> RawObject | None:
    if not line.strip():
        return None
    fields = [field.strip() for field in line.split(",")]
    if len(fields) == _FIELDS + 1 and fields[-1] == "":
        fields.pop()
    if len(fields) != _FIELDS:
        raise FormatError(f"{path}:{number}: {_explain_fields(line, len(fields))}")
    try:
        values = [float(field) for field in fields]
    except ValueError as error:
        raise FormatError(
            f"{path}:{number}: expected 8 numbers, found {shorten(line.strip())}. Correct the "
            "line, or take the file from the original archive."
        ) from error
    x, y, w, h, score, category = values[:6]
    if score not in (0, 1):
        raise FormatError(
            f"{path}:{number}: the score is {fields[4]}, and ground truth has 0 or 1. These look "
            "like detection results; pass the folder of the labels."
        )
    if not math.isfinite(category) or not category.is_integer():
        raise FormatError(f"{path}:{number}: expected a class 0 to 11, found {shorten(fields[5])}")
    if not 0 <= category < len(_NAMES):
        report.drop("unknown_category", f"{path.name}:{number}: class {shorten(fields[5])}")
        return None
    name = _NAMES[int(category)]
    reason = ""
    if name in (REGION_NAME, OTHERS_NAME):
        reason = "ignore_class"
    elif score == 0:
        reason = "score_zero"
    return RawObject(name, (x, y, w, h), None, reason, str(number))


def _explain_fields(line: str, count: int) -> str:
    words = len(line.split())
    if count == 1 and words == _YOLO_FIELDS:
        return (
            "found 5 values separated by blanks, which looks like YOLO; expected 8 fields "
            "separated by commas. Pass the folder of the original VisDrone labels."
        )
    hint = " (VisDrone's video sets have 10)" if count == 10 else ""
    return (
        f"expected 8 fields separated by commas, found {count}{hint}: {shorten(line.strip())}. "
        "Pass the folder of the VisDrone-DET labels."
    )


def _mark_covered(rows: Sequence[RawObject]) -> list[RawObject]:
    """Mark the objects that lie in ignored regions, by the toolkit's rule of half the area.

    Regions and objects are taken as in the file, before anything is clipped.
    """
    regions = [row.box_xywh for row in rows if row.category == REGION_NAME and _is_box(row)]
    places = [i for i, row in enumerate(rows) if row.ignore_reason == "" and _is_box(row)]
    if not regions or not places:
        return list(rows)
    shares = covered_shares(
        np.array([rows[i].box_xywh for i in places], dtype=np.float64),
        np.array(regions, dtype=np.float64),
    )
    marked = list(rows)
    for place, share in zip(places, shares, strict=True):
        if share >= _COVERED_SHARE:
            marked[place] = rows[place]._replace(ignore_reason="ignore_region")
    return marked


def _is_box(row: RawObject) -> bool:
    box = row.box_xywh
    if box is None or not all(abs(value) <= MAX_COORDINATE_PX for value in box):
        return False
    # The product may vanish where neither side does.
    return box[2] > 0 and box[3] > 0 and box[2] * box[3] > 0


def covered_shares(
    boxes_xywh: npt.NDArray[np.float64], regions_xywh: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return how much of each box lies in the union of the regions.

    The edges of the regions cut the plane into a grid whose cells are covered wholly or not at
    all, so sums over cells are exact and count no overlap twice.

    Args:
        boxes_xywh: Left, top, width, height in px, ``(N, 4)``, sides over 0.
        regions_xywh: The same, ``(M, 4)``, M at least 1.

    Returns:
        Shares in 0..1, ``(N,)``.
    """
    regions = np.concatenate([regions_xywh[:, :2], regions_xywh[:, :2] + regions_xywh[:, 2:]], 1)
    boxes = np.concatenate([boxes_xywh[:, :2], boxes_xywh[:, :2] + boxes_xywh[:, 2:]], 1)
    xs, ys = np.unique(regions[:, 0::2]), np.unique(regions[:, 1::2])
    covered = np.zeros((len(ys) - 1, len(xs) - 1))
    left, right = np.searchsorted(xs, regions[:, 0]), np.searchsorted(xs, regions[:, 2])
    top, bottom = np.searchsorted(ys, regions[:, 1]), np.searchsorted(ys, regions[:, 3])
    for x1, y1, x2, y2 in zip(left, top, right, bottom, strict=True):
        covered[y1:y2, x1:x2] = 1.0
    widths = _overlaps(boxes[:, 0], boxes[:, 2], xs)
    heights = _overlaps(boxes[:, 1], boxes[:, 3], ys)
    areas = ((heights @ covered) * widths).sum(axis=1)
    shares: npt.NDArray[np.float64] = areas / (boxes_xywh[:, 2] * boxes_xywh[:, 3])
    return shares


def _overlaps(
    starts: npt.NDArray[np.float64], ends: npt.NDArray[np.float64], edges: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the length of each interval in each cell between edges, ``(N, len(edges) - 1)``."""
    low = np.maximum(starts[:, None], edges[None, :-1])
    high = np.minimum(ends[:, None], edges[None, 1:])
    lengths: npt.NDArray[np.float64] = np.maximum(high - low, 0.0)
    return lengths
