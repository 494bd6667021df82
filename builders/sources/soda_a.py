"""SODA-A: small oriented objects in aerial pictures, one JSON file per picture."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

from soubench.builders.errors import FormatError
from soubench.builders.scene import ReadReport, Scene
from soubench.builders.sources._coco import (
    IGNORE_NAME,
    Categories,
    Category,
    CocoRules,
    check_categories,
    keys_of,
    list_of,
    name_of_category,
    read_categories,
)
from soubench.builders.sources._door import RawObject, RawPicture, Source, make_scene
from soubench.builders.sources._files import pair_by_stem
from soubench.builders.sources._values import (
    Key,
    read_json,
    shorten,
    to_flag,
    to_key,
    to_number,
    to_numbers,
)

CATEGORIES = (
    "airplane",
    "helicopter",
    "small-vehicle",
    "large-vehicle",
    "ship",
    "container",
    "storage-tank",
    "swimming-pool",
    "windmill",
)
_LAYOUT = "Annotations/<split> beside Images/<split>"
_RULES = CocoRules(
    source="soda-a",
    layout=_LAYOUT,
    wanted=CATEGORIES,
    documented_ids=dict(enumerate((*CATEGORIES, IGNORE_NAME))),
)


class _Annotation(TypedDict, total=False):
    id: Any
    category_id: Any
    poly: Any
    ignore: Any


class _Document(TypedDict, total=False):
    images: Any
    annotations: list[_Annotation]
    categories: list[Category]


_KEEP = keys_of(_Document, _Annotation, Category) | {"width", "height"}
_QUAD_NUMBERS = 8
_MIN_POLYGON_NUMBERS = 6


def read(root: Path, split: str, report: ReadReport) -> Iterator[Scene]:
    """Read a split, one label file after the other.

    Class 9 and the ``ignore`` flag both mark what does not count; such regions may have any
    number of corners, all other objects have four.

    Args:
        root: Folder with ``Images`` and ``Annotations``, the one above, or the split's folder.
        split: ``train``, ``val`` or ``test``.
        report: Filled as the scenes are drawn.

    Yields:
        Scenes by picture stem, which is also the group.

    Raises:
        FormatError: If no label folder fits, a file is not of this format, or (after the last
            scene) no object of the split is of a category of SODA-A.
    """
    report.source, report.split, report.categories = _RULES.source, split, CATEGORIES
    pairs = pair_by_stem(
        root, split, suffix=".json", source=_RULES.source, layout=_LAYOUT, report=report
    )
    counted: Counter[Key] = Counter()
    table: Categories | None = None
    matched = False
    for pair in pairs:
        document = _read_document(pair.label, report)
        records = list_of(document, "annotations", pair.label)
        objects: list[RawObject] = []
        if records:
            table = read_categories(document, pair.label, _RULES, report)
            counted.update(_category_ids(records))
            objects = _read_objects(records, table, pair.label, report)
            matched = matched or bool(objects)
        scene = make_scene(
            RawPicture(
                path=pair.picture,
                image_id=pair.picture.stem,
                group_id=pair.picture.stem,
                label_size_wh=_label_size(document.get("images")),
                objects=objects,
            ),
            Source(_RULES.source, split),
            report,
        )
        if scene is not None:
            yield scene
    if table is not None and not matched:
        check_categories(counted, table, pairs[0].label.parent)


def _read_document(path: Path, report: ReadReport) -> dict[str, Any]:
    if path.stat().st_size == 0:
        # The authors' reader skips such files, so they are part of the published set.
        report.repair("label_empty", path.name)
        return {}
    document = read_json(path, _Document, _KEEP)
    if not isinstance(document, dict) or "annotations" not in document:
        raise FormatError(
            f"{path}: expected an object with 'annotations' and 'categories', found "
            f"{type(document).__name__} {shorten(document)}"
        )
    return document


def _category_ids(records: list[Any]) -> Iterator[Key]:
    for record in records:
        key = to_key(record.get("category_id")) if isinstance(record, dict) else None
        if key is not None:
            yield key


def _label_size(value: object) -> tuple[float, float] | None:
    """Return the size that the file states; ``images`` is one record or a list of one."""
    record = value[0] if isinstance(value, list) and len(value) == 1 else value
    if not isinstance(record, dict):
        return None
    width, height = to_number(record.get("width")), to_number(record.get("height"))
    if width and height and width > 0 and height > 0:
        return width, height
    return None


def _read_objects(
    records: list[Any], table: Categories, path: Path, report: ReadReport
) -> list[RawObject]:
    objects: list[RawObject] = []
    seen: set[Key] = set()
    for place, record in enumerate(records):
        if not isinstance(record, dict):
            report.drop("malformed_record", f"{path.name}: annotations[{place}]")
            continue
        key = to_key(record.get("id"))
        record_id = f"annotations[{place}]" if key is None else str(key)
        where = f"{path.name}: record {record_id}"
        if key is not None and key in seen:
            report.repair("duplicate_record_id", where)
        if key is not None:
            seen.add(key)
        raw = _read_object(record, record_id, table, where, report)
        if raw is not None:
            objects.append(raw)
    return objects


def _read_object(
    record: dict[str, Any], record_id: str, table: Categories, where: str, report: ReadReport
) -> RawObject | None:
    name = name_of_category(record.get("category_id"), table, where, report)
    if name is None:
        return None
    corners, flag = to_numbers(record.get("poly")), to_flag(record.get("ignore"))
    if corners is None or flag is None or len(corners) < _MIN_POLYGON_NUMBERS or len(corners) % 2:
        report.drop("malformed_record", where)
        return None
    reason = "ignore_class" if name == IGNORE_NAME else "ignore_flag" if flag else ""
    if len(corners) != _QUAD_NUMBERS and not reason:
        report.drop("not_four_corners", where)
        return None
    return RawObject(name, None, corners, reason, record_id)
