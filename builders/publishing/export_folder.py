"""An exported folder: what it holds (``export.json``), its card, and how it is replaced as a whole.

Layout::

    README.md              card; its YAML head has the configs, their files, filters and features
    export.json            what this module needs to know about the folder again
    report.json            the build's report, without examples of what was left out
    manifest.json          what the build is made of: what soubench verify checks against
    data/<subset or source>/<split>-00000-of-00001.parquet
    data/<split>-00000-of-00001.parquet     where all configs ask about the same pictures
    examples/ sheets/      small pictures for the card
"""

import json
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import datasets
import yaml  # type: ignore[import-untyped]  # PyYAML ships no types
from filelock import FileLock, Timeout

from soubench.builders.errors import PublishError
from soubench.builders.publishing.picture_parquet import CONFIG_COLUMN, StoredFile, Written

MANIFEST = "export.json"
MADE_BY = "soubench export"
FORMAT = 3
"""Of ``export.json`` and the layout; higher for each change that older programs cannot read."""
BUILDS = "builds"
"""Folder of a repository with the papers of further builds."""
CONFIGS_SHOWN = 12
SECTION = ("<!-- export -->", "<!-- /export -->")


@dataclass(slots=True)
class FileSet:
    """The Parquet files of one subset (or source, or config) and split.

    Attributes:
        folder: Where they lie, relative to the export.
        split: Name of the split.
        source: Where the pictures come from.
        license: What the source says.
        notice: What has to stand beside its pictures.
        withheld: The files came without pictures, and none were put in yet.
        files: The files.
        rows: Sub-task or config (empty where the files have neither column) -> number of rows.
        num_bytes: Sub-task or config -> bytes of its rows once loaded.
        distinct_bytes: Bytes of the pictures, each counted once.
        pictures: Number of distinct pictures.
    """

    folder: str
    split: str
    source: str
    license: str
    notice: str
    withheld: bool
    files: list[StoredFile] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    num_bytes: dict[str, int] = field(default_factory=dict)
    distinct_bytes: int = 0
    pictures: int = 0

    @property
    def paths(self) -> list[str]:
        """The files, relative to the export."""
        return [f"{self.folder}/{file.name}" for file in self.files]

    def take(self, written: Written) -> None:
        """Note what was written."""
        self.files = written.files
        self.rows, self.num_bytes = dict(written.rows), dict(written.num_bytes)
        self.distinct_bytes, self.pictures = written.distinct_bytes, written.pictures


@dataclass(slots=True)
class View:
    """One split of one config: all rows of some file sets, or those with one value in a column.

    Attributes:
        config: Name of the config.
        split: Name of the split.
        folders: Folders of its file sets, in the order of the rows.
        column: ``task``, ``sub_dimension`` or ``CONFIG_COLUMN``; empty for all rows.
        value: What this view's rows have there.
        tasks: The tasks of its rows, where ``column`` is neither ``task`` nor ``CONFIG_COLUMN``.
    """

    config: str
    split: str
    folders: list[str]
    column: str = ""
    value: str = ""
    tasks: list[str] = field(default_factory=list)

    @property
    def filters(self) -> list[list[str]] | None:
        """What the card tells ``load_dataset`` to keep."""
        return [[self.column, "==", self.value]] if self.column else None

    def count(self, counts: dict[str, int]) -> int:
        """Return this view's share of what a file set counts per sub-task or config."""
        if not self.column:
            return sum(counts.values())
        return sum(counts.get(key, 0) for key in self.tasks or [self.value])


