"""What each of the six sub-tasks asks about one picture, and its answer (Sec. 3.2, Appendix A).

Each function is pure: ``(picture, rng) -> Target | str``. A string is the reason why this picture
cannot be asked without ambiguity; it is counted, never silent. Nothing here depends on other
pictures, so a target never changes when a dataset grows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import floor
from types import MappingProxyType
from typing import Literal

import numpy as np

from soubench.builders.keyed import KeyedRandom
from soubench.builders.sou.geometry import box_iou, quad_iou
from soubench.builders.sou.picture import SouPicture
from soubench.builders.sou.subsets import Task

Mode = Literal["paper", "balanced"]
MODES: tuple[Mode, ...] = ("paper", "balanced")

DIRECTIONS = ("leftmost", "rightmost", "topmost", "bottommost")
SAME_PLACE_PX = 1.0
"""Positions closer than this cannot be told apart in a picture."""
COINCIDE_IOU = 0.5
"""From this overlap on, a box of another object would be taken for the target's."""
STROKE_PX = 2
"""Width of the red outline around a region in balanced mode."""
REGION_TRIES = 4
REGION_TARGETS = 256


@dataclass(frozen=True, slots=True)
class Target:
    """What one question is about, before distractors.

    Attributes:
        answer: The right option as text.
        objects: Indices of the small objects that prove the answer.
        point_xy: The queried pixel (CR).
        direction: One of ``DIRECTIONS`` (POI).
        category: The queried category (SCC).
        box: The answer's numbers, 4 or 8 (OL).
        mark: What the red outline marks (OL): the answer itself (``paper``), or
            ``x1, y1, x2, y2`` of the region around it (``balanced``).
    """

    answer: str
    objects: tuple[int, ...]
    point_xy: tuple[int, int] | None = None
    direction: str = ""
    category: str = ""
    box: tuple[int, ...] = ()
    mark: tuple[int, ...] = ()


def box_text(numbers: tuple[int, ...]) -> str:
    """Write a box or quad as an option.

    >>> box_text((3, 4, 10, 12))
    '[3,4,10,12]'
    """
    return "[" + ",".join(map(str, numbers)) + "]"


def category_enumeration(picture: SouPicture, rng: KeyedRandom) -> Target | str:
    """CE: the number of distinct categories of small objects."""
    first = {category: i for i, category in reversed(list(enumerate(picture.categories)))}
    return Target(str(len(first)), tuple(sorted(first.values())))


def object_counting(picture: SouPicture, rng: KeyedRandom) -> Target | str:
    """OC: the number of small objects."""
    n = len(picture.categories)
    return Target(str(n), tuple(range(n)))


def category_recognition(picture: SouPicture, rng: KeyedRandom) -> Target | str:
    """CR: the category of the object at a point, the floor of its box centre.

    The pixel there must lie in boxes of one category only: small or large, counted or not.
    """
    order = list(range(len(picture.categories)))
    rng.shuffle(order)
    return _recognized(picture, order)


def category_recognition_balanced(picture: SouPicture, rng: KeyedRandom) -> Target | str:
    """CR in balanced mode: first the category is drawn, then the object.

    Categories that fill a picture (cars in a parking lot) would else be nearly every answer.
    """
    order = list(range(len(picture.categories)))
    rng.shuffle(order)
    rank = list(picture.counts)
    rng.shuffle(rank)
    order.sort(key=lambda i: rank.index(picture.categories[i]))
    return _recognized(picture, order)


def _recognized(picture: SouPicture, order: list[int]) -> Target | str:
    boxes = (picture.boxes_xyxy, picture.large_boxes_xyxy, picture.ignored_boxes_xyxy)
    x1, y1, x2, y2 = np.vstack(boxes).T
    categories = picture.categories + picture.large_categories + picture.ignored_categories
    for i in order:
        bx1, by1, bx2, by2 = picture.boxes_xyxy[i].tolist()
        x, y = floor((bx1 + bx2) / 2), floor((by1 + by2) / 2)
        here = np.flatnonzero((x1 < x + 1) & (x2 > x) & (y1 < y + 1) & (y2 > y))
        if all(categories[j] == categories[i] for j in here):
            return Target(categories[i], (i,), point_xy=(x, y))
    return "cr_every_point_in_boxes_of_two_categories"


def object_location(picture: SouPicture, rng: KeyedRandom) -> Target | str:
    """OL: the box (or quad) of the object whose outline is drawn in red."""
    order = list(range(len(picture.categories)))
    rng.shuffle(order)
    for i in order:
        if not _coincides(picture, i):
            numbers = _numbers(picture, i)
            return Target(box_text(numbers), (i,), box=numbers, mark=numbers)
    return "ol_every_object_coincides_with_another"


