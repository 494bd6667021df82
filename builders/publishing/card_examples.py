"""One example per sub-task for a card: the question, and a small picture of what it is about."""

import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image, ImageDraw

from soubench.builders.images import inspect_picture, load_picture
from soubench.builders.rrs.build import LETTERS as LEAF_LETTERS
from soubench.builders.rrs.masks import mask_pixels
from soubench.builders.rrs.taxonomy import LEAF_TASKS
from soubench.builders.rrs.taxonomy import Task as LeafCode
from soubench.builders.sou.questions import LETTERS
from soubench.builders.sou.render import RED
from soubench.builders.sou.subsets import Task

MAX_SIDE_PX = 640
JPEG_QUALITY = 85
GROUND_RGB = (235, 235, 235)
OBJECT_RGB = (60, 60, 60)
ANSWER_WIDTH_PX = 3
MASK_OPACITY = 0.5
GAP_PX = 8
"""Between two pictures of one row."""
ANSWER_SHOWN = 300

Row = Mapping[str, Any]


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
    found = _found(tuple(Task), with_pictures, labels_only)
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


def write_leaf_examples(
    folder: Path,
    with_pictures: Sequence[Iterable[pa.Table]],
    labels_only: Sequence[Iterable[pa.Table]],
) -> str:
    """Write ``<folder>/examples/<task>.jpg`` for leaf tasks and return the card's section.

    The right box or mask, or what is covered, is drawn over the pictures.

    Args:
        folder: The exported folder.
        with_pictures: Rows whose pictures may be shown; looked at first.
        labels_only: Rows whose pictures may not: their words alone are shown.
    """
    parts = ["## Examples"]
    found = _found(tuple(LeafCode), with_pictures, labels_only)
    if any(may_show for _, may_show in found.values()):
        (folder / "examples").mkdir()
        parts.append(
            "What is red was drawn for this card: the right box, the right mask, or the outline of "
            "what is covered."
        )
    for task in LeafCode:
        if task.value not in found:
            continue
        row, may_show = found[task.value]
        path = f"examples/{task.lower()}.jpg"
        shown = "The picture itself stays with its source."
        if may_show:
            _with_answer(row).save(folder / path, quality=JPEG_QUALITY)
            shown = f"![{task.value}]({path})"
        parts += [
            f"### {task.value}, {LEAF_TASKS[task].title}, `{row['id']}`",
            shown,
            f"> {_plain(row['question'])}",
            _answer_text(row),
        ]
    return "\n\n".join(parts)


def _answer_text(row: Row) -> str:
    """Return the options, the right one in bold, or the answer, as Markdown."""
    kind, answer = row["answer_type"], row["answer"]
    if kind == "mcq":
        options = ((i == row["answer_index"], o) for i, o in enumerate(row["options"]))
        return "\n".join(
            f"- {letter}: {f'**{_plain(option)}**' if right else _plain(option)}"
            for letter, (right, option) in zip(LEAF_LETTERS, options, strict=False)
        )
    if kind == "mask":
        pixels = int(mask_pixels(row["mask_rle"]).sum())
        return f"Answer: a mask of {pixels} px, as run lengths"
    if kind == "box":
        return f"Answer: `{answer}`"
    cut = answer if len(answer) <= ANSWER_SHOWN else f"{answer[:ANSWER_SHOWN]}.."
    return f"Answer: **{_plain(cut)}**"


def _plain(text: str) -> str:
    r"""Return a text of a record such that Markdown shows it as it is.

    >>> _plain("ship_1 <b>")
    'ship\\_1 \\<b\\>'
    """
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text)


def _with_answer(row: Row) -> Image.Image:
    """Return the pictures of a row beside each other, with its answer on the last."""
    cells = row["images"]
    side = (MAX_SIDE_PX - GAP_PX * (len(cells) - 1)) // len(cells)
    images = [_opened(cell) for cell in cells]
    width, height = images[-1].size
    for image in images:
        image.thumbnail((side, side), Image.Resampling.LANCZOS)
    _draw_answer(row, images[-1], images[-1].width / width, images[-1].height / height)
    across = sum(image.width for image in images) + GAP_PX * (len(images) - 1)
    joined = Image.new("RGB", (across, max(image.height for image in images)), GROUND_RGB)
    x = 0
    for image in images:
        joined.paste(image, (x, 0))
        x += image.width + GAP_PX
    return joined


def _draw_answer(row: Row, image: Image.Image, scale_x: float, scale_y: float) -> None:
    draw = ImageDraw.Draw(image)
    if row["answer_type"] == "mask":
        # In the mask's own pixels first: run lengths cannot be scaled.
        opaque = (mask_pixels(row["mask_rle"]) * round(255 * MASK_OPACITY)).astype(np.uint8)
        image.paste(RED, mask=Image.fromarray(opaque).resize(image.size))
    boxes = [row["box_xyxy"]] if row["answer_type"] == "box" else row["evidence"]["occluded_xyxy"]
    for x1, y1, x2, y2 in boxes:
        corners = (x1 * scale_x, y1 * scale_y, x2 * scale_x, y2 * scale_y)
        draw.rectangle(corners, outline=RED, width=ANSWER_WIDTH_PX)


def _found(
    tasks: Collection[str],
    with_pictures: Sequence[Iterable[pa.Table]],
    labels_only: Sequence[Iterable[pa.Table]],
) -> dict[str, tuple[Row, bool]]:
    """Return task -> its first row, and whether its picture may be shown."""
    found: dict[str, tuple[Row, bool]] = {}
    for may_show, sources in ((True, with_pictures), (False, labels_only)):
        for tables in sources:
            for row in _one_per_task(tables, len(tasks)):
                found.setdefault(row["task"], (row, may_show))
            if len(found) == len(tasks):
                break
    return found


def _one_per_task(tables: Iterable[pa.Table], tasks: int) -> Iterable[Row]:
    seen: set[str] = set()
    for table in tables:
        for i, task in enumerate(table["task"].to_pylist()):
            if task not in seen:
                seen.add(task)
                yield table.slice(i, 1).to_pylist()[0]
        if len(seen) == tasks:
            return


def _small_picture(row: Row) -> Image.Image:
    image = _opened(row["image"])
    image.thumbnail((MAX_SIDE_PX, MAX_SIDE_PX), Image.Resampling.LANCZOS)
    return image


def _opened(cell: Mapping[str, Any]) -> Image.Image:
    if cell["bytes"] is None:
        return load_picture(Path(cell["path"]), max_pixels=sys.maxsize)
    return Image.open(BytesIO(cell["bytes"])).convert("RGB")


def _drawn_labels(row: Row) -> Image.Image:
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
