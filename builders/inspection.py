"""A look at a labelled split before anything is built from it: counts, reasons, and a sheet."""

import heapq
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from soubench.builders.contact_sheet import CROPS, LabelCard, Window, label_sheet, window_of
from soubench.builders.errors import BuildError
from soubench.builders.images import MAX_PICTURE_PX
from soubench.builders.keyed import keyed_hash
from soubench.builders.scene import ReadReport, Scene, SceneObject
from soubench.builders.sou.subsets import SMALL_AREA_PX, SUBSETS
from soubench.builders.sources import SOURCES

_BAR_CHARS = 40


class SizeBin(NamedTuple):
    """Areas up to and with ``up_to_px2``, from the bin before on; None is without end."""

    name: str
    up_to_px2: int | None


_SODA_BINS = (
    SizeBin("extremely small", 144),
    SizeBin("relatively small", 400),
    SizeBin("generally small", 1024),
    SizeBin("normal", 2000),
    SizeBin("larger", None),
)
_AI_TOD_BINS = (
    SizeBin("very tiny", 8**2),
    SizeBin("tiny", 16**2),
    SizeBin("small", 32**2),
    SizeBin("medium and larger", None),
)
_COCO_BINS = (SizeBin("small", 32**2), SizeBin("medium", 96**2), SizeBin("large", None))
_BINS_OF_SOURCE = {"soda-d": _SODA_BINS, "soda-a": _SODA_BINS, "ai-tod": _AI_TOD_BINS}


PUBLISHED_PICTURES = {
    "visdrone": {"train": 6_471, "val": 548, "test-dev": 1_610},
    "ai-tod": {"train": 11_214, "val": 2_804, "trainval": 14_018, "test": 14_018},
    "ruod": {"train": 9_800, "test": 4_200},
}
"""Pictures of each split as its authors, or those who rebuilt it, state them."""


def size_bins(source: str) -> tuple[SizeBin, ...]:
    """Return the size bins that a source's own evaluation uses; COCO's where it has none."""
    return _BINS_OF_SOURCE.get(source, _COCO_BINS)


def inspect_source(
    name: str,
    root: Path,
    split: str,
    *,
    out: Path | None = None,
    pictures: int = 12,
    seed: int = 0,
    small_area_px: float = SMALL_AREA_PX,
    max_pixels: int = MAX_PICTURE_PX,
) -> dict[str, Any]:
    """Read a split with its reader, count what is there, and draw a sample with its boxes.

    Args:
        name: Key of the table of sources.
        root: The source's folder.
        split: The split as the source names it.
        out: Folder for the sheet ``<name>-<split>.png``, made if missing; None draws none.
        pictures: Number of pictures on the sheet. Those with objects go first.
        seed: Another seed shows other pictures and objects.
        small_area_px: Largest area of a small object in px².
        max_pixels: Larger pictures are dropped as ``picture_too_large``.

    Returns:
        ``source``, ``split``, ``seed``, ``small_area_px``; ``pictures`` and
        ``pictures_without_objects``; ``objects``: ``counted``, ``ignored``, ``small`` (of the
        counted ones); ``classes``: the same three per category, and ``pictures`` that show a
        counted one; ``objects_per_picture`` and ``small_per_picture``: ``min``, ``median``,
        ``max`` of the counted ones; ``picture_sizes``: ``different``, ``width`` and ``height`` as
        [smallest, largest]; ``size_bins``: counted objects by area in the source's own bins;
        ``read``: the reader's report, drops, ignores and repairs by reason with examples;
        ``notes``: what else to know, such as pictures that the published split has and this has
        not; ``sampled``: image ids on the sheet; ``unreadable``: those of them whose pixels cannot
        be read, with the reason; ``sheet``: path of the sheet, or None.

    Raises:
        BuildError: If the source is unknown or an option makes no sense.
        FormatError: As the source's reader.
    """
    if name not in SOURCES:
        raise BuildError(f"expected a source of {', '.join(SOURCES)}, got {name!r}")
    if pictures < 0:
        raise BuildError(f"expected a number of pictures of at least 0, got {pictures}")
    if not small_area_px > 0:
        raise BuildError(f"expected an area of small objects over 0 px², got {small_area_px}")
    report = ReadReport(max_pixels=max_pixels)
    tally = _Tally(size_bins(name), small_area_px)
    scenes = tally.follow(SOURCES[name].read(root, split, report))
    sample = _sample(scenes, pictures if out is not None else 0, seed)
    data = {
        "source": name,
        "split": split,
        "seed": seed,
        "small_area_px": small_area_px,
        **tally.as_dict(report.categories),
        "read": report.as_dict(),
        "notes": _notes(name, split, report.pictures),
        "sampled": [scene.image_id for scene in sample],
        "unreadable": {},
        "sheet": None,
    }
    if out is not None:
        stem = re.sub(r"[^\w.-]", "_", f"{name}-{split}")
        path = out / f"{stem}.png"
        sheet = label_sheet(
            _cards(sample, seed, small_area_px),
            title=(
                f"{name} {split}: {len(sample)} of {data['pictures']:,} pictures, seed {seed}"
                " (the legend counts the whole split)"
            ),
            categories=report.categories,
            counts={key: value["objects"] for key, value in data["classes"].items()},
            max_pixels=max_pixels,
        )
        _save(sheet.image, path)
        data |= {"unreadable": sheet.unreadable, "sheet": str(path)}
    return data


