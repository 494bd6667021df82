"""Write drawn plants in the files and folders of the plant set."""

import math
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from soubench.builders.demo_plants.draw import (
    ARA2012,
    ARA2013,
    TOBACCO,
    DemoPlant,
    Look,
    crop,
    draw_plant,
    grow,
)
from soubench.builders.errors import BuildError
from soubench.builders.keyed import keyed_hash
from soubench.builders.plants.boxes import convex_hull

FOLDER = "Plant_Phenotyping_Datasets"
PLANTS = 12
"""In each of Ara2012 and Ara2013-Canon."""
TOBACCO_PLANTS = 6
FRAMES = 4
GENOTYPES = ("ein2", "ctr", "Col-0", "pgm", "adh1")
TREATMENTS = ("T7 933", "T3 1910", "T2 335")
CROP_MARGIN_PX = 8
STACK_SIDE_PX = 260
TOBACCO_WH = (490, 410)
"""A fifth of the real pictures' sides."""


def write_demo_plants(root: Path, *, seed: int = 0) -> Path:
    """Write a demo edition of the plant set and return its folder.

    Args:
        root: Folder to write it under; made if missing.
        seed: Another seed gives other plants. The same seed gives the same bytes under the same
            versions of Pillow and numpy.

    Raises:
        BuildError: The folder is there already.
    """
    folder = root / FOLDER
    if folder.exists():
        raise BuildError(
            f"expected no {folder} to write the demo plants to, but it is there; remove it if it "
            "is an older demo, or choose another folder (it is never overwritten, since it may "
            "hold the real data)"
        )
    staging = root / f".{FOLDER}.incomplete"
    shutil.rmtree(staging, ignore_errors=True)
    _write_arabidopsis(staging / "Plant/Ara2012", "ara2012", ARA2012, (12, 17), (40, 52), seed)
    _write_arabidopsis(staging / "Plant/Ara2013-Canon", "ara2013", ARA2013, (5, 11), (24, 40), seed)
    _write_tobacco(staging / "Plant/Tobacco", seed)
    _write_stack(staging / "Stacks/Ara2012/stack_01", "ara2012_plant01", ARA2012, 15, seed)
    _write_stack(staging / "Stacks/Ara2013-Canon/stack_01", "ara2013_plant01", ARA2013, 10, seed)
    staging.rename(folder)
    return folder


def _write_arabidopsis(
    folder: Path,
    prefix: str,
    look: Look,
    leaves: tuple[int, int],
    blades: tuple[int, int],
    seed: int,
) -> None:
    counts: dict[str, int] = {}
    metadata: list[str] = []
    for i in range(PLANTS):
        name = f"{prefix}_plant{i + 1:03d}"
        rng = random.Random(keyed_hash("demo-plants", seed, name))
        blade = rng.uniform(*blades)
        shapes = grow(rng.randint(*leaves), blade, look, rng)
        side = round(2 * blade * (1.3 + look.stalk)) + 2 * CROP_MARGIN_PX
        plant = crop(draw_plant(shapes, look, side, rng, pot=side * 0.42), CROP_MARGIN_PX)
        counts[name] = _write_picture(folder, name, plant, with_points=True)
        metadata.append(f"{name}, {GENOTYPES[i % len(GENOTYPES)]:>5}, No, {392 + 12 * i}")
    _write_counts(folder, counts)
    if look is ARA2013:
        _write_lines(folder / "Metadata.csv", metadata)


