"""What boxes, masks and corners prove: which object an expression picks out, directions, lengths.

Everything here is unambiguous or nothing: margins keep away from what two people could see
differently. A slow reimplementation in the tests checks it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import atan2, degrees, hypot

from soubench.builders.rrs.masks import Encoded, mask_area_px
from soubench.builders.rrs.record import Object
from soubench.builders.rrs.taxonomy import (
    COMPASS_AXES,
    COMPASS_DIRECTIONS,
    PICTURE_DIRECTIONS,
)
from soubench.builders.scene import shoelace_area

MIN_SIDE_PX = 4.0
"""Smaller objects are not referred to: no one can point at them."""
SIZE_RATIO = 1.25
"""The largest object is this much larger than the next one, by every measure of size there is."""
EDGE_SHARE = 0.05
"""The leftmost object leads by this share of the picture's width, by edge and by center."""
SECTOR_DEG = 45.0
SECTOR_MARGIN_DEG = 7.5
"""No direction is asked for that lies closer to the border of its sector."""
ELONGATED_RATIO = 2.5
"""A structure has an axis if its oriented box is this much longer than it is wide."""
RECTANGLE_TOLERANCE = 0.1
"""Labelled corners are rounded, and some are no rectangle at all."""
MIN_DISTANCE_SHARE = 0.1
"""Distances that are asked for are at least this share of the picture's diagonal."""

Box = Sequence[float]


@dataclass(frozen=True, slots=True)
class Figure:
    """One object with everything that questions measure.

    Attributes:
        index: Its place among the record's objects.
        object: The object.
        mask: Its mask; None if it has none.
    """

    index: int
    object: Object
    mask: Encoded | None

    @property
    def box_xyxy(self) -> Box:
        """Its box in px."""
        return self.object.box_xyxy

    @property
    def center_xy(self) -> tuple[float, float]:
        """Center of its box in px."""
        x1, y1, x2, y2 = self.object.box_xyxy
        return (x1 + x2) / 2, (y1 + y2) / 2

    @property
    def quad_area_px(self) -> float | None:
        """Area of its oriented box in px²; None if it has none."""
        quad = self.object.quad_xy8
        return None if quad is None else shoelace_area(quad[0::2], quad[1::2])

    @property
    def axis(self) -> "Axis | None":
        """Its sides and direction; None without an oriented box that is a rectangle."""
        quad = self.object.quad_xy8
        return None if quad is None else axis_of(quad)


@dataclass(frozen=True, slots=True)
class Axis:
    """A rectangle without its place.

    Attributes:
        length_px: Its longer side.
        width_px: Its shorter side.
        angle_deg: Direction of the longer side, degrees clockwise from the top edge, 0 to 180.
    """

    length_px: float
    width_px: float
    angle_deg: float


def axis_of(quad_xy8: Sequence[float]) -> Axis | None:
    """Return sides and direction of a quadrilateral; None if it is not nearly a rectangle.

    Opposite sides, and the diagonals, differ by at most `RECTANGLE_TOLERANCE` of the longer one,
    and so does its area from that of the sides: corners may be given crosswise.

    >>> axis_of((0, 0, 30, 0, 30, 10, 0, 10))
    Axis(length_px=30.0, width_px=10.0, angle_deg=90.0)
    """
    a, b, c, d = (complex(quad_xy8[i], quad_xy8[i + 1]) for i in range(0, 8, 2))
    for one, other in ((b - a, c - d), (c - b, d - a), (c - a, d - b)):
        if abs(abs(one) - abs(other)) > RECTANGLE_TOLERANCE * max(abs(one), abs(other)):
            return None
    first, second = ((b - a) + (c - d)) / 2, ((c - b) + (d - a)) / 2
    longer, shorter = (first, second) if abs(first) >= abs(second) else (second, first)
    expected = abs(longer) * abs(shorter)
    area = shoelace_area(quad_xy8[0::2], quad_xy8[1::2])
    if expected == 0 or abs(area - expected) > RECTANGLE_TOLERANCE * expected:
        return None
    angle = picture_angle_deg((0.0, 0.0), (longer.real, longer.imag)) % 180
    return Axis(abs(longer), abs(shorter), angle)


@dataclass(frozen=True, slots=True)
class Named:
    """An object and words that refer to it alone."""

    text: str
    figure: Figure


def named_figures(
    figures: Sequence[Figure],
    exhaustive: Iterable[str],
    size_wh: tuple[int, int],
    express: Callable[[str, str], str],
) -> list[Named]:
    """Return every derived expression that refers to exactly one object.

    Args:
        figures: All objects of the picture.
        exhaustive: Categories that are labelled completely.
        size_wh: Width and height of the picture in px.
        express: Makes the words: (``only``, ``largest``, .., category) -> text.
    """
    by_category: dict[str, list[Figure]] = {name: [] for name in exhaustive}
    for figure in figures:
        if figure.object.category in by_category:
            by_category[figure.object.category].append(figure)
    found = []
    for category, members in by_category.items():
        for key, figure in _singled_out(members, size_wh):
            x1, y1, x2, y2 = figure.box_xyxy
            if min(x2 - x1, y2 - y1) >= MIN_SIDE_PX:
                found.append(Named(express(key, category), figure))
    return found