def _notes(name: str, split: str, pictures: int) -> list[str]:
    notes = []
    published = PUBLISHED_PICTURES.get(name, {}).get(split, pictures)
    if published != pictures:
        notes.append(f"The published {split} split has {published:,} pictures, {pictures:,} read.")
    for subset in SUBSETS.values():
        if subset.source == name and subset.shrink_to_small:
            notes.append(
                "Areas here are those of the files. sou-vqa and sou-train shrink each picture "
                "until its largest object is small, so there all objects are."
            )
        if subset.source == name and subset.max_pixels is not None:
            notes.append(
                f"sou-vqa and sou-train leave out pictures over {subset.max_pixels:,} px; they are "
                "counted here."
            )
    return notes


@dataclass(slots=True)
class _Tally:
    """Counts over a split; grows with its categories and picture sizes, not with its pictures."""

    bins: tuple[SizeBin, ...]
    small_area_px: float
    counted: Counter[str] = field(default_factory=Counter)
    ignored: Counter[str] = field(default_factory=Counter)
    small: Counter[str] = field(default_factory=Counter)
    shown_in: Counter[str] = field(default_factory=Counter)
    per_picture: Counter[int] = field(default_factory=Counter)
    small_per_picture: Counter[int] = field(default_factory=Counter)
    sizes_wh: Counter[tuple[int, int]] = field(default_factory=Counter)
    binned: Counter[str] = field(default_factory=Counter)

    def follow(self, scenes: Iterable[Scene]) -> Iterator[Scene]:
        """Count scenes as they pass."""
        for scene in scenes:
            self._add(scene)
            yield scene

    def _add(self, scene: Scene) -> None:
        counted = [made for made in scene.objects if not made.ignore]
        small = [made for made in counted if made.area_px <= self.small_area_px]
        self.counted.update(made.category for made in counted)
        self.small.update(made.category for made in small)
        self.ignored.update(made.category for made in scene.objects if made.ignore)
        self.shown_in.update({made.category for made in counted})
        self.per_picture[len(counted)] += 1
        self.small_per_picture[len(small)] += 1
        self.sizes_wh[scene.width, scene.height] += 1
        self.binned.update(self._bin(made.area_px) for made in counted)

    def _bin(self, area_px: float) -> str:
        return next(b.name for b in self.bins if b.up_to_px2 is None or area_px <= b.up_to_px2)

    def as_dict(self, categories: Sequence[str]) -> dict[str, Any]:
        others = sorted((self.counted.keys() | self.ignored.keys()) - set(categories))
        widths, heights = zip(*self.sizes_wh, strict=True) if self.sizes_wh else ((), ())
        return {
            "pictures": self.per_picture.total(),
            "pictures_without_objects": self.per_picture[0],
            "objects": {
                "counted": self.counted.total(),
                "ignored": self.ignored.total(),
                "small": self.small.total(),
            },
            "classes": {
                name: {
                    "objects": self.counted[name],
                    "small": self.small[name],
                    "ignored": self.ignored[name],
                    "pictures": self.shown_in[name],
                }
                for name in [*categories, *others]
            },
            "objects_per_picture": _spread(self.per_picture),
            "small_per_picture": _spread(self.small_per_picture),
            "picture_sizes": {
                "different": len(self.sizes_wh),
                "width": [min(widths), max(widths)] if widths else None,
                "height": [min(heights), max(heights)] if heights else None,
            },
            "size_bins": [
                {"name": b.name, "up_to_px2": b.up_to_px2, "objects": self.binned[b.name]}
                for b in self.bins
            ],
        }


