"""Speed and memory of the SOU builder, each speed as a ratio against a peer of the same run.

Run: ``python benchmarks/sou.py [questions|pictures|memory|verify]``; all four by default.

questions  rows per second on one core for pictures of 100 objects, and whether the cost is linear;
           peer: the same questions from a list of all annotations that is scanned anew for every
           picture, as one does who keeps a COCO file as it comes
pictures   a whole build with pictures on one core; peer: Pillow alone decoding, marking and
           encoding the same OL pictures; processor time, the best of three rounds in turns
memory     peak memory of all processes of a build of 13-megapixel pictures, 100 and 400 of them
verify     verification of some 18,000 rows, cached and exported; peer: ``datasets`` giving the
           same rows as Python objects once, pictures left out
"""

import io
import json
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from peak_memory import peak_mib
from PIL import Image, ImageDraw

OBJECTS = 100
PICTURES = 3034
CATEGORIES = ("car", "van", "bus", "truck", "motor", "bicycle", "people", "pedestrian")


def timed(function: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    function()
    return clock() - start


def questions() -> None:
    from soubench.builders.scene import Box, Scene, SceneObject
    from soubench.builders.sou.picture import prepare
    from soubench.builders.sou.questions import (
        Candidate,
        Key,
        ask,
        assign_letters,
        candidate,
    )
    from soubench.builders.sou.subsets import SUBSETS, Task

    def scene(i: int) -> Scene:
        rng = random.Random(i)
        objects = []
        for _ in range(OBJECTS):
            x, y = rng.uniform(0, 1880), rng.uniform(0, 1040)
            w, h = rng.uniform(4, 32), rng.uniform(4, 32)
            box = Box(x, y, x + w, y + h)
            objects.append(SceneObject(rng.choice(CATEGORIES), box, box.area))
        name = f"{i:07d}"
        return Scene(Path(name), name, name, 1920, 1080, tuple(objects), "visdrone", "val")

    def build(scenes: list[Scene]) -> int:
        key = Key("1.0.0", 0)
        found = [
            candidate(picture, "paper", key, Task)
            for s in scenes
            if not isinstance(picture := prepare(s, SUBSETS["a-visdrone"]), str)
        ]
        asked = ask([c for c in found if isinstance(c, Candidate)], CATEGORIES, "paper", key)
        assign_letters([asked.questions], key)
        return sum(map(len, asked.questions.values()))

    def scanning(scenes: list[Scene]) -> int:
        annotations = [(s.image_id, o) for s in scenes for o in s.objects]
        found = (tuple(o for name, o in annotations if name == s.image_id) for s in scenes)
        return build(
            [replace(s, objects=objects) for s, objects in zip(scenes, found, strict=True)]
        )

    print(f"questions about pictures of {OBJECTS} objects, one core")
    speeds = {}
    for n in (268, 536, 1072, 2144):
        scenes = [scene(i) for i in range(n)]
        rows = build(scenes)
        seconds = min(timed(lambda s=scenes: build(s)) for _ in range(3))
        speeds[n] = rows / seconds
        print(f"  {n:5d} pictures: {rows:6d} rows, {speeds[n]:8.0f} rows/s")
    print(f"  linear: time per row at 2144 is {speeds[268] / speeds[2144]:.2f} x that at 268")
    for n in (268, 1072):
        scenes = [scene(i) for i in range(n)]
        peer = len(scenes) * 6 / timed(lambda s=scenes: scanning(s))
        print(
            f"  at {n} pictures {speeds[n] / peer:.1f} x a generator that scans ({peer:.0f} rows/s)"
        )


def pictures() -> None:
    import datasets

    from soubench.builders.demo_scenes import write_demo_source
    from soubench.builders.sou.build import BuildOptions
    from soubench.dataset_scripts.sou_vqa.sou_vqa import build_sou_vqa

    datasets.utils.logging.set_verbosity_error()
    print("a build with pictures against bare Pillow, one core")
    for config, source, size, n in (
        ("a-visdrone", "visdrone", (1920, 1080), 48),
        ("a-aitod", "ai-tod", (800, 800), 48),
        ("driving", "soda-d", (2560, 1440), 32),
    ):
        with tempfile.TemporaryDirectory() as folder:
            root = write_demo_source(source, Path(folder) / "in", pictures=n, size_wh=size)
            cache = Path(folder) / "cache"

            def build(root=root, cache=cache, config=config, source=source) -> None:  # noqa: ANN001
                build_sou_vqa(config, {source: root}, BuildOptions(), cache_dir=cache)

            build()
            datasets.config.HF_DATASETS_CACHE = cache
            rows = datasets.load_dataset("sou-vqa", f"{config}-ol", split="test")
            paths = {p.stem: p for p in root.rglob("*") if p.suffix in (".jpg", ".png")}
            jobs = [
                (paths[i], e["mark"])
                for i, e in zip(rows["image_id"][:], rows["evidence"][:], strict=True)
            ]
            jpeg = {"quality": 95, "subsampling": 0}

            def bare(jobs=jobs, folder=folder, jpeg=jpeg) -> None:  # noqa: ANN001
                for path, mark in jobs:
                    with Image.open(path) as opened:
                        image = opened.convert("RGB")
                    ImageDraw.Draw(image).rectangle(mark, outline="red", width=5)
                    out = Path(folder) / f"bare{path.suffix}"
                    image.save(out, **(jpeg if path.suffix == ".jpg" else {}))

            rounds = [
                (timed(build, time.process_time), timed(bare, time.process_time)) for _ in range(3)
            ]
            ours, peer = (min(times) for times in zip(*rounds, strict=True))
            print(
                f"  {config}: {len(rows)} pictures of {size[0]} x {size[1]}: "
                f"build {ours:.2f} s, bare Pillow {peer:.2f} s, ratio {ours / peer:.2f}"
            )


def memory() -> None:
    print("peak memory of all processes, 13-megapixel pictures, two workers")
    peaks = {}
    for n in (100, 400):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "SODA-A"
            write_large_pictures(root, n)
            peaks[n] = peak_mib(
                ["build", "sou-vqa", "a-soda", f"--source=soda-a={root}", "--all", "--workers=2"],
                {"HF_DATASETS_CACHE": f"{folder}/cache"},
            )
        print(f"  {n} pictures: {peaks[n]:.0f} MiB")
    print(f"  ratio 400 to 100: {peaks[400] / peaks[100]:.2f}")


def write_large_pictures(root: Path, n: int) -> None:
    """Write SODA-A pictures of 4731 x 2789 that differ in a comment only: encoding is slow."""
    (root / "Images/val").mkdir(parents=True)
    (root / "Annotations/val").mkdir(parents=True)
    rng = random.Random(0)
    noise = Image.frombytes("RGB", (473, 279), rng.randbytes(473 * 279 * 3))
    buffer = io.BytesIO()
    noise.resize((4731, 2789), Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=90)
    data = buffer.getvalue()
    names = ("airplane", "helicopter", "small-vehicle", "large-vehicle", "ship")
    for i in range(n):
        comment = f"picture {i}".encode()
        mark = b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment
        (root / f"Images/val/{i:05d}.jpg").write_bytes(data[:2] + mark + data[2:])
        annotations = []
        for _ in range(350):
            x, y, a = rng.uniform(40, 4690), rng.uniform(40, 2740), rng.uniform(0, math.pi)
            w, h = rng.uniform(6, 15), rng.uniform(6, 15)
            c, s = math.cos(a), math.sin(a)
            corners = ((-w, -h), (w, -h), (w, h), (-w, h))
            poly = [v for p, q in corners for v in (x + p * c - q * s, y + p * s + q * c)]
            annotations.append({"category_id": rng.randrange(5), "poly": poly})
        table = {
            "categories": [{"id": k, "name": name} for k, name in enumerate(names)],
            "annotations": annotations,
        }
        (root / f"Annotations/val/{i:05d}.json").write_text(json.dumps(table))


def verify() -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    import datasets

    from soubench.builders.publishing.export import export_dataset
    from soubench.builders.sou.build import BuildOptions
    from soubench.dataset_scripts.detection.detection import build_detection
    from soubench.dataset_scripts.verification import verify_dataset

    datasets.utils.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as folder:
        write_small_pictures(Path(folder) / "set", PICTURES)
        datasets.config.HF_DATASETS_CACHE = cache = Path(folder) / "cache"
        options = BuildOptions(workers=2)
        build_detection("verified", "coco", Path(folder) / "set", options, cache_dir=cache)
        export_dataset("verified", Path(folder) / "out", pictures="none", cache_dir=cache)
        rows = datasets.load_dataset("verified", "all", split="val").remove_columns("image")
        peer = timed(lambda: sum(1 for _ in rows))
        print(f"verification of {len(rows)} rows without pictures")
        for name in ("verified", f"{folder}/out"):
            (found,) = verify_dataset(name, cache_dir=cache)
            assert not found.problems, found.problems[:3]
            seconds = timed(lambda name=name: verify_dataset(name, cache_dir=cache))
            what = "exported" if "/" in name else "in the cache"
            print(f"  {what}: {seconds:.1f} s, {seconds / peer:.1f} x a plain loop ({peer:.1f} s)")


def write_small_pictures(root: Path, n: int) -> None:
    """Write a COCO set of pictures of one color with 20 to 80 small boxes each."""
    (root / "annotations").mkdir(parents=True)
    (root / "val").mkdir()
    images, annotations = [], []
    for i in range(n):
        rng = random.Random(i)
        color = (i % 256, i // 256, 0)
        Image.new("RGB", (640, 480), color).save(root / f"val/{i:05d}.png")
        images.append({"id": i, "file_name": f"{i:05d}.png", "width": 640, "height": 480})
        places = rng.sample([(x, y) for x in range(0, 640, 32) for y in range(0, 480, 32)], 80)
        for x, y in places[: rng.randrange(20, 81)]:
            bbox = [x, y, rng.randrange(4, 30), rng.randrange(4, 30)]
            k = len(annotations)
            annotations.append(
                {"id": k, "image_id": i, "category_id": rng.randrange(8), "bbox": bbox}
            )
    table = [{"id": k, "name": name} for k, name in enumerate(CATEGORIES)]
    document = {"images": images, "annotations": annotations, "categories": table}
    (root / "annotations/instances_val.json").write_text(json.dumps(document))


PARTS = {"questions": questions, "pictures": pictures, "memory": memory, "verify": verify}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
