"""Tiny pictures and label files, drawn where a test wants them."""

import json
from pathlib import Path

from PIL import Image

from soubench.builders.scene import ReadReport, Scene
from soubench.builders.sources import SOURCES

Json = dict | list | str | int | float | bool | None


def draw_picture(path: Path, size_wh: tuple[int, int] = (64, 48), *, orientation: int = 1) -> Path:
    """Save a plain RGB picture, with an EXIF orientation if it is not 1."""
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    if orientation != 1:
        exif[0x0112] = orientation
    Image.new("RGB", size_wh, (90, 120, 60)).save(path, exif=exif)
    return path


def write_json(path: Path, document: Json) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def write_text(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8"))
    return path


def coco_document(
    names: tuple[str, ...],
    *,
    images: list | None = None,
    annotations: list | None = None,
    size_wh: tuple[int, int] = (64, 48),
) -> dict:
    """Return a COCO document of one picture ``a.jpg`` unless told otherwise; ids from 1."""
    width, height = size_wh
    one = {"id": 1, "file_name": "a.jpg", "width": width, "height": height}
    return {
        "images": [one] if images is None else images,
        "categories": [{"id": i, "name": name} for i, name in enumerate(names, 1)],
        "annotations": annotations or [],
    }


def record(record_id: object, box_xywh: list, *, image: object = 1, category: object = 1, **more):
    return {
        "id": record_id,
        "image_id": image,
        "category_id": category,
        "bbox": box_xywh,
        **more,
    }


def read_all(name: str, root: Path, split: str = "val") -> tuple[list[Scene], ReadReport]:
    """Read everything that a reader gives, with its report."""
    report = ReadReport()
    return list(SOURCES[name].read(root, split, report)), report
