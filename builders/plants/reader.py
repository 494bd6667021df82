"""Find and read the folders of the plant set (``Plant/``, ``Stacks/``, ``Tray/``).

Three sources say how many leaves a picture has, and none is trusted alone: a picture is taken if
the ids in ``_bbox.csv`` are those in ``_label.png``, each box is the smallest rotated rectangle
around its leaf's pixels (see ``boxes``), and ``Leaf_counts.csv``, where there is one, says the same
number. The points in ``_centers.png`` have no ids and are known to be incomplete: a wrong number of
them, or a broken file, is a notice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath

from soubench.builders.errors import FormatError, PictureError
from soubench.builders.images import inspect_picture
from soubench.builders.plants.boxes import box_fault
from soubench.builders.plants.labels import (
    Leaf,
    Metadata,
    Notice,
    count_center_points,
    read_label_picture,
    read_leaf_boxes,
    read_leaf_counts,
    read_metadata,
)
from soubench.builders.scene import ReadReport
from soubench.builders.sources._files import Files


class Subset(StrEnum):
    """The labelled parts of the set."""

    ARA2012 = "ara2012"
    ARA2013 = "ara2013-canon"
    TOBACCO = "tobacco"
    STACKS_ARA2012 = "stacks-ara2012"
    STACKS_ARA2013 = "stacks-ara2013-canon"


_FOLDERS = {
    ("plant", "ara2012"): Subset.ARA2012,
    ("plant", "ara2013-canon"): Subset.ARA2013,
    ("plant", "tobacco"): Subset.TOBACCO,
    ("stacks", "ara2012"): Subset.STACKS_ARA2012,
    ("stacks", "ara2013-canon"): Subset.STACKS_ARA2013,
}
_WITHOUT_LEAVES = {
    ("plant", "ara2013-rpi"): "rpi_picture_without_labels",
    ("tray", "ara2012"): "tray_picture",
    ("tray", "ara2013-canon"): "tray_picture",
    ("tray", "ara2013-rpi"): "tray_picture",
}
_KINDS = ("rgb.png", "label.png", "centers.png", "bbox.csv")


@dataclass(frozen=True, slots=True)
class PictureFiles:
    """The files of one picture, found but not read.

    Attributes:
        subset: Where it belongs.
        name: Its name within the subset, such as ``ara2012_plant001`` or
            ``stack_01/ara2012_plant01_frame01``.
        plant_id: Pictures that may show one plant share it, as far as the files tell.
        where: Its place in the set, for notices; the same on every machine.
        files: Kind (``rgb.png``, ``label.png``, ``centers.png``, ``bbox.csv``) -> path; what is
            missing is left out.
        leaf_count: The count in ``Leaf_counts.csv``; None where it has none.
    """

    subset: Subset
    name: str
    plant_id: str
    where: str
    files: Mapping[str, Path]
    leaf_count: int | None


@dataclass(frozen=True, slots=True)
class PlantPicture:
    """One labelled picture.

    Attributes:
        image_path: The picture file.
        subset: Where it belongs.
        name: See ``PictureFiles``.
        plant_id: See ``PictureFiles``.
        width: Width in px.
        height: Height in px.
        leaves: All leaves, in the order of the file.
    """

    image_path: Path
    subset: Subset
    name: str
    plant_id: str
    width: int
    height: int
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one picture: ``picture`` is None if it was dropped, ``notices`` say why."""

    picture: PlantPicture | None
    notices: tuple[Notice, ...]


