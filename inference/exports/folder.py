"""What the folders for all tools have in common: pictures stored once, rights, a README."""

import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, TypeAlias

import datasets
import huggingface_hub
import pyarrow as pa
from datasets import Features

from soubench.builders.publishing.dataset_cache import build_folder
from soubench.builders.publishing.export_folder import MANIFEST, is_export, load_manifest
from soubench.builders.publishing.picture_parquet import (
    Embedded,
    PictureRows,
    by_picture,
    picture_cells,
    write_pictures,
)
from soubench.builders.publishing.picture_rights import (
    PictureRights,
    left_out_name,
    rights_of,
    rights_of_source,
)
from soubench.inference.chat import Picture
from soubench.inference.dataset_rows import LoadedRows

BATCH_ROWS = 64
SUFFIXES = {"JPEG": "jpg", "PNG": "png", "WEBP": "webp"}
"""Formats that all tools read, and their suffixes; others are stored as PNG."""

Columns: TypeAlias = Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written for a tool.

    Attributes:
        rows: Number of rows.
        pictures: Number of distinct pictures.
        files: The files that a user of the tool names, relative to the folder.
    """

    rows: int
    pictures: int
    files: tuple[str, ...]


@dataclass(slots=True)
class Pictures:
    """Names pictures in the order they come in; the same picture has the same name.

    Attributes:
        names: Path, or hash of the bytes -> the name.
    """

    names: dict[str, str] = field(default_factory=dict)

    def take(self, picture: Picture) -> tuple[str, bytes | None]:
        """Return the name of a picture, and the bytes of its file where it is a new one.

        Raises:
            PictureError: The file is gone or damaged.
        """
        known = str(picture.path) if picture.data is None else sha256(picture.data).hexdigest()
        if known in self.names:
            return self.names[known], None
        data, suffix = stored(picture)
        self.names[known] = f"{len(self.names):06d}.{suffix}"
        return self.names[known], data

    def write(self, picture: Picture, folder: Path) -> str:
        """Put a picture into a folder, if it is not there yet, and return its name."""
        name, data = self.take(picture)
        if data is not None:
            (folder / name).write_bytes(data)
        return name


def stored(picture: Picture) -> tuple[bytes, str]:
    """Return the bytes of a picture's file, upright and in a common format, and its suffix.

    Raises:
        PictureError: The file is gone or damaged.
    """
    suffix = SUFFIXES.get(picture.sendable_kind)
    if suffix:
        picture.check()
        return picture.read(), suffix
    buffer = io.BytesIO()
    picture.open().save(buffer, "PNG")
    return buffer.getvalue(), SUFFIXES["PNG"]


def write_rows(
    loaded: LoadedRows, folder: Path, more: Features | None = None, values: Columns = ()
) -> Exported:
    """Write rows as Parquet, with their pictures inside and further columns at the end.

    Args:
        loaded: The rows; the split is the start of the files' names.
        folder: Where the files go.
        more: The further columns.
        values: Of each further column, a value per row.
    """
    more = more or Features()
    rows = loaded.undecoded()
    # Of the rows as they are, so that loaders decode the pictures.
    schema = Features({**loaded.rows.features, **more}).arrow_schema
    names = Pictures()

    def embedded(cell: dict[str, Any]) -> Embedded:
        picture = Picture(cell["path"], cell["bytes"])
        name, data = names.take(picture)
        return Embedded(data if data is not None else stored(picture)[0], name)

    def tables() -> Iterator[pa.Table]:
        for start in range(0, len(rows), BATCH_ROWS):
            table = rows.with_format("arrow")[start : start + BATCH_ROWS]
            for name, column in zip(more, values, strict=True):
                part = column[start : start + BATCH_ROWS]
                table = table.append_column(name, pa.array(part, schema.field(name).type))
            yield table

    def pictures() -> Iterator[PictureRows]:
        for group in by_picture(tables()):
            yield PictureRows(group, [[embedded(c) for c in of] for of in picture_cells(group)])

    written = write_pictures(folder, loaded.split, pictures(), schema)
    made = tuple(f"{folder.name}/{file.name}" for file in written.files)
    return Exported(len(rows), len(names.names), made)


def write_readme(target: Path, tool: str, loaded: LoadedRows, **said: str) -> None:
    """Write the README of a folder from the template of its tool."""
    template = files("soubench.inference.exports") / f"readme_{tool.replace('-', '_')}.md"
    text = Template(template.read_text(encoding="utf-8")).substitute(
        title=f"{loaded.name}, {loaded.config}, {loaded.split}",
        dataset=named(loaded),
        config=loaded.config,
        split=loaded.split,
        fingerprint=loaded.fingerprint[:16],
        rights=rights_text(rights(loaded)),
        **said,
    )
    (target / "README.md").write_text(text, encoding="utf-8")


def named(loaded: LoadedRows) -> str:
    """Return what to type for the dataset, without the place of a folder on this machine."""
    folder = Path(loaded.source).expanduser()
    return f"PATH/{folder.resolve().name}" if folder.is_dir() else loaded.source


def file_name(loaded: LoadedRows) -> str:
    """Return a name for the files and tasks of some rows that every tool takes."""
    parts = (loaded.name, loaded.config, loaded.split)
    return "_".join(re.sub(r"[^A-Za-z0-9]+", "-", part) for part in parts)


def rights(loaded: LoadedRows) -> tuple[PictureRights, ...]:
    """Return what the sources of some rows' pictures allow, each source once."""
    folder = _exported(loaded)
    if folder is not None:
        found = [
            rights_of_source(s.source, s.license)
            for s in load_manifest(folder).sets
            if s.split == loaded.split
        ]
    else:
        report = _report(loaded)
        column = "source" if "source_licenses" in report else "subset"
        subsets = loaded.rows.unique(column) if column in loaded.rows.column_names else [""]
        found = [rights_of(loaded.name, str(subset), report) for subset in sorted(subsets)]
    return tuple({one.source: one for one in found}.values())


def _exported(loaded: LoadedRows) -> Path | None:
    """Return the exported folder of the rows; of a repository on the Hub, one with what it says."""
    folder = Path(loaded.source).expanduser()
    if is_export(folder):
        return folder
    if folder.exists() or "/" not in loaded.source:
        return None
    try:
        found = huggingface_hub.hf_hub_download(loaded.source, MANIFEST, repo_type="dataset")
    except (OSError, ValueError):
        # The Hub's errors: no such file, so it was not published by soubench.
        return None
    return Path(found).parent


def _report(loaded: LoadedRows) -> dict[str, Any]:
    cache = Path(datasets.config.HF_DATASETS_CACHE).expanduser()
    path = build_folder(cache, loaded.name, loaded.fingerprint) / "report.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # Rows from the Hub have no build here; their sources are then not known.
        return {}
    return found if isinstance(found, dict) else {}


def kept(found: Iterable[PictureRights]) -> list[str]:
    """Return the sources whose pictures may not be passed on."""
    return sorted(
        left_out_name(one.source, one.license) for one in found if not one.pictures_may_go
    )


def rights_text(found: Sequence[PictureRights]) -> str:
    """Say in a README what may be done with the pictures."""
    lines = []
    for one in found:
        may = "may be passed on" if one.pictures_may_go else "may not be passed on"
        notice = f" {one.notice}." if one.notice else ""
        lines.append(f"- {one.source}: {may} (license: {one.license}).{notice}")
    if kept(found):
        lines.append(
            "\nThis folder is for your own use: do not publish it. `soubench export` without "
            "`--to` makes a folder that can be published."
        )
    return "\n".join(lines)
