"""What a picture of primitive shapes shows: pure data, and what follows from it.

Frame: pixels of the canvas, 0-based, y downwards. Rotations are degrees, counter-clockwise as seen.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import md5
from heapq import heapify, heappop, heappush
from math import cos, pi, radians, sin, sqrt
from types import MappingProxyType
from typing import Any

import shapely

from soubench.builders.errors import FormatError

KINDS = ("Circle", "Rectangle", "Ellipse", "Triangle", "Square")
COLORS: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {
        "Orange": (255, 128, 0),
        "Red": (255, 0, 0),
        "Blue": (0, 0, 255),
        "Green": (0, 160, 0),
        "Yellow": (255, 230, 0),
        "Magenta": (255, 0, 255),
    }
)
BACKGROUND = (255, 255, 255)
CANVAS_PX = 224
OVERLAP_MARGIN_PX = 3
"""Bounding boxes that overlap by no more than this do not make an occlusion (A.2.1)."""
ELLIPSE_CORNERS = 96
MAX_PX = 4096
TWO_AXES = ("Rectangle", "Ellipse")


@dataclass(frozen=True, slots=True, order=True)
class Shape:
    """One shape.

    Attributes:
        kind: One of ``KINDS``.
        color: One of ``COLORS``.
        center_x: Center in px.
        center_y: Center in px; of a triangle, its centroid.
        rotation: Degrees counter-clockwise; 0 for circles.
        half_long: Radius, half-side, circumradius or long half-axis in px.
        half_short: Short half-axis in px; equal to ``half_long`` where there is only one.
    """

    kind: str
    color: str
    center_x: int
    center_y: int
    rotation: int
    half_long: int
    half_short: int

    def outline(self) -> list[tuple[float, float]]:
        """Return the corners in px, ``ELLIPSE_CORNERS`` of them for round shapes."""
        center = (self.center_x, self.center_y)
        return outline(self.kind, center, self.rotation, self.half_long, self.half_short)

    def half_extent(self) -> tuple[float, float]:
        """Return how far the shape reaches from its center, at most, along x and y, in px.

        Of a triangle, whose reach differs from side to side, the larger one.
        """
        x1, y1, x2, y2 = self.bounds()
        return (
            max(self.center_x - x1, x2 - self.center_x),
            max(self.center_y - y1, y2 - self.center_y),
        )

    def bounds(self) -> tuple[float, float, float, float]:
        """Return the bounding box of the turned shape, ``x1, y1, x2, y2`` in px."""
        x, y, a, b = self.center_x, self.center_y, self.half_long, self.half_short
        if self.kind in ("Circle", "Ellipse"):
            c, s = cos(radians(self.rotation)), sin(radians(self.rotation))
            w, h = sqrt((a * c) ** 2 + (b * s) ** 2), sqrt((a * s) ** 2 + (b * c) ** 2)
            return (x - w, y - h, x + w, y + h)
        corners = self.outline()
        xs, ys = [p for p, _ in corners], [q for _, q in corners]
        return (min(xs), min(ys), max(xs), max(ys))


def outline(
    kind: str, center_xy: tuple[float, float], rotation: float, half_long: float, half_short: float
) -> list[tuple[float, float]]:
    """Return the corners of a shape of any size; see ``Shape`` for the meaning of its parts."""
    x0, y0 = center_xy
    a, b = half_long, half_short
    if kind in ("Circle", "Ellipse"):
        steps = (2 * pi * i / ELLIPSE_CORNERS for i in range(ELLIPSE_CORNERS))
        local = [(a * cos(t), b * sin(t)) for t in steps]
    elif kind == "Triangle":
        local = [(0, -a), (a * sqrt(3) / 2, a / 2), (-a * sqrt(3) / 2, a / 2)]
    else:
        local = [(-a, -b), (a, -b), (a, b), (-a, b)]
    # y points down, so a turn that is counter-clockwise to the eye has this sign.
    c, s = cos(radians(rotation)), sin(radians(rotation))
    return [(x0 + x * c + y * s, y0 - x * s + y * c) for x, y in local]


@dataclass(frozen=True, slots=True)
class Configuration:
    """One picture: the side of its square canvas in px, and its shapes from bottom to top."""

    canvas_px: int
    shapes: tuple[Shape, ...]

    @property
    def margin_px(self) -> float:
        """The overlap margin on this canvas."""
        return OVERLAP_MARGIN_PX * self.canvas_px / CANVAS_PX

    def as_dict(self) -> dict[str, Any]:
        """Return plain data; ``from_dict`` is the inverse."""
        return {
            "canvas_px": self.canvas_px,
            "shapes": [
                {
                    "kind": s.kind,
                    "color": s.color,
                    "center_xy": [s.center_x, s.center_y],
                    "rotation": s.rotation,
                    "half_long": s.half_long,
                    "half_short": s.half_short,
                }
                for s in self.shapes
            ],
        }

    def md5(self) -> str:
        """Return the MD5 of the canonical form, hexadecimal (Sec. 3.2)."""
        text = json.dumps(self.as_dict(), sort_keys=True, separators=(",", ":"))
        return md5(text.encode(), usedforsecurity=False).hexdigest()


def from_dict(data: object, where: str = "configuration") -> Configuration:
    """Read a configuration from plain data.

    Raises:
        FormatError: Something is missing, of another type, or not a shape of ours.
    """
    if not isinstance(data, dict) or not isinstance(data.get("shapes"), list):
        raise FormatError(
            f"{where}: expected an object with canvas_px and a list of shapes, got {data!r:.80}."
        )
    unknown = set(data) - {"canvas_px", "shapes"}
    if unknown:
        raise FormatError(f"{where}: unknown key {', '.join(sorted(map(repr, unknown)))}.")
    canvas = _int_of(data, "canvas_px", where)
    if not 1 <= canvas <= MAX_PX:
        raise FormatError(f"{where}: expected canvas_px in 1..{MAX_PX}, got {canvas}.")
    shapes = tuple(_shape(s, f"{where}: shape {i}") for i, s in enumerate(data["shapes"]))
    return Configuration(canvas, shapes)


_SHAPE_KEYS = frozenset({"kind", "color", "center_xy", "rotation", "half_long", "half_short"})


def _shape(data: object, where: str) -> Shape:
    if not isinstance(data, dict):
        raise FormatError(f"{where}: expected an object, got {type(data).__name__}.")
    for key, allowed in (("kind", KINDS), ("color", tuple(COLORS))):
        if data.get(key) not in allowed:
            raise FormatError(
                f"{where}: expected {key} to be one of {', '.join(allowed)}, got {data.get(key)!r}."
            )
    center = data.get("center_xy")
    if not isinstance(center, list) or len(center) != 2:
        raise FormatError(f"{where}: expected center_xy to be two ints, got {center!r}.")
    x, y = (_int_of({"center_xy": value}, "center_xy", where) for value in center)
    rotation, half_long = (_int_of(data, key, where) for key in ("rotation", "half_long"))
    half_short = _int_of({"half_short": half_long} | data, "half_short", where)
    least = 1 if data["kind"] in TWO_AXES else half_long
    if half_long < 1 or not least <= half_short <= half_long:
        raise FormatError(
            f"{where}: expected {max(1, least)} <= half_short <= half_long for a {data['kind']}, "
            f"got {half_short} and {half_long}."
        )
    if data["kind"] == "Circle" and rotation:
        raise FormatError(f"{where}: a Circle has rotation 0, got {rotation}.")
    unknown = set(data) - _SHAPE_KEYS
    if unknown:
        raise FormatError(
            f"{where}: unknown key {', '.join(sorted(map(repr, unknown)))}; "
            f"expected {', '.join(sorted(_SHAPE_KEYS))}."
        )
    return Shape(data["kind"], data["color"], x, y, rotation, half_long, half_short)


def _int_of(data: Mapping[str, Any], key: str, where: str) -> int:
    value = data.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MAX_PX:
        raise FormatError(f"{where}: expected {key} to be an int up to {MAX_PX}, got {value!r}.")
    return value


def overlapping_pairs(
    configuration: Configuration, margin_px: float | None = None
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of shapes whose bounding boxes overlap by more than the margin.

    The boxes are those of the turned shapes; both overlaps, along x and along y, must exceed the
    margin (A.2.1: the relaxation that keeps shapes which hardly touch from counting as occluded).

    Args:
        configuration: The picture.
        margin_px: Another margin than the configuration's own; negative for boxes that are near.
    """
    boxes = [shape.bounds() for shape in configuration.shapes]
    margin = configuration.margin_px if margin_px is None else margin_px
    for i, a in enumerate(boxes):
        for j in range(i):
            b = boxes[j]
            w = min(a[2], b[2]) - max(a[0], b[0])
            h = min(a[3], b[3]) - max(a[1], b[1])
            if w > margin and h > margin:
                yield j, i