def find_pictures(root: Path, report: ReadReport) -> list[PictureFiles]:
    """List the labelled pictures below a folder, by subset, then by name.

    Args:
        root: The folder of the set, a folder above it (copies nest it twice), or one in it.
        report: Counts the pictures that have no leaf labels: ``rpi_picture_without_labels`` and
            ``tray_picture``.

    Raises:
        FormatError: No labelled folder is there, one is there twice, or a table is broken.
    """
    if not root.is_dir():
        raise FormatError(f"{root}: there is no such folder; pass the folder of the plant set")
    files = Files.below(root.resolve())
    # A root inside the set ("Plant", "Plant/Tobacco") is told by its own name.
    above = files.root.parts[-3:]
    folders: dict[Subset, dict[str, dict[str, Path]]] = {}
    homes: dict[Subset, Path] = {}
    for path in files.paths:
        parts = (*above, *path.parts)
        depth, subset = _subset_of(parts, report)
        if subset is None:
            continue
        home = files.root.joinpath(*path.parts[: max(0, depth - len(above))])
        if homes.setdefault(subset, home) != home:
            raise FormatError(
                f"{root}: {subset} is there twice, in {homes[subset]} and in {home}. "
                "Pass the folder of one copy."
            )
        inside = PurePosixPath(*parts[depth:])
        stem, _, kind = inside.name.rpartition("_")
        if inside.name in ("Leaf_counts.csv", "Metadata.csv"):
            stem, kind = "", inside.name
        if kind in (*_KINDS, "Leaf_counts.csv", "Metadata.csv"):
            name = (inside.parent / stem).as_posix() if stem else ""
            folders.setdefault(subset, {}).setdefault(name, {})[kind] = files.root / path
    if not folders:
        raise FormatError(
            f"{root}: expected Plant/Ara2012, Plant/Ara2013-Canon, Plant/Tobacco, Stacks/Ara2012 "
            f"or Stacks/Ara2013-Canon somewhere below, found none among {len(files.paths)} files. "
            "Pass the folder Plant_Phenotyping_Datasets."
        )
    return [
        picture
        for subset in Subset
        if subset in homes
        for picture in _listed(subset, homes[subset], folders.get(subset, {}), report)
    ]


def _subset_of(parts: tuple[str, ...], report: ReadReport) -> tuple[int, Subset | None]:
    """Return how many leading parts name the subset's folder, and the subset."""
    folded = [part.casefold() for part in parts]
    for i in range(len(folded) - 2):
        subset = _FOLDERS.get((folded[i], folded[i + 1]))
        if subset is not None:
            return i + 2, subset
        reason = _WITHOUT_LEAVES.get((folded[i], folded[i + 1]))
        if reason is not None and folded[-1].endswith("_rgb.png"):
            report.drop(reason, "/".join(parts[i:]))
    return 0, None


def _listed(
    subset: Subset, home: Path, names: dict[str, dict[str, Path]], report: ReadReport
) -> Iterator[PictureFiles]:
    tables = names.pop("", {})
    counts = read_leaf_counts(tables["Leaf_counts.csv"]) if "Leaf_counts.csv" in tables else {}
    metadata = read_metadata(tables["Metadata.csv"]) if "Metadata.csv" in tables else {}
    if subset is Subset.ARA2013 and names and not metadata:
        raise FormatError(
            f"{home}: expected Metadata.csv beside the {len(names)} pictures, found none or an "
            "empty one. Only the genotypes in it tell pictures of different plants apart. Copy it "
            "from the original set."
        )
    for name in sorted(counts.keys() - names.keys()):
        report.repair("counted_plant_without_files", f"{subset}/Leaf_counts.csv {name}")
    for name in sorted(names):
        where = f"{subset}/{name}"
        plant = _plant_id(subset, name, metadata.get(name))
        if plant is None:
            report.drop("plant_without_genotype", where)
            continue
        yield PictureFiles(subset, name, plant, where, names[name], counts.get(name))


def _plant_id(subset: Subset, name: str, metadata: Metadata | None) -> str | None:
    """Return what pictures of one plant surely have in common.

    The number in ``plant001`` counts pictures, not plants: the set shows some twenty plants of
    Ara2013 at twenty different hours under 165 numbers. What tells plants apart is the genotype
    (several plants of one genotype stay together), for tobacco the treatment (one growing plant
    each), for stacks the folder. Of Ara2012 nothing is known.
    """
    if subset is Subset.ARA2013:
        return f"{subset}/{metadata.kind}" if metadata else None
    if subset is Subset.TOBACCO and metadata:
        return f"{subset}/{metadata.treatment}"
    if subset in (Subset.STACKS_ARA2012, Subset.STACKS_ARA2013):
        return f"{subset}/{name.rpartition('/')[0] or name.rpartition('_')[0]}"
    return f"{subset}/{name}"


