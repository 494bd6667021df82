"""Open the rows of a dataset: built in the cache, exported to a folder, or on the Hub."""

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.compute as pc
from datasets.packaged_modules.cache.cache import Cache

from soubench.builders.errors import PictureError, RunError, brief
from soubench.builders.publishing.dataset_cache import is_live
from soubench.builders.publishing.export_folder import is_export, load_manifest
from soubench.builders.publishing.quiet import quiet_datasets
from soubench.inference.chat import pictures_of

EVALUATION_SPLIT = "test"
QUESTION_COLUMNS = ("id", "question", "options", "answer", "target", "system_prompt")
"""What the fingerprint of rows that have no build is made of, where the columns are there."""
SHOWN = 12


@dataclass(frozen=True, slots=True)
class LoadedRows:
    """The rows of one split.

    Attributes:
        rows: The rows, with a column ``id``; a picture is decoded when its row is read.
        name: Name of the dataset; the same for a build in the cache and its exported folder.
        config: Name of the config.
        split: Name of the split.
        fingerprint: The build's hash, the Hub's commit, or a hash of the questions.
        source: What was asked for: a name, a folder or a Hub id.
    """

    rows: datasets.Dataset
    name: str
    config: str
    split: str
    fingerprint: str
    source: str

    @property
    def picture_columns(self) -> tuple[str, ...]:
        """Columns that hold a picture or a list of pictures."""
        return tuple(name for name, kind in self.rows.features.items() if _is_picture(kind))

    def columns(self) -> datasets.Dataset:
        """Return the rows without their pictures, for work that would decode them in vain."""
        return self.rows.remove_columns(list(self.picture_columns))

    def undecoded(self) -> datasets.Dataset:
        """Return the rows with pictures as they are stored: ``path`` and ``bytes``."""
        rows = self.rows
        for name in self.picture_columns:
            kind = datasets.Image(decode=False)
            is_list = not isinstance(rows.features[name], datasets.Image)
            rows = rows.cast_column(name, datasets.List(kind) if is_list else kind)
        return rows

    def check_pictures(self) -> None:
        """Check that every row has its pictures, without decoding any.

        Raises:
            RunError: Rows came without pictures, or files are not where they were.
        """
        table = self.undecoded().data.table
        for name in self.picture_columns:
            start = 0
            for pictures in table[name].chunks:
                without = _first_without(pictures)
                if without is not None:
                    raise RunError(
                        f"{self.source}, {self.config}: rows came without their pictures, such as "
                        f"{table['id'][start + without]}. Put your own copies in with soubench "
                        "attach; soubench predict can ask without, with --blind."
                    )
                self._check_files(pictures)
                start += len(pictures)

    def _check_files(self, pictures: pa.Array) -> None:
        if _is_list(pictures):
            pictures = pictures.flatten()
        by_path = pc.is_null(pc.struct_field(pictures, "bytes"))
        # Paths that Parquet files carry beside the bytes are names only, and are not looked at.
        paths = pc.unique(pc.struct_field(pictures.filter(by_path), "path")).to_pylist()
        missing = next((path for path in paths if not Path(path).is_file()), None)
        if missing is not None:
            raise RunError(
                f"{self.source}, {self.config}: the picture {missing} is not there any more. Put "
                f"the folder {Path(missing).parent} back, or build the dataset again."
            )

    def refuse_broken_pictures(self) -> None:
        """Decode pictures until one cannot be; for when it is known that there is one.

        Raises:
            PictureError: Of the first that cannot be decoded; it names the row.
        """
        columns = self.picture_columns
        for row in self.undecoded().select_columns(["id", *columns]):
            for picture in pictures_of(row, columns):
                try:
                    picture.open()
                except PictureError as error:
                    raise PictureError(
                        error.reason, f"{self.source}, row {row['id']}: {error}"
                    ) from error


