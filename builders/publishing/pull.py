"""Take a dataset that ``soubench push`` published into the cache, where it loads by its name.

What lies there afterwards is what a build would have put there: pictures as files, each once for
all configs, and rows that refer to them.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import file_digest
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets.builder import Key
from huggingface_hub import snapshot_download

from soubench.builders.errors import PublishError
from soubench.builders.publishing.card_merge import OURS, read_card, write_card
from soubench.builders.publishing.dataset_cache import (
    build_folder,
    builds_in,
    publish,
    staging,
)
from soubench.builders.publishing.export import BUILD_MANIFEST, NAME_FEATURES
from soubench.builders.publishing.export_folder import (
    SECTION,
    FileSet,
    Manifest,
    View,
    config_names,
    write_readme,
)
from soubench.builders.publishing.hub import Repository, patiently
from soubench.builders.publishing.picture_parquet import CONFIG_COLUMN
from soubench.builders.publishing.push_plan import (
    CARD,
    PublishedBuild,
    loading,
    published_builds,
)
from soubench.builders.publishing.quiet import quiet_datasets
from soubench.builders.verification import Problem

PROBLEMS_SHOWN = 3
PICTURE_COLUMNS = ("image", "images")

Verify = Callable[[Path], Sequence[Problem]]
"""Says what is wrong with an exported folder."""


@dataclass(frozen=True, slots=True)
class Pulled:
    """One build that was pulled.

    Attributes:
        dataset: What to type after ``load_dataset``.
        version: Its version.
        fingerprint: Its fingerprint.
        configs: Its configs.
        rows: Rows of the largest of them.
        whole: All configs of the build are there, so the fingerprint was derived from the rows
            anew; else only the rows themselves and the files' hashes were checked.
        withheld: Sources whose pictures are not inside.
        was_there: The cache had all of it, pictures too, so it was left as it is.
    """

    dataset: str
    version: str
    fingerprint: str
    configs: list[str]
    rows: int
    whole: bool
    withheld: list[str]
    was_there: bool = False


def pull_dataset(
    repo_id: str, *, verify: Verify, revision: str | None = None, cache_dir: Path | None = None
) -> list[Pulled]:
    """Download a dataset, verify it, and put it where ``load_dataset(<name>, <config>)`` looks.

    Downloads go through the Hub's cache, so that one that was cut off goes on where it stopped.
    Nothing changes in the datasets cache before everything is verified.

    Args:
        repo_id: ``org/name``.
        verify: Derives everything anew from an exported folder, such as ``verify_dataset``.
        revision: Commit, tag or branch.
        cache_dir: The datasets cache; by default that of ``datasets``.

    Raises:
        PublishError: No such dataset or revision, not one of soubench, or it is not what it says.
    """
    repository = Repository(repo_id, "dataset")
    if not repository.look(revision):
        raise PublishError(
            f"{repo_id}: there is no such dataset on the Hub, or it is private and not for this "
            "token. Check the name, or give a token that may see it: hf auth login, or HF_TOKEN."
        )
    builds = published_builds(repository)
    if not builds:
        raise PublishError(
            f"{repo_id} was not published by soubench push: it has no export.json. "
            f'load_dataset("{repo_id}") may read it all the same.'
        )
    cache = (cache_dir or Path(datasets.config.HF_DATASETS_CACHE)).expanduser().resolve()
    snapshot = _download(repository)
    with staging(cache) as scratch:
        staged = []
        done: list[Pulled] = []
        for i, build in enumerate(builds):
            folder = scratch / str(i) / "export"
            _write_export(folder, snapshot, build)
            whole = _check(folder, repo_id, build.manifest, verify)
            there = _is_there(cache, build.manifest)
            done.append(replace(_summary(build.manifest, whole), was_there=there))
            if there:
                continue
            with quiet_datasets():
                _stage(scratch / str(i), folder, snapshot, build.manifest, repo_id, cache)
            staged.append((scratch / str(i), build.manifest))
        for place, manifest in staged:
            publish(
                cache,
                place,
                manifest.dataset,
                config_names(manifest),
                manifest.version,
                manifest.fingerprint,
                # Their pictures lie where those that were pulled will.
                replaced=builds_in(cache, manifest.dataset).get(manifest.fingerprint, {}),
            )
    return done


def _is_there(cache: Path, manifest: Manifest) -> bool:
    """Say whether the cache has the same build with all these configs and all pictures."""
    live = builds_in(cache, manifest.dataset).get(manifest.fingerprint, {})
    if not set(config_names(manifest)) <= set(live):
        return False
    features = (datasets.DatasetInfo.from_directory(str(path)).features for path in live.values())
    # Rows that may lack their pictures say which ones belong to them.
    return not any(set(NAME_FEATURES) & set(of or ()) for of in features)


def _summary(manifest: Manifest, whole: bool) -> Pulled:
    largest = manifest.largest_config
    return Pulled(
        dataset=manifest.dataset,
        version=manifest.version,
        fingerprint=manifest.fingerprint,
        configs=config_names(manifest),
        rows=sum(manifest.rows_of(view) for view in manifest.views if view.config == largest),
        whole=whole,
        withheld=sorted({s.source for s in manifest.sets if s.withheld}),
    )


def _download(repository: Repository) -> Path:
    with repository.explained(bars=True):
        return Path(
            patiently(
                lambda: snapshot_download(
                    repository.id, repo_type=repository.kind, revision=repository.head
                )
            )
        )


def _write_export(folder: Path, snapshot: Path, build: PublishedBuild) -> None:
    """Make the exported folder of one of the repository's builds, with links to its data."""
    for path in build.paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).symlink_to(snapshot / path)
    home = snapshot / build.home
    for name in (BUILD_MANIFEST, "report.json"):
        shutil.copyfile(home / name, folder / name)
    schema = pq.read_schema(folder / build.paths[0])
    info = datasets.DatasetInfo(
        features=datasets.Features.from_arrow_schema(schema), version=build.manifest.version
    )
    write_readme(folder, {}, "", build.manifest, info)
    build.manifest.save(folder)


