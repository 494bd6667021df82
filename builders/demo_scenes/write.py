"""Write demo pictures in the on-disk formats of their sources."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from soubench.builders.demo_scenes.grounds import SizeWh
from soubench.builders.demo_scenes.worlds import WORLDS, DemoObject, DemoPicture, draw_picture
from soubench.builders.errors import BuildError

FOLDERS = {
    "soda-d": "SODA-D",
    "visdrone": "VisDrone",
    "ai-tod": "AI-TOD",
    "soda-a": "SODA-A",
    "ruod": "RUOD",
}
SPLITS = {"soda-d": "val", "visdrone": "val", "ai-tod": "val", "soda-a": "val", "ruod": "test"}
JPEG_QUALITY = 92
FIRST_TILE_ID = 1101
FIRST_TRAIN_PICTURE = 10_000
"""Pictures of the training split are drawn and named from this number on."""
CUT_PX = 5

Json = dict[str, Any]
Pictures = Iterator[tuple[int, DemoPicture]]


def write_demo_sources(
    root: Path, *, pictures: int = 12, seed: int = 0, train_pictures: int = 0
) -> dict[str, Path]:
    """Write a demo edition of all five sources.

    Args:
        root: Folder to write them under; made if missing.
        pictures: Number of pictures per source. More keep the earlier ones as they are.
        seed: Another seed gives other pictures. The same seed gives the same bytes under the same
            Pillow version.
        train_pictures: Number of pictures of a training split per source.

    Returns:
        Source name to its folder: ``soda-d``, ``visdrone``, ``ai-tod``, ``soda-a``, ``ruod``.

    Raises:
        BuildError: One of the folders is there already.
    """
    return {
        name: write_demo_source(
            name, root, pictures=pictures, seed=seed, train_pictures=train_pictures
        )
        for name in FOLDERS
    }


def write_demo_source(
    name: str,
    root: Path,
    *,
    pictures: int = 12,
    seed: int = 0,
    size_wh: SizeWh | None = None,
    train_pictures: int = 0,
) -> Path:
    """Write a demo edition of one source and return its folder.

    Args:
        name: Key of ``FOLDERS``.
        root: Folder to write it under; made if missing.
        pictures: Number of pictures.
        seed: Another seed gives other pictures.
        size_wh: Size of the pictures in px, at least 400 × 300; None for the source's own, which
            a question set needs of RUOD (it shrinks pictures and wants 233 px to be left).
        train_pictures: Number of pictures of a training split, beside the evaluation split.

    Raises:
        BuildError: The name is unknown, no picture was asked for, or the folder is there already.
        ValueError: The size is too small to hold a scene.
    """
    if name not in FOLDERS:
        raise BuildError(f"expected a demo source of {', '.join(FOLDERS)}, got {name!r}")
    if pictures < 1:
        raise BuildError(f"expected at least 1 picture for demo source {name}, got {pictures}")
    folder = root / FOLDERS[name]
    if folder.exists():
        raise BuildError(
            f"expected no {folder} to write the demo pictures to, but it is there; remove it if "
            "it is an older demo, or choose another folder (it is never overwritten, since it may "
            "hold the real data)"
        )
    staging = root / f".{FOLDERS[name]}.incomplete"
    shutil.rmtree(staging, ignore_errors=True)
    parts = [(SPLITS[name], range(pictures))]
    if train_pictures:
        last = FIRST_TRAIN_PICTURE + train_pictures
        parts.append(("train", range(FIRST_TRAIN_PICTURE, last)))
    for split, numbers in parts:
        drawn = ((i, draw_picture(name, i, seed=seed, size_wh=size_wh)) for i in numbers)
        _WRITERS[name](staging, split, drawn)
    staging.rename(folder)
    return folder


def _save(image: Image.Image, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".png":
        image.save(path, compress_level=3)
    else:
        image.save(path, quality=JPEG_QUALITY)


def _save_text(text: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def _bbox_xywh(made: DemoObject) -> list[int]:
    x1, y1, x2, y2 = made.box_xyxy
    return [x1, y1, x2 - x1, y2 - y1]


def _image_record(image_id: int, file_name: str, image: Image.Image) -> Json:
    return {"id": image_id, "file_name": file_name, "width": image.width, "height": image.height}


def _category_records(name: str, first: int) -> list[Json]:
    names = enumerate(WORLDS[name].categories, start=first)
    return [{"id": category_id, "name": category} for category_id, category in names]


def _write_soda_d(folder: Path, split: str, drawn: Pictures) -> None:
    categories = _category_records("soda-d", 1)
    ids = {record["name"]: record["id"] for record in categories}
    images: list[Json] = []
    annotations: list[Json] = []
    for index, picture in drawn:
        file_name = f"{index + 1:05d}.jpg"
        _save(picture.image, folder / "Images" / file_name)
        images.append(_image_record(index + 1, file_name, picture.image))
        for made in picture.objects:
            _, _, width, height = bbox = _bbox_xywh(made)
            annotations.append({
                "id": len(annotations) + 1, "image_id": index + 1,
                "category_id": ids[made.category], "bbox": bbox, "area": width * height,
                "ignore": int(made.route is not None),
            })  # fmt: skip
    labels = {"images": images, "categories": categories, "annotations": annotations}
    _save_text(json.dumps(labels), folder / "Annotations" / f"{split}.json")


def _write_visdrone(folder: Path, split: str, drawn: Pictures) -> None:
    part, world = folder / f"VisDrone2019-DET-{split}", WORLDS["visdrone"]
    for index, picture in drawn:
        sequence, frame = divmod(index, world.frames)
        stem = f"{sequence + 1:07d}_{1 + 240 * frame:05d}_d_{index + 1:07d}"
        _save(picture.image, part / "images" / f"{stem}.jpg")
        lines = []
        for made in picture.objects:
            score = int(made.route in (None, "covered"))
            category_id, occlusion = world.categories.index(made.category), made.route == "covered"
            lines.append([*_bbox_xywh(made), score, category_id, 0, int(occlusion)])
        text = "".join(",".join(map(str, line)) + "\n" for line in lines)
        _save_text(text, part / "annotations" / f"{stem}.txt")


def _write_ai_tod(folder: Path, split: str, drawn: Pictures) -> None:
    categories = [{**record, "supercategory": "none"} for record in _category_records("ai-tod", 1)]
    ids = {record["name"]: record["id"] for record in categories}
    images: list[Json] = []
    annotations: list[Json] = []
    for index, picture in drawn:
        # Two tiles of a large picture, like those that the source's own script cuts.
        file_name = f"{FIRST_TILE_ID + index // 2}__{600 * (index % 2)}_0.png"
        _save(picture.image, folder / "images" / split / file_name)
        images.append(_image_record(index, file_name, picture.image))
        for made in picture.objects:
            x, y, width, height = bbox = [float(number) for number in _bbox_xywh(made)]
            outline = [x, y, x + width, y, x + width, y + height, x, y + height]
            annotations.append({
                "id": len(annotations), "image_id": index, "category_id": ids[made.category],
                "bbox": bbox, "area": width * height, "iscrowd": 0, "segmentation": [outline],
            })  # fmt: skip
    labels = {"images": images, "categories": categories, "annotations": annotations}
    _save_text(json.dumps(labels), folder / "annotations" / f"aitod_{split}_v1.json")


def _write_soda_a(folder: Path, split: str, drawn: Pictures) -> None:
    categories = _category_records("soda-a", 0)
    ids = {record["name"]: record["id"] for record in categories}
    for index, picture in drawn:
        stem = f"{index + 1:05d}"
        _save(picture.image, folder / "Images" / split / f"{stem}.jpg")
        annotations: list[Json] = []
        for made in picture.objects:
            poly = [round(number, 1) for number in made.quad_xy8]
            if made.route == "region":
                # Areas of the source may have any number of corners; one is cut off here.
                poly = [poly[0] + CUT_PX, poly[1], *poly[2:], poly[0], poly[1] + CUT_PX]
            annotations.append({
                "id": len(annotations), "image_id": index + 1, "category_id": ids[made.category],
                "poly": poly, "ignore": int(made.route is not None),
            })  # fmt: skip
        labels = {
            "images": _image_record(index + 1, f"{stem}.jpg", picture.image),
            "categories": categories,
            "annotations": annotations,
        }
        _save_text(json.dumps(labels), folder / "Annotations" / split / f"{stem}.json")


def _write_ruod(folder: Path, split: str, drawn: Pictures) -> None:
    categories = [{**record, "supercategory": "none"} for record in _category_records("ruod", 1)]
    ids = {record["name"]: record["id"] for record in categories}
    images: list[Json] = []
    annotations: list[Json] = []
    for index, picture in drawn:
        file_name = f"{index + 1:06d}.jpg"
        _save(picture.image, folder / split / file_name)
        images.append(_image_record(index + 1, file_name, picture.image))
        for made in picture.objects:
            _, _, width, height = bbox = _bbox_xywh(made)
            annotations.append({
                "id": len(annotations) + 1, "image_id": index + 1,
                "category_id": ids[made.category], "bbox": bbox, "area": width * height,
                "iscrowd": 0, "ignore": 0, "segmentation": [],
            })  # fmt: skip
    labels = {"images": images, "categories": categories, "annotations": annotations}
    _save_text(json.dumps(labels), folder / "annotations" / f"instances_{split}.json")


_WRITERS: dict[str, Callable[[Path, str, Pictures], None]] = {
    "soda-d": _write_soda_d,
    "visdrone": _write_visdrone,
    "ai-tod": _write_ai_tod,
    "soda-a": _write_soda_a,
    "ruod": _write_ruod,
}
