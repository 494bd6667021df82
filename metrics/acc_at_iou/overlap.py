"""Intersection over union of boxes and quads, and the matching of boxes to references.

Coordinates are continuous: a box from 10 to 20 is 10 wide, nothing is added. A leaf module (see
``formats.py``).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely
from scipy.optimize import linear_sum_assignment

Floats = npt.NDArray[np.float64]
_TIE = 1e-9


def _ratio(intersection: Floats, total: Floats) -> Floats:
    union = total - intersection
    return np.divide(intersection, union, out=np.zeros_like(union), where=union > 0)


def pair_iou(boxes_xyxy: npt.ArrayLike, others_xyxy: npt.ArrayLike) -> Floats:
    """Return the IoU of each box with its partner; shapes broadcast.

    Args:
        boxes_xyxy: Boxes ``(..., 4)``, corners sorted, any one frame.
        others_xyxy: Their partners ``(..., 4)`` in the same frame.

    Returns:
        IoU ``(...)``, 0 to 1; 0 where both boxes have no area.
    """
    a = np.asarray(boxes_xyxy, dtype=np.float64)
    b = np.asarray(others_xyxy, dtype=np.float64)
    # Side by side: whole columns are much faster than a last axis of 2.
    width = np.minimum(a[..., 2], b[..., 2]) - np.maximum(a[..., 0], b[..., 0])
    height = np.minimum(a[..., 3], b[..., 3]) - np.maximum(a[..., 1], b[..., 1])
    intersection = np.maximum(width, 0.0) * np.maximum(height, 0.0)
    total = (a[..., 2] - a[..., 0]) * (a[..., 3] - a[..., 1]) + (b[..., 2] - b[..., 0]) * (
        b[..., 3] - b[..., 1]
    )
    return _ratio(intersection, total)


def _polygon(values: Sequence[float]) -> Any:  # noqa: ANN401  # shapely ships no types
    if len(values) == 4:
        return shapely.box(*values)
    polygon = shapely.Polygon(np.reshape(values, (4, 2)))
    # Corners in crossing order mean the same corners.
    return polygon if polygon.is_valid else polygon.convex_hull


def iou_matrix(
    predicted: Sequence[Sequence[float]], references: Sequence[Sequence[float]]
) -> Floats:
    """Return the IoU of every predicted shape with every reference.

    Args:
        predicted: N shapes, 4 numbers ``x1, y1, x2, y2`` or the 8 of a quad, any one frame.
        references: M shapes of the same kinds.

    Returns:
        IoU ``(N, M)``, 0 to 1: by corners between boxes, by polygons as soon as a quad is among
        them. A quad whose sides cross counts as the convex hull of its corners.
    """
    if all(len(values) == 4 for shapes in (predicted, references) for values in shapes):
        a = np.asarray(predicted, dtype=np.float64).reshape(-1, 1, 4)
        b = np.asarray(references, dtype=np.float64).reshape(1, -1, 4)
        return pair_iou(a, b)
    rows = np.array([_polygon(values) for values in predicted], dtype=object).reshape(-1, 1)
    columns = np.array([_polygon(values) for values in references], dtype=object).reshape(1, -1)
    intersection = shapely.area(shapely.intersection(rows, columns))
    # Rounding may leave an intersection a hair larger than the smaller shape.
    areas = shapely.area(rows), shapely.area(columns)
    intersection = np.minimum(intersection, np.minimum(*areas))
    return _ratio(intersection, areas[0] + areas[1])


def best_match(iou: Floats, is_hit: npt.NDArray[np.bool_]) -> tuple[float, int]:
    """Return sum of IoU and number of hits of the one-to-one matching with the largest sum.

    Args:
        iou: IoU ``(N, M)`` of predicted boxes and references.
        is_hit: Which of the pairs pass the threshold, ``(N, M)``.

    Returns:
        The sum over matched pairs, and how many of them are hits. Of matchings that tie (sums
        within 1e-9), the one with most hits: so the order of boxes changes nothing.
    """
    rows, columns = linear_sum_assignment(iou + _TIE * is_hit, maximize=True)
    return float(iou[rows, columns].sum()), int(is_hit[rows, columns].sum())