def _singled_out(
    members: Sequence[Figure], size_wh: tuple[int, int]
) -> Iterator[tuple[str, Figure]]:
    """Yield what an expression about one category can refer to."""
    if len(members) == 1:
        yield "only", members[0]
    if len(members) < 2:
        return
    measures = list(_sizes(members))
    for key, sign in (("largest", -1.0), ("smallest", 1.0)):
        first = {min(range(len(sizes)), key=lambda i: sign * sizes[i]) for sizes in measures}
        if len(first) == 1 and all(_leads_by_ratio(sizes) for sizes in _signed(measures, sign)):
            yield key, members[first.pop()]
    for key, axis, sign in (
        ("leftmost", 0, 1.0),
        ("rightmost", 0, -1.0),
        ("topmost", 1, 1.0),
        ("bottommost", 1, -1.0),
    ):
        near, far = (axis, axis + 2) if sign > 0 else (axis + 2, axis)
        edges = [sign * m.box_xyxy[near] for m in members]
        centers = [sign * (m.box_xyxy[near] + m.box_xyxy[far]) / 2 for m in members]
        lead = EDGE_SHARE * size_wh[axis]
        first = {min(range(len(members)), key=lambda i: v[i]) for v in (edges, centers)}
        if len(first) == 1 and all(_gap(v) >= lead for v in (edges, centers)):
            yield key, members[first.pop()]


def _sizes(members: Sequence[Figure]) -> Iterator[list[float]]:
    """Yield every measure of size that all members have."""
    yield [(m.box_xyxy[2] - m.box_xyxy[0]) * (m.box_xyxy[3] - m.box_xyxy[1]) for m in members]
    quads = [m.quad_area_px for m in members]
    if all(area is not None for area in quads):
        yield [area for area in quads if area is not None]
    masks = [m.mask for m in members]
    if all(mask is not None for mask in masks):
        yield [float(mask_area_px(mask)) for mask in masks if mask is not None]


def _signed(measures: Sequence[Sequence[float]], sign: float) -> Iterator[tuple[float, float]]:
    """Yield the first size and the second, largest or smallest first."""
    for sizes in measures:
        ranked = sorted(sizes, key=lambda size: sign * size)
        yield (ranked[0], ranked[1]) if sign < 0 else (ranked[1], ranked[0])


def _leads_by_ratio(pair: tuple[float, float]) -> bool:
    return pair[0] >= SIZE_RATIO * pair[1]


def _gap(values: Sequence[float]) -> float:
    first, second = sorted(values)[:2]
    return second - first


def picture_angle_deg(start_xy: Sequence[float], end_xy: Sequence[float]) -> float:
    """Return the direction from one point to another, degrees clockwise from the top edge.

    >>> picture_angle_deg((0, 0), (3, 0)), picture_angle_deg((0, 0), (-1, 1))
    (90.0, 225.0)
    """
    return degrees(atan2(end_xy[0] - start_xy[0], start_xy[1] - end_xy[1])) % 360


def sector(angle_deg: float, names: Sequence[str]) -> str | None:
    """Return the name of the 45 degree sector that an angle is well inside of; else None.

    Args:
        angle_deg: Degrees clockwise from the middle of the first sector.
        names: The sectors in their order; four names stand for axes, which repeat after 180.

    >>> sector(350, PICTURE_DIRECTIONS), sector(20, PICTURE_DIRECTIONS)
    ('above', None)
    """
    k = round(angle_deg / SECTOR_DEG)
    if abs(angle_deg - k * SECTOR_DEG) > SECTOR_DEG / 2 - SECTOR_MARGIN_DEG:
        return None
    return names[k % len(names)]


def picture_direction(target: Box, reference: Box) -> str | None:
    """Return where a box lies of another; None where it is near a border or they do not part.

    The boxes must be apart in the direction itself; for a diagonal one in both directions.
    """
    name = sector(picture_angle_deg(_center(reference), _center(target)), PICTURE_DIRECTIONS)
    if name is None:
        return None
    apart_x = target[2] <= reference[0] or reference[2] <= target[0]
    apart_y = target[3] <= reference[1] or reference[3] <= target[1]
    needs_x = name not in ("above", "below")
    needs_y = name not in ("left", "right")
    return name if (apart_x or not needs_x) and (apart_y or not needs_y) else None


def compass_direction(target: Box, reference: Box, north_deg: float) -> str | None:
    """Return in which compass direction a box lies of another; None near a border, or touching."""
    if not (
        target[2] <= reference[0]
        or reference[2] <= target[0]
        or target[3] <= reference[1]
        or reference[3] <= target[1]
    ):
        return None
    angle = picture_angle_deg(_center(reference), _center(target)) - north_deg
    return sector(angle % 360, COMPASS_DIRECTIONS)


def compass_axis(bearing_deg: float) -> str | None:
    """Return the compass axis of a bearing; None near the border of two.

    >>> compass_axis(91), compass_axis(226), compass_axis(20)
    ('east-west', 'northeast-southwest', None)
    """
    return sector(bearing_deg % 180, COMPASS_AXES)


def bearing_deg(figure: Figure, north_deg: float) -> float | None:
    """Return the bearing of the longer side of an elongated rectangle, 0 to 180; else None."""
    axis = figure.axis
    if axis is None or axis.length_px < ELONGATED_RATIO * axis.width_px:
        return None
    return (axis.angle_deg - north_deg) % 180


def _center(box: Box) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def distance_px(a: Figure, b: Figure) -> float:
    """Return the distance of two objects' centers in px."""
    (x1, y1), (x2, y2) = a.center_xy, b.center_xy
    return hypot(x2 - x1, y2 - y1)


def count_by_category(figures: Iterable[Figure]) -> Mapping[str, list[Figure]]:
    """Return category -> its objects, in the order of their first one."""
    found: dict[str, list[Figure]] = {}
    for figure in figures:
        found.setdefault(figure.object.category, []).append(figure)
    return found
