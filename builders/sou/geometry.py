"""Overlap of boxes and quads, in continuous pixel coordinates (no +1)."""

from collections.abc import Sequence

import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray


def box_iou(box_xyxy: ArrayLike, others_xyxy: ArrayLike) -> NDArray[np.float64]:
    """Return the IoU of one box with each of ``others_xyxy`` ``(N, 4)``, as ``(N,)``."""
    box = np.asarray(box_xyxy, dtype=np.float64)
    others = np.asarray(others_xyxy, dtype=np.float64).reshape(-1, 4)
    low = np.maximum(box[:2], others[:, :2])
    high = np.minimum(box[2:], others[:, 2:])
    shared = np.prod(np.clip(high - low, 0, None), axis=1)
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1)
    union = (box[2] - box[0]) * (box[3] - box[1]) + areas - shared
    return _ratio(shared, union)


def quad_iou(quad_xy8: ArrayLike, others_xy8: ArrayLike) -> NDArray[np.float64]:
    """Return the IoU of one quad with each of ``others_xy8`` ``(N, 8)``, as ``(N,)``.

    Corners that rounding has made cross are untangled first, so that every quad has an area.
    """
    quad = polygon(quad_xy8)
    others = shapely.make_valid(
        shapely.polygons(np.asarray(others_xy8, dtype=np.float64).reshape(-1, 4, 2))
    )
    shared = shapely.area(shapely.intersection(quad, others))
    union = shapely.area(quad) + shapely.area(others) - shared
    return _ratio(shared, union)


def _ratio(shared: NDArray[np.float64], union: NDArray[np.float64]) -> NDArray[np.float64]:
    ratio = np.zeros_like(shared)
    np.divide(shared, union, out=ratio, where=union > 0)
    return ratio


def polygon(quad_xy8: ArrayLike) -> shapely.Geometry:
    """Return four corners as a valid polygon."""
    return shapely.make_valid(shapely.Polygon(np.asarray(quad_xy8, dtype=np.float64).reshape(4, 2)))


def hull_xyxy(quad_xy8: Sequence[float]) -> tuple[float, float, float, float]:
    """Return the axis-aligned hull of four corners."""
    xs, ys = quad_xy8[0::2], quad_xy8[1::2]
    return min(xs), min(ys), max(xs), max(ys)


def iou_under(box: Sequence[int], others: Sequence[Sequence[int]], *, limit: float) -> bool:
    """Say whether a box (4 numbers) or quad (8 numbers) overlaps each other one by less than limit.

    Plain arithmetic: for the three or four candidates of one question it is several times faster
    than numpy.
    """
    hull = hull_xyxy(box) if len(box) == 8 else box
    for other in others:
        other_hull = hull_xyxy(other) if len(other) == 8 else other
        w = min(hull[2], other_hull[2]) - max(hull[0], other_hull[0])
        h = min(hull[3], other_hull[3]) - max(hull[1], other_hull[1])
        if w <= 0 or h <= 0:
            continue
        if len(box) == 8:
            if quad_iou(box, [other])[0] >= limit:
                return False
            continue
        area = (box[2] - box[0]) * (box[3] - box[1])
        other_area = (other[2] - other[0]) * (other[3] - other[1])
        if w * h >= limit * (area + other_area - w * h):
            return False
    return True
