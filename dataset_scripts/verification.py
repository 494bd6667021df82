"""Verify a dataset: builds in the local cache, and exported folders."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

import datasets
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml  # type: ignore[import-untyped]  # PyYAML ships no types
from datasets import Features
from huggingface_hub import DatasetCardData
from PIL import Image

from soubench.builders.errors import BuildError, FormatError, PublishError, SoubenchError
from soubench.builders.images import pixels_digest
from soubench.builders.publishing.dataset_cache import build_folder, builds_in
from soubench.builders.publishing.export import NAME_FEATURES, with_names
from soubench.builders.publishing.export_folder import (
    FileSet,
    Manifest,
    View,
    is_export,
    load_manifest,
    refuse_several_builds,
    split_card,
)
from soubench.builders.publishing.picture_parquet import (
    CONFIG_COLUMN,
    picture_cells,
    picture_column,
)
from soubench.builders.sou.render import file_digest
from soubench.builders.verification import OF_WHOLE_BUILD, Problem, Row
from soubench.dataset_scripts import sou_verification as sou
from soubench.dataset_scripts.plant_leaves import verification as plant_leaves
from soubench.dataset_scripts.prepared import MANIFEST, datasets_cache
from soubench.dataset_scripts.primitive_shapes import verification as primitive_shapes
from soubench.dataset_scripts.row_digests import Tables, digest_problems, read_config
from soubench.dataset_scripts.rrs import verification as rrs


class Verifier(Protocol):
    """What a dataset knows of itself: a module with these functions."""

    def problems(
        self, tables: Tables, manifest: Mapping[str, Any], prompt: Path | None
    ) -> Iterator[Problem]:
        """Yield what is wrong with the rows."""

    def knows_words(self, manifest: Mapping[str, Any], prompt: Path | None) -> bool:
        """Say whether the prompt file is the one that the rows were made with."""

    def pictures_of(self, manifest: Mapping[str, Any], row: Row) -> Sequence[Mapping[str, Any]]:
        """Return ``file_name``, ``sha256`` and ``as_is`` of each of a row's pictures.

        Those that are not the source's own file may have ``made_sha256`` (of the file) or
        ``pixels_sha256``.

        ``row`` has ``id``, ``split`` and, where there are such columns, ``subset``, ``image_id``
        and ``task``. Nothing where that is not known, as of a copy that was drawn on.
        """


VERIFIERS: Mapping[str, Verifier] = {
    "primitive-shapes": primitive_shapes,
    "plant-leaves": plant_leaves,
    "rrs": rrs,
}
"""Dataset -> its verifier; all others are made of the six sub-tasks."""


@dataclass(frozen=True, slots=True)
class Verified:
    """One dataset that was verified.

    Attributes:
        dataset: Its name.
        folder: Where it lies.
        fingerprint: What its manifest says; empty where that cannot be read.
        configs: Its configs.
        rows: Rows of the largest of them.
        problems: What is wrong.
        notes: What was not checked.
    """

    dataset: str
    folder: Path
    fingerprint: str
    configs: list[str]
    rows: int
    problems: list[Problem]
    notes: list[str]


def verify_dataset(
    target: str,
    *,
    cache_dir: Path | None = None,
    prompt: Path | None = None,
    pictures: bool = False,
) -> list[Verified]:
    """Verify an exported folder, or every build of a dataset that the cache holds.

    No picture is decoded. A folder of that name wins over the cache, as it does in
    ``load_dataset``.

    Args:
        target: An exported folder, or what users type after ``load_dataset``.
        cache_dir: The datasets cache; by default that of ``datasets``.
        prompt: The prompt file that the dataset was made with; by default the package's own.
        pictures: Hash the pictures, too; else only their being there is checked.

    Raises:
        BuildError: Nothing of that name is built, and there is no such export.
        FormatError: The prompt file cannot be read.
        PublishError: A download with parts of several builds.
    """
    folder = Path(target).expanduser()
    if is_export(folder):
        refuse_several_builds(folder)
        return [_verify_export(folder.resolve(), prompt, pictures=pictures)]
    cache = datasets_cache(cache_dir)
    live = builds_in(cache, target)
    if not live:
        there = f"{folder} is no folder made by soubench export, and " if folder.is_dir() else ""
        raise BuildError(
            f"{there}{target} is not built in {cache}: run soubench build {target} first, or give "
            "the folder of an export."
        )
    everywhere = {config for configs in live.values() for config in configs}
    return [
        _verify_build(
            build_folder(cache, target, digest), configs, everywhere, prompt, pictures=pictures
        )
        for digest, configs in live.items()
    ]


def _verifier(dataset: str) -> Verifier:
    return VERIFIERS.get(dataset, sou)


def _verify_build(
    folder: Path,
    configs: Mapping[str, Path],
    everywhere: Collection[str],
    prompt: Path | None,
    *,
    pictures: bool,
) -> Verified:
    name = folder.parent.name
    problems: list[Problem] = []
    tables: dict[str, dict[str, pa.Table]] = {}
    described: dict[str, Any] = {}
    try:
        described = _described(folder / MANIFEST)
        # Configs that a newer build has taken over are there under its fingerprint.
        for config in sorted(set(described.get("views", ())) - set(everywhere)):
            problems.append(Problem("", "config", f"{config} is missing"))
        features = Features.from_dict(described["features"])
        for config, path in configs.items():
            info = datasets.DatasetInfo.from_directory(str(path))
            tables[config] = read_config(name, path, info)
            # What was pulled may say which pictures belong to rows that came without.
            named = info.features and set(info.features) & set(NAME_FEATURES)
            expected = with_names(features) if named else features
            problems += _info_problems(config, info, expected, _lengths(tables[config]))
        without = {c: {s: _rows_only(t) for s, t in of.items()} for c, of in tables.items()}
        problems += _verifier(name).problems(without, described, prompt)
        problems += _digest_problems(without, described, problems)
        problems += _cached_pictures(name, tables, described, pictures=pictures)
    except _DAMAGE as error:
        problems.append(_damaged(folder, error))
    return _verified(name, folder, described, tables, prompt, problems)


def _verify_export(folder: Path, prompt: Path | None, *, pictures: bool) -> Verified:
    problems: list[Problem] = []
    tables: dict[str, dict[str, pa.Table]] = {}
    described: dict[str, Any] = {}
    dataset = folder.name
    try:
        export = load_manifest(folder)
        dataset = export.dataset
        described = _described(folder / MANIFEST)
        if not {view.config for view in export.views} >= set(described.get("views", ())):
            described["partial"] = True
        head = described["head"]
        for field, ours in (
            ("fingerprint", described["fingerprint"]),
            ("dataset", head.get("dataset", dataset)),
            ("mode", head.get("mode", export.mode)),
        ):
            if (said := getattr(export, field)) != ours:
                message = f"export.json says {said!r}, {MANIFEST} {ours!r}"
                problems.append(Problem("", field, message))
        problems += _file_problems(folder, export, hashed=pictures)
        sets = {(s.folder, s.split): _read_rows(folder, s) for s in export.sets}
        for view in export.views:
            parts = [sets[s.folder, s.split] for s in export.sets_of(view)]
            tables.setdefault(view.config, {})[view.split] = _viewed(pa.concat_tables(parts), view)
        problems += _card_problems(folder, export)
        features = Features.from_dict(described["features"])
        if export.carries_names:
            features = with_names(features)
        problems += _feature_problems(folder, export, features)
        problems += _verifier(dataset).problems(tables, described, prompt)
        problems += _digest_problems(tables, described, problems)
        for s in export.sets:
            problems += _exported_pictures(folder, dataset, s, described, pictures=pictures)
    except _DAMAGE as error:
        problems.append(_damaged(folder, error))
    return _verified(dataset, folder, described, tables, prompt, problems)


def _digest_problems(
    tables: Tables, described: Mapping[str, Any], found: Sequence[Problem]
) -> list[Problem]:
    known = {problem.row_id for problem in found}
    return list(digest_problems(tables, described["features"], described["rows"], known))


def _verified(
    dataset: str,
    folder: Path,
    described: Mapping[str, Any],
    tables: Tables,
    prompt: Path | None,
    problems: list[Problem],
) -> Verified:
    notes: list[str] = []
    if described.get("partial"):
        problems = [p for p in problems if p.field not in OF_WHOLE_BUILD]
        notes.append(
            "this is part of a build: each row is checked, but the fingerprint is of all configs, "
            "which are not here."
        )
    if tables and not _verifier(dataset).knows_words(described, prompt):
        notes.append(
            "the words of its questions were not derived anew, since it was made with another "
            "prompt file; name that one with --prompt."
        )
    fingerprint = str(described.get("fingerprint", ""))
    rows = max((sum(_lengths(splits).values()) for splits in tables.values()), default=0)
    return Verified(dataset, folder, fingerprint, list(tables), rows, problems, notes)


_DAMAGE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    SystemError,
    SoubenchError,
    yaml.YAMLError,
)
"""Whatever a damaged file makes the libraries say."""


def _damaged(folder: Path, error: Exception) -> Problem:
    if isinstance(error, SoubenchError):
        return Problem("", "files", str(error))
    return Problem("", "files", f"{folder}: a file is damaged or missing ({error!r:.200})")


def _viewed(table: pa.Table, view: View) -> pa.Table:
    """Return a view's rows as ``load_dataset`` gives them."""
    if view.column:
        table = table.filter(pc.equal(table[view.column], view.value))
    return table.drop_columns(CONFIG_COLUMN) if view.column == CONFIG_COLUMN else table


