"""The one in-memory model of a labelled picture, and the report that every reader fills.

Coordinate frame everywhere: float pixels of the decoded, upright picture, 0-based, with an
exclusive right and bottom edge. Readers convert at the door.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from soubench.builders.images import MAX_PICTURE_PX

EXAMPLES_PER_REASON = 3


class Box(NamedTuple):
    """An axis-aligned box, ``x1 < x2`` and ``y1 < y2``, right and bottom edge exclusive."""

    x1: float
    y1: float
    x2: float
    y2: float

    @property
    def area(self) -> float:
        """Width times height in px²."""
        return (self.x2 - self.x1) * (self.y2 - self.y1)


Quad = tuple[float, float, float, float, float, float, float, float]
"""Four corners ``x1, y1, .., x4, y4`` in the order of the source."""


def is_convex(xs: Sequence[float], ys: Sequence[float]) -> bool:
    """Say whether a quadrilateral is convex; any other number of corners is not."""
    if len(xs) != 4:
        return False
    turns = [
        (xs[i - 2] - xs[i - 3]) * (ys[i - 1] - ys[i - 2])
        - (ys[i - 2] - ys[i - 3]) * (xs[i - 1] - xs[i - 2])
        for i in range(4)
    ]
    return min(turns) >= 0 or max(turns) <= 0


def shoelace_area(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return the area in px² of a polygon whose edges do not cross."""
    twice = sum(xs[i - 1] * ys[i] - xs[i] * ys[i - 1] for i in range(len(xs)))
    return abs(twice) / 2


def normalized(name: str) -> str:
    """Return a category name, or an option, without the differences a reader would overlook.

    >>> normalized("Traffic_Sign") == normalized("traffic-sign")
    True
    """
    return " ".join(name.casefold().replace("-", " ").replace("_", " ").split())


@dataclass(frozen=True, slots=True)
class Mask:
    """A COCO segmentation, kept as it came: polygons, or a run-length encoding.

    Attributes:
        size_hw: Height and width of the picture in px.
        polygons: Flat ``x, y, ..`` lists of at least three points each; empty for an RLE.
        rle_counts: Run lengths, column-major, starting with background (a list), or COCO's
            compressed string; None for polygons.
    """

    size_hw: tuple[int, int]
    polygons: tuple[tuple[float, ...], ...] = ()
    rle_counts: tuple[int, ...] | str | None = None


@dataclass(frozen=True, slots=True)
class SceneObject:
    """One labelled object.

    Attributes:
        category: Name from the source's category list; for a region without one (VisDrone's
            ignored regions) the source's own name of it.
        box_xyxy: The box after clipping to the picture; for a quad, the hull of its corners.
        area_px: Width × height of the clipped box, or the area of the quad inside the picture,
            in px²; never the file's own ``area`` field.
        ignore: The source says that this object does not count, by any of its routes.
        quad_xy8: Corners of an oriented box, clamped to the picture; None for plain boxes.
        mask: The segmentation, where the source has a usable one.
        record_id: Id or line of the record in the source file, for messages.
    """

    category: str
    box_xyxy: Box
    area_px: float
    ignore: bool = False
    quad_xy8: Quad | None = None
    mask: Mask | None = None
    record_id: str = ""


def _no_meta() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Scene:
    """One labelled picture.

    Attributes:
        image_path: The picture file.
        image_id: Name of the picture within its source, the same on every machine.
        group_id: Pictures that belong together (a sequence, a source tile, a stem) share it;
            they never cross splits, and intervals are clustered by it.
        width: Width of the upright picture in px.
        height: Height of the upright picture in px.
        objects: All objects, those marked ``ignore`` included.
        source: Name in the table of sources (``visdrone``, ..).
        split: The source's own split.
        meta: What else the source says; readers state their keys.
        complete: Every label record that says where something is could be used; else the picture
            shows objects that are not among ``objects``.
    """

    image_path: Path
    image_id: str
    group_id: str
    width: int
    height: int
    objects: tuple[SceneObject, ...]
    source: str
    split: str
    meta: Mapping[str, Any] = field(default_factory=_no_meta)
    complete: bool = True


LOSSES = frozenset(
    {
        *("malformed_record", "unknown_category", "not_four_corners"),
        *("degenerate", "not_finite", "malformed_mask"),
    }
)
"""Reasons for which a record is dropped although something is in the picture."""


@dataclass(slots=True)
class ReadReport:
    """What a reader met: everything kept, dropped, clipped or repaired, by reason.

    ``dropped`` counts records and pictures that were left out, ``ignored`` objects that stay in
    their scene with ``ignore=True``, ``repaired`` what was kept after a change or with a notice.
    Each count remembers the first few places as examples. ``max_pixels`` is the one choice that a
    reader is given: larger pictures are dropped as ``picture_too_large``.
    """

    source: str = ""
    split: str = ""
    categories: tuple[str, ...] = ()
    max_pixels: int = MAX_PICTURE_PX
    pictures: int = 0
    objects: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    ignored: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    _lost_before: int = 0

    def lost_since(self) -> bool:
        """Say whether a record was dropped for one of ``LOSSES`` since this was last asked."""
        lost = sum(n for reason, n in self.dropped.items() if reason in LOSSES)
        before, self._lost_before = self._lost_before, lost
        return lost > before

    def drop(self, reason: str, where: str) -> None:
        """Count something that was left out; ``where`` names file, line or record."""
        self._count(self.dropped, reason, where)

    def ignore(self, reason: str, where: str) -> None:
        """Count an object that stays in its scene but does not count."""
        self._count(self.ignored, reason, where)

    def repair(self, reason: str, where: str) -> None:
        """Count something that was kept after a change, or kept with a notice."""
        self._count(self.repaired, reason, where)

    def _count(self, counter: Counter[str], reason: str, where: str) -> None:
        counter[reason] += 1
        seen = self.examples.setdefault(reason, [])
        if len(seen) < EXAMPLES_PER_REASON:
            seen.append(where)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain data, keys sorted, for JSON."""
        return {
            "source": self.source,
            "split": self.split,
            "categories": list(self.categories),
            "pictures": self.pictures,
            "objects": self.objects,
            "dropped": dict(sorted(self.dropped.items())),
            "ignored": dict(sorted(self.ignored.items())),
            "repaired": dict(sorted(self.repaired.items())),
            "examples": {reason: list(where) for reason, where in sorted(self.examples.items())},
        }
