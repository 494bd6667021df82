"""What may be published of each source: the pictures too, or the labels alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class PictureRights:
    """What a source says about its data.

    Attributes:
        source: Name of the source.
        license: Its license, for a card.
        pictures_may_go: Whether its pictures may be redistributed.
        notice: What has to stand beside its pictures.
    """

    source: str
    license: str
    pictures_may_go: bool = False
    notice: str = ""


RIGHTS: Mapping[str, PictureRights] = MappingProxyType(
    {
        rights.source: rights
        for rights in (
            PictureRights("soda-d", "none stated"),
            PictureRights("visdrone", "none stated"),
            PictureRights("ai-tod", "CC BY-NC-SA 4.0, and xView's terms for the pictures"),
            PictureRights(
                "soda-a",
                "CC BY-NC 4.0",
                pictures_may_go=True,
                notice="SODA-A pictures, CC BY-NC 4.0: no commercial use, name the authors. "
                "Copies with a red outline are changed by soubench",
            ),
            PictureRights("ruod", "none stated"),
            PictureRights("plants", "none stated; for research, with citation of the authors"),
            PictureRights("shapes", "Apache-2.0, everything is drawn", pictures_may_go=True),
        )
    }
)
"""Source -> what it allows. What is not listed is not ours to give away: labels only."""

_ONE_SOURCE = {"primitive-shapes": "shapes", "plant-leaves": "plants"}


def rights_of(dataset: str, subset: str, report: Mapping[str, Any]) -> PictureRights:
    """Return what may be published of one subset of a built dataset.

    >>> rights_of("primitive-shapes", "", {}).pictures_may_go
    True

    Args:
        dataset: Name of the dataset.
        subset: One of its subsets; empty where it has none.
        report: Its build report.
    """
    read = report.get("subsets", {}).get(subset, {}).get("read", {})
    source = str(read.get("source") or _ONE_SOURCE.get(dataset, "unknown"))
    return RIGHTS.get(source, PictureRights(source, "not known to soubench; ask its authors"))
