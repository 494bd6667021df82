"""Turn a built dataset of the local cache into a folder that can go to the Hub as it is."""

import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import compress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import datasets
import PIL
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Features, List, Value
from datasets.naming import filenames_for_dataset_split

from soubench.builders.errors import PublishError
from soubench.builders.images import inspect_picture, load_picture, pixels_digest
from soubench.builders.publishing.card_examples import write_examples, write_leaf_examples
from soubench.builders.publishing.dataset_cache import build_folder, builds_in
from soubench.builders.publishing.export_folder import (
    SECTION,
    FileSet,
    Manifest,
    View,
    chosen_configs,
    config_names,
    replacing,
    split_card,
    write_readme,
)
from soubench.builders.publishing.picture_parquet import (
    CONFIG_COLUMN,
    Embedded,
    PictureRows,
    by_picture,
    picture_cells,
    picture_column,
    picture_keys,
    write_pictures,
)
from soubench.builders.publishing.picture_rights import left_out_name, rights_of
from soubench.builders.rrs.report import EXAMPLES_HEADING
from soubench.builders.rrs.taxonomy import ALL, SUB_DIMENSIONS

SCRIPTS_PACKAGE = "soubench.dataset_scripts"
BUILD_MANIFEST = "manifest.json"
"""What the build is made of; goes along, so that the folder can be verified."""
BATCH_ROWS = 64
TOGETHER = "data"
"""Where the files of all configs lie that ask about the same pictures."""
NAME_FEATURES = {
    "file_name": Value("string"),
    "sha256": Value("string"),
    "pixels_sha256": Value("string"),
    "width": Value("int32"),
    "height": Value("int32"),
}
"""Columns that say which picture belongs to a row that has none."""


@dataclass(frozen=True, slots=True)
class _Build:
    """A build in the cache: its fingerprint, and config -> the folder of its rows."""

    fingerprint: str
    configs: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class _Split:
    """One split of a prepared config; ``counts`` are rows per (subset, sub-task), in order.

    What stands for the subset is named by ``column``: that of the subset, or of the source.
    """

    config: str
    split: str
    arrow_files: tuple[str, ...]
    column: str
    counts: Mapping[tuple[str, str], int]

    def of_subset(self, subset: str) -> int:
        return sum(n for (name, _), n in self.counts.items() if name == subset)

    def table(self) -> pa.Table:
        return pa.concat_tables([_arrow(file) for file in self.arrow_files])

    @property
    def subsets(self) -> list[str]:
        return list(dict.fromkeys(subset for subset, _ in self.counts))

    @property
    def tasks(self) -> set[str]:
        return {task for _, task in self.counts}


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where the rows of a file set come from: prepared configs, and one of their subsets."""

    configs: tuple[_Split, ...]
    subset: str

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows, a few at a time, ordered by picture."""
        if len(self.configs) > 1:
            return _woven(self.configs)
        (one,) = self.configs
        return _tables(one.arrow_files, one.column, self.subset)


