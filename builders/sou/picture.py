"""A scene seen as a set of small objects: what the six sub-tasks ask about."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from soubench.builders.scene import Box, Quad, Scene, SceneObject
from soubench.builders.sou.subsets import Subset

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class SouPicture:
    """One picture that may be asked about. All coordinates are px of the picture as it is asked.

    Attributes:
        image_path: The source's picture file.
        width: Width in px, after shrinking.
        height: Height in px, after shrinking.
        shrunk: The picture has to be resized to ``width`` × ``height``.
        categories: Category of each small object, ``(N,)``.
        boxes_xyxy: Boxes of the small objects, ``(N, 4)``.
        areas_px: Areas of the small objects in px², ``(N,)``.
        quads_xy8: Corners of the small objects, ``(N, 8)``; None for plain boxes.
        large_boxes_xyxy: Boxes of the other objects that count, ``(M, 4)``; they are not asked
            about but can make a question ambiguous.
        large_categories: Their categories, ``(M,)``.
        ignored_boxes_xyxy: Boxes of what the source marks as not counting, ``(K, 4)``: it can be
            seen all the same, so questions about places keep clear of it.
        ignored_categories: Their categories, ``(K,)``.
    """

    source: str
    image_path: Path
    image_id: str
    group_id: str
    width: int
    height: int
    shrunk: bool
    categories: tuple[str, ...]
    boxes_xyxy: FloatArray
    areas_px: FloatArray
    quads_xy8: FloatArray | None
    large_boxes_xyxy: FloatArray
    large_categories: tuple[str, ...]
    ignored_boxes_xyxy: FloatArray
    ignored_categories: tuple[str, ...]

    @property
    def oriented(self) -> bool:
        """Whether objects are located by four corners."""
        return self.quads_xy8 is not None

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of small objects per category that is present, in order of appearance."""
        counts: dict[str, int] = {}
        for category in self.categories:
            counts[category] = counts.get(category, 0) + 1
        return counts

    @cached_property
    def int_boxes(self) -> NDArray[np.int64]:
        """The boxes grown to whole pixels (floor, ceil), ``(N, 4)``."""
        grown = np.hstack([np.floor(self.boxes_xyxy[:, :2]), np.ceil(self.boxes_xyxy[:, 2:])])
        return grown.astype(np.int64)


def prepare(scene: Scene, subset: Subset) -> SouPicture | str:
    """Turn a scene into a picture of small objects, or say by what reason it is left out.

    Objects are put in the order of their boxes, so that the order of the records in a label file
    changes nothing.

    Args:
        scene: The scene; objects marked ``ignore`` are not looked at further.
        subset: Rules of the subset: largest picture, shrinking, shortest side.

    Returns:
        The picture, or a reason for the build report.
    """
    if subset.max_pixels is not None and scene.width * scene.height > subset.max_pixels:
        return "picture_over_max_pixels"
    shrunk = False
    if subset.shrink_to_small:
        smaller = shrink(scene, subset.small_area_px)
        shrunk = smaller is not scene
        scene = smaller
        if any(min(x2 - x1, y2 - y1) < 1 for x1, y1, x2, y2 in (o.box_xyxy for o in scene.objects)):
            return "object_vanishes_when_shrunk"
    if min(scene.width, scene.height) < subset.min_side_px:
        return "picture_side_too_short"
    objects = sorted(scene.objects, key=lambda o: (o.box_xyxy, o.category, o.quad_xy8 or ()))
    ignored = [o for o in objects if o.ignore]
    counted = [o for o in objects if not o.ignore]
    small = [o for o in counted if o.area_px <= subset.small_area_px]
    large = [o for o in counted if o.area_px > subset.small_area_px]
    if not small:
        return "no_small_object"
    with_quads = [o.quad_xy8 for o in small if o.quad_xy8 is not None]
    if with_quads and len(with_quads) < len(small):
        return "boxes_and_quads_mixed"
    return SouPicture(
        source=scene.source,
        image_path=scene.image_path,
        image_id=scene.image_id,
        group_id=scene.group_id,
        width=scene.width,
        height=scene.height,
        shrunk=shrunk,
        categories=tuple(o.category for o in small),
        boxes_xyxy=_boxes(small),
        areas_px=np.array([o.area_px for o in small], dtype=np.float64),
        quads_xy8=np.array(with_quads, dtype=np.float64) if with_quads else None,
        large_boxes_xyxy=_boxes(large),
        large_categories=tuple(o.category for o in large),
        ignored_boxes_xyxy=_boxes(ignored),
        ignored_categories=tuple(o.category for o in ignored),
    )


def _boxes(objects: Sequence[SceneObject]) -> FloatArray:
    return np.array([o.box_xyxy for o in objects], dtype=np.float64).reshape(-1, 4)


def shrink(scene: Scene, small_area_px: float) -> Scene:
    """Scale a scene so that its largest labelled object is small (Sec. 3.3, underwater).

    s = min(1, sqrt(1024 / area of the largest labelled object)). Sides are rounded down, so that
    no object ends above the bound; boxes scale with the picture's real sides.

    Args:
        scene: The scene.
        small_area_px: The bound in px², the paper's 1024.
    """
    largest = max((o.area_px for o in scene.objects), default=0.0)
    if largest <= small_area_px:
        return scene
    scale = sqrt(small_area_px / largest)
    width, height = max(1, int(scene.width * scale)), max(1, int(scene.height * scale))
    sx, sy = width / scene.width, height / scene.height

    def scaled(o: SceneObject) -> SceneObject:
        # Rounding may carry the edge of the picture a hair past itself: width * (w / width) > w.
        def x(value: float) -> float:
            return min(value * sx, width)

        def y(value: float) -> float:
            return min(value * sy, height)

        x1, y1, x2, y2 = o.box_xyxy
        quad: Quad | None = None
        if o.quad_xy8 is not None:
            a, b, c, d, e, f, g, h = o.quad_xy8
            quad = (x(a), y(b), x(c), y(d), x(e), y(f), x(g), y(h))
        return replace(
            o,
            box_xyxy=Box(x(x1), y(y1), x(x2), y(y2)),
            # Rounding of the product alone could leave the largest object a hair over the bound.
            area_px=min(o.area_px * sx * sy, small_area_px),
            quad_xy8=quad,
            mask=None,
        )

    return replace(
        scene, width=width, height=height, objects=tuple(scaled(o) for o in scene.objects)
    )