def _write_tobacco(folder: Path, seed: int) -> None:
    counts: dict[str, int] = {}
    metadata: list[str] = []
    for i in range(TOBACCO_PLANTS):
        plant_number, stage = divmod(i, TOBACCO_PLANTS // len(TREATMENTS))
        rng = random.Random(keyed_hash("demo-plants", seed, "tobacco", plant_number))
        age = (0.45, 1.0)[stage]
        shapes = grow(rng.randint(6, 9), 150, TOBACCO, rng, age=age)
        width, height = TOBACCO_WH
        square = draw_plant(shapes, TOBACCO, width, rng, pot=0.47 * height)
        top = (width - height) // 2
        plant = DemoPlant(
            square.image.crop((0, top, width, top + height)), square.label[top : top + height]
        )
        name = f"tobacco_plant{i + 1:03d}"
        counts[name] = _write_picture(folder, name, plant, with_points=True)
        treatment = f"{TREATMENTS[plant_number]:>7}"
        hours = f"{6 + 264 * stage:>3}"
        metadata.append(f"{name}, Nicotiana tabacum cv. Samsun, {treatment}, {hours}")
    _write_counts(folder, counts)
    _write_lines(folder / "Metadata.csv", metadata)


def _write_stack(folder: Path, name: str, look: Look, leaves: int, seed: int) -> None:
    for frame in range(FRAMES):
        rng = random.Random(keyed_hash("demo-plants", seed, "stack", name))
        shapes = grow(leaves, 52, look, rng, age=0.25 + 0.75 * frame / (FRAMES - 1))
        plant = draw_plant(shapes, look, STACK_SIDE_PX, rng, pot=0.44 * STACK_SIDE_PX)
        _write_picture(folder, f"{name}_frame{frame + 1:02d}", plant, with_points=False)


def _write_picture(folder: Path, name: str, plant: DemoPlant, *, with_points: bool) -> int:
    """Write the files of one picture and return its number of leaves."""
    folder.mkdir(parents=True, exist_ok=True)
    plant.image.save(folder / f"{name}_rgb.png", compress_level=3)
    _palette_picture(plant.label).save(folder / f"{name}_label.png")
    ids = [int(i) for i in np.unique(plant.label) if i]
    masks = [np.argwhere(plant.label == i)[:, ::-1] for i in ids]
    if with_points:
        points = np.zeros_like(plant.label)
        for mask in masks:
            x, y = np.rint(mask.mean(axis=0)).astype(int)
            points[y, x] = 1
        _palette_picture(points).save(folder / f"{name}_centers.png", bits=1)
    lines = [
        ",".join(map(str, [leaf_id, *rotated_box(mask)]))
        for leaf_id, mask in zip(ids, masks, strict=True)
    ]
    _write_lines(folder / f"{name}_bbox.csv", lines)
    return len(ids)


def rotated_box(pixels_xy: np.ndarray) -> list[int]:
    """Return the corners of the smallest rotated rectangle around pixels, as the set writes them.

    Args:
        pixels_xy: ``(N, 2)`` coordinates of pixels, the top left one (0, 0).

    Returns:
        ``x1, y1, .., x4, y4``: 1-based pixels, counter-clockwise as seen in the picture.
    """
    # Only the two ends of a row can be corners of the hull.
    by_row = pixels_xy[np.lexsort((pixels_xy[:, 0], pixels_xy[:, 1]))]
    _, first = np.unique(by_row[:, 1], return_index=True)
    last = np.append(first[1:], len(by_row)) - 1
    points = [(int(x), int(y)) for x, y in by_row[np.concatenate([first, last])]]
    hull = convex_hull(points)
    best: tuple[float, list[int]] | None = None
    for (x1, y1), (x2, y2) in zip(hull, hull[1:] + hull[:1], strict=True):
        length = math.hypot(x2 - x1, y2 - y1)
        if not length:
            continue
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        along = [x * ux + y * uy for x, y in hull]
        across = [y * ux - x * uy for x, y in hull]
        area = (max(along) - min(along)) * (max(across) - min(across))
        if best is None or area < best[0] - 1e-9:
            corners = (
                (min(along), min(across)),
                (min(along), max(across)),
                (max(along), max(across)),
                (max(along), min(across)),
            )
            best = (
                area,
                [
                    math.floor(value + 1.5)
                    for a, b in corners
                    for value in (a * ux - b * uy, a * uy + b * ux)
                ],
            )
    if best is None:
        x, y = points[0]
        return [x + 1, y + 1] * 4
    return best[1]


def _palette_picture(indices: np.ndarray) -> Image.Image:
    picture = Image.fromarray(indices).convert("L")
    palette = [0, 0, 0]
    for i in range(1, 256):
        palette += [(i * 67) % 256, (i * 151 + 80) % 256, (i * 229 + 160) % 256]
    picture.putpalette(palette)
    return picture


def _write_counts(folder: Path, counts: dict[str, int]) -> None:
    _write_lines(folder / "Leaf_counts.csv", [f"{name}, {n:>2}" for name, n in counts.items()])


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
