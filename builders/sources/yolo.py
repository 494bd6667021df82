"""YOLO: one text file of normalized rows per picture, and a YAML file that says where they lie."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # PyYAML ships no types

from soubench.builders.errors import FormatError, SplitError
from soubench.builders.images import PICTURE_SUFFIXES
from soubench.builders.scene import Mask, ReadReport, Scene, normalized
from soubench.builders.sources._door import RawObject, RawPicture, Source, make_scene
from soubench.builders.sources._files import Files, folder_and_up, listed, names_split
from soubench.builders.sources._values import (
    read_lines,
    read_text,
    shorten,
    to_floats,
    to_name,
)

CATEGORIES = None
PRINTED_SHARE = 1e-6
"""Tools write six decimals, so an edge may pass the picture's by this much through rounding."""

_YAML_SUFFIXES = (".yaml", ".yml")
_DEPTHS = {"[": 1, "{": 1, "]": -1, "}": -1}
_MAX_DEPTH = 100
_MAX_YAML_BYTES = 1_000_000
_SETTINGS = frozenset({"path", "names", "nc"})
_BOX_FIELDS, _RESULT_FIELDS, _QUAD_FIELDS, _MIN_POLYGON_FIELDS = 5, 6, 9, 7


def read(root: Path, split: str, report: ReadReport) -> Iterator[Scene]:
    """Read the pictures that the YAML file gives for a split.

    Coordinates are shares of the upright picture: where EXIF turns a picture, the labels are
    taken to be made on the turned one. A row of 5 values is a box. A row of 9 is an oriented box,
    unless the split has polygons of another number of corners: then it is a polygon of four. A
    polygon (7 values or more) becomes the box around it and a mask.

    Args:
        root: Folder with a YAML file that has ``names``, a folder of pictures or labels in it, or
            the YAML file itself.
        split: Key of the YAML file: ``train``, ``val``, ``test`` or any other.
        report: Filled as the scenes are drawn.

    Yields:
        Scenes by the picture's path without suffix, relative to the dataset's folder, which is
        also the group. Categories are those of ``names`` in the order of their ids. A picture
        without label file is a scene without objects, and counted as ``label_missing``.

    Raises:
        FormatError: If the YAML file or the split is missing or makes no sense, no picture of the
            split has a label file, or a label file holds detection results.
    """
    report.source, report.split = "yolo", split
    path = _find_yaml(root, split)
    document = _read_yaml(path)
    names = _read_names(document, path, report)
    report.categories = tuple(dict.fromkeys(names.values()))
    pictures = _find_pictures(document, path, split, report)
    labels = {picture: _label_of(picture) for picture in pictures}
    forms = _RowForms([label for label in labels.values() if label is not None])
    if not forms.labels:
        looked = _label_places(next(iter(pictures)))
        raise FormatError(
            f"{path}: none of the {len(pictures)} picture(s) of {split!r} has a label file, such "
            f"as {looked[0]}. Put the folder 'labels' beside 'images'."
        )
    _count_orphans(labels, report)
    for picture, image_id in sorted(pictures.items(), key=lambda item: item[1]):
        label = labels[picture]
        if label is None:
            report.repair("label_missing", image_id)
        scene = make_scene(
            RawPicture(
                path=picture,
                image_id=image_id,
                group_id=image_id,
                label_size_wh=None,
                objects=read_rows(label, names, forms, report) if label is not None else (),
                normalized=True,
            ),
            Source("yolo", split),
            report,
        )
        if scene is not None:
            yield scene


def _find_yaml(root: Path, split: str) -> Path:
    if root.is_file():
        return root
    looked: list[Path] = []
    for folder in folder_and_up(root, split):
        looked.append(folder)
        present = Files.below(folder).with_suffix(_YAML_SUFFIXES)
        fitting = [path for path in present if _has_names(folder / path)]
        depth = min((len(path.parts) for path in fitting), default=0)
        fitting = [path for path in fitting if len(path.parts) == depth]
        if len(fitting) > 1:
            raise FormatError(
                f"{folder}: {len(fitting)} YAML files have 'names': {listed(fitting)}. Pass the "
                "path of one of them."
            )
        if fitting:
            return folder / fitting[0]
    raise FormatError(
        f"yolo: expected a YAML file (usually data.yaml) with 'names' and {split!r} below "
        f"{' or '.join(map(str, looked))}, found {listed(present) if present else 'none'}. Pass "
        "the dataset's folder, or the path of the YAML file itself."
    )


