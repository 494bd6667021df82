"""The door that every label passes: raw records of one picture become a `Scene`."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from soubench.builders.errors import PictureError
from soubench.builders.images import PictureInfo, inspect_picture, turn_point
from soubench.builders.scene import (
    Box,
    Mask,
    Quad,
    ReadReport,
    Scene,
    SceneObject,
    is_convex,
    normalized,
    shoelace_area,
)

MIN_SIDE_PX = 1.0
MIN_QUAD_AREA_PX = 1.0
EDGE_SLACK_PX = 1e-6
"""A sum of two floats may pass the edge by rounding alone; that is no clipping."""
SNAP_PX = 0.01
"""Coordinates given as shares that come out this close to a whole pixel are that pixel."""
MAX_COORDINATE_PX = 1e7


class RawObject(NamedTuple):
    """One label record, its values parsed and nothing else done.

    Attributes:
        category: Name from the source's list.
        box_xywh: Left, top, width, height in px as in the file; None for a polygon.
        polygon_xy: Flat corners in px as in the file; None for a box.
        ignore_reason: Why the source does not count it; empty if it counts.
        record_id: Id or line in the file.
        mask: The segmentation; ``size_hw`` (0, 0) where the file gives no size.
    """

    category: str
    box_xywh: tuple[float, float, float, float] | None
    polygon_xy: tuple[float, ...] | None
    ignore_reason: str
    record_id: str
    mask: Mask | None = None


@dataclass(frozen=True, slots=True)
class RawPicture:
    """One picture with its label records.

    Attributes:
        path: The picture file.
        image_id: See `Scene`.
        group_id: See `Scene`.
        label_size_wh: Width and height that the label file states, if it does.
        objects: Its records in file order.
        normalized: The coordinates are shares of the upright picture's width and height, not px.
        meta: See `Scene`.
        complete: No record is known to be lost that may be of this picture; what is lost between
            two pictures is that of the second one, which `make_scene` sees by itself.
    """

    path: Path
    image_id: str
    group_id: str
    label_size_wh: tuple[float, float] | None
    objects: Sequence[RawObject]
    normalized: bool = False
    meta: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    complete: bool = True


class Source(NamedTuple):
    """Which source and split a scene is of."""

    name: str
    split: str


class _RejectedError(Exception):
    """A record cannot stay; ``args[0]`` is the reason it is counted under."""


class _Placed(NamedTuple):
    box_xyxy: Box
    quad_xy8: Quad | None
    area_px: float
    clipped: bool
    crossing: bool


def make_scene(picture: RawPicture, source: Source, report: ReadReport) -> Scene | None:
    """Check one picture and its records against each other.

    The size is read from the picture. If the picture carries an EXIF orientation that swaps
    width and height, and the label states the stored size, then the label was made on the
    unturned picture and its coordinates are turned with it; in every other case they are taken
    to be on the upright picture.

    Args:
        picture: The picture and its records.
        source: What to write into the scene.
        report: Counts everything dropped, ignored or repaired, and what was kept.

    Returns:
        The scene, or None if the picture cannot be used (which is counted).
    """
    try:
        info = inspect_picture(picture.path, max_pixels=report.max_pixels)
    except PictureError as error:
        report.drop(error.reason, picture.image_id)
        report.lost_since()
        return None
    if info.exif_damaged:
        report.repair("exif_unreadable", picture.path.name)
    if not info.suffix_fits:
        report.repair("picture_suffix", picture.path.name)
    turned = _compare_sizes(picture, info, report)
    objects = _place_all(picture, info, report, turned=turned)
    report.pictures += 1
    report.objects += len(objects)
    return Scene(
        image_path=picture.path,
        image_id=picture.image_id,
        group_id=picture.group_id,
        width=info.width,
        height=info.height,
        objects=objects,
        source=source.name,
        split=source.split,
        meta=picture.meta,
        complete=not report.lost_since() and picture.complete,
    )


def settle_spellings(counts: Mapping[str, int], report: ReadReport) -> dict[str, str]:
    """Give category names that differ in case, ``_`` or ``-`` alone one spelling; list all names.

    For formats whose labels carry names and that have no table of them: the categories are the
    names found, sorted. Of several spellings the most frequent is taken, then the first by sort.

    Args:
        counts: How many records have each name.
        report: Gets the categories, and a notice for each spelling that is given up.

    Returns:
        The spelling to use for each name.
    """
    chosen: dict[str, str] = {}
    for name in sorted(counts, key=lambda name: (-counts[name], name)):
        chosen.setdefault(normalized(name), name)
    for name in sorted(counts):
        if (kept := chosen[normalized(name)]) != name:
            report.repair(
                "category_spelling", f"{name!r} is read as {kept!r}, {counts[name]} times"
            )
    report.categories = tuple(sorted(chosen.values()))
    return {name: chosen[normalized(name)] for name in counts}


def _compare_sizes(picture: RawPicture, info: PictureInfo, report: ReadReport) -> bool:
    """Report a label size that is not the picture's; say whether the labels must be turned."""
    if picture.label_size_wh is None:
        return False
    width, height = picture.label_size_wh
    if width == info.width and height == info.height:
        return False
    where = f"{picture.image_id}: label {width:g}×{height:g}, picture {info.width}×{info.height}"
    if info.transposed and width == info.stored_width and height == info.stored_height:
        report.repair("exif_turned", where)
        return True
    transposed = width == info.height and height == info.width
    report.repair("size_transposed" if transposed else "size_mismatch", where)
    return False


