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
    def sides_px(self) -> tuple[float, float] | None:
        """Longer and shorter side of its oriented box; None if it has none."""
        quad = self.object.quad_xy8
        if quad is None:
            return None
        first = hypot(quad[2] - quad[0], quad[3] - quad[1])
        second = hypot(quad[4] - quad[2], quad[5] - quad[3])
        return max(first, second), min(first, second)


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
    sides = [m.sides_px for m in members]
    if all(s is not None for s in sides):
        yield [s[0] * s[1] for s in sides if s is not None]
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
    """Return the bearing of the longer side of an elongated oriented box, 0 to 180; else None."""
    quad, sides = figure.object.quad_xy8, figure.sides_px
    if quad is None or sides is None or sides[0] < ELONGATED_RATIO * sides[1]:
        return None
    first = hypot(quad[2] - quad[0], quad[3] - quad[1])
    start, end = (quad[0:2], quad[2:4]) if first == sides[0] else (quad[2:4], quad[4:6])
    return (picture_angle_deg(start, end) - north_deg) % 180


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