def object_location_balanced(picture: SouPicture, rng: KeyedRandom) -> Target | str:
    """OL in balanced mode: the box of the only small object in a red region.

    The region is square, 3 to 6 times the object's longer side, shifted at random so that the
    object lies anywhere in it, and holds no part of another small object, nor of one that the
    source marks as not counting: a reader would see it.
    """
    order = list(range(len(picture.categories)))
    rng.shuffle(order)
    x1, y1, x2, y2 = np.vstack([picture.boxes_xyxy, picture.ignored_boxes_xyxy]).T
    for i in order[:REGION_TARGETS]:
        if _coincides(picture, i):
            continue
        left, top, right, bottom = picture.int_boxes[i].tolist()
        for _ in range(REGION_TRIES):
            side = round(rng.uniform(3, 6) * max(right - left, bottom - top))
            if side > min(picture.width, picture.height):
                continue
            region_x = _span(left, right, side, picture.width, rng)
            region_y = _span(top, bottom, side, picture.height, rng)
            inside = (
                (x1 < region_x[1] + STROKE_PX)
                & (x2 > region_x[0] - STROKE_PX)
                & (y1 < region_y[1] + STROKE_PX)
                & (y2 > region_y[0] - STROKE_PX)
            )
            if np.count_nonzero(inside) == 1:
                numbers = _numbers(picture, i)
                mark = (region_x[0], region_y[0], region_x[1], region_y[1])
                return Target(box_text(numbers), (i,), box=numbers, mark=mark)
    return "ol_no_object_alone_in_its_region"


def _span(low: int, high: int, side: int, limit: int, rng: KeyedRandom) -> tuple[int, int]:
    """Place ``side`` px around ``low..high`` at random, inside ``0..limit``."""
    start = rng.integer(max(0, high - side), min(low, limit - side))
    return start, start + side


def _coincides(picture: SouPicture, i: int) -> bool:
    box = picture.boxes_xyxy[i]
    if (box_iou(box, picture.large_boxes_xyxy) >= COINCIDE_IOU).any():
        return True
    x1, y1, x2, y2 = picture.boxes_xyxy.T
    touching = (x1 < box[2]) & (x2 > box[0]) & (y1 < box[3]) & (y2 > box[1])
    touching[i] = False
    near = np.flatnonzero(touching)
    if not near.size:
        return False
    if picture.quads_xy8 is None:
        overlap = box_iou(box, picture.boxes_xyxy[near])
    else:
        overlap = quad_iou(picture.quads_xy8[i], picture.quads_xy8[near])
    return bool((overlap >= COINCIDE_IOU).any())


def _numbers(picture: SouPicture, i: int) -> tuple[int, ...]:
    if picture.quads_xy8 is None:
        return tuple(picture.int_boxes[i].tolist())
    return tuple(floor(v + 0.5) for v in picture.quads_xy8[i].tolist())


def specific_category_counting_balanced(picture: SouPicture, rng: KeyedRandom) -> Target | str:
    """SCC in balanced mode: first the count is drawn among those that occur, then the category.

    Most categories of a picture occur once or twice, and these answers would crowd out all others.
    """
    count = rng.choice(sorted(set(picture.counts.values())))
    return _counted(picture, rng.choice([c for c, n in picture.counts.items() if n == count]))


def specific_category_counting(picture: SouPicture, rng: KeyedRandom) -> Target | str:
    """SCC: the number of small objects of one category that is present."""
    return _counted(picture, rng.choice(list(picture.counts)))


def _counted(picture: SouPicture, category: str) -> Target:
    members = tuple(i for i, c in enumerate(picture.categories) if c == category)
    return Target(str(len(members)), members, category=category)


def peripheral_object_identification(picture: SouPicture, rng: KeyedRandom) -> Target | str:
    """POI: the category of the outermost small object in one direction.

    Asked only where it does not matter whether a reader goes by edges or by centers: every object
    that is outermost by either, to within a pixel, has the same category.
    """
    directions = list(DIRECTIONS)
    rng.shuffle(directions)
    for direction in directions:
        axis = 0 if direction in ("leftmost", "rightmost") else 1
        near, far = picture.boxes_xyxy[:, axis], picture.boxes_xyxy[:, axis + 2]
        if direction in ("leftmost", "topmost"):
            edge, center = near, (near + far) / 2
        else:
            edge, center = -far, -(near + far) / 2
        by_edge = np.flatnonzero(edge < edge.min() + SAME_PLACE_PX)
        by_center = np.flatnonzero(center < center.min() + SAME_PLACE_PX)
        outermost = {picture.categories[i] for i in (*by_edge, *by_center)}
        if len(outermost) == 1:
            i = int(edge.argmin())
            return Target(picture.categories[i], (i,), direction=direction)
    return "poi_every_direction_tied_between_categories"


Ask = Callable[[SouPicture, KeyedRandom], Target | str]

ASK: Mapping[Mode, Mapping[Task, Ask]] = MappingProxyType(
    {
        "paper": MappingProxyType(
            {
                Task.CE: category_enumeration,
                Task.OC: object_counting,
                Task.CR: category_recognition,
                Task.OL: object_location,
                Task.SCC: specific_category_counting,
                Task.POI: peripheral_object_identification,
            }
        ),
        "balanced": MappingProxyType(
            {
                Task.CE: category_enumeration,
                Task.OC: object_counting,
                Task.CR: category_recognition_balanced,
                Task.OL: object_location_balanced,
                Task.SCC: specific_category_counting_balanced,
                Task.POI: peripheral_object_identification,
            }
        ),
    }
)
"""Sub-task -> how it is asked, per distractor mode."""
