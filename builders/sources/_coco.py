"""What all sources share that keep one COCO-like JSON file per split."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from soubench.builders.errors import FormatError
from soubench.builders.scene import Mask, ReadReport, Scene, normalized
from soubench.builders.sources._door import RawObject, RawPicture, Source, make_scene
from soubench.builders.sources._files import LabelFile, find_json, label_parts, locate_pictures
from soubench.builders.sources._values import (
    Key,
    collector_paused,
    name_key,
    read_json,
    same_key,
    shorten,
    to_flag,
    to_key,
    to_name,
    to_number,
    to_numbers,
)

IGNORE_NAME = "ignore"


class _Image(TypedDict, total=False):
    id: Any
    file_name: Any
    width: Any
    height: Any


class Category(TypedDict, total=False):
    """What is read of a category; of any type, since files are what they are."""

    id: Any
    name: Any


class _Annotation(msgspec.Struct, gc=False):
    """What is read of a record: a struct, since a dict takes five times the memory."""

    id: Any = None
    image_id: Any = None
    category_id: Any = None
    bbox: Any = None
    iscrowd: Any = None
    ignore: Any = None


class _Outlined(_Annotation, gc=False):
    """A record with its outline, left as text until its turn: as objects it takes far more."""

    segmentation: msgspec.Raw = msgspec.Raw(b"null")


class _Document(TypedDict, total=False):
    images: list[_Image]
    annotations: list[_Annotation]
    categories: list[Category]


class _OutlinedDocument(TypedDict, total=False):
    images: list[_Image]
    annotations: list[_Outlined]
    categories: list[Category]


def keys_of(*shapes: type) -> frozenset[str]:
    """Return all keys of some shapes of documents."""
    return frozenset(key for shape in shapes for key in shape.__annotations__)


_KEEP = keys_of(_Document, _Image, Category, _Annotation)
_KEEP_OUTLINED = _KEEP | keys_of(_Outlined) | {"counts", "size"}


@dataclass(frozen=True, slots=True)
class CocoRules:
    """How one source differs from plain COCO.

    Attributes:
        source: Name in the table of sources.
        layout: The usual place of the label file, for messages.
        wanted: Category names to keep; None for all that the file names.
        documented_ids: Category ids that the format defines, for files that leave them out.
        prefer_name: A word of the file name that decides where several label files fit.
        by_folder: Whether a label file may be chosen by the name of its folder.
        group_of: Group of a picture by its stem or key.
        keyed_by_path: Whether the image id is the relative path rather than the stem.
        read_mask: Turns a record's ``segmentation`` into a mask; None to leave masks out.
    """

    source: str
    layout: str
    wanted: tuple[str, ...] | None
    documented_ids: Mapping[int, str] = field(default_factory=dict)
    prefer_name: str = ""
    by_folder: bool = False
    group_of: Callable[[str], str] = str
    keyed_by_path: bool = False
    read_mask: Callable[[object, Callable[[str], None]], Mask | None] | None = None


def read_coco_like(root: Path, split: str, report: ReadReport, rules: CocoRules) -> Iterator[Scene]:
    """Read the label file of a split, picture by picture in the order of their ids.

    Args:
        root: The dataset's folder, the folder above, a folder in it, or the JSON file itself.
        split: Name of the split.
        report: Filled as the scenes are drawn.
        rules: What is special about the source.

    Yields:
        One scene for each picture that was found and can be read, with or without objects.

    Raises:
        FormatError: If no label file fits, it is not of this format, or nothing in it fits.
    """
    report.source, report.split = rules.source, split
    label = find_json(
        root,
        split,
        source=rules.source,
        layout=rules.layout,
        prefer_name=rules.prefer_name,
        by_folder=rules.by_folder,
    )
    with collector_paused():
        document = _read_document(label.path, masks=rules.read_mask is not None)
        categories = read_categories(document, label.path, rules, report)
        report.categories = rules.wanted if rules.wanted is not None else categories.wanted
        pictures = _read_pictures(document, label, split, rules, report)
        records = _group_records(document, pictures, label.path, report)
    check_categories(_count_categories(document, label.path), categories, label.path)
    del document
    # Records whose picture is not known may be of any.
    unplaced = report.lost_since()
    for key in sorted(pictures.image_ids, key=lambda key: pictures.image_ids[key]):
        image_id = pictures.image_ids[key]
        objects = [
            raw
            for record in records.pop(key)
            if (raw := _read_record(record, image_id, categories, rules, report))
        ]
        scene = make_scene(
            RawPicture(
                path=key,
                image_id=image_id,
                group_id=rules.group_of(image_id),
                label_size_wh=pictures.sizes_wh.get(key),
                objects=objects,
                complete=not unplaced,
            ),
            Source(rules.source, split),
            report,
        )
        if scene is not None:
            yield scene


def _read_document(path: Path, *, masks: bool) -> dict[str, Any]:
    if masks:
        document = read_json(path, _OutlinedDocument, _KEEP_OUTLINED)
    else:
        document = read_json(path, _Document, _KEEP)
    if isinstance(document, list):
        raise FormatError(
            f"{path}: a bare list is the form of detection results, not a dataset. Expected an "
            "object with 'images', 'annotations' and 'categories'."
        )
    if not isinstance(document, dict) or "images" not in document:
        raise FormatError(
            f"{path}: expected a COCO-like object with 'images', 'annotations' and 'categories', "
            f"found {_describe(document)} without 'images'"
        )
    kind = _Outlined if masks else _Annotation
    records = list_of(document, "annotations", path)
    for place, record in enumerate(records):
        if isinstance(record, dict):
            known = record.keys() & {*kind.__struct_fields__}
            records[place] = kind(**{key: record[key] for key in known})
    return document


def list_of(document: Mapping[str, Any], key: str, path: Path) -> list[Any]:
    """Return a list of the document; empty where the key is missing.

    Raises:
        FormatError: If the value is anything but a list.
    """
    value = document.get(key, [])
    if not isinstance(value, list):
        raise FormatError(f"{path}: expected a list under {key!r}, found {_describe(value)}")
    return value


def _describe(value: object) -> str:
    # Keys that readers do not need are gone by now, so they would mislead.
    return "an object" if isinstance(value, dict) else f"{type(value).__name__} {shorten(value)}"


@dataclass(frozen=True, slots=True)
class Categories:
    """The category table of a file.

    Attributes:
        names: Our name of each id that is wanted or an ignore class; None for other ids.
        file_names: The file's own name of each id, for messages.
        wanted: Names that objects may have, in order.
    """

    names: Mapping[Key, str | None]
    file_names: Mapping[Key, str]
    wanted: tuple[str, ...]


def read_categories(
    document: Mapping[str, Any], path: Path, rules: CocoRules, report: ReadReport
) -> Categories:
    """Read the file's category table; ids are looked up in it, never used as positions.

    Raises:
        FormatError: If there are records without a category table, or one id has two names.
    """
    listed: dict[Key, str] = {}
    for place, record in enumerate(list_of(document, "categories", path)):
        key = to_key(record.get("id")) if isinstance(record, dict) else None
        name = to_name(record.get("name")) if isinstance(record, dict) else None
        if key is None or name is None:
            report.drop("malformed_record", f"{path.name}: categories[{place}]")
            continue
        if listed.setdefault(key, name) != name:
            raise FormatError(
                f"{path}: category id {shorten(key)} has two names, {shorten(listed[key])} and "
                f"{shorten(name)}. Give every category its own id."
            )
    if not listed and document.get("annotations") and not rules.documented_ids:
        raise FormatError(
            f"{path}: there are annotations but no usable 'categories', so their category ids "
            "mean nothing. Add the category table."
        )
    for documented, name in rules.documented_ids.items():
        if same_key(documented, listed) is None:
            listed[documented] = name
    ordered = sorted(listed, key=lambda key: (isinstance(key, str), key))
    if rules.wanted is None:
        return _merge_names(listed, ordered, path, report)
    known = {name_key(name): name for name in (*rules.wanted, IGNORE_NAME)}
    return Categories(
        {key: known.get(name_key(listed[key])) for key in ordered}, listed, rules.wanted
    )


def _merge_names(
    listed: Mapping[Key, str], ordered: Sequence[Key], path: Path, report: ReadReport
) -> Categories:
    """Give all ids of one name the spelling of the first."""
    spelling: dict[str, str] = {}
    names: dict[Key, str | None] = {}
    for key in ordered:
        first = spelling.setdefault(normalized(listed[key]), listed[key])
        if names and first in names.values():
            where = f"{path.name}: id {shorten(key)}, {listed[key]!r}, is read as {first!r}"
            report.repair("duplicate_category", where)
        names[key] = first
    return Categories(names, listed, tuple(spelling.values()))


def check_categories(ids: Mapping[Key, int], categories: Categories, where: object) -> None:
    """Refuse labels most of which are of no wanted category: they are another source's.

    One name in common is not enough: AI-TOD and SODA-D both have vehicles.

    Args:
        ids: How many records have each category id.
        categories: The file's table.
        where: The file or folder, for the message.

    Raises:
        FormatError: If there are records and fewer than half are wanted.
    """
    if not ids:
        return
    known = {key: same_key(key, categories.names) for key in ids}
    unwanted = {
        key: real for key, real in known.items() if real is None or categories.names[real] is None
    }
    total, strange = sum(ids.values()), sum(ids[key] for key in unwanted)
    if 2 * strange <= total:
        return
    found = [
        repr(categories.file_names[real]) if real is not None else f"id {shorten(key)} (no name)"
        for key, real in unwanted.items()
    ]
    raise FormatError(
        f"{where}: {strange} of the {total} objects are of a category that this source lacks. "
        f"Expected {', '.join(categories.wanted)}; found {', '.join(found[:6])}. Use the reader "
        "of the format that the file is in."
    )


@dataclass(frozen=True, slots=True)
class _Pictures:
    """The pictures of a file: what the image ids of its records mean."""

    by_key: dict[Key, Path]
    dropped: set[Key]
    image_ids: dict[Path, str]
    sizes_wh: dict[Path, tuple[float, float]]


def _read_pictures(
    document: Mapping[str, Any],
    label: LabelFile,
    split: str,
    rules: CocoRules,
    report: ReadReport,
) -> _Pictures:
    pictures = _Pictures({}, set(), {}, {})
    records = _read_image_records(document, label.path, pictures.dropped, report)
    paths = locate_pictures(
        label, [record["file_name"] for record in records.values()], split, report
    )
    named: dict[Path, str] = {}
    for (key, record), path in zip(records.items(), paths, strict=True):
        if path is None:
            pictures.dropped.add(key)
            continue
        if path in named:
            report.repair("duplicate_picture", f"{label.path.name}: {record['file_name']!r}")
        pictures.by_key[key] = path
        named.setdefault(path, record["file_name"])
        width, height = to_number(record.get("width")), to_number(record.get("height"))
        if width and height and width > 0 and height > 0:
            pictures.sizes_wh.setdefault(path, (width, height))
    pictures.image_ids.update(_name_pictures(named, report, by_path=rules.keyed_by_path))
    return pictures


def _read_image_records(
    document: Mapping[str, Any], path: Path, dropped: set[Key], report: ReadReport
) -> dict[Key, dict[str, Any]]:
    """Return the usable image records by id, and note the ids of those that were dropped."""
    records: dict[Key, dict[str, Any]] = {}
    clashing: set[Key] = set()
    for place, record in enumerate(list_of(document, "images", path)):
        where = f"{path.name}: images[{place}]"
        key = to_key(record.get("id")) if isinstance(record, dict) else None
        name = record.get("file_name") if isinstance(record, dict) else None
        if key is None or not isinstance(name, str) or not label_parts(name):
            report.drop("malformed_record", where)
            if key is not None:
                dropped.add(key)
        elif key not in records:
            records[key] = record
        elif records[key]["file_name"] == name:
            report.repair("duplicate_picture", f"{where}: {name!r}")
        else:
            # Nothing says which of the two pictures the records of this id belong to.
            report.drop("duplicate_image_id", f"{where}: id {shorten(key)}, {name!r}")
            clashing.add(key)
    for key in [key for key in records if key in clashing]:
        report.drop("duplicate_image_id", f"{path.name}: {records.pop(key)['file_name']!r}")
    dropped |= clashing
    return records


def _name_pictures(
    named: Mapping[Path, str], report: ReadReport, *, by_path: bool
) -> dict[Path, str]:
    """Give each picture an id: its stem, or its relative path without the suffix."""
    short: dict[Path, str] = {}
    long: dict[Path, str] = {}
    for path, name in named.items():
        parts = label_parts(name)
        if not by_path or _is_absolute(name):
            parts = parts[-1:]
        parent = "".join(f"{part}/" for part in parts[:-1])
        short[path] = parent + (path.stem if not by_path else Path(parts[-1]).stem)
        long[path] = "/".join(label_parts(name))
    shared = {name for name, count in Counter(short.values()).items() if count > 1}
    for path, image_id in short.items():
        if image_id in shared:
            report.repair("image_id_shared", f"{image_id!r}: {long[path]!r}")
            short[path] = long[path]
    return short


def _is_absolute(name: str) -> bool:
    return name.startswith(("/", "\\")) or ":" in name.replace("\\", "/").split("/")[0]


_Records = dict[Path, list[_Annotation]]


def _group_records(
    document: Mapping[str, Any], pictures: _Pictures, path: Path, report: ReadReport
) -> _Records:
    """Sort the records by picture, in file order; each gets an id as text, its place if none."""
    if "annotations" not in document:
        report.repair("annotations_missing", path.name)
    grouped: _Records = {picture: [] for picture in pictures.image_ids}
    by_key = {key: grouped[picture] for key, picture in pictures.by_key.items()}
    seen: set[Key] = set()
    for place, record in enumerate(list_of(document, "annotations", path)):
        if not isinstance(record, _Annotation):
            report.drop("malformed_record", f"{path.name}: annotations[{place}]")
            continue
        key = to_key(record.id)
        record.id = record_id = f"annotations[{place}]" if key is None else str(key)
        picture_key = to_key(record.image_id)
        if picture_key is None:
            report.drop("malformed_record", f"{path.name}: record {shorten(record_id)}, image_id")
            continue
        real = picture_key if picture_key in by_key else same_key(picture_key, by_key)
        if real is None:
            # Records of a picture that was dropped are gone with it, and counted by it.
            if same_key(picture_key, pictures.dropped) is None:
                report.drop(
                    "unknown_image",
                    f"{path.name}: record {shorten(record_id)}, image id {shorten(picture_key)}",
                )
            continue
        if key is not None:
            if key in seen:
                report.repair("duplicate_record_id", f"{path.name}: record {shorten(record_id)}")
            seen.add(key)
        by_key[real].append(record)
    return grouped


def _count_categories(document: Mapping[str, Any], path: Path) -> Counter[Key]:
    return Counter(
        key
        for record in list_of(document, "annotations", path)
        if isinstance(record, _Annotation) and (key := to_key(record.category_id)) is not None
    )


def name_of_category(
    value: object, categories: Categories, where: str, report: ReadReport
) -> str | None:
    """Return our name of a record's category, or count why there is none."""
    key = to_key(value)
    if key is None:
        report.drop("malformed_record", f"{where}: category_id {shorten(value)}")
        return None
    real = same_key(key, categories.names)
    if real is None:
        report.drop("unknown_category", f"{where}: category id {shorten(key)}")
        return None
    name = categories.names[real]
    if name is None:
        report.drop("unwanted_category", f"{where}: {categories.file_names[real]!r}")
    return name