def _place_all(
    picture: RawPicture, info: PictureInfo, report: ReadReport, *, turned: bool
) -> tuple[SceneObject, ...]:
    kept: dict[tuple[str, tuple[float, ...]], SceneObject] = {}
    for raw in picture.objects:
        if picture.normalized:
            raw = _scale(raw, info)
        if turned:
            raw = _turn(raw, info)
        try:
            placed = _place(raw, info)
        except _RejectedError as rejected:
            report.drop(str(rejected), f"{picture.image_id}: record {raw.record_id}")
            continue
        ignore = raw.ignore_reason != ""
        key = (raw.category, placed.quad_xy8 or placed.box_xyxy)
        twin = kept.get(key)
        if twin is not None:
            where = f"{picture.image_id}: records {twin.record_id} and {raw.record_id}"
            report.drop("duplicate_object", where)
            if ignore and not twin.ignore:
                # One of the two says that it does not count, so it does not.
                report.ignore(raw.ignore_reason, where)
                kept[key] = replace(twin, ignore=True)
            continue
        mask = raw.mask
        if placed.clipped or placed.crossing or ignore or mask:
            where = f"{picture.image_id}: record {raw.record_id}"
            if placed.clipped:
                report.repair("clipped", where)
            if placed.crossing:
                report.repair("quad_self_crossing", where)
            if ignore:
                report.ignore(raw.ignore_reason, where)
            if mask:
                mask = _place_mask(mask, info, report, where, turned=turned)
        kept[key] = SceneObject(
            category=raw.category,
            box_xyxy=placed.box_xyxy,
            area_px=placed.area_px,
            ignore=ignore,
            quad_xy8=placed.quad_xy8,
            mask=mask,
            record_id=raw.record_id,
        )
    return tuple(kept.values())


def _place(raw: RawObject, info: PictureInfo) -> _Placed:
    if raw.box_xywh is not None:
        return _place_box(raw.box_xywh, info.width, info.height)
    return _place_polygon(raw.polygon_xy or (), info.width, info.height)


def _place_box(box_xywh: tuple[float, float, float, float], width: int, height: int) -> _Placed:
    x1, y1, w, h = box_xywh
    x2, y2 = x1 + w, y1 + h
    if x1 >= 0 and y1 >= 0 and x2 <= width and y2 <= height and w >= MIN_SIDE_PX <= h:
        # Nearly all boxes; adding 0 makes a positive zero of a negative one.
        return _Placed(Box(x1 + 0.0, y1 + 0.0, x2, y2), None, w * h, clipped=False, crossing=False)
    # inf - inf and nan are never equal to 0: one test for all six values.
    if (x2 - x2) + (y2 - y2) + (w - w) + (h - h) != 0:
        raise _RejectedError("not_finite")
    if w <= 0 or h <= 0:
        raise _RejectedError("degenerate")
    if x2 <= 0 or y2 <= 0 or x1 >= width or y1 >= height:
        raise _RejectedError("outside_picture")
    box = Box(max(0.0, x1), max(0.0, y1), min(x2, float(width)), min(y2, float(height)))
    clipped = False
    # The file's own width is exact where x + w - x is not, and 1024 px² is a border that counts.
    if x1 < -EDGE_SLACK_PX or x2 > width + EDGE_SLACK_PX:
        clipped, w = True, box.x2 - box.x1
    if y1 < -EDGE_SLACK_PX or y2 > height + EDGE_SLACK_PX:
        clipped, h = True, box.y2 - box.y1
    if w < MIN_SIDE_PX or h < MIN_SIDE_PX:
        raise _RejectedError("degenerate")
    return _Placed(box, None, w * h, clipped, crossing=False)