def export_dataset(
    name: str,
    folder: Path,
    *,
    cache_dir: Path | None = None,
    fingerprint: str | None = None,
    pictures: Literal["all", "none"] = "all",
    have_the_right: bool = False,
    configs: Sequence[str] = (),
) -> dict[str, Any]:
    """Write a built dataset as Parquet files with a card, ready for the Hub.

    ``load_dataset(<folder>, <config>)`` then gives the rows of every config that the build
    prepared. Each picture is stored once for all configs of its subset. The folder appears as a
    whole or not at all; an earlier export there is replaced.

    Args:
        name: The dataset, as in ``load_dataset(name, ..)``.
        folder: Where to write. Must be absent, empty or an earlier export.
        cache_dir: The datasets cache; by default that of ``datasets``.
        fingerprint: Start of the build's hash, where the cache holds several builds.
        pictures: ``all`` that their sources allow to redistribute, or ``none``. Rows without a
            picture say which one belongs to them, see ``NAME_FEATURES``.
        have_the_right: The caller may redistribute all pictures, whatever the sources say.
        configs: Only these, and all others that are views of the same files; empty for all.

    Returns:
        ``dataset``, ``version``, ``fingerprint``, ``folder``, ``configs``, ``largest_config``,
        ``rows`` (of the files), ``pictures`` and ``picture_bytes`` (distinct ones inside),
        ``parquet_bytes``, and ``withheld``: sources whose pictures were left out.

    Raises:
        PublishError: No such build, several of them, a picture that has moved, or a folder that
            cannot be written.
    """
    if pictures not in ("all", "none"):
        raise PublishError(f"pictures: expected all or none, got {pictures!r}.")
    folder = folder.expanduser().resolve()
    cache = (cache_dir or Path(datasets.config.HF_DATASETS_CACHE)).expanduser().resolve()
    build = _find_build(name, cache, fingerprint)
    home = build_folder(cache, name, build.fingerprint)
    report, described = read_json(home / "report.json"), read_json(home / BUILD_MANIFEST)
    info = datasets.DatasetInfo.from_directory(str(next(iter(build.configs.values()))))
    splits = [s for config, path in build.configs.items() for s in _splits(name, config, path)]
    manifest = Manifest(
        dataset=name,
        version=str(info.version),
        fingerprint=build.fingerprint,
        mode=str(report.get("mode", "")),
        pillow=str(report.get("pillow", PIL.__version__)),
    )
    origin = _plan(manifest, splits, report, pictures=pictures, have_the_right=have_the_right)
    lacking = [_lacks_pictures(of) for of in origin]
    for s, lacks in zip(manifest.sets, lacking, strict=True):
        s.withheld |= lacks
    # Whatever part is taken has the same columns.
    manifest.carries_names = any(s.withheld for s in manifest.sets)
    whole, manifest = manifest, chosen_configs(manifest, configs)
    taken = [s in manifest.sets for s in whole.sets]
    origin, lacking = list(compress(origin, taken)), list(compress(lacking, taken))
    if manifest.carries_names:
        info.features = with_names(info.features)
    columns = dict(info.features)
    if any(view.column == CONFIG_COLUMN for view in manifest.views):
        columns[CONFIG_COLUMN] = Value("string")
    schema = Features(columns).arrow_schema
    with replacing(folder) as target:
        for s, of, lacks in zip(manifest.sets, origin, lacking, strict=True):
            groups = by_picture(of.tables())
            made, known = home / "pictures", _known(described, of, s.split)
            rows: Iterator[PictureRows]
            if lacks:
                rows = (PictureRows(g, [()] * g.num_rows) for g in groups)
            elif s.withheld:
                rows = (_with_names(g, made, schema, known) for g in groups)
            else:
                rows = map(_with_pictures, groups)
            s.take(write_pictures(target / s.folder, s.split, rows, schema))
        _write_papers(target, home, name, report, manifest, info, origin, configs)
        shutil.copyfile(home / BUILD_MANIFEST, target / BUILD_MANIFEST)
        manifest.save(target)
    return _summary(manifest, folder)


def with_names(features: Features) -> Features:
    """Return the features of rows that say which pictures belong to them."""
    several = "images" in features
    named = {name: List(kind) if several else kind for name, kind in NAME_FEATURES.items()}
    return Features({**features, **named})


def _find_build(name: str, cache: Path, fingerprint: str | None) -> _Build:
    builds = builds_in(cache, name)
    if not builds:
        homes = sorted(p.name for p in (cache / "soubench").glob("*") if p.name != "staging")
        there = ", ".join(n for n in homes if (cache / "soubench" / n).is_dir()) or "nothing"
        raise PublishError(
            f"{name}: no build of it in {cache}; there is {there}. Run soubench build {name} first."
        )
    chosen = [h for h in builds if h.startswith(fingerprint or "")]
    if len(chosen) != 1:
        listed = "; ".join(f"{h[:16]}: {', '.join(c)}" for h, c in builds.items())
        raise PublishError(
            f"{name}: expected one build in {cache}, found {len(chosen)}"
            f"{f' of fingerprint {fingerprint}' if fingerprint else ''}. Say which by the start of "
            f"its fingerprint, or build one that holds all. There are: {listed}."
        )
    return _Build(chosen[0], builds[chosen[0]])


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object that a build wrote.

    Raises:
        PublishError: It is not there or damaged.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PublishError(f"{path}: cannot be read ({error}). Build the dataset again.") from error
    return dict(found)


