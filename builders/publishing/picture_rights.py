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

OPEN_LICENSES = frozenset(
    {
        *("CC0-1.0", "CC-BY-4.0", "CC-BY-3.0", "CC-BY-SA-4.0", "CC-BY-SA-3.0", "PDDL-1.0"),
        *("CC-BY-NC-4.0", "CC-BY-NC-SA-4.0", "Apache-2.0", "MIT"),
    }
)
"""Licenses, by their SPDX names, of pictures that may go with a notice."""

_STATE_NONE = "records state no license"
_ONE_SOURCE = {"primitive-shapes": "shapes", "plant-leaves": "plants"}


def rights_of(dataset: str, subset: str, report: Mapping[str, Any]) -> PictureRights:
    """Return what may be published of one subset of a built dataset.

    >>> rights_of("primitive-shapes", "", {}).pictures_may_go
    True

    Args:
        dataset: Name of the dataset.
        subset: One of its subsets, or of its sources; empty where it has none.
        report: Its build report.
    """
    licenses = report.get("source_licenses", {}).get(subset)
    if licenses is not None:
        return rights_of_source(subset, _said(licenses))
    read = report.get("subsets", {}).get(subset, {}).get("read", {})
    source = str(read.get("source") or _ONE_SOURCE.get(dataset, "unknown"))
    return RIGHTS.get(source, PictureRights(source, "not known to soubench; ask its authors"))


def _said(licenses: Mapping[str, int]) -> str:
    """Return the licenses that records state, and how many state none.

    >>> _said({"CC-BY-4.0": 18, "": 4})
    'CC-BY-4.0, 4 of 22 records state no license'
    >>> _said({"": 4})
    'none stated'
    """
    stated = sorted(name for name in licenses if name)
    if not stated:
        return "none stated"
    if "" in licenses:
        stated.append(f"{licenses['']} of {sum(licenses.values())} {_STATE_NONE}")
    return ", ".join(stated)


def left_out_name(source: str, license_names: str) -> str:
    """Return how a source whose pictures may not go is named in a message.

    >>> left_out_name("my-survey", "CC-BY-4.0, 4 of 22 records state no license")
    'my-survey (4 of 22 records state no license)'
    >>> left_out_name("visdrone", "none stated")
    'visdrone'
    """
    last = license_names.rpartition(", ")[2]
    return f"{source} ({last})" if last.endswith(_STATE_NONE) else source


def rights_of_source(source: str, license_names: str) -> PictureRights:
    """Return what may be published of a source.

    >>> rights_of_source("my-survey", "CC BY 4.0").pictures_may_go
    True
    >>> rights_of_source("my-survey", "CC0-1.0, none stated").pictures_may_go
    False
    >>> rights_of_source("visdrone", "CC-BY-4.0").pictures_may_go
    False

    Args:
        source: Its name; what is listed in ``RIGHTS`` goes before what records say.
        license_names: The licenses that records state of its pictures, with commas between.
    """
    if source in RIGHTS:
        return RIGHTS[source]
    # "CC BY 4.0" is what people write.
    stated = {name.strip().replace(" ", "-").upper() for name in license_names.split(",")}
    free = stated <= {name.upper() for name in OPEN_LICENSES}
    return PictureRights(
        source,
        license_names,
        pictures_may_go=free,
        notice=f"Pictures of {source}: {license_names}, as their records state" if free else "",
    )