def _read_record(
    record: _Annotation,
    image_id: str,
    categories: Categories,
    rules: CocoRules,
    report: ReadReport,
) -> RawObject | None:
    key, record_id = record.category_id, record.id
    name = categories.names.get(key) if type(key) is int else None
    if name is None:
        where = f"{image_id}: record {record_id}"
        name = name_of_category(key, categories, where, report)
        if name is None:
            return None
    box, crowd, ignore = to_numbers(record.bbox), to_flag(record.iscrowd), to_flag(record.ignore)
    if box is None or len(box) != 4 or crowd is None or ignore is None:
        report.drop("malformed_record", f"{image_id}: record {record_id}")
        return None
    reason = ""
    if rules.wanted is not None and name == IGNORE_NAME:
        reason = "ignore_class"
    elif ignore:
        reason = "ignore_flag"
    elif crowd:
        reason = "crowd"
    mask = None
    if rules.read_mask is not None and isinstance(record, _Outlined):

        def notice(text: str) -> None:
            report.repair(text, f"{image_id}: record {record_id}")

        try:
            mask = rules.read_mask(_parsed(record.segmentation), notice)
        except (ValueError, RecursionError) as error:
            report.drop("malformed_mask", f"{image_id}: record {record_id}: {error}")
            return None
    return RawObject(name, box, None, reason, record_id, mask)


def _parsed(value: object) -> object:
    """Parse what was left as text; raises ValueError or RecursionError where it is no JSON."""
    if not isinstance(value, msgspec.Raw):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.MsgspecError:
        return json.loads(bytes(value))  # It accepts infinite numbers, among others.
