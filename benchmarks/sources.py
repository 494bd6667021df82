"""Speed and memory of the readers, each speed as a ratio against a peer of the same run.

Run: ``python benchmarks/sources.py [coco|files]``; both by default.

coco   a COCO JSON of the size of AI-TOD's trainval: 353,015 boxes in 14,018 pictures, read with
       `ai-tod` (boxes) and `coco` (boxes and outlines). Peers: ``json.load`` of the file, which
       opens no picture, and ``json.load`` and Pillow opening each picture, which is what the
       readers do. Processor time of one core, the best of three rounds in turns. Then the peak
       memory of ``soubench inspect`` against the size of the file
files  sets with one label file per picture, 2,000 pictures of 25 objects, read with `yolo`,
       `dota`, `visdrone` and `voc`. Peer: every file split into rows of floats (`voc`: parsed by
       ElementTree), and Pillow opening each picture
"""

import io
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

from peak_memory import peak_mib
from PIL import Image

PICTURES, BOXES = 14_018, 353_015
FILES, ROWS = 2_000, 25
SIDE_PX = 800
ROUNDS = 3


def seconds(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def best(functions: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Time functions in turns, so that a busy machine slows all of them alike."""
    rounds = [{name: seconds(f) for name, f in functions.items()} for _ in range(ROUNDS)]
    return {name: min(times[name] for times in rounds) for name in functions}


def read(source: str, root: Path) -> int:
    from soubench.builders.scene import ReadReport
    from soubench.builders.sources import SOURCES

    return sum(len(scene.objects) for scene in SOURCES[source].read(root, "val", ReadReport()))


def open_all(folder: Path) -> None:
    for path in folder.iterdir():
        with Image.open(path) as image:
            assert image.size == (SIDE_PX, SIDE_PX)


def write_pictures(folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True)
    png = io.BytesIO()
    Image.new("RGB", (SIDE_PX, SIDE_PX), (90, 120, 60)).save(png, "PNG")
    for name in names:
        (folder / name).write_bytes(png.getvalue())


def random_box(rng: random.Random) -> tuple[float, float, float, float]:
    w, h = rng.uniform(4, 32), rng.uniform(4, 32)
    box = (rng.uniform(0, SIDE_PX - w - 1), rng.uniform(0, SIDE_PX - h - 1), w, h)
    x, y, w, h = (round(value, 2) for value in box)
    return x, y, w, h


def write_coco(root: Path) -> Path:
    from soubench.builders.sources.ai_tod import CATEGORIES

    rng = random.Random(0)
    names = [f"{i // 30:05d}__{i % 30 // 6 * 600}_{i % 6 * 600}.png" for i in range(PICTURES)]
    write_pictures(root / "images" / "val", names)
    annotations = []
    for i in range(BOXES):
        x, y, w, h = random_box(rng)
        outline = [x, y, x, round(y + h, 2), round(x + w, 2), round(y + h, 2), round(x + w, 2), y]
        annotations.append(
            {
                "id": i,
                "image_id": rng.randrange(PICTURES),
                "category_id": rng.choice([1, 3, 4, 6, 6, 6, 6, 7]),
                "bbox": [x, y, w, h],
                "area": round(w * h, 4),
                "iscrowd": 0,
                "segmentation": [outline],
            }
        )
    document = {
        "images": [
            {"id": i, "file_name": name, "width": SIDE_PX, "height": SIDE_PX}
            for i, name in enumerate(names)
        ],
        "annotations": annotations,
        "categories": [{"id": i, "name": name} for i, name in enumerate(CATEGORIES, 1)],
    }
    path = root / "annotations" / "aitod_val_v1.json"
    path.parent.mkdir()
    path.write_text(json.dumps(document))
    return path


def coco() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "set"
        path = write_coco(root)

        def load() -> None:
            with path.open() as file:
                json.load(file)

        took = best(
            {
                "load": load,
                "open": lambda: open_all(root / "images" / "val"),
                "ai-tod": lambda: read("ai-tod", root),
                "coco": lambda: read("coco", root),
            }
        )
        size = path.stat().st_size / 2**20
        print(f"{BOXES:,} boxes in {PICTURES:,} pictures, a JSON file of {size:.0f} MiB")
        print(f"json.load {took['load']:.2f} s, opening each picture {took['open']:.2f} s")
        for name in ("ai-tod", "coco"):
            peak = peak_mib(["inspect", name, str(root)], {})
            print(
                f"{name}: {took[name]:.2f} s with pictures, {took[name] / took['load']:.2f} x "
                f"json.load, {took[name] / (took['load'] + took['open']):.2f} x json.load and "
                f"opening; inspect peaks at {peak:.0f} MiB, {peak / size:.1f} x the file"
            )


def write_files(root: Path) -> dict[str, Path]:
    """Write the same boxes in each format; return the label folders."""
    rng = random.Random(0)
    names = [f"{i:04d}" for i in range(FILES)]
    folders = {
        "yolo": root / "yolo" / "labels" / "val",
        "dota": root / "dota" / "val" / "labelTxt",
        "visdrone": root / "visdrone" / "val" / "annotations",
        "voc": root / "voc" / "Annotations",
    }
    for folder in folders.values():
        folder.mkdir(parents=True)
    pictures = [f"{name}.png" for name in names]
    write_pictures(root / "yolo" / "images" / "val", pictures)
    write_pictures(root / "dota" / "val" / "images", pictures)
    write_pictures(root / "visdrone" / "val" / "images", pictures)
    write_pictures(root / "voc" / "JPEGImages", pictures)
    (root / "yolo" / "data.yaml").write_text("val: images/val\nnames: [ship, car]\n")
    (root / "voc" / "ImageSets" / "Main").mkdir(parents=True)
    (root / "voc" / "ImageSets" / "Main" / "val.txt").write_text("\n".join(names))
    for name in names:
        rows: dict[str, list[str]] = {source: [] for source in folders}
        for _ in range(ROWS):
            x, y, w, h = (int(value) for value in random_box(rng))
            shares = ((x + w / 2) / SIDE_PX, (y + h / 2) / SIDE_PX, w / SIDE_PX, h / SIDE_PX)
            rows["yolo"].append("1 " + " ".join(f"{share:.6f}" for share in shares))
            rows["dota"].append(f"{x} {y} {x + w} {y} {x + w} {y + h} {x} {y + h} ship 0")
            rows["visdrone"].append(f"{x},{y},{w},{h},1,4,0,0")
            rows["voc"].append(
                "<object><name>ship</name><difficult>0</difficult><bndbox>"
                f"<xmin>{x + 1}</xmin><ymin>{y + 1}</ymin><xmax>{x + w}</xmax><ymax>{y + h}</ymax>"
                "</bndbox></object>"
            )
        size = f"<size><width>{SIDE_PX}</width><height>{SIDE_PX}</height></size>"
        rows["voc"] = [f"<annotation>{size}", *rows["voc"], "</annotation>"]
        for source, folder in folders.items():
            suffix = "xml" if source == "voc" else "txt"
            (folder / f"{name}.{suffix}").write_text("\n".join(rows[source]))
    return folders


def parse_rows(folder: Path) -> None:
    for path in folder.iterdir():
        for line in path.read_text().splitlines():
            # DOTA's rows hold a name.
            [float(field) for field in line.replace("ship", "0").replace(",", " ").split()]


def parse_xml(folder: Path) -> None:
    for path in folder.iterdir():
        for box in ElementTree.parse(path).iter("bndbox"):
            [float(child.text or "") for child in box]


def files() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        labels = write_files(root)
        took = best(
            {
                **{f"{name} peer": lambda n=name: parse(n, labels[n]) for name in labels},
                **{name: lambda n=name: read(n, root / n) for name in labels},
                "open": lambda: open_all(root / "yolo" / "images" / "val"),
            }
        )
        print(f"{FILES:,} label files of {ROWS} objects; opening each picture {took['open']:.2f} s")
        for name in labels:
            peer = took[f"{name} peer"] + took["open"]
            print(
                f"{name}: {took[name]:.2f} s with pictures, {took[name] / peer:.2f} x parsing and "
                f"opening ({peer:.2f} s)"
            )


def parse(source: str, folder: Path) -> None:
    (parse_xml if source == "voc" else parse_rows)(folder)


PARTS = {"coco": coco, "files": files}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
