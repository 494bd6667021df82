"""The record format: what experts, or a pipeline that a person checked, say of a picture or pair.

The structs below are the format. ``record.schema.json`` (JSON Schema, draft 2020-12) is written
from them by ``python -m soubench.builders.rrs.record`` and a test keeps the two alike, so that
authors can check their files with any validator.

Coordinates are px of the upright picture from its top left corner, right and bottom exclusive.
"""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, NoReturn, TypeAlias

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from soubench.builders.errors import FormatError, RecordError
from soubench.builders.rrs.masks import (
    Outline,
    encode_mask,
    mask_box_xywh,
)
from soubench.builders.rrs.taxonomy import (
    COMPASS_DIRECTIONS,
    PICTURE_DIRECTIONS,
    ChangeKind,
    CompassDirection,
    PictureDirection,
    SceneType,
    Task,
)
from soubench.builders.scene import is_convex, normalized, shoelace_area
from soubench.builders.sources._files import fold_name

SCHEMA_FILE = "record.schema.json"
BOX_SLACK_PX = 1.0
"""Masks are whole pixels, boxes may be drawn between them."""

NOT_BLANK = r"\S"
"""What every text has to match: something that is no white space."""
Text: TypeAlias = Annotated[str, Meta(pattern=NOT_BLANK)]
Positive: TypeAlias = Annotated[float, Meta(gt=0)]
Degrees: TypeAlias = Annotated[float, Meta(ge=0, lt=360)]
Box4: TypeAlias = Annotated[
    tuple[float, float, float, float],
    Meta(description="x1, y1, x2, y2 in px, x1 < x2 and y1 < y2; right and bottom exclusive"),
]
Quad8: TypeAlias = Annotated[
    tuple[float, float, float, float, float, float, float, float],
    Meta(description="corners x1, y1, .., x4, y4 of an oriented box in px, in order around it"),
]


class Annotation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every annotation may say of itself."""

    evidence: Annotated[str, Meta(description="What in the picture shows that this holds")] = ""
    provenance: Annotated[
        str, Meta(description="Who or what made this annotation; the record's where empty")
    ] = ""
    human_verified: Annotated[
        bool | None, Meta(description="A person has checked it; the record's where null")
    ] = None


class Scene(Annotation, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the picture shows as a whole (SU, SC)."""

    type: SceneType
    subtype: Annotated[
        Text | None, Meta(description="Subtype within the type, such as 'naval base'; open")
    ] = None


