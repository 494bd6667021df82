"""AI-TOD, v1 and v2: tiny objects in aerial tiles, one COCO-like JSON file per split."""

from collections.abc import Iterator
from pathlib import Path

from soubench.builders.scene import ReadReport, Scene
from soubench.builders.sources._coco import CocoRules, read_coco_like

CATEGORIES = (
    "airplane",
    "bridge",
    "storage-tank",
    "ship",
    "swimming-pool",
    "vehicle",
    "person",
    "wind-mill",
)


def _source_tile(stem: str) -> str:
    """Return the picture that a tile ``<picture>__<x>_<y>`` was cut from."""
    return stem.split("__", 1)[0] or stem


_RULES = CocoRules(
    source="ai-tod",
    layout="annotations/aitod_<split>_v1.json beside images/<split>/",
    wanted=CATEGORIES,
    group_of=_source_tile,
)


def read(root: Path, split: str, report: ReadReport) -> Iterator[Scene]:
    """Read a split of v1 or v2, whichever lies there.

    Args:
        root: Folder with ``images`` and ``annotations``, the one above, or the JSON file.
        split: ``train``, ``val``, ``trainval`` or ``test``.
        report: Filled as the scenes are drawn.

    Yields:
        Scenes by picture stem; the group is the picture that the tile was cut from.

    Raises:
        FormatError: If no label file fits, several do (both versions, say), or it is not of
            this format.
    """
    return read_coco_like(root, split, report, _RULES)
