"""Publish a built dataset, or an exported folder, as a dataset repository on the Hub."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import datasets
import pyarrow.parquet as pq

from soubench.builders.errors import PublishError, brief
from soubench.builders.publishing.dataset_cache import staging
from soubench.builders.publishing.export import export_dataset
from soubench.builders.publishing.export_folder import (
    Manifest,
    View,
    config_names,
    is_export,
    load_manifest,
)
from soubench.builders.publishing.hub import (
    Change,
    Content,
    Repository,
    Target,
    check_tag_name,
)
from soubench.builders.publishing.picture_parquet import CONFIG_COLUMN
from soubench.builders.publishing.picture_rights import left_out_name, rights_of_source
from soubench.builders.publishing.push_plan import CARD, Plan, make_plan
from soubench.builders.publishing.quiet import quiet_datasets
from soubench.builders.sou.render import file_digest

PICTURE_COLUMNS = ("image", "images")

Pictures = Literal["all", "none"]


@dataclass(frozen=True, slots=True)
class Checked:
    """What was read back after a push.

    Attributes:
        files: Number of files whose SHA-256, as the Hub gives it, is that of what was sent.
        config: The config that was streamed, without its pictures.
        rows: Number of its rows.
        rows_digest: SHA-256 over these rows; the same as that of the folder that was sent.
        with_picture: A row was streamed with its picture, too.
    """

    files: int
    config: str
    rows: int
    rows_digest: str
    with_picture: bool


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a push did, or would do.

    Attributes:
        dataset: Name of the dataset.
        version: Its version.
        fingerprint: Hash of the build.
        configs: Configs that were pushed.
        kept: Configs that lay there and stay as they are.
        withheld: Sources whose pictures were left out.
        changes: What happens to each file.
        commit: The commit; empty for a dry run.
        checked: What was read back; None for a dry run.
    """

    dataset: str
    version: str
    fingerprint: str
    configs: list[str]
    kept: list[str]
    withheld: list[str]
    changes: list[Change]
    commit: str = ""
    checked: Checked | None = None


def push_dataset(
    dataset: str,
    repo_id: str,
    *,
    configs: Sequence[str] = (),
    private: bool = False,
    tag: str | None = None,
    dry_run: bool = False,
    pictures: Pictures = "all",
    have_the_right: bool = False,
    fingerprint: str | None = None,
    cache_dir: Path | None = None,
) -> Pushed:
    """Export a dataset, send the folder to the Hub in one commit, name it, and read it back.

    Args:
        dataset: Name of a built dataset, or a folder made by ``soubench export``.
        repo_id: ``org/name``; made if it is not there.
        configs: Configs to push, with all others that are views of the same files; empty for all.
        private: Make a private repository.
        tag: Name of the commit afterwards, such as ``v1.0.0``.
        dry_run: Only say what would be sent.
        pictures: ``all`` that their sources allow to redistribute, or ``none``.
        have_the_right: The caller may redistribute all pictures, whatever the sources say.
        fingerprint: Start of the build's hash, where the cache holds several builds.
        cache_dir: The datasets cache; by default that of ``datasets``.

    Raises:
        PublishError: Nothing to push, pictures that may not go, a repository that may not be
            written or holds something else, or content that came back other than it was sent.
    """
    repository = Repository(repo_id, "dataset")
    check_tag_name(tag)
    if not dry_run:
        # Before the export, which may take a while.
        repository.check_token()
    with _exported(
        dataset,
        cache_dir,
        fingerprint,
        configs=configs,
        pictures=pictures,
        have_the_right=have_the_right,
    ) as folder:
        ours = load_manifest(folder)
        if dry_run:
            repository.look()
        else:
            repository.prepare(private=private)
        plan = make_plan(repository, folder, ours)
        repository.check_tag(tag, plan.target)
        done = Pushed(
            dataset=ours.dataset,
            version=ours.version,
            fingerprint=ours.fingerprint,
            configs=config_names(ours),
            kept=plan.kept,
            withheld=sorted({left_out_name(s.source, s.license) for s in ours.sets if s.withheld}),
            changes=repository.changes(plan.target),
        )
        if dry_run:
            return done
        repository.upload({path: c for path, c in plan.target.files.items() if path != CARD})
        message = f"soubench push {done.dataset} {done.version}: {len(done.configs)} configs"
        plans: list[Plan] = []
        changes: list[list[Change]] = []

        def newest() -> Target:
            plans.append(make_plan(repository, folder, ours))
            changes.append(repository.changes(plans[-1].target))
            return plans[-1].target

        commit = repository.commit(message, newest)
        if tag is not None:
            repository.tag(tag, commit)
        checked = _read_back(repository, commit, plans[-1].data, folder, ours)
    return replace(done, kept=plans[-1].kept, changes=changes[-1], commit=commit, checked=checked)


