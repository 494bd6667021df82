"""The pictures of any dataset, each once: built, exported, on the Hub, or a plain folder."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import pyarrow.parquet as pq
from datasets.packaged_modules.cache.cache import Cache
from datasets.utils.file_utils import xopen
from tqdm import tqdm

from soubench.builders.errors import BuildError, brief
from soubench.builders.images import MAX_PICTURE_PX, PICTURE_SUFFIXES
from soubench.builders.near_duplicates import load_phash
from soubench.builders.overlap import SHOWN, Group, Picture, PictureSet, Shown, hash_shown
from soubench.builders.parallel import in_order
from soubench.builders.publishing.dataset_cache import build_folder, is_live
from soubench.builders.publishing.export_folder import is_export, load_manifest
from soubench.builders.publishing.quiet import quiet_datasets
from soubench.builders.sou.subsets import SUBSETS, Task
from soubench.builders.sources import SOURCES

GROUP_COLUMNS = ("group_id", "plant_id")
HASH_COLUMNS = ("sha256", "pixels_sha256")
COLUMNS = ("id", "image_id", *GROUP_COLUMNS, "subset", "source", "task", *HASH_COLUMNS)
"""What is read of a row beside its pictures, where it is there."""
DATASET_SUFFIXES = frozenset({".parquet", ".arrow"})
METADATA = frozenset({"metadata.csv", "metadata.jsonl"})
"""Files that make a folder of pictures a dataset with columns (``imagefolder``)."""

FEW = 16
"""Fewer pictures than this are hashed without other processes."""
BATCH_ROWS = 8
"""Rows may hold the bytes of their pictures."""
BATCH_ROWS_BY_PATH = 1000
LISTED = 12
"""Names in a message."""

_DIGEST = re.compile(r"[0-9a-f]{64}")

Row = Mapping[str, Any]


class Address(NamedTuple):
    """Where pictures are: ``NAME[:CONFIG[:SPLIT]]``; an empty config or split means all."""

    name: str
    config: str = ""
    split: str = ""

    @classmethod
    def of(cls, text: str) -> "Address":
        """Read an address; a path that is there may have colons.

        >>> Address.of("sou-vqa:aerial")
        Address(name='sou-vqa', config='aerial', split='')

        Raises:
            BuildError: It has more parts, or no name.
        """
        if text and Path(text).expanduser().exists():
            return cls(text)
        parts = text.split(":")
        if len(parts) > len(cls._fields) or not parts[0]:
            raise BuildError(
                f"expected NAME[:CONFIG[:SPLIT]], such as sou-vqa:aerial; got {text!r}"
            )
        return cls(*parts)

    def resolved(self) -> "Address":
        """Return the same address, with a folder's name in full."""
        folder = Path(self.name).expanduser()
        return self._replace(name=str(folder.resolve())) if folder.is_dir() else self

    def __str__(self) -> str:
        return ":".join(self).rstrip(":")


@dataclass(frozen=True)
class _Part:
    """One split of one config.

    Attributes:
        name: For the labels of rows that have no id.
        split: Its split.
        columns: Names of all its columns.
        pictures: Those that hold a picture or a list of them.
        rows: Its rows, with pictures as path and bytes.
        origin: Where the pictures come from.
    """

    name: str
    split: str
    columns: tuple[str, ...]
    pictures: tuple[str, ...]
    rows: Iterable[Row]
    origin: "_Origin"


@dataclass(frozen=True)
class _Origin:
    """What a build says about where its pictures come from.

    Attributes:
        sources: Subset -> name of its source.
        files: Subset, or nothing, and image id or row id -> SHA-256 of the source's file.
    """

    sources: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @classmethod
    def beside(cls, folder: Path) -> "_Origin":
        """Read the report and the manifest of a build or an export, where they are there."""
        read = {
            subset: found.get("read", {}).get("source", "")
            for subset, found in _json(folder / "report.json").get("subsets", {}).items()
        }
        files: dict[tuple[str, str], str] = {}
        for name, found in _json(folder / "manifest.json").get("pictures", {}).items():
            # By subset, or all in one where there are none; drawn pictures have no source.
            if isinstance(found, dict):
                of_subset = {name: found} if "sha256" in found else found
                subset = "" if of_subset is not found else name
                files |= {(subset, key): picture["sha256"] for key, picture in of_subset.items()}
        return cls(read, files)

    def file_of(self, row: Row) -> str:
        """Return the hash of the source's file of a row's picture; empty where not known."""
        key = str(row.get("image_id") or row.get("id"))
        return self.files.get((str(row.get("subset")), key)) or self.files.get(("", key), "")

    def source_of(self, row: Row, split: str) -> str:
        """Return the source of a row's picture; empty where that is not known."""
        subset = str(row.get("subset") or "")
        known = self.sources.get(subset) or (SUBSETS[subset].source if subset in SUBSETS else "")
        if known:
            # Many sets come in a format that names no set of its own.
            is_format = known in SOURCES and SOURCES[known].categories is None
            return "" if is_format else known
        # In a set of the user's own, subsets are the splits.
        return str(row.get("source") or ("" if subset == split else subset))