class Caption(Annotation, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A description of the picture (IC)."""

    text: Text


class Object(Annotation, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One labelled object."""

    category: Text
    box_xyxy: Box4
    id: Annotated[
        Text | None, Meta(description="Name that expressions refer to; unique in the record")
    ] = None
    quad_xy8: Quad8 | None = None
    mask: Outline | None = None
    attributes: Annotated[
        dict[str, Text],
        Meta(description="What can be seen of it: aspect -> value, such as color -> grey (AR)"),
    ] = {}


class Expression(Annotation, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Words that refer to exactly one thing in the picture (VG, RS).

    Either ``object``, or a box, a mask or both of its own.
    """

    text: Annotated[Text, Meta(description="With its article, such as 'the rightmost pier'")]
    object: Annotated[Text | None, Meta(description="Id of the object that it refers to")] = None
    box_xyxy: Box4 | None = None
    mask: Outline | None = None


class Attribute(Annotation, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What can be seen of a thing (AR)."""

    target: Annotated[Text, Meta(description="With its article, such as 'the largest radome'")]
    aspect: Annotated[Text, Meta(description="Such as color or shape")]
    value: Text
    box_xyxy: Box4 | None = None


class Count(Annotation, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How many there are of something (OC)."""

    target: Annotated[Text, Meta(description="In the plural, such as 'launchers in the two rows'")]
    count: Annotated[int, Meta(ge=0, le=100000)]
    boxes_xyxy: list[Box4] = []


class Facility(Annotation, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Something that is there, or is truly absent (OE, HD)."""

    name: Annotated[Text, Meta(description="Without article, such as 'helipad'")]
    box_xyxy: Box4 | None = None


class Orientation(Annotation, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Along which axis a structure lies on the ground (API)."""

    target: Annotated[Text, Meta(description="With its article, such as 'the main runway'")]
    bearing_deg: Annotated[
        float, Meta(ge=0, lt=360, description="Degrees clockwise from geographic north")
    ]
    box_xyxy: Box4 | None = None


class PictureRelation(Annotation, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where in the picture one thing lies of another (RSI)."""

    target: Annotated[Text, Meta(description="With its article")]
    reference: Annotated[Text, Meta(description="With its article")]
    direction: PictureDirection


class CompassRelation(Annotation, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """In which compass direction one thing lies of another (ASI)."""

    target: Annotated[Text, Meta(description="With its article")]
    reference: Annotated[Text, Meta(description="With its article")]
    direction: CompassDirection


class Measurement(Annotation, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A distance, length or diameter (DC), or an area (AC), on the ground."""

    kind: Literal["length", "width", "diameter", "distance", "area"]
    target: Annotated[Text, Meta(description="With its article")]
    value: Annotated[float, Meta(gt=0, description="In m; of areas in m²")]
    reference: Annotated[
        Text | None, Meta(description="Where a distance leads to; of distances only")
    ] = None
    box_xyxy: Box4 | None = None


class Usage(Annotation, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The main use of a facility (UI)."""

    target: Annotated[Text, Meta(description="With its article, such as 'this facility'")]
    value: Annotated[Text, Meta(description="Such as 'logistics support'")]


class FacilityAttribute(Annotation, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a facility's layout and surroundings say of it (AI)."""

    target: Annotated[Text, Meta(description="With its article, such as 'this facility'")]
    aspect: Annotated[Text, Meta(description="Such as 'nature' or 'state of readiness'")]
    value: Annotated[Text, Meta(description="Such as military, civilian or dual-use")]


class TemporalFact(Annotation, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the picture says of the time that it was taken at (TAI)."""

    aspect: Annotated[Text, Meta(description="Such as 'season' or 'state of the vegetation'")]
    value: Text


class Change(Annotation, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What has happened to a target between two pictures (CI)."""

    target: Annotated[Text, Meta(description="With its article; no hint at what happened")]
    kind: ChangeKind
    before_box_xyxy: Box4 | None = None
    after_box_xyxy: Box4 | None = None


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One picture, or a pair of the same place, and everything that is known of it.

    A record of a pair has ``changes`` and no annotation of a single picture.
    """

    id: Annotated[Text, Meta(description="Unique over all files", max_length=200)]
    images: Annotated[
        list[Text],
        Meta(
            min_length=1,
            max_length=2,
            description="Picture files, from the folder of the record file; of a pair the earlier "
            "one first",
        ),
    ]
    source: Annotated[Text, Meta(description="Where the picture is from")] = "records"
    license: Annotated[str, Meta(description="Licence of the picture")] = ""
    group_id: Annotated[
        Text | None, Meta(description="Same for pictures that belong together, such as of a site")
    ] = None
    provenance: Annotated[
        str, Meta(description="Who or what made the annotations, such as a tool or an expert")
    ] = ""
    human_verified: Annotated[bool, Meta(description="A person has checked all of them")] = False
    tasks: Annotated[
        list[str] | None,
        Meta(description="Leaf tasks to ask; all that the annotations carry where null"),
    ] = None
    gsd_m: Annotated[Positive | None, Meta(description="Ground sample distance: m per px")] = None
    north_deg: Annotated[
        Degrees | None,
        Meta(description="Where north is in the picture, degrees clockwise from its top edge"),
    ] = None
    scene: Scene | None = None
    captions: list[Caption] = []
    objects: list[Object] = []
    exhaustive: Annotated[
        list[Text],
        Meta(
            description="Categories of which every object in the picture is among the objects, "
            "and those of which there is none: only of these are counts, absences and "
            "expressions such as 'the largest ship' derived"
        ),
    ] = []
    expressions: list[Expression] = []
    attributes: list[Attribute] = []
    counts: list[Count] = []
    present: list[Facility] = []
    absent: list[Facility] = []
    orientations: list[Orientation] = []
    picture_relations: list[PictureRelation] = []
    compass_relations: list[CompassRelation] = []
    measurements: list[Measurement] = []
    usages: list[Usage] = []
    facility_attributes: list[FacilityAttribute] = []
    temporal: list[TemporalFact] = []
    changes: list[Change] = []


PAIR_ONLY = frozenset({"changes"})
ABOUT_THE_RECORD = frozenset(
    {
        *("id", "images", "source", "license", "group_id", "provenance", "human_verified"),
        *("tasks", "gsd_m", "north_deg", "exhaustive"),
    }
)


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """A record whose words are in order; its pictures have not been looked at.

    Attributes:
        record: The record.
        pictures: Its picture files.
        where: File and line, or source and picture, for messages.
    """

    record: Record
    pictures: tuple[Path, ...]
    where: str


def record_id(row_id: str) -> str:
    """Return the id of the record that a row is from.

    >>> record_id("ports/3/vg")
    'ports/3'
    """
    return row_id.rpartition("/")[0]


Refuse: TypeAlias = Callable[[str, RecordError], None]
"""Takes a record id and why that record is left out."""


def read_records(path: Path, refuse: Refuse) -> Iterator[FoundRecord]:
    """Read a file of records, one JSON object a line, or all ``.jsonl`` files of a folder.

    Texts come with single blanks, so that each is one line.

    Args:
        path: The file or folder. Pictures are looked for from the folder of each file; case and
            the kind of slash do not matter where only one file can be meant.
        refuse: Called for every record that is not as the format says, or repeats an id.

    Raises:
        FormatError: There is no such file, or no record file in the folder.
    """
    if path.is_dir():
        files = sorted(p for p in path.rglob("*.jsonl") if p.is_file())
        if not files:
            raise FormatError(
                f"{path}: expected record files (*.jsonl) in this folder, found none."
            )
    elif path.is_file():
        files = [path]
    else:
        raise FormatError(
            f"{path}: expected a file of records or a folder of them; it is not there."
        )
    seen: dict[str, str] = {}
    near = _NearNames()
    for file in files:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                line = line.removeprefix(BOM_UTF8).strip()
                if not line:
                    continue
                where = f"{file.name}:{number}"
                name = where
                try:
                    given = _decode(line, where)
                    if isinstance(given, dict) and isinstance(given.get("id"), str):
                        name = given["id"]
                    record = _single_blanks(_convert(given, f"{where}, record {name!r}"))
                    record = _one_spelling(record)
                    check_record(record, where)
                    pictures = tuple(near.find(file.parent, image) for image in record.images)
                    if len(pictures) == 2 and _same_file(*pictures):
                        raise RecordError(
                            "pair_same_picture",
                            f"{where}, record {record.id!r}, images: expected an earlier and a "
                            f"later picture, got {pictures[0].name} twice",
                        )
                    if record.id in seen:
                        raise RecordError(
                            "duplicate_id",
                            f"{where}: the id {record.id!r} is that of {seen[record.id]}; every "
                            "record needs an id of its own",
                        )
                except RecordError as error:
                    refuse(name, error)
                    continue
                seen[record.id] = where
                yield FoundRecord(record, pictures, where)


def _decode(line: bytes, where: str) -> object:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(
            "not_json", f"{where}: expected one JSON object on this line, but {error}"
        ) from error


def _convert(given: object, where: str) -> Record:
    try:
        return msgspec.convert(given, Record)
    except msgspec.ValidationError as error:
        # "Expected `int`, got `str` - at `$.counts[0].count`"
        said, _, field = str(error).partition(" - at ")
        if said.startswith("Invalid enum value"):
            said = f"{said}; expected one of {', '.join(_allowed(field))}"
        said = said.replace(rf"matching regex {NOT_BLANK!r}", "that is not blank")
        place = field.strip("`").removeprefix("$.") if field else "the record"
        raise RecordError(
            "malformed_record", f"{where}, {place}: {said[:1].lower()}{said[1:]}"
        ) from error


def _allowed(place: str) -> tuple[str, ...]:
    """Return the words that a field may hold, such as those of ``$.changes[0].kind``."""
    kind: msgspec.inspect.Type = msgspec.inspect.type_info(Record)
    for name in re.findall(r"[a-z]\w*", place):
        if isinstance(kind, msgspec.inspect.StructType):
            kind = {f.name: f.type for f in kind.fields}[name]
        while not isinstance(kind, msgspec.inspect.StructType | msgspec.inspect.LiteralType):
            if isinstance(kind, msgspec.inspect.UnionType):
                kind = next(t for t in kind.types if not isinstance(t, msgspec.inspect.NoneType))
            elif isinstance(kind, msgspec.inspect.ListType):
                kind = kind.item_type
            elif isinstance(kind, msgspec.inspect.Metadata):
                kind = kind.type
            else:
                return ()
    return tuple(map(str, kind.values)) if isinstance(kind, msgspec.inspect.LiteralType) else ()


class _NearNames:
    """Finds pictures by names whose case or kind of slash is another; lists each folder once."""

    def __init__(self) -> None:
        self._listed: dict[Path, dict[str, list[str]]] = {}

    def find(self, folder: Path, name: str) -> Path:
        """Return the file that is there, or the path as it was said if it is none, or unclear."""
        said = folder / name
        if said.exists():
            return said
        found = folder
        for part in PurePosixPath(name.replace("\\", "/")).parts:
            if (found / part).exists():
                found /= part
                continue
            named = self._names(found).get(fold_name(part), [])
            if len(named) != 1:
                return said
            found /= named[0]
        return found

    def _names(self, folder: Path) -> dict[str, list[str]]:
        if folder not in self._listed:
            listed: dict[str, list[str]] = {}
            try:
                for path in folder.iterdir():
                    listed.setdefault(fold_name(path.name), []).append(path.name)
            except OSError:
                listed = {}  # No folder: the picture is told to be missing.
            self._listed[folder] = listed
        return self._listed[folder]


def _same_file(first: Path, second: Path) -> bool:
    return first.resolve() == second.resolve()


def _single_blanks(record: Record) -> Record:
    """Give every text of a record single blanks and no line ends; names of files stay."""

    def collapsed(value: object) -> object:
        if isinstance(value, str):
            return " ".join(value.split())
        if isinstance(value, list):
            return [collapsed(one) for one in value]
        if isinstance(value, dict):
            return {collapsed(key): collapsed(one) for key, one in value.items()}
        if isinstance(value, Annotation):
            return replace(
                value, **{name: collapsed(getattr(value, name)) for name in value.__struct_fields__}
            )
        return value

    fields = {name: collapsed(getattr(record, name)) for name in record.__struct_fields__}
    return replace(record, **fields | {"images": record.images})


def _one_spelling(record: Record) -> Record:
    """Give categories that differ in case, ``_`` or ``-`` alone the spelling of the first."""
    first: dict[str, str] = {}
    for name in (*(o.category for o in record.objects), *record.exhaustive):
        first.setdefault(normalized(name), name)

    def spelled(name: str) -> str:
        return first[normalized(name)]

    return replace(
        record,
        objects=[replace(o, category=spelled(o.category)) for o in record.objects],
        exhaustive=list(dict.fromkeys(map(spelled, record.exhaustive))),
    )


def check_record(record: Record, where: str) -> None:
    """Check what a schema cannot say.

    Raises:
        RecordError: With the reason ``unknown_task``, ``annotation_of_pair``,
            ``change_without_pair``, ``empty_box``, ``quad_malformed``, ``quad_off_its_box``,
            ``object_id``, ``expression_target``,
            ``measurement_reference``, or ``contradiction``.
    """

    def refuse(reason: str, field: str, said: str) -> NoReturn:
        raise RecordError(reason, f"{where}, record {record.id!r}, {field}: {said}")

    for i, task in enumerate(record.tasks or ()):
        if task not in Task.__members__:
            refuse(
                "unknown_task",
                f"tasks[{i}]",
                f"expected any of {', '.join(Task)}, got {task!r}",
            )
    given = {f for f in record.__struct_fields__ if getattr(record, f)} - ABOUT_THE_RECORD
    pair = len(record.images) == 2
    for field in sorted(given):
        if pair and field not in PAIR_ONLY:
            refuse(
                "annotation_of_pair",
                field,
                "a pair has changes only; give what holds for one picture in a record of its own",
            )
        if not pair and field in PAIR_ONLY:
            refuse("change_without_pair", field, "changes need two images, the earlier one first")
    for field, box in boxes_of(record):
        if not (box[0] < box[2] and box[1] < box[3]):
            refuse("empty_box", field, f"expected x1 < x2 and y1 < y2, got {list(box)}")
    for i, o in enumerate(record.objects):
        if o.quad_xy8 is None:
            continue
        xs, ys = o.quad_xy8[0::2], o.quad_xy8[1::2]
        if not is_convex(xs, ys) or shoelace_area(xs, ys) < 1:
            refuse(
                "quad_malformed",
                f"objects[{i}].quad_xy8",
                f"expected four corners in order around an area, got {list(o.quad_xy8)}",
            )
        hull = (min(xs), min(ys), max(xs), max(ys))
        if not holds(o.box_xyxy, hull):
            refuse(
                "quad_off_its_box",
                f"objects[{i}].quad_xy8",
                f"it reaches to {list(hull)}, out of the box {list(o.box_xyxy)}",
            )
    ids = [o.id for o in record.objects if o.id is not None]
    for name in ids:
        if ids.count(name) > 1:
            refuse("object_id", "objects", f"{name!r} names {ids.count(name)} objects")
    for i, expression in enumerate(record.expressions):
        field = f"expressions[{i}]"
        own = expression.box_xyxy is not None or expression.mask is not None
        if expression.object is not None and expression.object not in ids:
            refuse("expression_target", field, f"there is no object {expression.object!r}")
        if own == (expression.object is not None):
            refuse("expression_target", field, "expected an object, or a box or mask, not both")
    for i, m in enumerate(record.measurements):
        if (m.kind == "distance") != (m.reference is not None):
            refuse(
                "measurement_reference",
                f"measurements[{i}]",
                "a distance needs a reference, and nothing else has one",
            )
    there = {normalized(o.category) for o in record.objects}
    there |= {normalized(f.name) for f in record.present}
    for i, facility in enumerate(record.absent):
        if normalized(facility.name) in there:
            refuse("contradiction", f"absent[{i}]", f"{facility.name!r} is among what is there")
    for field, claims in _single_valued(record):
        values: dict[tuple[str, ...], str] = {}
        for claim, value in claims:
            if values.setdefault(claim, value) != value:
                refuse(
                    "contradiction",
                    field,
                    f"{' of '.join(claim)} is both {values[claim]!r} and {value!r}",
                )


def _single_valued(record: Record) -> Iterator[tuple[str, list[tuple[tuple[str, ...], str]]]]:
    """Yield fields whose claims have one value each: (what it is of, value)."""
    yield "counts", [((normalized(c.target),), str(c.count)) for c in record.counts]
    yield "changes", [((normalized(c.target),), c.kind) for c in record.changes]
    yield "picture_relations", _both_ways(record.picture_relations, PICTURE_DIRECTIONS)
    yield "compass_relations", _both_ways(record.compass_relations, COMPASS_DIRECTIONS)
    yield (
        "orientations",
        [((normalized(o.target),), f"{o.bearing_deg % 180:g}°") for o in record.orientations],
    )
    yield (
        "measurements",
        [
            (
                (m.kind, *sorted(map(normalized, filter(None, (m.target, m.reference))))),
                f"{m.value:g}",
            )
            for m in record.measurements
        ],
    )
    boxes = {o.id: o.box_xyxy for o in record.objects if o.id is not None}
    yield (
        "expressions",
        [
            ((normalized(e.text),), str(list(box)))
            for e in record.expressions
            if (box := e.box_xyxy or boxes.get(e.object or "")) is not None
        ],
    )


def _both_ways(
    relations: Sequence[PictureRelation | CompassRelation], directions: Sequence[str]
) -> list[tuple[tuple[str, ...], str]]:
    """Return each relation, and what it says of the reference as seen from the target."""
    opposite = {d: directions[i - len(directions) // 2] for i, d in enumerate(directions)}
    claims: list[tuple[tuple[str, ...], str]] = []
    for r in relations:
        target, reference = normalized(r.target), normalized(r.reference)
        claims.append(((target, reference), r.direction))
        claims.append(((reference, target), opposite[r.direction]))
    return claims


def boxes_of(record: Record) -> Iterator[tuple[str, Sequence[float]]]:
    """Yield field -> box for every box of a record."""
    for name in record.__struct_fields__:
        annotations = getattr(record, name)
        for i, annotation in enumerate(annotations if isinstance(annotations, list) else ()):
            if not isinstance(annotation, Annotation):
                break
            for field in annotation.__struct_fields__:
                value = getattr(annotation, field)
                if field.endswith("box_xyxy") and value is not None:
                    yield f"{name}[{i}].{field}", value
                elif field == "boxes_xyxy":
                    yield from ((f"{name}[{i}].{field}[{k}]", b) for k, b in enumerate(value))


def check_size(record: Record, sizes_wh: Sequence[tuple[int, int]], where: str) -> None:
    """Check the annotations of a record against its pictures.

    Args:
        record: A record that passed `check_record`.
        sizes_wh: Width and height of its upright pictures in px.
        where: File and line, for messages.

    Raises:
        RecordError: With the reason ``pair_sizes_differ``, ``box_outside``, ``quad_outside``,
            ``mask_size``, ``mask_outside``, ``mask_malformed``, ``mask_empty`` or
            ``mask_off_its_box``.
    """

    def refuse(reason: str, field: str, said: str) -> NoReturn:
        raise RecordError(reason, f"{where}, record {record.id!r}, {field}: {said}")

    width, height = sizes_wh[-1]
    if len(set(sizes_wh)) > 1:
        refuse(
            "pair_sizes_differ",
            "images",
            "expected two pictures of one size, got "
            + " and ".join(f"{w}×{h} px" for w, h in sizes_wh),
        )

    def inside(xs: Sequence[float], ys: Sequence[float]) -> bool:
        return min(xs) >= 0 and min(ys) >= 0 and max(xs) <= width and max(ys) <= height

    for field, box in boxes_of(record):
        if not inside(box[0::2], box[1::2]):
            refuse("box_outside", field, f"{list(box)} is not within {width}×{height} px")
    masked: list[tuple[str, Object | Expression]] = []
    masked += [(f"objects[{i}]", o) for i, o in enumerate(record.objects)]
    masked += [(f"expressions[{i}]", e) for i, e in enumerate(record.expressions)]
    for field, annotation in masked:
        quad = getattr(annotation, "quad_xy8", None)
        if quad is not None and not inside(quad[0::2], quad[1::2]):
            refuse("quad_outside", f"{field}.quad_xy8", f"it is not within {width}×{height} px")
        mask = annotation.mask
        if mask is None:
            continue
        place = f"{field}.mask"
        xs = [x for polygon in mask.polygons or () for x in polygon[0::2]]
        ys = [y for polygon in mask.polygons or () for y in polygon[1::2]]
        if xs and not inside(xs, ys):
            refuse("mask_outside", place, f"a polygon leaves {width}×{height} px")
        if mask.size is not None and mask.size != (height, width):
            refuse("mask_size", place, f"expected size [{height}, {width}], got {list(mask.size)}")
        try:
            encoded = encode_mask(mask, height, width)
        except ValueError as error:
            refuse("mask_malformed", place, str(error))
        x, y, w, h = mask_box_xywh(encoded)
        if w == 0 or h == 0:
            refuse("mask_empty", place, "expected at least one px")
        own = annotation.box_xyxy
        if own is not None and not holds(own, (x, y, x + w, y + h)):
            refuse(
                "mask_off_its_box",
                place,
                f"it reaches to {[x, y, x + w, y + h]}, out of the box {list(own)}",
            )


def holds(box_xyxy: Sequence[float], inner_xyxy: Sequence[float]) -> bool:
    """Say whether a box holds what lies in it, to within a pixel."""
    x1, y1, x2, y2 = inner_xyxy
    return (
        x1 >= box_xyxy[0] - BOX_SLACK_PX
        and y1 >= box_xyxy[1] - BOX_SLACK_PX
        and x2 <= box_xyxy[2] + BOX_SLACK_PX
        and y2 <= box_xyxy[3] + BOX_SLACK_PX
    )


def write_schema(path: Path) -> None:
    """Write the JSON Schema of a record."""
    schema = msgspec.json.schema(Record)
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A record of the rare remote sensing benchmark",
    }
    path.write_text(
        json.dumps(head | schema, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    write_schema(Path(__file__).with_name(SCHEMA_FILE))