def clusters(configuration: Configuration) -> list[set[int]]:
    """Return the groups of shapes that hang together by overlaps, single shapes included."""
    groups = [{i} for i in range(len(configuration.shapes))]
    for i, j in overlapping_pairs(configuration):
        first = next(g for g in groups if i in g)
        second = next(g for g in groups if j in g)
        if first is not second:
            first |= second
            groups.remove(second)
    return groups


def visible_shares(configuration: Configuration) -> list[float]:
    """Return the share of each shape's own area that no shape above it hides."""
    polygons = [shapely.Polygon(shape.outline()) for shape in configuration.shapes]
    shares = []
    for i, polygon in enumerate(polygons):
        above = [p for p in polygons[i + 1 :] if p.intersects(polygon)]
        hidden = polygon.intersection(shapely.union_all(above)).area if above else 0.0
        shares.append(1 - hidden / polygon.area)
    return shares


def normalize_order(configuration: Configuration) -> Configuration:
    """Bring shapes that do not touch into a fixed order, bottom to top.

    Only the order of shapes that touch shows in the picture. Among all orders that keep it, the
    one that always takes the smallest free shape next is chosen, so that two configurations of one
    picture have one canonical form.
    """
    shapes = configuration.shapes
    polygons = [shapely.Polygon(shape.outline()).buffer(1) for shape in shapes]
    below: list[set[int]] = [
        {j for j in range(i) if polygons[j].intersects(polygons[i])} for i in range(len(shapes))
    ]
    free = [(shapes[i], i) for i in range(len(shapes)) if not below[i]]
    heapify(free)
    order: list[int] = []
    waiting = {i for i in range(len(shapes)) if below[i]}
    while free:
        _, i = heappop(free)
        order.append(i)
        for j in sorted(waiting):
            if below[j].issubset(order):
                waiting.remove(j)
                heappush(free, (shapes[j], j))
    return Configuration(configuration.canvas_px, tuple(shapes[i] for i in order))