def _place_polygon(corners: tuple[float, ...], width: int, height: int) -> _Placed:
    if not all(map(math.isfinite, corners)):
        raise _RejectedError("not_finite")
    xs, ys = corners[0::2], corners[1::2]
    left, right, top, bottom = min(xs), max(xs), min(ys), max(ys)
    if right <= 0 or bottom <= 0 or left >= width or top >= height:
        raise _RejectedError("outside_picture")
    if max(right, bottom, -left, -top) > MAX_COORDINATE_PX:
        raise _RejectedError("malformed_record")
    inside = left >= 0 and top >= 0 and right <= width and bottom <= height
    clipped = (
        min(left, top) < -EDGE_SLACK_PX
        or right > width + EDGE_SLACK_PX
        or bottom > height + EDGE_SLACK_PX
    )
    crossing = False
    if inside and is_convex(xs, ys):
        area = shoelace_area(xs, ys)
    else:
        area, crossing = _area_inside(xs, ys, width, height)
        if not inside and area == 0:
            raise _RejectedError("outside_picture")
    xs = tuple(min(max(0.0, x), float(width)) for x in xs)
    ys = tuple(min(max(0.0, y), float(height)) for y in ys)
    box = Box(min(xs), min(ys), max(xs), max(ys))
    if (
        box.x2 - box.x1 < MIN_SIDE_PX
        or box.y2 - box.y1 < MIN_SIDE_PX
        or area < MIN_QUAD_AREA_PX - EDGE_SLACK_PX
    ):
        raise _RejectedError("degenerate")
    quad: Quad | None = None
    if len(xs) == 4:
        quad = (xs[0], ys[0], xs[1], ys[1], xs[2], ys[2], xs[3], ys[3])
    return _Placed(box, quad, area, clipped, crossing)


def _area_inside(
    xs: Sequence[float], ys: Sequence[float], width: int, height: int
) -> tuple[float, bool]:
    """Return the area in px² of a polygon inside the picture, and whether its edges cross."""
    # Few records come here, and shapely takes longer to import than the whole package.
    import shapely

    polygon = shapely.Polygon(list(zip(xs, ys, strict=True)))
    crossing = not polygon.is_valid
    if crossing:
        polygon = shapely.make_valid(polygon)
    return float(polygon.intersection(shapely.box(0, 0, width, height)).area), crossing


def _scale(raw: RawObject, info: PictureInfo) -> RawObject:
    """Carry a record over from shares of the upright picture to px.

    Shares are written with a few decimals: what comes out a hair off a whole pixel was one, and
    must not grow by a pixel when boxes are rounded outwards.
    """
    sides = (info.width, info.height)

    def scaled(shares: Sequence[float]) -> tuple[float, ...]:
        places = (share * sides[i % 2] for i, share in enumerate(shares))
        return tuple(
            float(round(v)) if math.isfinite(v) and abs(v - round(v)) <= SNAP_PX else v
            for v in places
        )

    if raw.box_xywh is not None:
        x, y, w, h = raw.box_xywh
        x1, y1, x2, y2 = scaled((x, y, x + w, y + h))
        raw = raw._replace(box_xywh=(x1, y1, x2 - x1, y2 - y1))
    if raw.polygon_xy is not None:
        raw = raw._replace(polygon_xy=scaled(raw.polygon_xy))
    if raw.mask is not None:
        raw = raw._replace(mask=replace(raw.mask, polygons=tuple(map(scaled, raw.mask.polygons))))
    return raw


def _turn(raw: RawObject, info: PictureInfo) -> RawObject:
    """Carry a record over from the stored picture to the upright one."""
    if raw.polygon_xy is not None:
        return raw._replace(polygon_xy=_turn_points(raw.polygon_xy, info))
    if raw.box_xywh is None:
        return raw
    x, y, w, h = raw.box_xywh
    ax, ay, bx, by = _turn_points((x, y, x + w, y + h), info)
    # Only turns that swap the sides come here, so width and height change places, exactly.
    return raw._replace(box_xywh=(min(ax, bx), min(ay, by), h, w))


def _turn_points(points: Sequence[float], info: PictureInfo) -> tuple[float, ...]:
    stored = (info.stored_width, info.stored_height)
    turned: list[float] = []
    for x, y in zip(points[0::2], points[1::2], strict=True):
        turned.extend(turn_point(x, y, orientation=info.orientation, stored_wh=stored))
    return tuple(turned)


def _place_mask(
    mask: Mask, info: PictureInfo, report: ReadReport, where: str, *, turned: bool
) -> Mask | None:
    size_hw = (info.height, info.width)
    if mask.polygons:
        polygons: Iterable[tuple[float, ...]] = mask.polygons
        if turned:
            polygons = (_turn_points(polygon, info) for polygon in polygons)
        return Mask(size_hw=size_hw, polygons=tuple(polygons))
    if turned or mask.size_hw != size_hw:
        # Run lengths only mean something on the grid that they were made for.
        report.repair("mask_size_mismatch", where)
        return None
    return mask