def _described(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise PublishError(
            f"{path} is not there; an older soubench made this. Build and export it again"
        ) from error
    found = json.loads(text)
    if not isinstance(found, dict):
        raise FormatError(f"{path} is damaged: expected a JSON object, found {text:.40}")
    return found


def _lengths(splits: Mapping[str, pa.Table]) -> dict[str, int]:
    return {split: table.num_rows for split, table in splits.items()}


def _info_problems(
    config: str, info: datasets.DatasetInfo, features: Features, lengths: Mapping[str, int]
) -> Iterator[Problem]:
    """Check what a config is said to be: types, names of classes, numbers of rows."""
    said = info.features or {}
    for name in sorted({*said, *features}):
        if said.get(name) != features.get(name):
            message = f"{config}: expected {features.get(name)}, got {said.get(name)}"
            yield Problem("", f"features of {name}", message)
    stated = {split: found.num_examples for split, found in (info.splits or {}).items()}
    if stated != lengths:
        message = f"{config}: {dict(stated)} rows are stated, there are {dict(lengths)}"
        yield Problem("", "splits", message)


def _feature_problems(folder: Path, export: Manifest, features: Features) -> Iterator[Problem]:
    """Check what the card and the files themselves say that the rows are."""
    head, _ = split_card((folder / "README.md").read_text(encoding="utf-8"))
    data = DatasetCardData(**{k: head[k] for k in ("dataset_info", "configs") if k in head})
    infos = datasets.info.DatasetInfosDict.from_dataset_card_data(data)
    for config in dict.fromkeys(view.config for view in export.views):
        lengths = {v.split: export.rows_of(v) for v in export.views if v.config == config}
        info = infos.get(config) or datasets.DatasetInfo()
        yield from _info_problems(config, info, features, lengths)
    for path in (path for s in export.sets for path in s.paths):
        found = Features.from_arrow_schema(pq.read_schema(folder / path))
        own = {name: of for name, of in found.items() if name != CONFIG_COLUMN}
        if own != features:
            yield Problem("", "features", f"{path}: they are not those of the build")


def _rows_only(table: pa.Table) -> pa.Table:
    return table.drop_columns([c for c in ("image", "images") if c in table.column_names])


def _read_rows(folder: Path, s: FileSet) -> pa.Table:
    parts = []
    for path in s.paths:
        with pq.ParquetFile(folder / path) as file:
            columns = [c for c in file.schema_arrow.names if c not in ("image", "images")]
            parts.append(file.read(columns))
    return pa.concat_tables(parts)


def _cached_pictures(
    dataset: str, tables: Tables, described: Mapping[str, Any], *, pictures: bool
) -> Iterator[Problem]:
    """Check that every picture that rows refer to is there, and what it holds if asked to.

    Configs repeat the rows of the largest, so a row of another one must have the same pictures.
    """
    verifier = _verifier(dataset)
    ordered = sorted(tables, key=lambda config: -sum(_lengths(tables[config]).values()))
    digests: dict[str, str] = {}
    paths_of: dict[tuple[str, str], list[str]] = {}
    for config, split, table in ((c, s, t) for c in ordered for s, t in tables[c].items()):
        for row in _identified(table, split):
            paths = [cell["path"] for cell in row["cells"]]
            if any(cell["bytes"] is not None for cell in row["cells"]):
                # Which `datasets` would show, whatever the path.
                message = "expected the path of its picture alone, and it has bytes"
                yield Problem(row["id"], row["column"], message)
            if paths_of.setdefault((split, row["id"]), paths) is not paths:
                if paths_of[split, row["id"]] != paths:
                    message = f"{config} and {ordered[0]} have different pictures"
                    yield Problem(row["id"], row["column"], message)
                continue
            known = verifier.pictures_of(described, row)
            if not paths and row.get("sha256"):
                yield from _name_problems(row, known)
                continue
            if known and len(known) != len(paths):
                yield _number_problem(row, known)
            for i, path in enumerate(paths):
                if path not in digests:
                    there = path is not None and Path(path).is_file()
                    digests[path] = file_digest(Path(path)) if there and pictures else ""
                    if not there:
                        yield Problem(row["id"], row["column"], f"there is no file {path}")
                expected = known[i] if i < len(known) else {}
                if digests[path] and not _is_expected(digests[path], Path(path), expected):
                    message = f"{path} is not the picture of the build"
                    yield Problem(row["id"], row["column"], message)


def _is_expected(digest: str, picture: Path | BytesIO, known: Mapping[str, Any]) -> bool:
    """Say whether a file is the source's own, or the one that the build made of it, if known."""
    if not known:
        return True
    if not known["as_is"] and "pixels_sha256" in known:
        try:
            with Image.open(picture) as image:
                return bool(pixels_digest(image.convert("RGB")) == known["pixels_sha256"])
        except (OSError, Image.DecompressionBombError):
            return False
    expected = known["sha256"] if known["as_is"] else known.get("made_sha256")
    return not expected or digest == expected


def _exported_pictures(
    folder: Path, dataset: str, s: FileSet, described: Mapping[str, Any], *, pictures: bool
) -> Iterator[Problem]:
    """Check what says which picture belongs to a row, or the picture itself if asked to."""
    verifier = _verifier(dataset)
    for path in s.paths:
        with pq.ParquetFile(folder / path) as file:
            names = file.schema_arrow.names
            wanted = [c for c in _IDENTIFYING if c in names]
            if pictures and not s.withheld:
                wanted.append(picture_column(file.schema_arrow))
            for i in range(file.num_row_groups):
                for row in _identified(file.read_row_group(i, wanted), s.split):
                    known = verifier.pictures_of(described, row)
                    if s.withheld:
                        yield from _name_problems(row, known)
                    elif pictures:
                        yield from _byte_problems(row, known)


_IDENTIFYING = ("id", "subset", "image_id", "task", "file_name", "sha256", "width", "height")


def _identified(table: pa.Table, split: str) -> Iterator[dict[str, Any]]:
    """Yield what identifies the rows, with the pictures of each as ``cells``."""
    column = picture_column(table.schema)
    columns = [c for c in (*_IDENTIFYING, column) if c in table.column_names]
    for batch in table.select(columns).to_batches(max_chunksize=1024):
        part = pa.Table.from_batches([batch])
        cells = picture_cells(part) if column in columns else [[]] * part.num_rows
        named = part.select([c for c in columns if c != column])
        for row, of in zip(named.to_pylist(), cells, strict=True):
            yield row | {"split": split, "column": column, "cells": of}


def _name_problems(row: Row, known: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    for name in ("file_name", "sha256", "width", "height"):
        if not all(name in picture for picture in known):
            continue
        expected = [picture[name] for picture in known]
        got = row[name] if isinstance(row[name], list) else [row[name]]
        if expected and got != expected:
            yield Problem(row["id"], name, f"expected {expected!r}, got {got!r}")


def _byte_problems(row: Row, known: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    if not row["cells"] or not all(cell["bytes"] for cell in row["cells"]):
        yield Problem(row["id"], row["column"], "the picture is not in the file")
    elif known and len(known) != len(row["cells"]):
        yield _number_problem(row, known)
    else:
        for cell, picture in zip(row["cells"], known, strict=False):
            # attach makes pictures anew, and checks their pixels: another encoder has other bytes.
            attached = not picture["as_is"] and row.get("sha256")
            data = cell["bytes"]
            if not attached and not _is_expected(sha256(data).hexdigest(), BytesIO(data), picture):
                yield Problem(row["id"], row["column"], "it is not the picture of the build")


def _number_problem(row: Row, known: Sequence[Mapping[str, Any]]) -> Problem:
    message = f"expected {len(known)} pictures, got {len(row['cells'])}"
    return Problem(row["id"], row["column"], message)


def _card_problems(folder: Path, export: Manifest) -> Iterator[Problem]:
    """Check that the card's configs are the files, splits and filters of the export."""
    head, _ = split_card((folder / "README.md").read_text(encoding="utf-8"))
    expected: dict[str, dict[str, Sequence[str]]] = {}
    filters: dict[str, Any] = {}
    columns: dict[str, Any] = {}
    for view in export.views:
        paths = [path for s in export.sets_of(view) for path in s.paths]
        expected.setdefault(view.config, {})[view.split] = paths
        filters[view.config] = view.filters
        if view.column == CONFIG_COLUMN:
            kept = pq.read_schema(folder / paths[0]).names
            columns[view.config] = [name for name in kept if name != CONFIG_COLUMN]
    # Others may have put further configs of their own beside them.
    said = {c["config_name"]: c for c in head.get("configs", ()) if c["config_name"] in expected}
    if set(said) != set(expected):
        yield Problem("", "card", "configs of export.json are not in README.md")
        return
    for name, config in said.items():
        files = {f["split"]: f["path"] for f in config["data_files"]}
        options = (config.get("filters"), config.get("columns"))
        if files != expected[name] or options != (filters[name], columns.get(name)):
            message = f"README.md names other files, filters or columns for {name}"
            yield Problem("", "card", message)


def _file_problems(folder: Path, export: Manifest, *, hashed: bool) -> Iterator[Problem]:
    """Check that the files are those that were written."""
    named = {path: file for s in export.sets for path, file in zip(s.paths, s.files, strict=True)}
    there = {path.relative_to(folder).as_posix() for path in folder.glob("data/**/*.parquet")}
    for path in sorted(there - set(named)):
        yield Problem("", "files", f"{path} belongs to no config")
    for path, file in named.items():
        if path not in there:
            yield Problem("", "files", f"{path} is missing")
            continue
        size = (folder / path).stat().st_size
        if size != file.num_bytes:
            message = f"{path}: expected {file.num_bytes} bytes, there are {size}"
            yield Problem("", "files", message)
        elif hashed and file_digest(folder / path) != file.sha256:
            yield Problem("", "files", f"{path} is not the file that was written")
