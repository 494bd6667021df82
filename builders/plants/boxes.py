"""What a leaf's box must be: the smallest rotated rectangle around the leaf's pixels.

The set's boxes are that rectangle around the centers of the pixels, with each corner rounded to
whole px. Rounding moves a corner by at most half a px in x and in y, which is √½ px; every other
point of the rectangle is a weighted mean of the corners and moves no further. So a true box holds
its leaf to within √½ px, and every side is touched to within √½ px. For an upright box this means
to the pixel, since all distances are whole then.
"""

from collections.abc import Sequence
from math import dist, pi, sqrt
from typing import NamedTuple

from soubench.builders.scene import Quad

Point = tuple[float, float]

ROUNDING_PX = sqrt(0.5) + 1e-6
"""How far rounding moves a corner at most, and what floats add to it."""


def convex_hull(points: Sequence[Point]) -> list[Point]:
    """Return the corners of the convex hull, each once (Andrew's monotone chain)."""
    ordered = sorted(set(points))

    def half(chain: Sequence[Point]) -> list[Point]:
        kept: list[Point] = []
        for point in chain:
            while len(kept) >= 2 and _turn(kept[-2], kept[-1], point) <= 0:
                kept.pop()
            kept.append(point)
        return kept[:-1]

    return half(ordered) + half(ordered[::-1]) or ordered


class BoxFault(NamedTuple):
    """Why a box is wrong: the name it is counted under, and the measurement behind it."""

    reason: str
    measured: str


def box_fault(quad: Quad, hull: Sequence[Point]) -> BoxFault | None:
    """Say why a box cannot be the rounded smallest rectangle around a leaf.

    Args:
        quad: Corners of the box, in the frame of ``hull``.
        hull: Corners of the convex hull of the leaf's pixel centers.

    Returns:
        ``box_not_rectangle``, ``box_off_its_leaf`` or ``box_too_large``; None for a box that can
        be.
    """
    a, b, c, d = corners = _corners(quad)
    # The middles of the diagonals are equal before rounding, and so are their lengths.
    skew = max(abs(a[i] + c[i] - b[i] - d[i]) for i in (0, 1))
    uneven = abs(dist(a, c) - dist(b, d))
    if skew > 4 * (0.5 + 1e-6) or uneven > 4 * ROUNDING_PX:
        return BoxFault(
            "box_not_rectangle",
            f"the diagonals' lengths differ by {uneven:.1f} px, their middles by {skew / 2:.1f} px",
        )
    outline = convex_hull(corners)
    outside = max(_beyond(side, point) for side in _sides(outline) for point in hull)
    if outside > ROUNDING_PX:
        return BoxFault("box_off_its_leaf", f"the leaf reaches {outside:.1f} px out of it")
    gap = max(min(_distance(side, point) for point in hull) for side in _sides(corners))
    if gap > ROUNDING_PX:
        return BoxFault("box_too_large", f"one side is {gap:.1f} px off the leaf")
    # A rectangle grown by a margin gains margin × perimeter + π × margin². Its perimeter is at
    # most that of the rounded box grown by the same margin.
    perimeter = sum(dist(*side) for side in _sides(outline)) + 2 * pi * ROUNDING_PX
    largest = _smallest_area(hull) + perimeter * ROUNDING_PX + pi * ROUNDING_PX**2
    area = _area(outline)
    if area > largest:
        return BoxFault(
            "box_too_large", f"{area:.0f} px², where the smallest one has at most {largest:.0f}"
        )
    return None


def _corners(quad: Quad) -> tuple[Point, Point, Point, Point]:
    x1, y1, x2, y2, x3, y3, x4, y4 = quad
    return (x1, y1), (x2, y2), (x3, y3), (x4, y4)


def _sides(polygon: Sequence[Point]) -> list[tuple[Point, Point]]:
    return list(zip(polygon, [*polygon[1:], polygon[0]], strict=True))


def _turn(a: Point, b: Point, c: Point) -> float:
    """Return twice the area of a triangle, positive where ``c`` is inside of a hull's side ab."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _beyond(side: tuple[Point, Point], point: Point) -> float:
    """Return how far a point is outside the line of a hull's side, negative inside."""
    return -_turn(*side, point) / dist(*side)


def _distance(side: tuple[Point, Point], point: Point) -> float:
    """Return the distance of a point from a side, its ends included."""
    (ax, ay), (bx, by) = side
    length = dist(*side)
    along = 0.0
    if length:
        along = ((point[0] - ax) * (bx - ax) + (point[1] - ay) * (by - ay)) / length**2
        along = min(1.0, max(0.0, along))
    return dist(point, (ax + along * (bx - ax), ay + along * (by - ay)))


def _area(polygon: Sequence[Point]) -> float:
    return sum(a[0] * b[1] - b[0] * a[1] for a, b in _sides(polygon)) / 2


def _smallest_area(hull: Sequence[Point]) -> float:
    """Return the area of the smallest rectangle around a hull: one side lies along it."""
    if len(hull) < 3:
        return 0.0
    areas: list[float] = []
    for a, b in _sides(hull):
        length = dist(a, b)
        ux, uy = (b[0] - a[0]) / length, (b[1] - a[1]) / length
        along = [x * ux + y * uy for x, y in hull]
        across = [y * ux - x * uy for x, y in hull]
        areas.append((max(along) - min(along)) * (max(across) - min(across)))
    return min(areas)
