"""Pascal VOC: one XML file per picture, with boxes or (as in MAR20) corners."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from soubench.builders.errors import FormatError, PictureError, SplitError
from soubench.builders.images import PICTURE_SUFFIXES
from soubench.builders.scene import ReadReport, Scene
from soubench.builders.sources._door import (
    RawObject,
    RawPicture,
    Source,
    make_scene,
    settle_spellings,
)
from soubench.builders.sources._files import (
    Files,
    LabelledPair,
    PictureIndex,
    fold_name,
    label_parts,
    listed,
)
from soubench.builders.sources._values import read_lines, shorten, to_flag, to_name, to_number

CATEGORIES = None
KNOWN_NAMES = {"MAR20": tuple(f"A{number}" for number in range(1, 21))}
"""Class names by the ``database`` that a file says it is of."""

_LABELS, _LISTS = "annotations", "imagesets"
_PICTURES = ("jpegimages", "images")
_LAYOUT = "Annotations, JPEGImages and ImageSets/Main/<split>.txt"
_ID_SUFFIXES = (*sorted(PICTURE_SUFFIXES), ".xml")
_SIDES = ("xmin", "ymin", "xmax", "ymax")
_CORNERS = tuple(
    f"{axis}_{corner}"
    for corner in ("left_top", "right_top", "right_bottom", "left_bottom")
    for axis in "xy"
)
_CENTER_FORM = ("cx", "cy", "w", "h", "angle")
_ENCODING = re.compile(rb"\s*<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_SUPERSETS = {"gb2312": "gb18030", "gbk": "gb18030"}
"""Tools declare the small character set and write the large one."""


def read(root: Path, split: str, report: ReadReport) -> Iterator[Scene]:
    """Read the pictures that ``ImageSets/Main/<split>.txt`` lists.

    A set without any list, as labeling tools write it, is one split, whatever it is called: all
    of its XML files are read, and a notice ``split_not_listed`` is counted.

    Plain boxes are 1-based with inclusive corners, as VOC defines them: the left and top edge
    move by -1, the right and bottom edge stay. A set that counts from 0 is thus shifted by one
    px, which shows only where a corner is 0 (the door clips it and counts ``clipped``). Equal
    corners are a click without a drag, not an object, and dropped as ``degenerate``. Corners of
    oriented boxes (``robndbox``) are floats and taken as 0-based; the form of center, size and
    angle is turned into corners, the angle being radians from the x axis towards the y axis.
    Parts of an object are no objects. ``difficult`` objects do not count.

    Categories are the names found in the split, sorted.

    Args:
        root: Folder with ``Annotations``, ``JPEGImages`` and ``ImageSets``, the one above, or a
            folder of XML files in ``Annotations`` where it holds several.
        split: Name of the list without suffix; any name for a set without lists.
        report: Filled as the scenes are drawn.

    Yields:
        Scenes by the stem of the XML file, which is also the group. The ``filename`` inside is
        not used, and a notice is counted where it names another picture.

    Raises:
        FormatError: If the folders or the list are missing, a file is not well-formed XML, has a
            document type, or holds a shape or class that cannot be read.
    """
    report.source, report.split = "voc", split
    pairs = _pair(_find_set(root), split, report)
    # The names have to be known before the first scene; a second reading costs less than memory.
    names = Counter(
        raw.category for pair in pairs for raw in read_label(pair.label, ReadReport()).objects
    )
    spelling = settle_spellings(names, report)
    for pair in pairs:
        label = read_label(pair.label, report)
        scene = make_scene(
            RawPicture(
                path=pair.picture,
                image_id=pair.label.stem,
                group_id=pair.label.stem,
                label_size_wh=label.size_wh,
                objects=[raw._replace(category=spelling[raw.category]) for raw in label.objects],
            ),
            Source("voc", split),
            report,
        )
        if scene is not None:
            yield scene


@dataclass(frozen=True, slots=True)
class _Set:
    """Where one VOC set lies: the listed folder, and folders relative to it."""

    files: Files
    base: PurePosixPath
    labels: PurePosixPath


def _find_set(root: Path) -> _Set:
    if not root.is_dir():
        raise FormatError(f"{root}: there is no such folder; pass the dataset's folder")
    here = root.resolve() if root.name in ("", "..") else root
    chosen: tuple[str, ...] = ()
    top = here
    if _LABELS in (here.name.casefold(), here.parent.name.casefold()):
        top = here.parent if here.name.casefold() == _LABELS else here.parent.parent
        chosen = here.relative_to(top).parts
    elif here.name.casefold() in (*_PICTURES, _LISTS):
        top = here.parent
    files = Files.below(top)
    folders = sorted(
        {
            path.parent
            for path in files.with_suffix({".xml"})
            if path.parts[: len(chosen)] == chosen
            and any(part.casefold() == _LABELS for part in path.parts[:-1])
        }
    )
    if not folders:
        present = sorted({PurePosixPath(path.parts[0]) for path in files.paths})
        raise FormatError(
            f"{top}: expected a VOC set with {_LAYOUT}, found no XML file in a folder "
            f"'Annotations', but {listed(present) if present else 'nothing'}. Pass the folder "
            "that holds 'Annotations'."
        )
    if len(folders) > 1:
        raise FormatError(
            f"{top}: {len(folders)} folders hold XML files: {listed(folders)}. They may be "
            "different labels of the same pictures, so pass the path of one of them."
        )
    parts = folders[0].parts
    depth = next(i for i, part in enumerate(parts) if part.casefold() == _LABELS)
    return _Set(files, PurePosixPath(*parts[:depth]), folders[0])


def _pair(found: _Set, split: str, report: ReadReport) -> list[LabelledPair]:
    """Pair the labels of a split with their pictures, sorted by stem."""
    labels = [path for path in found.files.with_suffix({".xml"}) if path.parent == found.labels]
    exact = {label.stem: label for label in labels}
    folded = {fold_name(label.stem): label for label in reversed(labels)}
    index = PictureIndex(_picture_files(found), split)
    path = _find_list(found, split)
    if path is None:
        return _pair_all(found, labels, index, report)
    pairs: dict[PurePosixPath, LabelledPair | None] = {}
    for number, line in enumerate(read_lines(path), 1):
        name = line.strip()
        if not name:
            continue
        stem = PurePosixPath(name).stem if name.casefold().endswith(_ID_SUFFIXES) else name
        label = exact.get(name) or exact.get(stem) or folded.get(fold_name(stem))
        where = f"{path.name}:{number}: {shorten(name)}"
        if label is None:
            report.drop("label_missing", where)
        elif label in pairs:
            report.repair("duplicate_picture", where)
        else:
            pairs[label] = None
            try:
                picture = index.find_stem(label.stem)
            except PictureError as error:
                report.drop(error.reason, label.stem)
                continue
            pairs[label] = LabelledPair(found.files.root / label, picture)
    usable = [pair for pair in pairs.values() if pair is not None]
    if not usable:
        raise FormatError(
            f"{path}: none of the {len(pairs) + report.dropped['label_missing']} picture(s) listed "
            f"has both an XML file in {found.files.root / found.labels} and a picture below "
            f"{index.root}. Check the list, and put the pictures into 'JPEGImages'."
        )
    return sorted(usable, key=lambda pair: pair.label.stem)


def _pair_all(
    found: _Set, labels: list[PurePosixPath], index: PictureIndex, report: ReadReport
) -> list[LabelledPair]:
    """Pair all labels of a set without lists with their pictures, sorted by stem."""
    folder = found.files.root / found.labels
    report.repair("split_not_listed", f"{folder.name}: no list in ImageSets, so every XML file")
    pairs: list[LabelledPair] = []
    for label in labels:
        try:
            pairs.append(LabelledPair(found.files.root / label, index.find_stem(label.stem)))
        except PictureError as error:
            report.drop(error.reason, label.stem)
    if not pairs:
        raise FormatError(
            f"{folder}: none of the {len(labels)} XML file(s) has a picture below {index.root}. "
            "Put the pictures into 'JPEGImages'."
        )
    labelled = {fold_name(label.stem) for label in labels}
    for picture in index.split_paths():
        if fold_name(picture.stem) not in labelled:
            report.drop("label_missing", picture.name)
    return sorted(pairs, key=lambda pair: pair.label.stem)


def _picture_files(found: _Set) -> Files:
    """List the folder of the pictures; masks lie beside it and have the same names."""
    below = found.files.inside(found.base)
    folders = {path.parts[0] for path in below.with_suffix(PICTURE_SUFFIXES) if len(path.parts) > 1}
    for wanted in _PICTURES:
        for folder in sorted(folders):
            if folder.casefold() == wanted:
                return found.files.inside(found.base / folder)
    return below


def _find_list(found: _Set, split: str) -> Path | None:
    """Return the list of a split; None for a set without any list."""
    below = found.files.inside(found.base)
    lists = [
        path
        for path in below.with_suffix({".txt"})
        if path.parent.name.casefold() in ("main", _LISTS) and path.parts[0].casefold() == _LISTS
    ]
    fitting = [path for path in lists if path.stem.casefold() == split.casefold()]
    if not lists:
        return None
    if not fitting:
        raise SplitError(
            f"{below.root}: expected ImageSets/Main/{split}.txt with the names of the pictures, "
            f"found {listed(lists)}. Pass the split by the name of its list, or write the list."
        )
    return below.root / max(fitting, key=lambda path: path.parent.name.casefold() == "main")


class Label(NamedTuple):
    """One label file: its objects, numbered from 1, and the picture size that it states."""

    objects: list[RawObject]
    size_wh: tuple[float, float] | None


def read_label(path: Path, report: ReadReport) -> Label:
    """Read one label file.

    Args:
        path: The XML file.
        report: Counts objects that are dropped, and notices.

    Returns:
        The objects with the names of the file, and the size; None where a side is missing or 0.

    Raises:
        FormatError: As `read`.
    """
    document = _read_xml(path)
    if document.tag != "annotation":
        raise FormatError(
            f"{path}: expected a VOC file with the root <annotation>, found {shorten(document.tag)}"
        )
    parts = label_parts(document.findtext("filename", ""))
    own = fold_name(path.stem)
    if parts and own not in (fold_name(parts[-1]), fold_name(PurePosixPath(parts[-1]).stem)):
        report.repair("filename_mismatch", f"{path.name} names {shorten(parts[-1])}")
    database = document.findtext("source/database", "").strip()
    objects: list[RawObject] = []
    for number, record in enumerate(document.findall("object"), 1):
        raw = _read_object(record, path, str(number), report)
        if raw is None:
            continue
        if database in KNOWN_NAMES:
            raw = _name_of_database(raw, database, path, report)
        objects.append(raw)
    width = to_number(document.findtext("size/width")) or 0
    height = to_number(document.findtext("size/height")) or 0
    return Label(objects, (width, height) if width > 0 and height > 0 else None)


def _name_of_database(raw: RawObject, database: str, path: Path, report: ReadReport) -> RawObject:
    names = {name.casefold(): name for name in KNOWN_NAMES[database]}
    name = names.get(raw.category.casefold())
    if name is None:
        raise FormatError(
            f"{path}: object {raw.record_id}: the class is {shorten(raw.category)}, and "
            f"{database} has {KNOWN_NAMES[database][0]} to {KNOWN_NAMES[database][-1]}. Correct "
            "the label, or the <database> if the file is not of that set."
        )
    if name != raw.category:
        where = f"{path.name}: object {raw.record_id}: {raw.category!r} is read as {name!r}"
        report.repair("category_spelling", where)
    return raw._replace(category=name)


def _read_object(
    record: Element, path: Path, record_id: str, report: ReadReport
) -> RawObject | None:
    name, difficult = to_name(record.findtext("name")), to_flag(record.findtext("difficult"))
    # Parts have boxes too, one level down: only the object's own are taken.
    oriented, plain = record.findall("robndbox"), record.findall("bndbox")
    if oriented and (record.findtext("type") or "").strip() != "bndbox":
        shapes, corners = oriented, _read_corners(oriented[0], f"{path}: object {record_id}")
    else:
        shapes, corners = plain, _numbers(plain[0], _SIDES) if plain else None
    if name is None or difficult is None or corners is None or len(shapes) != 1:
        report.drop("malformed_record", f"{path.name}: object {record_id}")
        return None
    reason = "difficult" if difficult else ""
    if shapes is oriented:
        return RawObject(name, None, corners, reason, record_id)
    left, top, right, bottom = corners
    width, height = (
        high - low + (1 if high > low else 0) for low, high in ((left, right), (top, bottom))
    )
    return RawObject(name, (left - 1, top - 1, width, height), None, reason, record_id)


def _read_corners(shape: Element, where: str) -> tuple[float, ...] | None:
    """Return eight numbers of an oriented box in either form; None where one is no number."""
    tags = {child.tag for child in shape}
    if tags.issuperset(_CORNERS):
        return _numbers(shape, _CORNERS)
    if not tags.issuperset(_CENTER_FORM):
        raise FormatError(
            f"{where}: unsupported <robndbox>, expected the four corners {', '.join(_CORNERS)}, or "
            f"{', '.join(_CENTER_FORM)}; found {shorten(sorted(tags))}"
        )
    numbers = _numbers(shape, _CENTER_FORM)
    if numbers is None:
        return None
    cx, cy, w, h, angle = numbers
    if abs(angle) > 2 * math.pi:
        raise FormatError(
            f"{where}: unsupported <robndbox>, expected an angle in radians, found {angle:g}, "
            "which is more than a full turn. Convert degrees to radians."
        )
    # Sides under 0 would turn the corners over instead of showing that the box is none.
    w, h = max(0.0, w) / 2, max(0.0, h) / 2
    cos, sin = math.cos(angle), math.sin(angle)
    corners: list[float] = []
    for right, down in ((-w, -h), (w, -h), (w, h), (-w, h)):
        corners += (cx + right * cos - down * sin, cy + right * sin + down * cos)
    return tuple(corners)


def _numbers(shape: Element, tags: tuple[str, ...]) -> tuple[float, ...] | None:
    numbers: list[float] = []
    for tag in tags:
        number = to_number(shape.findtext(tag))
        if number is None:
            return None
        numbers.append(number)
    return tuple(numbers)


def _read_xml(path: Path) -> Element:
    """Parse a file without ever expanding an entity: a document type is refused where it begins.

    Expat is fed decoded text, since it knows few encodings and none of more than one byte but
    UTF-8 and UTF-16.
    """

    def refuse(*_: object) -> None:
        raise FormatError(
            f"{path}: the file has a document type (<!DOCTYPE ..>), which labels do not need and "
            "which can make a small file expand without end. Remove it."
        )

    builder = TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(_decode(path), True)
    except (expat.ExpatError, UnicodeError) as error:
        raise FormatError(
            f"{path}: not a whole XML document: {error}. Write or download the file again."
        ) from error
    return builder.close()


def _decode(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path}: the label file cannot be read: {error}") from error
    declared = _ENCODING.match(content)
    encoding = declared[1].decode("ascii").casefold() if declared else "utf-8"
    encoding = _SUPERSETS.get(encoding, encoding)
    for mark, marked in _BOMS.items():
        if content.startswith(mark):
            encoding = marked
    try:
        return content.decode(encoding)
    except (LookupError, UnicodeError) as error:
        raise FormatError(
            f"{path}: the text is not {shorten(encoding)}: {error}. Save the file as UTF-8."
        ) from error
