"""The subsets of SOU-VQA and SOU-Train, and the config names made from them (Table 1)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

SMALL_AREA_PX = 1024
"""An object is small if its area is at most this (Sec. 3.1, the COCO bound, inclusive)."""


class Task(StrEnum):
    """The six sub-tasks, by the codes of the paper's tables and in their order (Sec. 3.2)."""

    CE = "CE"
    OC = "OC"
    CR = "CR"
    OL = "OL"
    SCC = "SCC"
    POI = "POI"


@dataclass(frozen=True, slots=True)
class Subset:
    """One detection source, or one split of it, as a dataset of questions uses it.

    Attributes:
        name: Value of the ``subset`` column.
        scenario: ``driving``, ``aerial`` or ``underwater``; the dataset's name for others.
        source: Name in the table of sources.
        pictures: Pictures that are sampled; None for all.
        small_area_px: An object is small if its area is at most this, in px².
        max_pixels: Larger pictures are left out (the authors' generator, SODA-D only).
        shrink_to_small: Scale each picture so that its largest labelled object is small.
        min_side_px: Pictures whose shorter side falls under this after scaling are left out
            (Table 1's minimum).
    """

    name: str
    scenario: str
    source: str
    pictures: int | None = None
    small_area_px: float = SMALL_AREA_PX
    max_pixels: int | None = None
    shrink_to_small: bool = False
    min_side_px: int = 0


SUBSETS: Mapping[str, Subset] = MappingProxyType(
    {
        subset.name: subset
        for subset in (
            Subset("driving", "driving", "soda-d", 1072, max_pixels=6_000_000),
            Subset("a-visdrone", "aerial", "visdrone", 514),
            Subset("a-aitod", "aerial", "ai-tod", 410),
            Subset("a-soda", "aerial", "soda-a", 328),
            Subset(
                "underwater",
                "underwater",
                "ruod",
                710,
                shrink_to_small=True,
                min_side_px=233,
            ),
        )
    }
)
"""The subsets of SOU-VQA with the pictures that are sampled of each (Table 1)."""

TRAIN_SUBSETS: Mapping[str, Subset] = MappingProxyType(
    {
        name: replace(SUBSETS[name], pictures=pictures)
        for name, pictures in {
            "driving": 661,
            "a-visdrone": 317,
            "a-aitod": 253,
            "a-soda": 202,
            "underwater": 438,
        }.items()
    }
)
"""The subsets of SOU-Train: 1,871 pictures shared out as SOU-VQA's (not in the paper)."""

GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "driving": ("driving",),
        "aerial": ("a-visdrone", "a-aitod", "a-soda"),
        "underwater": ("underwater",),
        "all": tuple(SUBSETS),
        "a-visdrone": ("a-visdrone",),
        "a-aitod": ("a-aitod",),
        "a-soda": ("a-soda",),
    }
)
"""Config name without a sub-task -> the subsets it holds, in the order of their rows."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What one config holds: rows of these subsets, of one sub-task or of all."""

    subsets: tuple[str, ...]
    task: Task | None = None


CONFIGS: Mapping[str, Selection] = MappingProxyType(
    {name: Selection(subsets) for name, subsets in GROUPS.items()}
    | {
        f"{name}-{task.lower()}": Selection(subsets, task)
        for name, subsets in GROUPS.items()
        for task in Task
    }
)
"""All 49 config names -> what they hold."""