def _known(described: Mapping[str, Any], of: _Origin, split: str) -> Mapping[str, Any]:
    """Return image id, record id or row id -> what a build's manifest says of the pictures.

    Args:
        described: The manifest.
        of: Where the rows come from.
        split: Their split.
    """
    pictures: Mapping[str, Any] = described.get("pictures", {})
    if of.configs[0].column == "source":
        return pictures
    part = of.subset or split
    found = pictures.get(part, pictures)
    if isinstance(found, Mapping):
        return found
    # Drawn pictures have a hash each, in the order of the rows, and no source's name.
    return {
        f"{part}/{i:06d}": {"file_name": f"{i:06d}.png", "sha256": digest, "as_is": True}
        for i, digest in enumerate(found)
    }


def _splits(name: str, config: str, path: Path) -> Iterator[_Split]:
    info = datasets.DatasetInfo.from_directory(str(path))
    for split, found in (info.splits or {}).items():
        arrow_files = filenames_for_dataset_split(
            str(path), name, split, filetype_suffix="arrow", shard_lengths=found.shard_lengths
        )
        counts: Counter[tuple[str, str]] = Counter()
        column = ""
        for file in arrow_files:
            table = _arrow(file)
            column = _subset_column(table)
            if column:
                pairs = zip(table[column].to_pylist(), table["task"].to_pylist(), strict=True)
                counts.update(pairs)
            else:
                counts["", ""] += table.num_rows
        yield _Split(config, split, tuple(arrow_files), column, counts)


def _arrow(file: str) -> pa.Table:
    try:
        return pa.ipc.open_stream(pa.memory_map(file)).read_all()
    except (OSError, pa.ArrowInvalid) as error:
        raise PublishError(f"{file}: cannot be read ({error}). Build the dataset again.") from error


def _subset_column(table: pa.Table) -> str:
    """Return the column by whose values rows lie in files of their own; empty for none.

    Configs are made of them and of tasks, so that they can share files.
    """
    names = table.column_names
    if {"subset", "task", "image_id"}.issubset(names):
        return "subset"
    return "source" if {"source", "task", "sub_dimension"}.issubset(names) else ""


