"""Masks of records, through the functions of ``pycocotools``."""

import json
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray
from pycocotools import mask as coco_mask

from soubench.builders.sources.coco import read_segmentation

Polygon: TypeAlias = Annotated[list[float], Meta(min_length=6)]
RunLength: TypeAlias = Annotated[int, Meta(ge=0)]
Encoded: TypeAlias = dict[str, Any]
"""COCO's compressed run lengths: ``size`` (height, width) and ``counts``, bytes."""


class Outline(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A mask: either ``polygons``, or COCO's run lengths in ``size`` and ``counts``."""

    polygons: Annotated[
        list[Polygon] | None, Meta(description="x, y, x, y, .. in px, one list for each part")
    ] = None
    size: Annotated[
        tuple[int, int] | None, Meta(description="Height and width of the picture in px")
    ] = None
    counts: Annotated[
        str | list[RunLength] | None,
        Meta(description="Column-major run lengths, background first, or COCO's string of them"),
    ] = None


def encode_mask(mask: Outline, height: int, width: int) -> Encoded:
    """Return a mask as compressed run lengths.

    Raises:
        ValueError: It is neither of polygons nor of run lengths, these are damaged, or they do not
            add up.
    """
    if (mask.polygons is None) == (mask.counts is None) or (mask.size is None) != (
        mask.counts is None
    ):
        raise ValueError("expected either polygons, or size and counts")
    if mask.polygons is not None:
        if not mask.polygons or any(len(p) % 2 for p in mask.polygons):
            raise ValueError("expected polygons of three points or more, x and y for each")
        return dict(coco_mask.merge(coco_mask.frPyObjects(mask.polygons, height, width)))
    runs = {"size": list(mask.size or ()), "counts": mask.counts}
    # pycocotools reads past the end of damaged run lengths.
    read_segmentation(runs, lambda reason: None)
    if isinstance(mask.counts, str):
        return {"size": runs["size"], "counts": mask.counts.encode("ascii")}
    return dict(coco_mask.frPyObjects(runs, height, width))


def mask_box_xywh(encoded: Encoded) -> tuple[float, float, float, float]:
    """Return left, top, width and height of the smallest box around a mask, in px."""
    x, y, w, h = coco_mask.toBbox(encoded).tolist()
    return x, y, w, h


def mask_area_px(encoded: Encoded) -> int:
    """Return the number of px of a mask."""
    return int(coco_mask.area(encoded))


def mask_json(encoded: Encoded) -> str:
    """Return a mask as the JSON that rows carry: ``size`` and the compressed string ``counts``."""
    counts = encoded["counts"]
    text = counts.decode("ascii") if isinstance(counts, bytes) else str(counts)
    return json.dumps({"size": list(encoded["size"]), "counts": text})


def mask_pixels(text: str) -> NDArray[np.bool_]:
    """Return the mask that a row carries, see `mask_json`, as ``(height, width)``."""
    runs = json.loads(text)
    pixels: NDArray[np.uint8] = coco_mask.decode(runs | {"counts": runs["counts"].encode("ascii")})
    return pixels.astype(np.bool_)