def read_picture(found: PictureFiles, *, max_pixels: int) -> Outcome:
    """Read the labels of one picture and the header of the picture itself.

    Args:
        found: Its files.
        max_pixels: Larger pictures and labels are dropped, in px.

    Returns:
        The picture, or the reason why there is none: one of the picture's own reasons (see
        ``inspect_picture``), the same of the label (``label_truncated``, ..), ``bbox_missing``,
        ``picture_turned``, ``label_size_differs``, ``label_and_boxes_disagree``,
        ``box_not_rectangle``, ``box_off_its_leaf``, ``box_too_large``, ``leaf_counts_disagree``.

    Raises:
        FormatError: A label file cannot be understood.
    """
    notices: list[Notice] = []

    def dropped(reason: str, why: str) -> Outcome:
        return Outcome(None, (*notices, Notice("drop", reason, f"{found.where}: {why}")))

    for kind in ("rgb.png", "bbox.csv", "label.png"):
        if kind not in found.files:
            reason = {"rgb.png": "picture_missing"}.get(kind, f"{kind.partition('.')[0]}_missing")
            return dropped(reason, f"there is no _{kind}")
    image_path = found.files["rgb.png"]
    try:
        info = inspect_picture(image_path, max_pixels=max_pixels)
        label = read_label_picture(found.files["label.png"], max_pixels=max_pixels)
    except PictureError as error:
        return dropped(error.reason, without_folder(error, found))
    leaves, row_notices = read_leaf_boxes(found.files["bbox.csv"], f"{found.where}_bbox.csv")
    notices += row_notices
    if info.orientation != 1:
        return dropped("picture_turned", "EXIF turns the picture away from its labels")
    if label.size_wh != (info.width, info.height):
        return dropped("label_size_differs", f"{label.size_wh}, not {info.width, info.height}")
    odd = sorted({leaf.leaf_id for leaf in leaves} ^ label.ids)
    if odd:
        return dropped("label_and_boxes_disagree", f"only one of them has the ids {odd[:6]}")
    for leaf in leaves:
        fault = box_fault(leaf.quad_xy8, label.hull(leaf.leaf_id))
        if fault is not None:
            return dropped(fault.reason, f"box of leaf {leaf.leaf_id}: {fault.measured}")
    if found.leaf_count not in (None, len(leaves)):
        return dropped(
            "leaf_counts_disagree", f"Leaf_counts.csv {found.leaf_count}, labels {len(leaves)}"
        )
    if "centers.png" in found.files:
        notices += _check_center_points(found, len(leaves), max_pixels)
    picture = PlantPicture(
        image_path,
        found.subset,
        found.name,
        found.plant_id,
        info.width,
        info.height,
        tuple(leaves),
    )
    return Outcome(picture, tuple(notices))


def _check_center_points(found: PictureFiles, leaves: int, max_pixels: int) -> list[Notice]:
    path = found.files["centers.png"]
    try:
        points = count_center_points(path, max_pixels=max_pixels)
    except (FormatError, PictureError) as error:
        reason = "centers_unreadable"
        return [Notice("repair", reason, f"{found.where}: {without_folder(error, found)}")]
    if points == leaves:
        return []
    return [Notice("repair", "center_points_differ", f"{found.where}: {points} of {leaves}")]


def without_folder(error: FormatError | PictureError, found: PictureFiles) -> str:
    """Name the file in a message without its folder: reports are the same on every machine."""
    message = str(error)
    for path in found.files.values():
        message = message.replace(str(path), path.name)
    return message


def count(outcome: Outcome, report: ReadReport) -> None:
    """Add one picture's outcome to a report."""
    for notice in outcome.notices:
        (report.drop if notice.kind == "drop" else report.repair)(notice.reason, notice.where)
    if outcome.picture is not None:
        report.pictures += 1
        report.objects += len(outcome.picture.leaves)


def read(root: Path, report: ReadReport) -> Iterator[PlantPicture]:
    """Read every labelled picture below a folder, by subset, then by name.

    Args:
        root: See `find_pictures`.
        report: Counts what was kept, dropped or noticed.

    Raises:
        FormatError: See `find_pictures` and `read_picture`.
    """
    for found in find_pictures(root, report):
        outcome = read_picture(found, max_pixels=report.max_pixels)
        count(outcome, report)
        if outcome.picture is not None:
            yield outcome.picture
