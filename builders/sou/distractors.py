"""Three wrong options per question, in the two modes of DESIGN §3.

``paper`` follows the paper and its authors' generator. ``balanced`` draws the four options so that
knowing how often each answer is right does not help (see ``alike``).
"""

from collections.abc import Mapping, Sequence
from math import cos, floor, radians, sin, sqrt

from soubench.builders.keyed import KeyedRandom
from soubench.builders.scene import normalized
from soubench.builders.sou.geometry import iou_under, polygon
from soubench.builders.sou.picture import SouPicture
from soubench.builders.sou.statistics import (
    OPTIONS,
    Statistics,
    place,
    shape_of,
    shape_size,
)
from soubench.builders.sou.subsets import SMALL_AREA_PX, Task
from soubench.builders.sou.tasks import Mode, Target, box_text

WRONG = OPTIONS - 1
BOX_TRIES = 1000
SHAPE_TRIES = 50
PLACE_TRIES = 50
PAPER_MIN_SIDE_PX = 10
PAPER_MAX_SIDE_PX = 99
PAPER_MAX_IOU = 0.5
BALANCED_MAX_IOU = 0.3


def draw_distractors(
    task: Task,
    target: Target,
    picture: SouPicture,
    statistics: Statistics,
    mode: Mode,
    rng: KeyedRandom,
) -> list[str] | str:
    """Draw three wrong options, or say why this question cannot have them."""
    if task is Task.OL:
        if mode == "balanced":
            return _boxes_in_region(target, statistics, rng)
        return _boxes_anywhere(target, picture, statistics.small_area_px, rng)
    if mode == "balanced" and can_be_alike(statistics.answers[task]):
        return alike(target.answer, statistics.answers[task], rng)
    answer = target.answer
    if task is Task.CE:
        low, high, keep_off = 0, len(statistics.categories), 0
    elif task is Task.OC:
        (low, high), keep_off = statistics.object_counts, 1
    elif task is Task.SCC:
        (low, high), keep_off = statistics.category_counts, 0
    else:
        return _categories(answer, statistics.categories, rng)
    return [str(n) for n in _integers(int(answer), low, high, keep_off, rng)]


def _integers(answer: int, low: int, high: int, keep_off: int, rng: KeyedRandom) -> list[int]:
    """Draw three different ints of ``low..high`` that are further than ``keep_off`` from answer.

    A range too small for three such ints grows upwards.
    """
    banned = range(answer - keep_off, answer + keep_off + 1)

    def free(top: int) -> int:
        return top - low + 1 - sum(low <= n <= top for n in banned)

    while free(high) < WRONG:
        high += 1
    picked: list[int] = []
    if high - low < 64:
        return rng.sample([n for n in range(low, high + 1) if n not in banned], WRONG)
    while len(picked) < WRONG:
        n = rng.integer(low, high)
        if n not in banned and n not in picked:
            picked.append(n)
    return picked


def _categories(answer: str, categories: Sequence[str], rng: KeyedRandom) -> list[str] | str:
    others = {normalized(c): c for c in categories if normalized(c) != normalized(answer)}
    if len(others) < WRONG:
        return "fewer_than_four_categories"
    return rng.sample(list(others.values()), WRONG)


def _boxes_anywhere(
    target: Target, picture: SouPicture, small_area_px: float, rng: KeyedRandom
) -> list[str] | str:
    """Draw boxes with sides 10..99 and area < 1024 anywhere in the picture.

    For another bound of what is small the sides scale with it.
    For quads the rectangle is turned by a random angle about its center, so that a distractor
    cannot be told by its straight sides.
    """
    boxes: list[tuple[int, ...]] = []
    scale = sqrt(small_area_px / SMALL_AREA_PX)
    shortest = max(1, round(PAPER_MIN_SIDE_PX * scale))
    longest = max(2, round(PAPER_MAX_SIDE_PX * scale))
    for _ in range(BOX_TRIES):
        w = rng.integer(shortest, longest)
        h = rng.integer(shortest, longest)
        if w * h >= small_area_px:
            continue
        shape = (w, h) if len(target.box) == 4 else turned(w, h, rng.uniform(0, 360))
        if len(shape) == 8 and polygon(shape).area >= small_area_px:
            continue  # by rounding its corners
        size = shape_size(shape)
        if size[0] > picture.width or size[1] > picture.height:
            continue
        x = rng.integer(0, picture.width - size[0])
        y = rng.integer(0, picture.height - size[1])
        box = place(shape, x, y)
        if box not in boxes and iou_under(box, [target.box], limit=PAPER_MAX_IOU):
            boxes.append(box)
            if len(boxes) == WRONG:
                return [box_text(b) for b in boxes]
    return "ol_no_room_for_distractors"


