"""RUOD: objects under water, one COCO-like JSON file per split."""

from collections.abc import Iterator
from pathlib import Path

from soubench.builders.scene import ReadReport, Scene
from soubench.builders.sources._coco import CocoRules, read_coco_like

CATEGORIES = (
    "holothurian",
    "echinus",
    "scallop",
    "starfish",
    "fish",
    "corals",
    "diver",
    "cuttlefish",
    "turtle",
    "jellyfish",
)
_RULES = CocoRules(
    source="ruod",
    layout="annotations/instances_<split>.json beside <split>/",
    wanted=CATEGORIES,
    prefer_name="instances",
)


def read(root: Path, split: str, report: ReadReport) -> Iterator[Scene]:
    """Read a split.

    Args:
        root: Folder with the label and picture folders, the one above, or the JSON file.
        split: ``train`` or ``test``.
        report: Filled as the scenes are drawn.

    Yields:
        Scenes by picture stem, which is also the group.

    Raises:
        FormatError: If no label file fits or it is not of this format.
    """
    return read_coco_like(root, split, report, _RULES)
