"""One example per sub-task for a card: the question, and a small picture of what it is about."""

import sys
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
from PIL import Image, ImageDraw

from soubench.builders.images import inspect_picture, load_picture
from soubench.builders.sou.questions import LETTERS
from soubench.builders.sou.render import RED
from soubench.builders.sou.subsets import Task

MAX_SIDE_PX = 640
JPEG_QUALITY = 85
GROUND_RGB = (235, 235, 235)
OBJECT_RGB = (60, 60, 60)


def write_examples(
    folder: Path,
    with_pictures: Sequence[Iterable[pa.Table]],
    labels_only: Sequence[Iterable[pa.Table]],
) -> str:
    """Write ``<folder>/examples/<task>.jpg`` and return the card's section.

    Args:
        folder: The exported folder.
        with_pictures: Rows whose pictures may be shown; looked at first.
        labels_only: Rows whose pictures may not: their labels are drawn on plain ground instead.
    """
    (folder / "examples").mkdir()
    parts = ["## Examples"]
    found: dict[str, tuple[dict[str, Any], bool]] = {}
    for may_show, sources in ((True, with_pictures), (False, labels_only)):
        for tables in sources:
            for row in _one_per_task(tables):
                found.setdefault(row["task"], (row, may_show))
            if len(found) == len(Task):
                break
    for task in Task:
        if task.value not in found:
            continue
        row, may_show = found[task.value]
        path = f"examples/{task.lower()}.jpg"
        image = _small_picture(row) if may_show else _drawn_labels(row)
        image.save(folder / path, quality=JPEG_QUALITY)
        what = "" if may_show else " (its labels, drawn; the picture itself stays with its source)"
        question = "\n".join(f"> {line}  " for line in row["question"].splitlines())
        options = "\n".join(
            f"- {letter}: {'**' * (i == row['answer'])}{option}{'**' * (i == row['answer'])}"
            for i, (letter, option) in enumerate(zip(LETTERS, row["options"], strict=True))
        )
        parts.append(
            f"### {task.value}, `{row['id']}`{what}\n\n![{task.value}]({path})\n\n"
            f"{question}\n\n{options}"
        )
    return "\n\n".join(parts)


def _one_per_task(tables: Iterable[pa.Table]) -> Iterable[dict[str, Any]]:
    seen: set[str] = set()
    for table in tables:
        for i, task in enumerate(table["task"].to_pylist()):
            if task not in seen:
                seen.add(task)
                yield table.slice(i, 1).to_pylist()[0]
        if len(seen) == len(Task):
            return


def _small_picture(row: dict[str, Any]) -> Image.Image:
    cell = row["image"]
    if cell["bytes"] is None:
        image = load_picture(Path(cell["path"]), max_pixels=sys.maxsize)
    else:
        image = Image.open(BytesIO(cell["bytes"])).convert("RGB")
    image.thumbnail((MAX_SIDE_PX, MAX_SIDE_PX), Image.Resampling.LANCZOS)
    return image


def _drawn_labels(row: dict[str, Any]) -> Image.Image:
    if row["image"]:
        info = inspect_picture(Path(row["image"]["path"]), max_pixels=sys.maxsize)
        width, height = info.width, info.height
    else:
        width, height = row["width"], row["height"]
    scale = min(1.0, MAX_SIDE_PX / max(width, height))
    size_wh = (max(1, round(width * scale)), max(1, round(height * scale)))
    image = Image.new("RGB", size_wh, GROUND_RGB)
    draw = ImageDraw.Draw(image)
    objects = row["objects"]
    for box in objects["quad_xy8"] or objects["box_xyxy"]:
        draw.polygon(_corners(box, scale), outline=OBJECT_RGB)
    evidence = row["evidence"]
    if evidence["mark"]:
        draw.polygon(_corners(evidence["mark"], scale), outline=RED, width=2)
    if evidence["point_xy"]:
        x, y = (value * scale for value in evidence["point_xy"])
        draw.ellipse((x - 3, y - 3, x + 3, y + 3), fill=RED)
    return image


def _corners(box: Sequence[float], scale: float) -> list[tuple[float, float]]:
    if len(box) == 4:
        x1, y1, x2, y2 = box
        box = (x1, y1, x2, y1, x2, y2, x1, y2)
    return [(box[i] * scale, box[i + 1] * scale) for i in range(0, 8, 2)]