def _json(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def read_pictures(
    address: Address, *, workers: int = 1, max_pixels: int = MAX_PICTURE_PX
) -> PictureSet:
    """Read and hash the pictures of a dataset, each once.

    The name is that of a folder (an export, anything that ``load_dataset`` reads, or pictures), of
    a dataset built in the cache, or of one on the Hub, in this order. OL rows show a copy of a
    picture with a red outline, which is left aside where the plain one is there.

    Args:
        address: Name, config and split.
        workers: Processes.
        max_pixels: Larger pictures are compared by file alone.

    Raises:
        BuildError: There is no such dataset, config or split, it has no column of pictures, no
            picture of it can be compared, or ``imagehash`` is not installed.
        PublishError: A damaged export.
    """
    load_phash()
    folder = Path(address.name).expanduser()
    reader = _Reader(address, max_pixels)
    shown: Iterable[Shown]
    if folder.is_dir() and not _is_dataset(folder):
        shown = _files(folder, address)
    else:
        built = _built_configs(address.name) if not folder.is_dir() else []
        parts = _built_parts(address, built) if built else _folder_or_hub_parts(address, folder)
        shown = (one for part in parts for one in reader.follow(part))
        # Rows of the cache hold paths, not bytes.
        shown = list(shown) if built else shown
    reader.take(shown, workers)
    return reader.done()


class _Reader:
    """Makes one set of pictures from rows."""

    def __init__(self, address: Address, max_pixels: int) -> None:
        self.found = PictureSet(str(address))
        self.max_pixels = max_pixels
        self.rows = 0
        self.columns: set[str] = set()
        self.seen: set[str] = set()
        self.plain: set[str] = set()
        self.aside: set[str] = set()

    def follow(self, part: _Part) -> Iterator[Shown]:
        """Yield the pictures of a part that have not come before, and note its groups."""
        self.columns |= set(part.columns)
        try:
            for place, row in enumerate(part.rows):
                self.rows += 1
                self._note_group(row, part)
                cells = [c for name in part.pictures for c in _cells(row.get(name))]
                if row.get("task") != Task.OL and row.get("image_id"):
                    self.plain.add(_image(row, part))
                for k, cell in enumerate(cells or [{}] * _number_named(row)):
                    label = f"{row.get('id') or cell.get('path') or f'{part.name}[{place}]'}"
                    label = f"{label}#{k}" if k else label
                    yield from self._new(_shown(label, row, k, cell, part))
        except (ValueError, OSError, datasets.exceptions.DatasetsError) as error:
            raise BuildError(
                f"{self.found.name}, {part.name}: expected rows that can be read; after "
                f"{self.rows} of them: {brief(error)}"
            ) from error

    def _note_group(self, row: Row, part: _Part) -> None:
        group_id = next((row[name] for name in GROUP_COLUMNS if row.get(name) is not None), "")
        if group_id != "":
            group = Group(part.origin.source_of(row, part.split), str(group_id))
            self.found.groups.setdefault(group, str(row.get("id") or ""))

    def _new(self, shown: Shown) -> Iterator[Shown]:
        if shown.path is not None:
            key = str(shown.path)
        elif shown.data is not None:
            key = sha256(shown.data).hexdigest()
        else:
            key = f"{sorted(shown.files)} {shown.pixels}"
            if not (shown.files or shown.pixels):
                self.found.nameless += 1
                return
        if key in self.seen:
            return
        if shown.outlines in self.plain:
            self.aside.add(key)
            return
        self.seen.add(key)
        yield shown

    def take(self, shown: Iterable[Shown], workers: int) -> None:
        """Hash pictures, and keep those with pixels of their own."""
        total = len(shown) if isinstance(shown, Sized) else None
        jobs = iter(shown)
        # A few pictures are not worth the start of other processes.
        first = list(islice(jobs, FEW))
        workers = workers if len(first) == FEW else 1
        work = partial(hash_shown, max_pixels=self.max_pixels)
        hashed = in_order(work, chain(first, jobs), workers=workers)
        kept: dict[str, Picture] = {}
        for picture in tqdm(hashed, f"{self.found.name}: hashing", total, unit=" pictures"):
            if picture.unreadable:
                self.found.unreadable[picture.unreadable] += 1
                examples = self.found.examples.setdefault(picture.unreadable, [])
                if len(examples) < SHOWN:
                    examples.append(picture.label)
                if not (picture.files or picture.pixels):
                    continue
            key = picture.pixels or f"files {sorted(picture.files)}"
            same = kept.get(key)
            kept[key] = picture if same is None else replace(same, files=same.files | picture.files)
        # An outlined copy may have come before its plain picture.
        self.found.pictures = [p for p in kept.values() if p.outlines not in self.plain]
        self.found.outlined = len(self.aside) + len(kept) - len(self.found.pictures)

    def done(self) -> PictureSet:
        """Return the set.

        Raises:
            BuildError: There is nothing in it to compare.
        """
        found = self.found
        if not all(picture.unreadable for picture in found.pictures):
            return found
        if found.unreadable:
            reasons = "; ".join(f"{r}: {', '.join(found.examples[r])}" for r in found.unreadable)
            raise BuildError(f"{found.name}: none of its pictures can be read. {reasons}.")
        if not self.rows:
            raise BuildError(f"{found.name}: expected pictures to compare; it has no rows.")
        raise BuildError(
            f"{found.name}: expected a column of pictures (Image, or a list of them), or rows "
            f"with their sha256; got {', '.join(sorted(self.columns)) or 'no columns'}."
        )


def _image(row: Row, part: _Part) -> str:
    return f"{part.split}/{row.get('subset') or ''}/{row['image_id']}"


def _cells(value: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401  # a picture or a list
    for cell in value if isinstance(value, list) else [value]:
        if cell:
            yield cell


def _shown(label: str, row: Row, k: int, cell: Mapping[str, Any], part: _Part) -> Shown:
    path, data = cell.get("path") or "", cell.get("bytes")
    # Beside bytes, a path is a name only.
    if data is None and "://" in path:
        with xopen(path, "rb") as file:
            data = file.read()
    original = part.origin.file_of(row)
    has_picture = data is not None or path != ""
    return Shown(
        label,
        Path(path) if path and data is None else None,
        data,
        frozenset(d for d in (original, _digest(row, "sha256", k)) if d),
        "" if has_picture else _digest(row, "pixels_sha256", k),
        _image(row, part) if row.get("task") == Task.OL and row.get("image_id") else "",
    )


def _number_named(row: Row) -> int:
    """Return how many pictures a row without any is about: it names a hash for each."""
    named = row.get("sha256")
    return max(1, len(named)) if isinstance(named, list) else 1


def _digest(row: Row, column: str, k: int) -> str:
    """Return a hash that a row names of its k-th picture; such a column may hold anything."""
    value = row.get(column)
    if isinstance(value, list):
        value = value[k] if k < len(value) else None
    return value if isinstance(value, str) and _DIGEST.fullmatch(value) else ""


def _is_dataset(folder: Path) -> bool:
    """Say whether a folder is for `datasets` to read, rather than pictures that lie there."""
    if is_export(folder):
        return True
    has_pictures = False
    for path in folder.rglob("*"):
        if path.suffix in DATASET_SUFFIXES or path.name in METADATA:
            return True
        has_pictures = has_pictures or path.suffix.lower() in PICTURE_SUFFIXES
    return not has_pictures


def _files(folder: Path, address: Address) -> list[Shown]:
    if address.config or address.split:
        raise BuildError(
            f"{folder} is a folder of pictures, without configs and splits; got {address}. "
            "Name one of its folders instead."
        )
    paths = sorted(p for p in folder.rglob("*") if p.suffix.lower() in PICTURE_SUFFIXES)
    return [Shown(str(p.relative_to(folder)), p) for p in paths if p.is_file()]


def _cache() -> Path:
    return Path(datasets.config.HF_DATASETS_CACHE).expanduser()


def _built_configs(name: str) -> list[str]:
    # Names with a slash are Hub ids, which `datasets` keeps under other names.
    folders = (_cache() / name).glob("*/*/*") if "/" not in name else ()
    return sorted({folder.parts[-3] for folder in folders if is_live(folder)})


def _built_parts(address: Address, configs: Sequence[str]) -> Iterator[_Part]:
    origins: dict[str, _Origin] = {}
    there: set[str] = set()
    for config in _chosen(address, "config", configs):
        with quiet_datasets(bars=True):
            builder = Cache(
                dataset_name=address.name, config_name=config, hash="auto", version="auto"
            )
        key = str(builder.hash)
        if key not in origins:
            origins[key] = _Origin.beside(build_folder(_cache(), address.name, key))
        for split in map(str, builder.info.splits or ()):
            there.add(split)
            if address.split in ("", split):
                rows = builder.as_dataset(split=split)
                yield _part_of(rows, f"{config}/{split}", split, origins[key])
    _chosen(address, "split", sorted(there))


def _folder_or_hub_parts(address: Address, folder: Path) -> Iterator[_Part]:
    if is_export(folder):
        yield from _export_parts(address, folder)
        return
    if not folder.is_dir() and address.name.startswith((".", "/", "~")):
        raise BuildError(f"{address.name}: there is no such folder.")
    name = str(folder.resolve()) if folder.is_dir() else address.name
    with _load_errors(address):
        configs = datasets.get_dataset_config_names(name)
    there: set[str] = set()
    for config in _chosen(address, "config", configs):
        with _load_errors(address):
            loaded = datasets.load_dataset(name, config, streaming=True)
        for split in map(str, loaded):
            there.add(split)
            if address.split in ("", split):
                yield _part_of(loaded[split], f"{config}/{split}", split, _Origin())
    _chosen(address, "split", sorted(there))


def _chosen(address: Address, field_name: str, there: Sequence[str]) -> list[str]:
    """Return the configs or splits that are asked for."""
    wanted = getattr(address, field_name)
    if wanted and wanted not in there:
        raise BuildError(
            f"{address.name}: there is no {field_name} {wanted!r}. Expected one of "
            f"{', '.join(there[:LISTED]) or '(there is none)'}{', ..' * (len(there) > LISTED)}."
        )
    return [wanted] if wanted else list(there)


@contextmanager
def _load_errors(address: Address) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise BuildError(
            f"{address.name}: expected a folder, a dataset built in the cache ({_cache()}), or "
            f"one on the Hub, that can be loaded. Build it (soubench build {address.name} ..) or "
            f"give another name. ({brief(error)})"
        ) from error


def _part_of(
    rows: datasets.Dataset | datasets.IterableDataset, name: str, split: str, origin: _Origin
) -> _Part:
    features = rows.features or datasets.Features()
    columns = _columns(features)
    # Decoding is for the workers.
    for column in _picture_columns(features):
        kind = datasets.Image(decode=False)
        is_list = not isinstance(features[column], datasets.Image)
        rows = rows.cast_column(column, datasets.List(kind) if is_list else kind)
    if columns:
        rows = rows.select_columns(columns)
    size = BATCH_ROWS_BY_PATH if isinstance(rows, datasets.Dataset) else BATCH_ROWS
    return _Part(
        name, split, tuple(features), _picture_columns(features), _rows(rows, size), origin
    )


def _rows(rows: datasets.Dataset | datasets.IterableDataset, size: int) -> Iterator[Row]:
    for batch in rows.iter(batch_size=size):
        for values in zip(*batch.values(), strict=True):
            yield dict(zip(batch, values, strict=True))


def _export_parts(address: Address, folder: Path) -> Iterator[_Part]:
    """Read the files of an export: each once, though many configs are made of them."""
    manifest = load_manifest(folder)
    origin = _Origin.beside(folder)
    views = [v for v in manifest.views if v.config == address.config]
    _chosen(address, "config", list(dict.fromkeys(v.config for v in manifest.views)))
    _chosen(address, "split", list(dict.fromkeys(v.split for v in views or manifest.views)))
    for s in manifest.sets:
        of = [v for v in views if s.split == v.split and s.folder in v.folders]
        if (address.split in ("", s.split)) and (of or not address.config):
            for path in s.paths:
                with pq.ParquetFile(folder / path) as file:
                    features = datasets.Features.from_arrow_schema(file.schema_arrow)
                    columns = dict.fromkeys(
                        (*_columns(features), *(v.column for v in of if v.column))
                    )
                    rows = (
                        row
                        for batch in file.iter_batches(BATCH_ROWS, columns=list(columns))
                        for row in batch.to_pylist()
                        if not of or any(not v.column or row[v.column] == v.value for v in of)
                    )
                    pictures = _picture_columns(features)
                    yield _Part(path, s.split, tuple(features), pictures, rows, origin)


def _columns(features: datasets.Features) -> list[str]:
    return [*_picture_columns(features), *(name for name in COLUMNS if name in features)]


def _picture_columns(features: datasets.Features) -> tuple[str, ...]:
    return tuple(
        name
        for name, kind in features.items()
        if isinstance(getattr(kind, "feature", kind), datasets.Image)
    )