@dataclass(slots=True)
class Manifest:
    """What an exported folder holds.

    Attributes:
        dataset: Name of the dataset.
        version: Its version.
        fingerprint: Hash of the build.
        mode: How distractors were drawn; empty where there are none.
        pillow: Version that made the pictures.
        carries_names: There are columns that say which picture belongs to a row.
        sets: All files.
        views: All configs.
    """

    dataset: str
    version: str
    fingerprint: str
    mode: str
    pillow: str
    carries_names: bool = False
    sets: list[FileSet] = field(default_factory=list)
    views: list[View] = field(default_factory=list)

    def sets_of(self, view: View) -> list[FileSet]:
        """Return the file sets of a view, in the order of its rows."""
        by_folder = {s.folder: s for s in self.sets if s.split == view.split}
        return [by_folder[folder] for folder in view.folders]

    def rows_of(self, view: View) -> int:
        """Return the number of rows of a view."""
        return sum(view.count(s.rows) for s in self.sets_of(view))

    @property
    def largest_config(self) -> str:
        """The config with most rows; the first of several."""
        rows: dict[str, int] = {}
        for view in self.views:
            rows[view.config] = rows.get(view.config, 0) + self.rows_of(view)
        return max(rows, key=lambda config: rows[config])

    def save(self, folder: Path) -> None:
        """Write ``export.json``."""
        data = {"made_by": MADE_BY, "format": FORMAT, **asdict(self)}
        _write(folder / MANIFEST, json.dumps(data, indent=1, ensure_ascii=False))


def is_export(folder: Path) -> bool:
    """Say whether a folder was made by an export."""
    try:
        data = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and data.get("made_by") == MADE_BY


