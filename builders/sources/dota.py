"""DOTA: oriented objects in aerial pictures, one text file per picture."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from soubench.builders.errors import FormatError
from soubench.builders.scene import ReadReport, Scene
from soubench.builders.sources._door import (
    RawObject,
    RawPicture,
    Source,
    make_scene,
    settle_spellings,
)
from soubench.builders.sources._files import pair_by_stem
from soubench.builders.sources._values import (
    read_lines,
    shorten,
    to_floats,
    to_name,
    to_number,
)

CATEGORIES = None
_LABEL_FOLDERS = ("labeltxt", "annfiles")
_CORNER_NUMBERS = 8
_MARKS = {"0": "", "1": "difficult", "2": "cut_by_tiling"}
_HEADERS = frozenset({"imagesource", "gsd"})


class Label(NamedTuple):
    """One label file.

    Attributes:
        objects: Its rows, with the number of the line as id.
        meta: ``imagesource`` (text or None) and ``gsd`` (m per px, or None where unknown).
    """

    objects: list[RawObject]
    meta: Mapping[str, Any]


def read(root: Path, split: str, report: ReadReport) -> Iterator[Scene]:
    """Read a split, one label file after the other.

    Corners are taken as they are: 0-based px. Difficulty 1 does not count, and neither does 2,
    which the tiling tool gives to objects cut by the edge of a tile: what is left of a large
    object would pass for a small one. Categories are the names found in the split, sorted.

    Args:
        root: Folder with ``<split>/images`` and ``<split>/labelTxt``, or the split's folder;
            the label folder may also be called ``annfiles``.
        split: ``train`` or ``val``.
        report: Filled as the scenes are drawn.

    Yields:
        Scenes by picture stem. The group of a tile is its source picture, the stem up to the
        first ``__``. ``meta`` holds ``imagesource`` and ``gsd`` of the label's header.

    Raises:
        FormatError: If no label folder fits, or the rows are of another format.
    """
    report.source, report.split = "dota", split
    pairs = pair_by_stem(
        root,
        split,
        suffix=".txt",
        source="dota",
        layout="<split>/labelTxt beside <split>/images",
        report=report,
        label_folders=_LABEL_FOLDERS,
    )
    # The names have to be known before the first scene; a second reading costs less than memory.
    first = ReadReport()
    names = Counter(raw.category for pair in pairs for raw in read_label(pair.label, first).objects)
    if first.dropped and not names:
        raise FormatError(
            f"{pairs[0].label.parent}: none of the {first.dropped.total()} rows reads 'x1 y1 x2 y2 "
            f"x3 y3 x4 y4 class difficulty', first {first.examples['malformed_record'][0]}. Use "
            "the reader of the format that the files are in."
        )
    spelling = settle_spellings(names, report)
    for pair in pairs:
        stem = pair.picture.stem
        label = read_label(pair.label, report)
        scene = make_scene(
            RawPicture(
                path=pair.picture,
                image_id=stem,
                group_id=stem.split("__", 1)[0] or stem,
                label_size_wh=None,
                objects=[raw._replace(category=spelling[raw.category]) for raw in label.objects],
                meta=label.meta,
            ),
            Source("dota", split),
            report,
        )
        if scene is not None:
            yield scene


def read_label(path: Path, report: ReadReport) -> Label:
    """Read one label file.

    Args:
        path: The text file: header lines ``imagesource:..`` and ``gsd:..``, then rows of eight
            corner numbers, a class, and a difficulty (0 where it is left out).
        report: Counts rows of any other form.

    Returns:
        One record for each row, and the header.

    Raises:
        FormatError: If the file cannot be read as text, or holds YOLO rows.
    """
    objects: list[RawObject] = []
    header: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), 1):
        key, colon, value = line.partition(":")
        if colon and key.strip().casefold() in _HEADERS:
            header[key.strip().casefold()] = value.strip()
            continue
        fields = line.split()
        if not fields:
            continue
        raw = _read_row(fields, str(number))
        if raw is not None:
            objects.append(raw)
            continue
        if len(fields) == _CORNER_NUMBERS + 1 and all(to_number(f) is not None for f in fields):
            raise FormatError(
                f"{path}:{number}: expected eight corners, a class and a difficulty, found nine "
                f"numbers, which looks like YOLO: {shorten(line.strip())}. Use the reader 'yolo'."
            )
        report.drop("malformed_record", f"{path.name}:{number}: {shorten(line.strip())}")
    gsd = to_number(header.get("gsd"))
    meta = {
        "imagesource": to_name(header.get("imagesource")),
        "gsd": gsd if gsd is not None and gsd > 0 else None,
    }
    return Label(objects, MappingProxyType(meta))


def _read_row(fields: list[str], record_id: str) -> RawObject | None:
    """Return a record, its numbers finite or not; None for a row of another form."""
    if len(fields) not in (_CORNER_NUMBERS + 1, _CORNER_NUMBERS + 2):
        return None
    corners, name = to_floats(fields[:_CORNER_NUMBERS]), fields[_CORNER_NUMBERS]
    reason = _MARKS.get(fields[-1] if len(fields) > _CORNER_NUMBERS + 1 else "0")
    if corners is None or reason is None or to_number(name) is not None:
        return None
    return RawObject(name, None, corners, reason, record_id)