def _spread(counts: Mapping[int, int]) -> dict[str, float] | None:
    """Return smallest, median and largest of numbers given as number -> how often."""
    numbers = sorted(number for number, n in counts.items() if n)
    if not numbers:
        return None
    total = sum(counts[number] for number in numbers)
    middle = [_nth(numbers, counts, place) for place in ((total - 1) // 2, total // 2)]
    return {"min": numbers[0], "median": sum(middle) / 2, "max": numbers[-1]}


def _nth(numbers: Sequence[int], counts: Mapping[int, int], place: int) -> int:
    passed = 0
    for number in numbers:
        passed += counts[number]
        if passed > place:
            return number
    raise IndexError(place)


def _sample(scenes: Iterator[Scene], pictures: int, seed: int) -> list[Scene]:
    """Draw pictures by keyed hash, those with objects first; all scenes are run through."""

    def rank(scene: Scene) -> tuple[bool, int, str]:
        return not scene.objects, keyed_hash("inspect", seed, scene.image_id), scene.image_id

    taken = heapq.nsmallest(pictures, scenes, key=rank)
    for _ in scenes:
        pass  # Nothing was to be taken; the counts need every scene all the same.
    return sorted(taken, key=lambda scene: scene.image_id)


def _cards(sample: Sequence[Scene], seed: int, small_area_px: float) -> list[LabelCard]:
    """Choose which objects are enlarged: categories that were shown least come first."""
    shown: Counter[str] = Counter()
    cards = []
    for scene in sample:
        enlarged = _enlarged(scene, seed, small_area_px, shown)
        counted = [made for made in scene.objects if not made.ignore]
        small = sum(made.area_px <= small_area_px for made in counted)
        note = f"{scene.width} x {scene.height} px · {len(counted)} objects, {small} small"
        if ignored := len(scene.objects) - len(counted):
            note += f" · {ignored} not counted"
        cards.append(LabelCard(scene, note, enlarged))
    return cards


def _enlarged(
    scene: Scene, seed: int, small_area_px: float, shown: Counter[str]
) -> tuple[SceneObject, ...]:
    left = [made for made in scene.objects if not made.ignore] or list(scene.objects)
    # By what is labelled, not by record ids: those may be line numbers.
    draws = {
        id(made): keyed_hash(
            "enlarge", seed, scene.image_id, made.category, repr(made.quad_xy8 or made.box_xyxy)
        )
        for made in left
    }
    taken: list[SceneObject] = []
    windows: list[Window] = []
    while left and len(taken) < CROPS:
        made = min(
            left,
            key=lambda made: (
                any(window.holds(made.box_xyxy) for window in windows),
                shown[made.category],
                made.area_px > small_area_px,
                draws[id(made)],
            ),
        )
        left.remove(made)
        taken.append(made)
        windows.append(window_of(made.box_xyxy, (scene.width, scene.height)))
        shown[made.category] += 1
    return tuple(taken)


def _save(image: Image.Image, path: Path) -> None:
    """Write a PNG so that a stopped run leaves no half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.incomplete")
    image.save(partial, format="PNG")
    partial.replace(path)


def inspection_text(data: Mapping[str, Any]) -> str:
    """Write what `inspect_source` found for a person."""
    objects, area = data["objects"], data["small_area_px"]
    lines = [
        f"{data['source']} ({data['split']}): {data['pictures']:,} pictures, "
        f"{objects['counted']:,} objects, {objects['small']:,} of them small (at most {area:g} "
        f"px²), {objects['ignored']:,} more that do not count"
    ]
    if sizes := _sizes_text(data["picture_sizes"]):
        lines.append(f"  pictures: {sizes}")
    for label, key in (("objects", "objects_per_picture"), ("small objects", "small_per_picture")):
        if spread := data[key]:
            lines.append(
                f"  {label} in a picture: {spread['min']} to {spread['max']}, median "
                f"{spread['median']:g}"
            )
    if data["pictures_without_objects"]:
        lines.append(f"  pictures without an object: {data['pictures_without_objects']:,}")
    lines += ["", *_class_table(data["classes"])]
    lines += ["", "Objects by area in px²", *_bin_table(data["size_bins"])]
    lines += ["", *_reasons(data["read"])]
    if data["notes"]:
        lines += ["", *data["notes"]]
    for image_id, reason in data["unreadable"].items():
        lines.append(f"Not shown, its pixels cannot be read: {image_id} ({reason})")
    if data["sheet"]:
        lines += ["", f"Sheet ({len(data['sampled'])} of the pictures): {data['sheet']}"]
    return "\n".join(lines)


def _sizes_text(sizes: Mapping[str, Any]) -> str:
    if not sizes["different"]:
        return ""
    (w1, w2), (h1, h2) = sizes["width"], sizes["height"]
    if sizes["different"] == 1:
        return f"all {w1}×{h1} px"
    return f"{sizes['different']:,} different sizes, {w1} to {w2} px wide, {h1} to {h2} px high"


def _class_table(classes: Mapping[str, Mapping[str, int]]) -> list[str]:
    columns = ("objects", "small", "ignored", "pictures")
    width = max([len("class"), *map(len, classes)])
    lines = [f"{'class':<{width}}" + "".join(f"{column:>10}" for column in columns)]
    for name, counts in classes.items():
        lines.append(f"{name:<{width}}" + "".join(f"{counts[column]:>10,}" for column in columns))
    return lines


def _bin_table(bins: Sequence[Mapping[str, Any]]) -> list[str]:
    total = sum(b["objects"] for b in bins)
    most = max(b["objects"] for b in bins)
    names = max(len(b["name"]) for b in bins)
    lines, low = [], 0
    for b in bins:
        high = b["up_to_px2"]
        area = f"over {low}" if high is None else f"{low} to {high}"
        share = b["objects"] / total if total else 0
        bar = "#" * round(_BAR_CHARS * b["objects"] / most) if most else ""
        line = f"  {b['name']:<{names}}  {area:>12}  {b['objects']:>9,}  {share:>6.1%}  {bar}"
        lines.append(line.rstrip())
        low = high
    return lines


def _reasons(read: Mapping[str, Any]) -> list[str]:
    lines = []
    for label, key in (
        ("Dropped", "dropped"),
        ("Kept, but not counted", "ignored"),
        ("Kept with a change or notice", "repaired"),
    ):
        if read[key]:
            lines.append(label)
        for reason, n in read[key].items():
            examples = read["examples"].get(reason, [])
            more = ", .." if n > len(examples) else ""
            hint = " (--max-pixels N reads them)" if reason == "picture_too_large" else ""
            lines.append(f"  {reason} {n:,}: {'; '.join(examples)}{more}{hint}")
    return lines or ["Nothing was dropped, set aside or changed."]