def load_manifest(folder: Path) -> Manifest:
    """Read ``export.json``.

    Raises:
        PublishError: The folder is not an export, is damaged, or was made by a newer or an older
            version of soubench.
    """
    if not is_export(folder):
        raise PublishError(
            f"{folder}: expected a folder made by soubench export, with a {MANIFEST}; found none."
        )
    data = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    if "to" in data:
        raise PublishError(
            f"{folder} was made by soubench export --to {data['to']}: it is for that tool, and no "
            "dataset. Give the dataset's name, or a folder exported without --to."
        )
    made = data.pop("format", 1)
    if isinstance(made, int) and made > FORMAT:
        raise PublishError(
            f"{folder / MANIFEST} has format {made}, and this soubench reads up to {FORMAT}: a "
            "newer one made it. Update soubench."
        )
    try:
        del data["made_by"]
        sets = [
            FileSet(**s | {"files": [StoredFile(**file) for file in s["files"]]})
            for s in data.pop("sets")
        ]
        views = [View(**v) for v in data.pop("views")]
        return Manifest(**data, sets=sets, views=views)
    except (KeyError, TypeError) as error:
        raise PublishError(
            f"{folder / MANIFEST} is damaged or was made by an older soubench ({error}). Export "
            "the dataset again."
        ) from error


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Provide ``<folder>.incomplete``, which takes the place of ``folder`` if all goes well.

    One command at a time: others are refused. What a killed one left behind is put right first.

    Raises:
        PublishError: ``folder`` is there and is not an export, cannot be written, or is being
            written by another command.
    """
    incomplete, replaced = _beside(folder, "incomplete"), _beside(folder, "replaced")
    with _locked(folder):
        for path in (folder, incomplete, replaced):
            empty = path.is_dir() and not any(path.iterdir())
            if path.is_symlink() or (path.exists() and not empty and not is_export(path)):
                raise PublishError(
                    f"{path} is there and was not made by soubench export, so it is not touched. "
                    "Choose another folder, or remove it."
                )
        try:
            _recover(folder)
            shutil.rmtree(replaced, ignore_errors=True)
            shutil.rmtree(incomplete, ignore_errors=True)
            incomplete.mkdir()
            # So that what a killed export leaves behind is known as ours.
            _write(incomplete / MANIFEST, json.dumps({"made_by": MADE_BY}))
            yield incomplete
            if folder.exists():
                folder.rename(replaced)
            incomplete.rename(folder)
        except OSError as error:
            raise _unwritable(folder, error) from error
        finally:
            _recover(folder)
            shutil.rmtree(incomplete, ignore_errors=True)
            shutil.rmtree(replaced, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    lock = FileLock(folder.with_name(f".{folder.name}.lock"))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise PublishError(
            f"{folder} is being written by another soubench; wait for it, or choose another folder."
        ) from error
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        yield
    finally:
        # Before the release: who then gets the lock of a file that is gone opens a new one.
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def _beside(folder: Path, what: str) -> Path:
    return folder.with_name(f"{folder.name}.{what}")


def _unwritable(folder: Path, error: OSError) -> PublishError:
    return PublishError(
        f"{folder}: the export cannot be written ({error}). Make room, or choose another one."
    )


def may_be_recovered(folder: Path) -> bool:
    """Say whether an export is there, or one that a killed command had moved aside."""
    return is_export(folder) or (not folder.exists() and is_export(_beside(folder, "replaced")))


def _recover(folder: Path) -> None:
    """Put a folder back that a killed command had moved aside."""
    replaced = _beside(folder, "replaced")
    if not folder.exists() and is_export(replaced):
        replaced.rename(folder)


def card_head(head: dict[str, Any], manifest: Manifest, info: datasets.DatasetInfo) -> str:
    """Write the YAML head of a card.

    Args:
        head: The head of the build's card.
        manifest: What the export holds.
        info: Features and version.
    """
    head = {k: v for k, v in head.items() if k not in ("configs", "dataset_info")}
    total = sum(sum(s.rows.values()) for s in manifest.sets)
    head["size_categories"] = [_size_category(total)]
    if head.get("license") == "other":
        head |= {"license_name": "per-source", "license_link": "README.md"}
    configs: dict[str, list[dict[str, Any]]] = {}
    infos: dict[str, datasets.DatasetInfo] = {}
    options: dict[str, dict[str, Any]] = {}
    features = datasets.Features({k: v for k, v in info.features.items() if k != CONFIG_COLUMN})
    for view in manifest.views:
        sets = manifest.sets_of(view)
        paths = [path for s in sets for path in s.paths]
        configs.setdefault(view.config, []).append({"split": view.split, "path": paths})
        options[view.config] = {"filters": view.filters} if view.column else {}
        if view.column == CONFIG_COLUMN:
            options[view.config]["columns"] = list(features)
        new = datasets.DatasetInfo(
            features=features, version=info.version, splits=datasets.SplitDict()
        )
        splits = infos.setdefault(view.config, new).splits
        splits[view.split] = datasets.SplitInfo(
            name=view.split,
            num_bytes=sum(view.count(s.num_bytes) for s in sets),
            num_examples=manifest.rows_of(view),
        )
    for one in infos.values():
        one.dataset_size = sum(split.num_bytes for split in one.splits.values())
    head["configs"] = [
        {"config_name": name, "data_files": files} | options[name]
        for name, files in configs.items()
    ]
    datasets.info.DatasetInfosDict(infos).to_dataset_card_data(head)
    text: str = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=1000)
    return f"---\n{text}---\n"


def _size_category(rows: int) -> str:
    bounds = (
        (1_000, "n<1K"),
        (10_000, "1K<n<10K"),
        (100_000, "10K<n<100K"),
        (1_000_000, "100K<n<1M"),
    )
    return next((name for bound, name in bounds if rows < bound), "1M<n<10M")


def export_section(manifest: Manifest) -> str:
    """Write what this export holds, as Markdown between the marks of ``SECTION``."""
    first = next(v for v in manifest.views if v.config == manifest.largest_config)
    lines = [
        SECTION[0],
        "## This export",
        "",
        "```python",
        "from datasets import load_dataset",
        "",
        f'rows = load_dataset("PATH_OR_REPOSITORY", "{first.config}", split="{first.split}")',
        "```",
        "",
        "| files | source | license of the source | rows | pictures inside | MB of pictures |",
        "|---|---|---|---|---|---|",
    ]
    for s in manifest.sets:
        pictures = "none: see below" if s.withheld else str(s.pictures)
        lines.append(
            f"| `{s.folder}/{s.split}-*` | {s.source} | {s.license} | {sum(s.rows.values())} | "
            f"{pictures} | {s.distinct_bytes / 1e6:.2f} |"
        )
    if any(view.column == CONFIG_COLUMN for view in manifest.views):
        lines += [
            "",
            f"The configs ask about the same pictures, so they share files: `{CONFIG_COLUMN}` says "
            "which config a row belongs to, and the configs leave that column out.",
        ]
    notices = dict.fromkeys(s.notice for s in manifest.sets if s.notice and not s.withheld)
    lines += ["", *(f"{notice}.\n" for notice in notices)]
    if any(s.withheld for s in manifest.sets):
        lines += [
            "Where no pictures are inside, their column is None: the source does not allow it, or "
            "they were left out on purpose. Get the source, then put your own copies in with "
            "`soubench attach DIR --pictures SOURCE_DIR`.",
            "",
        ]
    if manifest.carries_names:
        lines += [
            "`file_name` is the source's picture and `sha256` the hash of that file. Where the "
            "picture asked about is not that file (it is scaled or converted), `pixels_sha256` is "
            f"the hash of the size and pixels asked about, as Pillow {manifest.pillow} makes them; "
            "else it is empty. `width` and `height` are those of the picture asked about. All are "
            "None in rows that came with a picture, and lists where a row may have several.",
            "",
        ]
    return "\n".join([*lines, SECTION[1]])


def config_names(manifest: Manifest) -> list[str]:
    """Return the names of the configs, in their order."""
    return list(dict.fromkeys(view.config for view in manifest.views))


def restricted(manifest: Manifest, configs: Collection[str]) -> Manifest:
    """Return a manifest with some of the configs, and the files that these need."""
    views = [view for view in manifest.views if view.config in configs]
    files = {key for view in views for key in file_sets(view)}
    sets = [s for s in manifest.sets if (s.folder, s.split) in files]
    return replace(manifest, views=views, sets=sets)


def file_sets(view: View) -> list[tuple[str, str]]:
    """Return folder and split of the file sets of a view."""
    return [(folder, view.split) for folder in view.folders]


def chosen_configs(manifest: Manifest, configs: Sequence[str]) -> Manifest:
    """Keep some configs, and all others that are views of the same files; all if none is named.

    Raises:
        PublishError: There is no such config.
    """
    if not configs:
        return manifest
    there = config_names(manifest)
    unknown = [name for name in configs if name not in there]
    if unknown:
        listed = ", ".join(there[:CONFIGS_SHOWN]) + (", .." if len(there) > CONFIGS_SHOWN else "")
        raise PublishError(f"--config: {manifest.dataset} has no {unknown[0]!r}; it has {listed}.")
    files = {key for view in manifest.views if view.config in configs for key in file_sets(view)}
    beyond = {v.config for v in manifest.views if not files.issuperset(file_sets(v))}
    return restricted(manifest, set(there) - beyond)


def refuse_several_builds(folder: Path) -> None:
    """Raise a `PublishError` for a download whose files are of more than one build."""
    if (folder / BUILDS).is_dir():
        raise PublishError(
            f"{folder} has parts of several builds, as soubench push leaves them where configs "
            "came one by one. Take them with soubench pull ORG/NAME, which verifies each."
        )


def split_card(text: str) -> tuple[dict[str, Any], str]:
    """Return the YAML head of a card as data, and its body."""
    if not text.startswith("---\n"):
        return {}, text
    head, _, body = text[4:].partition("\n---\n")
    return yaml.safe_load(head) or {}, body


def write_readme(
    folder: Path, head: dict[str, Any], body: str, manifest: Manifest, info: datasets.DatasetInfo
) -> None:
    """Write the card; what stands between the marks of ``SECTION`` is written anew."""
    before, mark, rest = body.partition(SECTION[0])
    after = rest.partition(SECTION[1])[2] if mark else ""
    parts = [before.rstrip("\n"), export_section(manifest), after.strip("\n")]
    text = "\n\n".join(part for part in parts if part) + "\n"
    _write(folder / "README.md", card_head(head, manifest, info) + text)


def _write(path: Path, text: str) -> None:
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
