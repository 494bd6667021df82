"""What the five sources say, read by short code that knows nothing of the readers.

Only for files without faults, such as the demo scenes.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

VISDRONE = [
    *("ignored", "pedestrian", "people", "bicycle", "car", "van", "truck", "tricycle"),
    *("awning-tricycle", "bus", "motor", "others"),
]
PICTURES = {
    "soda-d": "Images/*.jpg",
    "visdrone": "VisDrone2019-DET-val/images/*.jpg",
    "ai-tod": "images/val/*.png",
    "soda-a": "Images/val/*.jpg",
    "ruod": "test/*.jpg",
}


@dataclass
class Labelled:
    """Corners ``x1, y1, x2, y2`` or eight numbers, per object that counts."""

    size: tuple[int, int]
    objects: list[tuple[str, list[float]]]
    largest_area: float


def read(source: str, root: Path) -> dict[str, Labelled]:
    return {
        path.stem: _labelled(source, root, path) for path in sorted(root.glob(PICTURES[source]))
    }


def _labelled(source: str, root: Path, picture: Path) -> Labelled:
    with Image.open(picture) as image:
        size = image.size
    rows: list[tuple[str, list[float], bool]]
    if source == "visdrone":
        rows = _visdrone(root / "VisDrone2019-DET-val/annotations" / f"{picture.stem}.txt")
    elif source == "soda-a":
        table = json.loads((root / "Annotations/val" / f"{picture.stem}.json").read_text())
        names = {c["id"]: c["name"] for c in table["categories"]}
        rows = [
            (names[int(a["category_id"])], a["poly"], int(a["category_id"]) != 9)
            for a in table["annotations"]
        ]
    else:
        (path,) = (p for p in root.rglob("*.json"))
        table = json.loads(path.read_text())
        names = {c["id"]: c["name"] for c in table["categories"]}
        ids = {Path(image["file_name"]).stem: image["id"] for image in table["images"]}
        rows = []
        for a in table["annotations"]:
            if a["image_id"] == ids[picture.stem]:
                x, y, w, h = a["bbox"]
                counts = not a.get("ignore") and names[a["category_id"]] != "ignore"
                rows.append((names[a["category_id"]], [x, y, x + w, y + h], counts))
    areas = [(x[2] - x[0]) * (x[3] - x[1]) for _, x, _ in rows if len(x) == 4]
    objects = [(name, corners) for name, corners, counts in rows if counts]
    return Labelled(size, objects, max(areas, default=0.0))


def _visdrone(path: Path) -> list[tuple[str, list[float], bool]]:
    lines = [[int(v) for v in line.split(",")[:6]] for line in path.read_text().split()]
    regions = [line[:4] for line in lines if line[5] == 0]
    rows = []
    for x, y, w, h, score, kind in lines:
        pixels = {(i, j) for i in range(x, x + w) for j in range(y, y + h)}
        covered = {
            (i, j)
            for i, j in pixels
            if any(a <= i < a + c and b <= j < b + d for a, b, c, d in regions)
        }
        counts = score == 1 and kind not in (0, 11) and 2 * len(covered) < len(pixels)
        rows.append((VISDRONE[kind], [x, y, x + w, y + h], counts))
    return rows


def area(corners: list[float]) -> float:
    if len(corners) == 4:
        return (corners[2] - corners[0]) * (corners[3] - corners[1])
    xs, ys = corners[0::2], corners[1::2]
    turns = (xs[i] * ys[(i + 1) % 4] - xs[(i + 1) % 4] * ys[i] for i in range(4))
    return abs(sum(turns)) / 2