def open_rows(
    dataset: str, config: str | None, split: str | None, *, revision: str | None = None
) -> LoadedRows:
    """Open one split of a dataset by the name, folder or Hub id that ``load_dataset`` takes.

    A folder of that name wins, then what is built in the cache (without asking the Hub), then the
    Hub.

    Args:
        dataset: ``sou-vqa``, ``./sou-vqa``, ``org/sou-vqa``.
        config: Name of the config; may be None where there is only one.
        split: Name of the split; None takes the only one, else ``test``.
        revision: Commit, tag or branch, for the Hub.

    Raises:
        RunError: There is no such dataset, config or split; the message lists those there are.
        PublishError: The folder is a damaged export, or one for another tool.
    """
    folder = Path(dataset).expanduser()
    cache = Path(datasets.config.HF_DATASETS_CACHE).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise RunError(f"--revision {revision} is for datasets on the Hub; {folder} is not.")
        return _open_folder(folder, dataset, config, split)
    # Names with a slash are Hub ids; `datasets` keeps a copy of those under another name.
    if revision is None and "/" not in dataset and (configs := _built_configs(cache, dataset)):
        return _open_built(dataset, configs, config, split)
    if dataset.startswith((".", "/", "~")):
        raise RunError(f"{dataset}: there is no such folder. Export one with soubench export.")
    return _open_hub(dataset, config, split, revision, cache)


def _built_configs(cache: Path, dataset: str) -> list[str]:
    folders = (cache / dataset).glob("*/*/*") if dataset else ()
    return sorted({f.parts[-3] for f in folders if is_live(f)})


def _open_built(
    dataset: str, configs: list[str], config: str | None, split: str | None
) -> LoadedRows:
    chosen = _choose_config(dataset, configs, config)
    with quiet_datasets():
        builder = Cache(dataset_name=dataset, config_name=chosen, hash="auto", version="auto")
    rows, split = _choose_split(builder, dataset, chosen, split)
    return LoadedRows(_with_ids(rows, split), dataset, chosen, split, str(builder.hash), dataset)


def _open_folder(folder: Path, source: str, config: str | None, split: str | None) -> LoadedRows:
    manifest = load_manifest(folder) if is_export(folder) else None
    builder, config = _builder(str(folder.resolve()), source, config, None)
    rows, split = _choose_split(builder, source, config, split)
    rows = _with_ids(rows, split)
    if manifest is not None:
        return LoadedRows(rows, manifest.dataset, config, split, manifest.fingerprint, source)
    fingerprint = _questions_digest(rows)
    return LoadedRows(rows, folder.resolve().name, config, split, fingerprint, source)


def _open_hub(
    dataset: str, config: str | None, split: str | None, revision: str | None, cache: Path
) -> LoadedRows:
    try:
        builder, config = _builder(dataset, dataset, config, revision)
    except (FileNotFoundError, ConnectionError, datasets.exceptions.DatasetNotFoundError) as error:
        built = sorted({p.name for p in cache.glob("*") if _built_configs(cache, p.name)})
        raise RunError(
            f"{dataset}: expected a dataset built in the cache ({cache} has "
            f"{', '.join(built) or 'none'}), a folder, or a dataset on the Hub; found none. "
            f"Build it (soubench build {dataset} ..) or give another name. ({brief(error)})"
        ) from error
    rows, split = _choose_split(builder, dataset, config, split)
    rows = _with_ids(rows, split)
    fingerprint = str(builder.hash or _questions_digest(rows))
    return LoadedRows(rows, dataset.rpartition("/")[2], config, split, fingerprint, dataset)


def _builder(
    path: str, source: str, config: str | None, revision: str | None
) -> tuple[datasets.DatasetBuilder, str]:
    """Return a prepared builder and the name of its config."""
    try:
        with quiet_datasets():
            builder = datasets.load_dataset_builder(path, config, revision=revision)
            builder.download_and_prepare()
    except datasets.exceptions.DataFilesNotFoundError as error:
        raise RunError(f"{source} holds no data files that could be loaded.") from error
    except (FileNotFoundError, ConnectionError):
        raise
    except (ValueError, datasets.exceptions.DatasetsError) as error:
        if isinstance(error, datasets.exceptions.DatasetNotFoundError):
            raise
        raise RunError(f"{source}: {brief(error)}") from error
    return builder, str(builder.config.name)