@contextmanager
def _exported(
    dataset: str,
    cache_dir: Path | None,
    fingerprint: str | None,
    *,
    configs: Sequence[str],
    pictures: Pictures,
    have_the_right: bool,
) -> Iterator[Path]:
    """Provide an exported folder: the one that was given, or one that is removed afterwards."""
    given = Path(dataset).expanduser()
    if is_export(given):
        manifest = load_manifest(given)
        _check_rights(manifest, pictures=pictures, have_the_right=have_the_right)
        _check_files(given, manifest)
        if configs:
            raise PublishError(
                "--config: a folder is pushed as it is, since its card speaks of all that it "
                "holds. Name the dataset instead of the folder."
            )
        yield given
        return
    cache = (cache_dir or Path(datasets.config.HF_DATASETS_CACHE)).expanduser().resolve()
    with staging(cache) as scratch:
        folder = scratch / "export"
        export_dataset(
            dataset,
            folder,
            cache_dir=cache,
            fingerprint=fingerprint,
            pictures=pictures,
            have_the_right=have_the_right,
            configs=configs,
        )
        yield folder


def _check_rights(manifest: Manifest, *, pictures: Pictures, have_the_right: bool) -> None:
    """Refuse a folder with pictures that may not go: they may have been attached."""
    with_pictures = [s for s in manifest.sets if not s.withheld and s.pictures]
    inside = {s.source for s in with_pictures}
    if pictures == "none" and inside:
        raise PublishError(
            f"the folder has pictures of {', '.join(sorted(inside))} inside. Export it again with "
            "--pictures none, and push that."
        )
    allowed = {
        s.source for s in with_pictures if rights_of_source(s.source, s.license).pictures_may_go
    }
    if not have_the_right and inside - allowed:
        raise PublishError(
            f"the folder has pictures of {', '.join(sorted(inside - allowed))} inside, which may "
            "not be passed on. Push the dataset by its name, without them, or give "
            "--i-have-the-right-to-redistribute if you have it."
        )


def _check_files(folder: Path, manifest: Manifest) -> None:
    """Refuse a folder whose data files are not those that were exported."""
    for s in manifest.sets:
        for path, file in zip(s.paths, s.files, strict=True):
            if not (folder / path).is_file() or file_digest(folder / path) != file.sha256:
                raise PublishError(
                    f"{path} of the folder is missing, or is not the file that was exported. "
                    "Export the dataset again."
                )


def _read_back(
    repository: Repository,
    commit: str,
    data: Mapping[str, Content],
    folder: Path,
    manifest: Manifest,
) -> Checked:
    """Compare what the Hub has with what was sent.

    Files are compared by the hashes that the Hub stores. The largest config is streamed as any
    user would, all columns but the pictures, and hashed on both sides; its first row with them.

    Raises:
        PublishError: Something came back other than it was sent.
    """
    wrong = repository.differences(commit, data)
    config = manifest.largest_config
    views = [view for view in manifest.views if view.config == config]
    rows, digest = 0, sha256()
    try:
        with repository.explained(), quiet_datasets():
            for view in views:
                options = {
                    "split": view.split,
                    "streaming": True,
                    "columns": _columns(folder, view),
                }
                sets = manifest.sets_of(view)
                paths = [str(folder / path) for s in sets for path in s.paths]
                there = datasets.load_dataset(repository.id, config, revision=commit, **options)
                here = datasets.load_dataset(
                    "parquet", data_files={view.split: paths}, filters=view.filters, **options
                )
                n, found = _rows_digest(there)
                if (n, found) != _rows_digest(here):
                    wrong.append(f"the rows of {config}, {view.split}")
                digest.update(found.encode())
                rows += n
            options = {"split": views[0].split, "streaming": True}
            first = datasets.load_dataset(repository.id, config, revision=commit, **options)
            row = next(iter(first))
    except (datasets.exceptions.DatasetsError, ValueError) as error:
        raise PublishError(
            f"{repository.id}: {config} was sent, but cannot be loaded from there. Run the command "
            f"again. ({brief(error, 200)})"
        ) from error
    if wrong:
        raise PublishError(
            f"{repository.id}: what is on the Hub is not what was sent: {', '.join(wrong[:3])}. "
            "Run the command again."
        )
    pictures = [row.get(name) for name in PICTURE_COLUMNS]
    return Checked(len(data), config, rows, digest.hexdigest(), any(pictures))


def _columns(folder: Path, view: View) -> list[str]:
    """Return the columns that are read back."""
    schema = pq.read_schema(next((folder / view.folders[0]).glob(f"{view.split}-*.parquet")))
    left_out = (*PICTURE_COLUMNS, *((CONFIG_COLUMN,) if view.column == CONFIG_COLUMN else ()))
    return [name for name in schema.names if name not in left_out]


def _rows_digest(rows: Iterable[Mapping[str, Any]]) -> tuple[int, str]:
    """Return the number of rows, and a SHA-256 over all their values."""
    digest, n = sha256(), 0
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True, ensure_ascii=True).encode() + b"\n")
        n += 1
    return n, digest.hexdigest()
