"""Frozen statistics of a sampled set: the only thing of other pictures that distractors may use."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from soubench.builders.sou.geometry import hull_xyxy
from soubench.builders.sou.picture import SouPicture
from soubench.builders.sou.subsets import Task
from soubench.builders.sou.tasks import Target

OPTIONS = 4
SHAPES_PER_BIN = 16
MAX_SHAPE_BINS = 16

Shape = tuple[int, ...]
"""Width and height of a box, or four corners relative to the hull's top left corner."""


@dataclass(frozen=True)
class Statistics:
    """What the distractors of one subset know about it.

    Attributes:
        small_area_px: An object is small if its area is at most this, in px².
        categories: The subset's category list.
        object_counts: Least and largest number of small objects of a picture.
        category_counts: Least and largest number of small objects of one category of a picture,
            over the categories that are present.
        answers: How often each answer is right, per sub-task; used in balanced mode, where it is
            counted after thinning.
        shape_bins: Shapes of the OL targets, sorted by size and cut into bins of like size.
    """

    small_area_px: float
    categories: tuple[str, ...]
    object_counts: tuple[int, int]
    category_counts: tuple[int, int]
    answers: Mapping[Task, Mapping[str, int]]
    shape_bins: tuple[tuple[Shape, ...], ...]

    @cached_property
    def _bin_limits(self) -> list[int]:
        return [shape_class(shapes[-1]) for shapes in self.shape_bins]

    def like(self, shape: Shape) -> tuple[Shape, ...]:
        """Return the shapes of the bin that ``shape`` belongs to."""
        at = bisect_left(self._bin_limits, shape_class(shape))
        return self.shape_bins[min(at, len(self.shape_bins) - 1)]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for the fingerprint and the card."""
        return {
            "small_area_px": self.small_area_px,
            "categories": list(self.categories),
            "object_counts": list(self.object_counts),
            "category_counts": list(self.category_counts),
            "answers": {task.value: dict(sorted(n.items())) for task, n in self.answers.items()},
            "shape_bins": [[list(shape) for shape in shapes] for shapes in self.shape_bins],
        }


def shape_of(numbers: Sequence[int]) -> Shape:
    """Return the shape of a box or quad: what is left of it without its place."""
    if len(numbers) == 4:
        return (numbers[2] - numbers[0], numbers[3] - numbers[1])
    x1, y1, _, _ = hull_xyxy(numbers)
    return tuple(int(v - (y1 if i % 2 else x1)) for i, v in enumerate(numbers))


def shape_size(shape: Shape) -> tuple[int, int]:
    """Return width and height of a shape's hull in px."""
    if len(shape) == 2:
        return (shape[0], shape[1])
    return (max(shape[0::2]), max(shape[1::2]))


def shape_area(shape: Shape) -> int:
    """Return the area of a shape's hull in px²."""
    width, height = shape_size(shape)
    return width * height


def shape_class(shape: Shape) -> int:
    """Return the size that shapes are binned by: the longer side in px.

    Regions are sized by it too, so each of a bin's shapes fits into the region of any other.
    """
    return max(shape_size(shape))


def place(shape: Shape, x: int, y: int) -> tuple[int, ...]:
    """Put a shape's hull at (x, y); the inverse of ``shape_of``.

    >>> place((3, 5), 10, 20), shape_of((10, 20, 13, 25))
    ((10, 20, 13, 25), (3, 5))
    """
    if len(shape) == 2:
        return (x, y, x + shape[0], y + shape[1])
    return tuple(v + (y if i % 2 else x) for i, v in enumerate(shape))


def freeze(
    pictures: Sequence[SouPicture],
    targets: Mapping[Task, Sequence[Target]],
    categories: tuple[str, ...],
    small_area_px: float,
) -> Statistics:
    """Count a sampled set.

    Args:
        pictures: The sampled pictures of one subset, at least one.
        targets: The targets that are asked, per sub-task.
        categories: The subset's category list.
        small_area_px: The subset's bound of what is small, in px².
    """
    objects = [len(picture.categories) for picture in pictures]
    per_category = [n for picture in pictures for n in picture.counts.values()]
    shapes = sorted(
        (shape_of(target.box) for target in targets[Task.OL]),
        key=lambda shape: (shape_class(shape), shape),
    )
    return Statistics(
        small_area_px=small_area_px,
        categories=categories,
        object_counts=(min(objects), max(objects)),
        category_counts=(min(per_category), max(per_category)),
        answers={
            task: Counter(target.answer for target in asked)
            for task, asked in targets.items()
            if task is not Task.OL
        },
        shape_bins=_bins(shapes),
    )


def _bins(shapes: Sequence[Shape]) -> tuple[tuple[Shape, ...], ...]:
    """Cut sorted shapes into bins of at least ``SHAPES_PER_BIN``; like sizes stay together.

    If shapes of one size were split, those in the later bin would never be drawn for it.
    """
    least = max(SHAPES_PER_BIN, len(shapes) // MAX_SHAPE_BINS)
    bins: list[list[Shape]] = [[]]
    for shape in shapes:
        last = bins[-1]
        if len(last) >= least and shape_class(last[-1]) != shape_class(shape):
            last = []
            bins.append(last)
        last.append(shape)
    if len(bins) > 1 and len(bins[-1]) < SHAPES_PER_BIN:
        bins[-2:] = [bins[-2] + bins[-1]]
    return tuple(tuple(shapes) for shapes in bins)


def thinned_count(counts: Sequence[int]) -> int | None:
    """Return how many rows of one answer may stay so that no answer is more than 1 in 4.

    Whoever always gives the most frequent answer is right as often as that answer is. With four
    options this is no better than chance only if no answer is right more than a quarter of the
    time, so balanced mode keeps at most k rows of each answer: the largest k with
    4 k ≤ sum(min(count, k)).

    Returns:
        k, or None where fewer than four different answers leave no such k.

    >>> thinned_count([10, 3, 3, 2, 1])
    3
    >>> thinned_count([5, 5, 5]) is None
    True
    """
    if len(counts) < OPTIONS:
        return None
    low, high = 1, max(counts)
    while low < high:
        k = (low + high + 1) // 2
        if OPTIONS * k <= sum(min(n, k) for n in counts):
            low = k
        else:
            high = k - 1
    return low