def _plan(
    manifest: Manifest,
    splits: Sequence[_Split],
    report: Mapping[str, Any],
    *,
    pictures: Literal["all", "none"],
    have_the_right: bool,
) -> list[_Origin]:
    """Fill in the file sets and the views; return where the rows of each file set come from."""

    def add_set(folder: str, split: str, subset: str) -> None:
        rights = rights_of(manifest.dataset, subset, report)
        inside = pictures == "all" and (rights.pictures_may_go or have_the_right)
        notice = rights.notice
        if inside and not rights.pictures_may_go:
            notice = (
                f"Pictures of {rights.source} (license: {rights.license}) are inside because who "
                "made this export stated the right to redistribute them"
            )
        manifest.sets.append(
            FileSet(folder, split, rights.source, rights.license, notice, not inside)
        )

    if _share_pictures(splits):
        names = list(dict.fromkeys(s.split for s in splits))
        for split in names:
            add_set(TOGETHER, split, "")
        manifest.views += [
            View(s.config, s.split, [TOGETHER], CONFIG_COLUMN, s.config) for s in splits
        ]
        return [_Origin(tuple(s for s in splits if s.split == split), "") for split in names]
    if all(s.column == "source" for s in splits):
        largest = max(splits, key=lambda s: sum(s.counts.values()))
        for source in largest.subsets:
            add_set(_source_folder(source), largest.split, source)
        manifest.views += [_taxonomy_view(s) for s in splits]
        return [_Origin((largest,), source) for source in largest.subsets]
    by_name = {(s.config, s.split): s for s in splits}

    def whole(s: _Split) -> bool:
        base, _, task = s.config.rpartition("-")
        return (base, s.split) not in by_name or {t.lower() for t in s.tasks} != {task}

    origin: dict[tuple[str, str], tuple[_Split, str]] = {}
    folder_of: dict[tuple[str, str, str], str] = {}
    for s in sorted(filter(whole, splits), key=lambda s: (-len(s.subsets), splits.index(s))):
        for subset in s.subsets:
            folder = f"data/{quote(subset or s.config, safe=' ')}"
            known = origin.get((folder, s.split))
            if known and known[0].of_subset(subset) != s.of_subset(subset):
                raise PublishError(
                    f"{manifest.dataset}: configs {known[0].config!r} and {s.config!r} of one "
                    f"build have different rows of {subset!r}. Build the dataset again."
                )
            # The last is the narrowest config, which is the quickest to read.
            origin[folder, s.split] = (s, subset)
            folder_of[s.config, s.split, subset] = folder
    for (folder, split), (_, subset) in origin.items():
        add_set(folder, split, subset)
    for s in splits:
        config = s.config if whole(s) else s.config.rpartition("-")[0]
        folders = [folder_of[config, s.split, subset] for subset in s.subsets]
        code = "" if whole(s) else next(iter(s.tasks))
        for subset in s.subsets if code else ():
            if by_name[config, s.split].counts[subset, code] != s.of_subset(subset):
                raise PublishError(
                    f"{manifest.dataset}: {s.config!r} does not hold the {code} rows of "
                    f"{config!r}. Build the dataset again."
                )
        manifest.views.append(View(s.config, s.split, folders, "task" if code else "", code))
    return [_Origin((s,), subset) for s, subset in origin.values()]


def _source_folder(source: str) -> str:
    """Return the folder of a source's files, whatever its name has in it."""
    name = quote(source, safe=" ")
    return f"data/{name if name.strip('.') else name.replace('.', '%2E')}"


def _taxonomy_view(s: _Split) -> View:
    """Return the view of a config of leaf tasks: all of them, a sub-dimension, or one."""
    folders = [_source_folder(source) for source in s.subsets]
    if s.config == ALL:
        return View(s.config, s.split, folders)
    if s.config in SUB_DIMENSIONS:
        tasks = sorted(s.tasks)
        return View(s.config, s.split, folders, "sub_dimension", s.config, tasks)
    return View(s.config, s.split, folders, "task", s.config.upper())


def _share_pictures(splits: Sequence[_Split]) -> bool:
    """Say whether all configs ask about the same pictures, row by row."""
    of_config: dict[str, dict[str, _Split]] = {}
    for s in splits:
        of_config.setdefault(s.config, {})[s.split] = s
    first, *others = of_config.values()
    return bool(others) and all(
        list(other) == list(first) and all(_alike(s, other[name]) for name, s in first.items())
        for other in others
    )


def _alike(a: _Split, b: _Split) -> bool:
    ours, theirs = a.table(), b.table()
    return (
        {"id", "image"}.issubset(ours.column_names)
        and CONFIG_COLUMN not in ours.column_names
        and not _subset_column(ours)
        and ours.schema.equals(theirs.schema)
        and ours.select(["id", "image"]).equals(theirs.select(["id", "image"]))
    )


def _woven(configs: Sequence[_Split]) -> Iterator[pa.Table]:
    """Yield the rows of several configs, those of one picture beside each other."""
    whole = [(s.config, s.table()) for s in configs]
    for start in range(0, whole[0][1].num_rows, BATCH_ROWS):
        parts = [table.slice(start, BATCH_ROWS) for _, table in whole]
        n = parts[0].num_rows
        named = [
            part.append_column(CONFIG_COLUMN, pa.array([config] * n, pa.string()))
            for part, (config, _) in zip(parts, whole, strict=True)
        ]
        order = [k * n + i for i in range(n) for k in range(len(named))]
        yield pa.concat_tables(named).take(pa.array(order, pa.int64()))


