"""The same drawn pictures and labels in four annotation formats, written for tests."""

import json
import random

from PIL import Image, ImageDraw

SIZE_WH = (400, 300)
COLORS = ("red", "blue", "green", "orange", "purple", "cyan")
CELL_PX = 40


def drawn_scenes(n, categories, *, first=0, side_px=(8, 24)):
    """Yield stem, picture and (category, x, y, w, h) of each object; no two objects touch."""
    for i in range(first, first + n):
        rng = random.Random(i)
        image = Image.new("RGB", SIZE_WH, (rng.randrange(200, 250),) * 3)
        draw = ImageDraw.Draw(image)
        cells = [(x, y) for x in range(0, 400, CELL_PX) for y in range(0, 280, CELL_PX)]
        objects = []
        for k, (x, y) in enumerate(rng.sample(cells, rng.randrange(6, 20))):
            w, h = rng.randrange(*side_px), rng.randrange(*side_px)
            category = categories[k % len(categories)] if k < 4 else rng.choice(categories)
            x, y = x + rng.randrange(0, 14), y + rng.randrange(0, 14)
            draw.rectangle((x, y, x + w - 1, y + h - 1), COLORS[categories.index(category)])
            objects.append((category, x, y, w, h))
        yield f"p{i:04d}", image, objects


def write_coco(root, split, scenes, categories, suffix=".png"):
    """annotations/instances_<split>.json and <split>/*<suffix>."""
    images, annotations = [], []
    (root / split).mkdir(parents=True)
    for i, (stem, image, objects) in enumerate(scenes):
        name = f"{stem}{suffix}"
        image.save(root / split / name)
        images.append({"id": i, "file_name": name, "width": image.width, "height": image.height})
        for category, x, y, w, h in objects:
            annotations.append(
                {
                    "id": len(annotations),
                    "image_id": i,
                    "category_id": categories.index(category),
                    "bbox": [x, y, w, h],
                    "area": w * h,
                    "iscrowd": 0,
                }
            )
    table = [{"id": i, "name": name} for i, name in enumerate(categories)]
    (root / "annotations").mkdir(exist_ok=True)
    (root / "annotations" / f"instances_{split}.json").write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": table})
    )


def write_yolo(root, split, scenes, categories):
    """data.yaml, images/<split>/*.png and labels/<split>/*.txt."""
    for part in ("images", "labels"):
        (root / part / split).mkdir(parents=True)
    for stem, image, objects in scenes:
        image.save(root / "images" / split / f"{stem}.png")
        lines = [
            f"{categories.index(c)} {(x + w / 2) / 400:.9f} {(y + h / 2) / 300:.9f} "
            f"{w / 400:.9f} {h / 300:.9f}"
            for c, x, y, w, h in objects
        ]
        (root / "labels" / split / f"{stem}.txt").write_text("\n".join(lines) + "\n")
    splits = sorted(path.name for path in (root / "images").iterdir())
    named = "".join(f"{name}: images/{name}\n" for name in splits)
    (root / "data.yaml").write_text(f"path: .\n{named}names: {json.dumps(list(categories))}\n")


def write_voc(root, split, scenes, categories):
    """Annotations/*.xml, JPEGImages/*.png and ImageSets/Main/<split>.txt, 1-based and inclusive."""
    for part in ("Annotations", "JPEGImages", "ImageSets/Main"):
        (root / part).mkdir(parents=True, exist_ok=True)
    stems = []
    for stem, image, objects in scenes:
        image.save(root / "JPEGImages" / f"{stem}.png")
        boxes = "".join(
            f"<object><name>{c}</name><bndbox><xmin>{x + 1}</xmin><ymin>{y + 1}</ymin>"
            f"<xmax>{x + w}</xmax><ymax>{y + h}</ymax></bndbox></object>"
            for c, x, y, w, h in objects
        )
        (root / "Annotations" / f"{stem}.xml").write_text(
            f"<annotation><filename>{stem}.png</filename><size><width>400</width>"
            f"<height>300</height><depth>3</depth></size>{boxes}</annotation>"
        )
        stems.append(stem)
    (root / "ImageSets" / "Main" / f"{split}.txt").write_text("\n".join(stems) + "\n")


def write_dota(root, split, scenes, categories):
    """<split>/images/*.png and <split>/labelTxt/*.txt."""
    for part in ("images", "labelTxt"):
        (root / split / part).mkdir(parents=True)
    for stem, image, objects in scenes:
        image.save(root / split / "images" / f"{stem}.png")
        lines = [
            f"{x}.0 {y}.0 {x + w}.0 {y}.0 {x + w}.0 {y + h}.0 {x}.0 {y + h}.0 {c} 0"
            for c, x, y, w, h in objects
        ]
        text = "imagesource:drawn\ngsd:0.5\n" + "\n".join(lines) + "\n"
        (root / split / "labelTxt" / f"{stem}.txt").write_text(text)


WRITERS = {"coco": write_coco, "yolo": write_yolo, "voc": write_voc, "dota": write_dota}
