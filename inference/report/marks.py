"""What is drawn on the picture of a row: what is asked about, and what proves the answer."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pycocotools import mask as rle_tools
from shapely import box, unary_union

from soubench.inference.coordinates import read_numbers

Role = Literal["asked", "evidence", "right"]
Numbers = tuple[float, ...]
"""A point (2 numbers), a box from corner to corner (4) or an outline (6 or more), x and y in turn,
in px of the upright picture."""

MOST_SHAPES = 400
"""Of one row. More only make the page heavy and hide the picture."""
OUTLINE_TOLERANCE_PX = 0.75


@dataclass(frozen=True, slots=True)
class Mark:
    """Shapes that mean the same.

    Attributes:
        role: ``asked`` for what the question points at, ``evidence`` for what proves the answer,
            ``right`` for the answer itself.
        label: What the page says of them, such as their category.
        shapes: Where they are.
    """

    role: Role
    label: str
    shapes: tuple[Numbers, ...]


def marks_of(row: Mapping[str, Any]) -> tuple[Mark, ...]:
    """Return what the columns of a row say about its first picture.

    Rows of all datasets of this project are understood; of others, what they have in common with
    them (``objects`` and ``evidence``, ``box_xyxy``, ``mask_rle``, ``centers_xy``).

    Args:
        row: The row; pictures may be left out.
    """
    found = list(_evidence(row))
    shapes = row.get("shapes")
    if isinstance(shapes, Mapping) and {"color", "shape", "center_xy"} <= shapes.keys():
        found += [
            Mark("evidence", f"{color} {kind}", (_numbers(center),))
            for color, kind, center in zip(
                shapes["color"], shapes["shape"], shapes["center_xy"], strict=True
            )
        ]
    if centers := row.get("centers_xy"):
        found.append(Mark("evidence", "center", tuple(map(_numbers, centers))))
    if row.get("box_xyxy"):
        found.append(Mark("right", "right box", (_numbers(row["box_xyxy"]),)))
    if rle := row.get("mask_rle"):
        found.append(Mark("right", "right mask", mask_outlines(rle, row.get("size_hw"))))
    return tuple(_at_most(found, MOST_SHAPES))


def _evidence(row: Mapping[str, Any]) -> Iterable[Mark]:
    evidence, objects = row.get("evidence"), row.get("objects")
    if not isinstance(evidence, Mapping):
        return
    if point := evidence.get("point_xy"):
        yield Mark("asked", "the point asked about", (_numbers(point),))
    if mark := evidence.get("mark"):
        # The object is the answer, which is drawn as such.
        yield Mark("asked", "the outline in the picture", (_numbers(mark),))
        return
    if boxes := evidence.get("boxes_xyxy"):
        label = str(evidence.get("target") or "object")
        yield Mark("evidence", label, tuple(map(_numbers, boxes)))
    indices = evidence.get("objects")
    if not (indices and isinstance(objects, Mapping)):
        return
    places: Sequence[Any] = objects.get("quad_xy8") or objects.get("box_xyxy") or ()
    categories: Sequence[str] = objects.get("category") or ["object"] * len(places)
    by_category: dict[str, list[Numbers]] = {}
    for i in indices:
        # Other people's rows may say something else by the same names.
        if isinstance(i, int) and i < len(places):
            by_category.setdefault(categories[i], []).append(_numbers(places[i]))
    for category, shapes in by_category.items():
        yield Mark("evidence", category, tuple(shapes))


def mask_outlines(
    rle: str | Mapping[str, Any], size_hw: Sequence[int] | None = None
) -> tuple[Numbers, ...]:
    """Return the outlines of a COCO run-length mask, holes included.

    Args:
        rle: The mask, or its JSON; ``counts`` alone needs ``size_hw``.
        size_hw: Height and width in px.
    """
    if isinstance(rle, str):
        text = rle
        rle = json.loads(text) if text.startswith("{") else {"counts": text}
    size = list(rle.get("size") or size_hw or ())
    counts = rle["counts"]
    if isinstance(counts, list):
        coded = rle_tools.frPyObjects({"size": size, "counts": counts}, *size)
    else:
        coded = {"size": size, "counts": str(counts).encode("ascii")}
    grid = rle_tools.decode(coded)
    edges = np.diff(grid.astype(np.int8), axis=1, prepend=0, append=0)
    rows_on, starts = np.nonzero(edges == 1)
    _, ends = np.nonzero(edges == -1)
    runs = [box(x1, y, x2, y + 1) for y, x1, x2 in zip(rows_on, starts, ends, strict=True)]
    whole = unary_union(runs).simplify(OUTLINE_TOLERANCE_PX)
    polygons = [part for part in getattr(whole, "geoms", [whole]) if not part.is_empty]
    rings = [ring for part in polygons for ring in (part.exterior, *part.interiors)]
    return tuple(_numbers(xy for point in ring.coords[:-1] for xy in point) for ring in rings)


def shapes_in(text: str | None) -> tuple[Numbers, ...]:
    """Return the point, box or quad that a text such as ``[1,2,3,4]`` is; nothing for others."""
    numbers = read_numbers(text) if text else None
    return (_numbers(numbers),) if numbers else ()


def _numbers(values: Iterable[float]) -> Numbers:
    return tuple(round(float(value), 1) for value in values)


def _at_most(marks: Iterable[Mark], most: int) -> Iterable[Mark]:
    for mark in marks:
        if most <= 0:
            return
        yield Mark(mark.role, mark.label, mark.shapes[:most])
        most -= len(mark.shapes)