def _tables(arrow_files: Iterable[str], column: str, subset: str) -> Iterator[pa.Table]:
    for file in arrow_files:
        table = _arrow(file)
        for batch in table.to_batches(max_chunksize=BATCH_ROWS):
            part = pa.Table.from_batches([batch])
            yield part.filter(pc.equal(part[column], subset)) if column else part


def _lacks_pictures(of: _Origin) -> bool:
    """Say whether rows came without pictures, as those of a pulled dataset may."""
    first = next(table for table in of.tables() if table.num_rows)
    return not picture_cells(first.slice(0, 1))[0]


def _with_pictures(group: pa.Table) -> PictureRows:
    """Read the pictures of a group, each once."""
    read: dict[str, Embedded] = {}

    def embedded(cell: Mapping[str, Any]) -> Embedded:
        path = Path(cell["path"] or "")
        if cell["bytes"] is not None:
            return Embedded(cell["bytes"], path.name)
        if cell["path"] not in read:
            read[cell["path"]] = Embedded(_on_disk(path).read_bytes(), path.name)
        return read[cell["path"]]

    return PictureRows(group, [[embedded(cell) for cell in of] for of in picture_cells(group)])


def _on_disk(path: Path) -> Path:
    if not path.is_file():
        raise PublishError(
            f"{path}: the dataset refers to this picture, but it is no longer there. If the "
            f"pictures of {path.parent} have moved, build the dataset again."
        )
    return path


def _with_names(
    group: pa.Table, made: Path, schema: pa.Schema, known: Mapping[str, Any]
) -> PictureRows:
    """Replace the pictures of a group by what identifies them.

    Of pictures that the build made (scaled, converted, outlined) the pixels are hashed, too, so
    that who makes them again can tell whether they came out the same.
    """
    cells = picture_cells(group)
    paths = [[_on_disk(Path(cell["path"])) for cell in of] for of in cells]
    found = known.get(picture_keys(group)[0])
    # One for all rows of a picture; a list of them for a record.
    sources = found if isinstance(found, list) else [found] if found else []
    if any(len(of) != len(sources) for of in paths):
        raise PublishError(
            f"{group['id'][0]}: {BUILD_MANIFEST} of the build does not know its picture. Build the "
            "dataset again."
        )
    corrupted = ("corruption" in group.column_names and group["corruption"].to_pylist()) or (
        [""] * group.num_rows
    )
    distinct = sorted({path for of in paths for path in of})
    sizes = {path: inspect_picture(path, max_pixels=sys.maxsize) for path in distinct}
    pixels = {
        path: pixels_of_file(path)
        for of, kind in zip(paths, corrupted, strict=True)
        for path, source in zip(of, sources, strict=True)
        if path.is_relative_to(made) and (kind or not source["as_is"])
    }
    # A pulled dataset has such columns, which are empty where there are pictures.
    group = group.drop_columns([name for name in NAME_FEATURES if name in group.column_names])
    columns: dict[str, list[list[Any]]] = {
        "file_name": [[source["file_name"] for source in sources]] * len(paths),
        "sha256": [[source["sha256"] for source in sources]] * len(paths),
        "pixels_sha256": [[pixels.get(path, "") for path in of] for of in paths],
        "width": [[sizes[path].width for path in of] for of in paths],
        "height": [[sizes[path].height for path in of] for of in paths],
    }
    is_list = picture_column(schema) == "images"
    for name, values in columns.items():
        column = pa.array(values if is_list else [of[0] for of in values], schema.field(name).type)
        group = group.append_column(name, column)
    return PictureRows(group, [()] * len(paths))


def pixels_of_file(path: Path) -> str:
    """Return the digest of a picture file's pixels; its size was accepted by the build."""
    return pixels_digest(load_picture(path, max_pixels=sys.maxsize))