def _check(folder: Path, repo_id: str, manifest: Manifest, verify: Verify) -> bool:
    """Refuse what is not what it says; return whether its fingerprint could be derived anew."""
    for s in manifest.sets:
        for path, file in zip(s.paths, s.files, strict=True):
            with (folder / path).open("rb") as data:
                if file_digest(data, "sha256").hexdigest() != file.sha256:
                    raise PublishError(
                        f"{repo_id}: {path} is not the file that its export.json speaks of. Ask "
                        "who published it to push it again."
                    )
    described = json.loads((folder / BUILD_MANIFEST).read_text(encoding="utf-8"))
    whole = set(described.get("views", ())) <= set(config_names(manifest))
    if not whole:
        # For later: the rest of the build is not here.
        text = json.dumps(described | {"partial": True})
        (folder / BUILD_MANIFEST).write_text(text, encoding="utf-8")
    problems = verify(folder)
    if problems:
        listed = "; ".join(
            f"{p.row_id or 'the dataset'}: {p.field}: {p.message}"
            for p in problems[:PROBLEMS_SHOWN]
        )
        raise PublishError(
            f"{repo_id} does not hold what it says, in {len(problems)} places, and nothing was "
            f"put into the cache. {listed}"
        )
    return whole


def _stage(
    staged: Path, folder: Path, snapshot: Path, manifest: Manifest, repo_id: str, cache: Path
) -> None:
    """Write ``build/`` and ``cache/`` as ``publish`` wants them."""
    home = build_folder(cache, manifest.dataset, manifest.fingerprint)
    build = staged / "build"
    build.mkdir()
    rows: dict[tuple[str, str], Path] = {}
    for s in manifest.sets:
        rows[s.folder, s.split] = staged / f"{len(rows)}.arrow"
        _unpack(folder, s, rows[s.folder, s.split], build, home)
    by_config: dict[str, list[View]] = {}
    for view in manifest.views:
        by_config.setdefault(view.config, []).append(view)
    citation = snapshot / "CITATION.bib"
    said = citation.read_text(encoding="utf-8") if citation.is_file() else ""
    for config, views in by_config.items():
        files = {v.split: [rows[folder, v.split] for folder in v.folders] for v in views}
        _PulledConfig(
            views,
            files,
            citation=said,
            cache_dir=str(staged / "cache"),
            dataset_name=manifest.dataset,
            config_name=config,
            version=manifest.version,
            hash=manifest.fingerprint,
        ).download_and_prepare()
    for name in (BUILD_MANIFEST, "report.json"):
        shutil.copyfile(folder / name, build / name)
    if (snapshot / "sheets").is_dir():
        shutil.copytree(snapshot / "sheets", build / "sheets")
    card = _own_card(snapshot / CARD).replace(loading(repo_id), loading(manifest.dataset))
    (build / CARD).write_text(card, encoding="utf-8")


