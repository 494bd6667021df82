"""Detection and segmentation labels as records: what they prove, and nothing else."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from soubench.builders.rrs.masks import Outline, encode_mask, mask_box_xywh
from soubench.builders.rrs.record import FoundRecord, Object, Record, holds
from soubench.builders.scene import Mask, ReadReport, Scene, SceneObject


def records_of(
    scenes: Iterable[Scene], report: ReadReport, *, north_up: bool, gsd_m: float | None = None
) -> Iterator[FoundRecord]:
    """Turn the scenes of a split into records.

    All categories of the source are labelled completely, but for those of which a picture has an
    object that the source does not count; a region that may hold anything, or a label that could
    not be read, leaves none.

    Args:
        scenes: All scenes of the split.
        report: Their reader's, with the categories; counts masks that are left out.
        north_up: The user says that north is at the top of every picture.
        gsd_m: The user says that so many m are one px where the label file says nothing.
    """
    known = list(report.categories)
    for scene in scenes:
        uncounted = {o.category for o in scene.objects if o.ignore}
        told = scene.complete and uncounted <= set(known)
        exhaustive = [c for c in known if c not in uncounted] if told else []
        record = Record(
            id=f"{scene.source}/{scene.image_id}",
            images=[scene.image_path.name],
            source=scene.source,
            group_id=f"{scene.source}/{scene.group_id}",
            provenance=f"labels of {scene.source}",
            gsd_m=_gsd_m(scene, gsd_m),
            north_deg=0.0 if north_up else None,
            objects=[
                _object(o, f"{scene.image_id}: {o.record_id}", report)
                for o in scene.objects
                if not o.ignore
            ],
            exhaustive=exhaustive,
        )
        yield FoundRecord(record, (scene.image_path,), f"{scene.source}, {scene.image_id}")


def _object(o: SceneObject, where: str, report: ReadReport) -> Object:
    outline = None if o.mask is None else _outline(o.mask)
    if outline is not None and o.mask is not None:
        height, width = o.mask.size_hw
        x, y, w, h = mask_box_xywh(encode_mask(outline, height, width))
        if w == 0 or h == 0:
            report.repair("mask_empty", where)
            outline = None
        elif not holds(o.box_xyxy, (x, y, x + w, y + h)):
            report.repair("mask_off_its_box", where)
            outline = None
    return Object(category=o.category, box_xyxy=o.box_xyxy, quad_xy8=o.quad_xy8, mask=outline)


def _outline(mask: Mask) -> Outline:
    if mask.rle_counts is not None:
        counts = mask.rle_counts if isinstance(mask.rle_counts, str) else list(mask.rle_counts)
        return Outline(size=mask.size_hw, counts=counts)
    # Tools draw outlines to a fraction of a pixel past the edge.
    height, width = mask.size_hw
    polygons = [
        [min(max(0.0, v), float(height if i % 2 else width)) for i, v in enumerate(polygon)]
        for polygon in mask.polygons
    ]
    return Outline(polygons=polygons)


def _gsd_m(scene: Scene, declared: float | None) -> float | None:
    """Return m per px; None where nobody says, or a tile was scaled after its label said it."""
    said: float | None = scene.meta.get("gsd")
    if said is None:
        return declared
    # Tiles are named <stem>__<scale>__<x>___<y>.
    parts = Path(scene.image_id).name.split("__")
    return None if len(parts) > 1 and parts[1] not in ("1", "1.0") else said
