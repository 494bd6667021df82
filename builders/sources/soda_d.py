"""SODA-D: small objects in driving scenes, one COCO-like JSON file per split."""

from collections.abc import Iterator
from pathlib import Path

from soubench.builders.scene import ReadReport, Scene
from soubench.builders.sources._coco import IGNORE_NAME, CocoRules, read_coco_like

CATEGORIES = (
    "people",
    "rider",
    "bicycle",
    "motor",
    "vehicle",
    "traffic-sign",
    "traffic-light",
    "traffic-camera",
    "warning-cone",
)
_RULES = CocoRules(
    source="soda-d",
    layout="Annotations/<split>.json beside Images/",
    wanted=CATEGORIES,
    # Some copies leave class 10 out of the table and use it all the same.
    documented_ids={10: IGNORE_NAME},
)


def read(root: Path, split: str, report: ReadReport) -> Iterator[Scene]:
    """Read a split; class 10 and the ``ignore`` flag both mark what does not count.

    Args:
        root: Folder with ``Images`` and ``Annotations``, the one above, or the JSON file.
        split: ``train``, ``val`` or ``test``.
        report: Filled as the scenes are drawn.

    Yields:
        Scenes by picture stem, which is also the group.

    Raises:
        FormatError: If no label file fits or it is not of this format.
    """
    return read_coco_like(root, split, report, _RULES)