def _own_card(path: Path) -> str:
    """Return the card as the build had it, before an export and a push added to it."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    head, body = read_card(text)
    ours = body.partition(OURS[0])[2].partition(OURS[1])[0] or body
    kept = {k: v for k, v in head.items() if k not in ("configs", "dataset_info")}
    return write_card(kept, f"\n{ours.partition(SECTION[0])[0].strip()}\n")


def _unpack(folder: Path, s: FileSet, target: Path, build: Path, home: Path) -> None:
    """Write the pictures of a file set as files, and its rows with paths to where they will be."""
    place = Path("pictures", s.folder, s.split)
    pictures = _Pictures(build / place, home / place)
    writer: pa.ipc.RecordBatchStreamWriter | None = None
    for path in s.paths:
        with pq.ParquetFile(folder / path) as file:
            for i in range(file.num_row_groups):
                group = file.read_row_group(i)
                # Row groups hold whole pictures, so none is met again in a later one.
                pictures.written.clear()
                for name in PICTURE_COLUMNS:
                    if name not in group.column_names:
                        continue
                    known = group.schema.field(name)
                    cells = [pictures.unpack(cell) for cell in group[name].to_pylist()]
                    column = group.column_names.index(name)
                    group = group.set_column(column, known, [pa.array(cells, known.type)])
                if writer is None:
                    writer = pa.ipc.new_stream(target, group.schema)
                writer.write_table(group)
    if writer is not None:
        writer.close()


@dataclass(slots=True)
class _Pictures:
    """Writes pictures into a folder, each once, and says where they will be.

    Attributes:
        folder: Where they are written.
        home: Where that folder will be in the end.
        written: Content -> file name, of the rows at hand.
        names: File names that are taken.
    """

    folder: Path
    home: Path
    written: dict[bytes, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def unpack(self, cell: Any) -> Any:  # noqa: ANN401 - a picture, a list of them, or None
        """Return what a picture column holds instead: paths, no bytes."""
        if isinstance(cell, list):
            return [self.unpack(one) for one in cell]
        if cell is None or cell["bytes"] is None:
            return None
        data = cell["bytes"]
        if data not in self.written:
            name = Path(cell["path"] or "picture").name
            while name in self.names:
                name = f"{len(self.names)}-{name}"
            self.names.add(name)
            self.written[data] = name
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(data)
        return {"bytes": None, "path": str(self.home / self.written[data])}


class _PulledConfig(datasets.ArrowBasedBuilder):  # type: ignore[misc]  # without types
    """Writes the rows of one config from unpacked file sets."""

    def __init__(
        self,
        views: Sequence[View],
        files: Mapping[str, Sequence[Path]],
        *,
        citation: str,
        **options: str,
    ) -> None:
        self._views, self._files, self._citation = views, files, citation
        super().__init__(**options)

    def _info(self) -> datasets.DatasetInfo:
        (first, *_) = next(iter(self._files.values()))
        features = datasets.Features.from_arrow_schema(_table(first).schema)
        own = {k: v for k, v in features.items() if k != CONFIG_COLUMN or not self._is_shared}
        return datasets.DatasetInfo(features=datasets.Features(own), citation=self._citation)

    @property
    def _is_shared(self) -> bool:
        return any(view.column == CONFIG_COLUMN for view in self._views)

    def _split_generators(
        self, dl_manager: datasets.DownloadManager
    ) -> list[datasets.SplitGenerator]:
        return [
            datasets.SplitGenerator(view.split, gen_kwargs={"view": view}) for view in self._views
        ]

    def _generate_tables(self, view: View) -> Iterator[tuple[Key, pa.Table]]:
        for i, path in enumerate(self._files[view.split]):
            table = _table(path)
            if view.column:
                table = table.filter(pc.equal(table[view.column], view.value))
            if self._is_shared:
                table = table.drop_columns(CONFIG_COLUMN)
            for j, batch in enumerate(table.to_batches(max_chunksize=1000)):
                yield Key(i, j), pa.Table.from_batches([batch])


def _table(path: Path) -> pa.Table:
    return pa.ipc.open_stream(pa.memory_map(str(path))).read_all()