def turned(width: int, height: int, degrees: float) -> tuple[int, ...]:
    """Return the corners of a turned rectangle, rounded, relative to their hull.

    >>> turned(10, 20, 0.0)
    (0, 0, 10, 0, 10, 20, 0, 20)
    """
    c, s = cos(radians(degrees)), sin(radians(degrees))
    corners = ((-width, -height), (width, -height), (width, height), (-width, height))
    points = [((x * c - y * s) / 2, (x * s + y * c) / 2) for x, y in corners]
    left, top = min(x for x, _ in points), min(y for _, y in points)
    return shape_of(tuple(floor(v + 0.5) for x, y in points for v in (x - left, y - top)))


def _boxes_in_region(target: Target, statistics: Statistics, rng: KeyedRandom) -> list[str] | str:
    """Draw boxes of the targets' own sizes, of the target's size class, inside its region."""
    left, top, right, bottom = target.mark
    shapes = statistics.like(shape_of(target.box))
    boxes: list[tuple[int, ...]] = [target.box]
    for _ in range(SHAPE_TRIES):
        shape = rng.choice(shapes)
        width, height = shape_size(shape)
        if width > right - left or height > bottom - top:
            continue
        # A shape keeps its turn until it fits: to draw a new one after each clash would prefer
        # small shapes, and the target could be told by its size.
        for _ in range(PLACE_TRIES):
            x, y = rng.integer(left, right - width), rng.integer(top, bottom - height)
            box = place(shape, x, y)
            if iou_under(box, boxes, limit=BALANCED_MAX_IOU):
                boxes.append(box)
                break
        if len(boxes) == OPTIONS:
            return [box_text(b) for b in boxes[1:]]
    return "ol_no_room_for_distractors"


def can_be_alike(answers: Mapping[str, int]) -> bool:
    """Say whether no answer is right more than once in four."""
    return OPTIONS * max(answers.values(), default=1) <= sum(answers.values())


def alike(answer: str, answers: Mapping[str, int], rng: KeyedRandom) -> list[str]:
    """Draw three other answers so that each of the four is equally likely to be the right one.

    If answer a is right with probability p(a), the four options must come from a design that
    takes a with probability 4 p(a); then P(a is right | the four options) = 1/4 for each of them.
    Systematic sampling is such a design: lay out all answers in random order as segments of length
    4 p, and take those hit by u, u + 1, u + 2, u + 3 for a uniform u in [0, 1). Given that the
    right answer is hit, its segment is hit at a uniform place, whatever the order; that is what is
    drawn here. No segment is longer than 1 (``can_be_alike``), so no answer is taken twice.
    """
    order = sorted(answers)
    rng.shuffle(order)
    total = sum(answers.values())
    # Lengths are counts, in units where the four points are ``total`` apart: all exact integers
    # but for the one uniform draw.
    ends: list[int] = []
    end = start = 0
    for value in order:
        if value == answer:
            start = end * OPTIONS
        end += answers[value]
        ends.append(end * OPTIONS)
    hit = start + rng.below(answers[answer] * OPTIONS)
    points = sorted((hit + i * total) % (OPTIONS * total) for i in range(OPTIONS))
    picked: list[str] = []
    at = 0
    for point in points:
        while ends[at] <= point:
            at += 1
        picked.append(order[at])
    picked.remove(answer)
    rng.shuffle(picked)
    return picked