def _choose_config(dataset: str, configs: list[str], config: str | None) -> str:
    if config is None and len(configs) == 1:
        return configs[0]
    if config is None or config not in configs:
        given = "none was given" if config is None else f"got {config!r}"
        listed = ", ".join(configs[:SHOWN]) + (", .." if len(configs) > SHOWN else "")
        raise RunError(
            f"{dataset}: expected one of the configs that are built ({listed}); {given}."
        )
    return config


def _choose_split(
    builder: datasets.DatasetBuilder, dataset: str, config: str, split: str | None
) -> tuple[datasets.Dataset, str]:
    names = [str(name) for name in builder.info.splits or ()]
    if split is None:
        split = names[0] if len(names) == 1 else EVALUATION_SPLIT
    if split not in names:
        raise RunError(
            f"{dataset}, {config}: there is no split {split!r}. Choose one of "
            f"{', '.join(names) or '(there is none)'}."
        )
    with quiet_datasets():
        return builder.as_dataset(split=split), split


def _with_ids(rows: datasets.Dataset, split: str) -> datasets.Dataset:
    """Make sure that every row has a text at ``id``: where there is none, its place in the split.

    Raises:
        RunError: Two rows have the same id.
    """
    if "id" not in rows.column_names:
        return rows.add_column("id", [f"{split}-{i:06d}" for i in range(len(rows))])
    ids = rows.data.table["id"] if rows._indices is None else pa.chunked_array([rows["id"][:]])
    if not pa.types.is_string(ids.type):
        rows = rows.cast_column("id", datasets.Value("string"))
        ids = rows.data.table["id"]
    if ids.null_count:
        empty = pc.index(pc.is_null(ids), True).as_py()
        raise RunError(f"expected a text at id in every row; the one at index {empty} has none.")
    if pc.count_distinct(ids).as_py() != len(rows):
        counts = pc.value_counts(ids)
        twice = next(c["values"].as_py() for c in counts if c["counts"].as_py() > 1)
        raise RunError(f"expected ids that are all different; {twice!r} occurs several times.")
    return rows


def _questions_digest(rows: datasets.Dataset) -> str:
    """Hash the questions of rows, whatever files they came from and wherever those lie."""
    columns = [name for name in QUESTION_COLUMNS if name in rows.column_names]
    digest = sha256()
    for row in rows.select_columns(columns):
        digest.update(json.dumps(row, sort_keys=True, default=str).encode("ascii") + b"\n")
    return digest.hexdigest()


def _is_picture(kind: Any) -> bool:  # noqa: ANN401  # a feature of datasets
    if isinstance(kind, list):
        kind = kind[0]
    return isinstance(getattr(kind, "feature", kind), datasets.Image)


def _is_list(pictures: pa.Array) -> bool:
    return bool(pa.types.is_list(pictures.type) or pa.types.is_large_list(pictures.type))


def _first_without(pictures: pa.Array) -> int | None:
    """Return the first place without a picture, or, of lists, without any or all of its own."""
    if not _is_list(pictures):
        lost = pc.and_(
            pc.is_null(pc.struct_field(pictures, "bytes")),
            pc.is_null(pc.struct_field(pictures, "path")),
        )
        place = pc.index(pc.or_(pc.is_null(pictures), lost), True).as_py()
        return None if place < 0 else int(place)
    empty = pc.index(pc.equal(pc.fill_null(pc.list_value_length(pictures), 0), 0), True).as_py()
    found = [] if empty < 0 else [int(empty)]
    lost = _first_without(pictures.flatten())
    if lost is not None:
        found.append(int(pc.list_parent_indices(pictures)[lost].as_py()))
    return min(found, default=None)