def _has_names(path: Path) -> bool:
    try:
        if path.stat().st_size > _MAX_YAML_BYTES:
            return False
        return re.search(rb"\bnames\b[\"']?\s*:", path.read_bytes()) is not None
    except OSError:
        return False


def _read_yaml(path: Path) -> dict[str, Any]:
    """Read the file with every scalar as text, so that a class ``no`` or ``1e3`` keeps its name.

    Aliases are refused, since a few of them can stand for a document without end; so are keys
    that are there twice, of which YAML readers silently take one.
    """
    if path.stat().st_size > _MAX_YAML_BYTES:
        raise FormatError(f"{path}: expected a YAML file of a dataset, found one of over 1 MB")
    text = read_text(path)
    if max(accumulate(_DEPTHS.get(character, 0) for character in text), default=0) > _MAX_DEPTH:
        # The scanner looks at every open bracket again for each new one.
        raise FormatError(f"{path}: not a YAML document: over {_MAX_DEPTH} open brackets")
    try:
        if any(isinstance(e, yaml.AliasEvent) for e in yaml.parse(text, Loader=yaml.BaseLoader)):
            raise FormatError(f"{path}: aliases (*name) are not read. Write the value in full.")
        node = yaml.compose(text, Loader=yaml.BaseLoader)
        document = yaml.load(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise FormatError(f"{path}: not a YAML document: {shorten(str(error))}") from error
    if not isinstance(document, dict) or "names" not in document:
        raise FormatError(
            f"{path}: expected a mapping with 'names' and one key for each split, found "
            f"{shorten(document)}"
        )
    for mapping in (node, *(value for _, value in node.value)):
        if isinstance(mapping, yaml.MappingNode):
            counts = Counter(key.value for key, _ in mapping.value if isinstance(key.value, str))
            twice = [key for key, count in counts.items() if count > 1]
            if twice:
                raise FormatError(f"{path}: the key {shorten(twice[0])} is there twice")
    return document


def _read_names(document: Mapping[str, Any], path: Path, report: ReadReport) -> dict[int, str]:
    """Return the category of each id; ids count from 0 without a gap."""
    listing, stated = document["names"], document.get("nc", "")
    given = dict(enumerate(listing)) if isinstance(listing, list) else listing
    if not isinstance(given, dict) or not given:
        raise FormatError(
            f"{path}: expected 'names' as a list or a map of ids, found {shorten(listing)}"
        )
    names: dict[int, str] = {}
    for key, value in given.items():
        name = to_name(value)
        if name is None or not re.fullmatch(r"[0-9]{1,9}", str(key)) or int(key) in names:
            raise FormatError(
                f"{path}: expected one name for each class id under 'names', found "
                f"{shorten(key)}: {shorten(value)}"
            )
        names[int(key)] = name
    count = max(names) + 1
    if stated:
        if not isinstance(stated, str) or not re.fullmatch(r"[0-9]{1,9}", stated):
            raise FormatError(
                f"{path}: expected a number of classes as 'nc', found {shorten(stated)}"
            )
        count = int(stated)
    if len(names) != count or max(names) != count - 1:
        # A made-up name would be asked about, and leaving the id out would drop its objects.
        unnamed = next((i for i in range(count) if i not in names), None)
        raise FormatError(
            f"{path}: 'names' has {len(names)} name(s) with ids up to {max(names)}, but there are "
            f"{count} classes{'' if unnamed is None else f' and class {unnamed} has no name'}. "
            "Name every class from 0 on, and let 'nc' be their number."
        )
    spelling: dict[str, str] = {}
    for key in sorted(names):
        first = spelling.setdefault(normalized(names[key]), names[key])
        if key and first in (names[i] for i in range(key)):
            where = f"{path.name}: id {key}, {names[key]!r}, is read as {first!r}"
            report.repair("duplicate_category", where)
        names[key] = first
    return {key: names[key] for key in sorted(names)}


def _find_pictures(
    document: Mapping[str, Any], path: Path, split: str, report: ReadReport
) -> dict[Path, str]:
    """Return the pictures of a split with their ids."""
    here = _normal(path.absolute().parent)
    stated = document.get("path") or "."
    if not isinstance(stated, str):
        raise FormatError(f"{path}: expected a folder as 'path', found {shorten(stated)}")
    # The path is often one on another machine, or relative to a folder that the tool knows.
    base = next((p for p in _spelled(here, stated) if _is_folder(p)), here)
    pictures: dict[Path, str] = {}
    suffixed: dict[Path, str] = {}
    for entry in _entries(document, path, split):
        places = [
            place for start in dict.fromkeys((base, here)) for place in _spelled(start, entry)
        ]
        place = next((p for p in places if _is_folder(p) or _is_file(p)), None)
        if place is None:
            raise SplitError(
                f"{path}: {split!r} is {shorten(entry)}, and there is neither a folder nor a list "
                f"at {' or '.join(shorten(str(p)) for p in places)}. Correct the entry or 'path'."
            )
        if place.parent == place:
            raise FormatError(f"{path}: {split!r} is the root of the disk. Correct the entry.")
        is_list = _is_file(place)
        found = _read_list(place, base, report) if is_list else _list_folder(place)
        for picture in found:
            if picture in pictures:
                report.repair("duplicate_picture", shorten(str(picture)))
                continue
            relative = _relative(picture, (base, place.parent if is_list else place))
            suffixed[picture] = relative.as_posix()
            pictures[picture] = relative.with_suffix("").as_posix()
    if not pictures:
        raise FormatError(f"{path}: no picture was found for {split!r}. Correct the entry.")
    counts = Counter(pictures.values())
    for picture, image_id in pictures.items():
        if counts[image_id] > 1:
            report.repair("image_id_shared", suffixed[picture])
            pictures[picture] = suffixed[picture]
    return pictures


def _entries(document: Mapping[str, Any], path: Path, split: str) -> list[str]:
    keys = [key for key in document if key not in _SETTINGS and document[key]]
    fitting = [key for key in keys if key == split] or [k for k in keys if names_split(k, split)]
    if len(fitting) != 1:
        raise SplitError(
            f"{path}: expected a folder or list of pictures under {split!r}, found the keys "
            f"{', '.join(map(shorten, keys[:6])) or 'none'}. Pass the split by one of them."
        )
    value = document[fitting[0]]
    entries = value if isinstance(value, list) else [value]
    if not all(isinstance(entry, str) and entry.strip() for entry in entries):
        raise FormatError(
            f"{path}: expected a path or a list of paths under {split!r}, found {shorten(value)}"
        )
    return entries


def _spelled(start: Path, entry: str) -> list[Path]:
    """Return the places that an entry may mean, the literal one first.

    Exports write ``../train/images`` for a folder that lies beside the YAML file.
    """
    text = entry.strip().replace("\\", "/")
    places = [_normal(start / text)]
    if text.startswith("../"):
        places.append(_normal(start / text.removeprefix("../")))
    return places


def _normal(path: Path) -> Path:
    """Take ``..`` out of a path by its letters; links stay what they are."""
    return Path(os.path.normpath(path))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _list_folder(folder: Path) -> list[Path]:
    return [folder / path for path in Files.below(folder).with_suffix(PICTURE_SUFFIXES)]


def _read_list(path: Path, base: Path, report: ReadReport) -> list[Path]:
    """Return the pictures that a list file names, relative to the list or the dataset."""
    found: list[Path] = []
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        places = [place for start in (path.parent, base) for place in _spelled(start, line)]
        picture = next((place for place in places if _is_file(place)), None)
        if picture is None:
            report.drop("picture_missing", f"{path.name}:{number}: {shorten(line.strip())}")
        else:
            found.append(picture)
    return found


def _relative(picture: Path, folders: Sequence[Path]) -> Path:
    for folder in folders:
        if picture.is_relative_to(folder):
            return picture.relative_to(folder)
    return Path(picture.name)


def _label_places(picture: Path) -> list[Path]:
    """Return where a picture's label may lie: mirrored in ``labels``, then beside it."""
    name = f"{picture.stem}.txt"
    folders = list(picture.parent.parts)
    places = [picture.parent / name]
    last = max((i for i, part in enumerate(folders) if part.casefold() == "images"), default=None)
    if last is not None:
        for word in dict.fromkeys(("Labels" if folders[last][0] == "I" else "labels", "labels")):
            places.insert(0, Path(*folders[:last], word, *folders[last + 1 :]) / name)
    return places


def _label_of(picture: Path) -> Path | None:
    return next((place for place in _label_places(picture) if _is_file(place)), None)


def _count_orphans(labels: Mapping[Path, Path | None], report: ReadReport) -> None:
    """Count label files that have no picture in the folder that their folder mirrors."""
    mirrored = {
        label.parent: picture.parent
        for picture, label in labels.items()
        if label is not None and label.parent != picture.parent
    }
    for folder in sorted(mirrored):
        stems = {path.stem for path in _list_folder(mirrored[folder])}
        for path in sorted(folder.glob("*.txt")):
            # Labeling tools leave their list of classes here.
            if path.stem not in stems and path.name not in ("classes.txt", "labels.txt"):
                report.drop("picture_missing", path.name)


@dataclass(frozen=True)
class _RowForms:
    """What the rows of a split are, where one row alone cannot tell."""

    labels: Sequence[Path]

    @cached_property
    def nine_is_quad(self) -> bool:
        """Whether a row of nine values is an oriented box; read from all files at first need."""
        return not any(
            _is_polygon(len(line.split())) for label in self.labels for line in read_lines(label)
        )


def _is_polygon(count: int) -> bool:
    """Say whether a row of so many values can only be a polygon."""
    return count >= _MIN_POLYGON_FIELDS and count % 2 == 1 and count != _QUAD_FIELDS


def read_rows(
    path: Path, names: Mapping[int, str], forms: _RowForms, report: ReadReport
) -> list[RawObject]:
    """Read one label file.

    Args:
        path: The text file.
        names: The category of each id.
        forms: What a row of nine values is.
        report: Counts rows that are dropped.

    Returns:
        Records in shares of the picture, with the number of the line as id.

    Raises:
        FormatError: If the rows are of another format, or detection results.
    """
    rows = enumerate(read_lines(path), 1)
    records = (_read_row(line, path, number, names, forms, report) for number, line in rows)
    return [record for record in records if record is not None]


def _read_row(
    line: str,
    path: Path,
    number: int,
    names: Mapping[int, str],
    forms: _RowForms,
    report: ReadReport,
) -> RawObject | None:
    fields = line.split()
    if not fields:
        return None
    if "," in line:
        raise FormatError(
            f"{path}:{number}: expected values separated by blanks, found commas: "
            f"{shorten(line.strip())}. Use the reader of the format that the files are in."
        )
    values, count = to_floats(fields), len(fields)
    if values is not None and count == _RESULT_FIELDS:
        raise FormatError(
            f"{path}:{number}: found 6 values, and the sixth is a confidence: these look like "
            "detection results. Pass the dataset with the folder of the labels."
        )
    where = f"{path.name}:{number}: {shorten(line.strip())}"
    is_shape = count in (_BOX_FIELDS, _QUAD_FIELDS) or _is_polygon(count)
    if values is None or not is_shape or not values[0].is_integer():
        report.drop("malformed_record", where)
        return None
    name = names.get(int(values[0]))
    if name is None:
        report.drop("unknown_category", where)
        return None
    if count == _BOX_FIELDS:
        cx, cy, w, h = values[1:]
        (x, w), (y, h) = _span(cx - w / 2, cx + w / 2, w), _span(cy - h / 2, cy + h / 2, h)
        return RawObject(name, (x, y, w, h), None, "", str(number))
    points = values[1:]
    if count == _QUAD_FIELDS and forms.nine_is_quad:
        return RawObject(name, None, tuple(map(_snap, points)), "", str(number))
    xs, ys = points[0::2], points[1::2]
    (x, w), (y, h) = (_span(min(side), max(side), max(side) - min(side)) for side in (xs, ys))
    if any(point - point != 0 for point in points):
        # The smallest of numbers that are none is whichever comes first.
        x = y = w = h = float("nan")
    mask = Mask(size_hw=(0, 0), polygons=(points,))
    return RawObject(name, (x, y, w, h), None, "", str(number), mask)


def _span(start: float, end: float, size: float) -> tuple[float, float]:
    """Return the start and size of a side, its size as in the file unless an edge was moved."""
    low, high = _snap(start), _snap(end)
    return low, size if (low, high) == (start, end) else high - low


def _snap(share: float) -> float:
    """Put an edge on that of the picture if it passes it by rounding alone."""
    if -PRINTED_SHARE <= share < 0:
        return 0.0
    return 1.0 if 1 < share <= 1 + PRINTED_SHARE else share