def _write_papers(
    target: Path,
    home: Path,
    name: str,
    report: Mapping[str, Any],
    manifest: Manifest,
    info: datasets.DatasetInfo,
    origin: Sequence[_Origin],
    configs: Sequence[str],
) -> None:
    """Write the card and what stands beside it."""
    card = home / "README.md"
    head, body = split_card(card.read_text(encoding="utf-8") if card.is_file() else f"# {name}\n")
    all_inside = not manifest.carries_names
    if (home / "sheets").is_dir() and all_inside:
        shutil.copytree(home / "sheets", target / "sheets")
    for path in home.glob("sheets/*") if not all_inside else ():
        body = body.replace(f"![{path.stem}](sheets/{path.name})", "not included")
    if configs:
        body = f"{_about_part(body, manifest)}\n"
    shown = [
        of.tables()
        for _, of in sorted(
            zip(manifest.sets, origin, strict=True), key=lambda pair: pair[0].withheld
        )
    ]
    allowed = sum(not s.withheld for s in manifest.sets)
    examples = []
    if "images" in info.features:
        # Those without pictures make way.
        body = re.sub(rf"^{EXAMPLES_HEADING}\n.*?(?=^#)", "", body, flags=re.DOTALL | re.MULTILINE)
        examples.append(write_leaf_examples(target, shown[:allowed], shown[allowed:]))
    elif "image" in info.features and any(view.column == "task" for view in manifest.views):
        examples.append(write_examples(target, shown[:allowed], shown[allowed:]))
    parts = [body.rstrip("\n"), "\n".join(SECTION), *examples]
    notes = _script_file(name, "RELEASE_NOTES.md") or _script_file("detection", "RELEASE_NOTES.md")
    if notes:
        (target / "RELEASE_NOTES.md").write_text(notes, encoding="utf-8")
        changes = notes.partition("\n")[2].replace("\n## ", "\n### ").rstrip()
        parts.append(f"## Release notes\n{changes}")
    citation = (info.citation or "").strip()
    if citation:
        (target / "CITATION.bib").write_text(citation + "\n", encoding="utf-8")
        if "```bibtex" not in body:
            parts.append(f"## BibTeX\n\n```bibtex\n{citation}\n```")
    write_readme(target, head, "\n\n".join(parts), manifest, info)
    (target / "report.json").write_text(
        json.dumps(_without_examples(report), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def _about_part(body: str, manifest: Manifest) -> str:
    """Return the card of a build for part of it: its snippets load what is here."""
    there = config_names(manifest)

    def here(found: re.Match[str]) -> str:
        config = found[2] if found[2] in there else manifest.largest_config
        return f'{found[1]}{config}"'

    body = re.sub(rf'(load_dataset\("{re.escape(manifest.dataset)}", ")([^"]+)"', here, body)
    note = (
        "The figures above are of the whole build. Of its configs those are here that the head of "
        "this card lists."
    )
    return f"{body.rstrip()}\n\n{note}"


def _script_file(name: str, file: str) -> str:
    """Return a file of a dataset's own folder; empty for a dataset that a user named."""
    path = files(SCRIPTS_PACKAGE) / name.replace("-", "_") / file
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _without_examples(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Leave out examples of what was dropped: they name files of the machine that built."""
    if isinstance(value, Mapping):
        return {
            k: _without_examples(v)
            for k, v in value.items()
            if not ("examples" in k or (k == "bad" and isinstance(v, list)))
        }
    return value


def _summary(manifest: Manifest, folder: Path) -> dict[str, Any]:
    return {
        "dataset": manifest.dataset,
        "version": manifest.version,
        "fingerprint": manifest.fingerprint,
        "folder": str(folder),
        "configs": list(dict.fromkeys(view.config for view in manifest.views)),
        "largest_config": manifest.largest_config,
        "rows": sum(sum(s.rows.values()) for s in manifest.sets),
        "pictures": sum(s.pictures for s in manifest.sets),
        "picture_bytes": sum(s.distinct_bytes for s in manifest.sets),
        "parquet_bytes": sum(
            (folder / path).stat().st_size for s in manifest.sets for path in s.paths
        ),
        "withheld": sorted(
            {left_out_name(s.source, s.license) for s in manifest.sets if s.withheld}
        ),
    }
