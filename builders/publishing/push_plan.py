"""What a dataset repository on the Hub should have after a push, seen from what it has.

The repository is the exported folder. Configs that lie there and are not pushed stay, with their
files: those of the same build share its papers (``export.json`` and its kin); of other builds the
papers are kept in ``builds/<fingerprint>/``, and where another config has files of the same name,
ours get a folder of another name.
"""

import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import pyarrow.parquet as pq
import yaml  # type: ignore[import-untyped]  # PyYAML ships no types

from soubench.builders.errors import PublishError
from soubench.builders.publishing.card_merge import configs_of, merge_cards, read_card
from soubench.builders.publishing.export import BUILD_MANIFEST
from soubench.builders.publishing.export_folder import (
    BUILDS,
    MANIFEST,
    FileSet,
    Manifest,
    config_names,
    load_manifest,
    restricted,
    write_readme,
)
from soubench.builders.publishing.hub import Content, Repository, Target
from soubench.builders.rrs.taxonomy import Task as RrsTask
from soubench.builders.sou.subsets import Task as SouTask

CARD = "README.md"
PAPERS = (MANIFEST, BUILD_MANIFEST, "report.json")
"""What describes a build; kept for each build that has configs in the repository."""
PLACEHOLDER = "PATH_OR_REPOSITORY"


class PublishedBuild(NamedTuple):
    """A build that has configs in a repository, and the folder of its papers there."""

    home: str
    manifest: Manifest

    @property
    def paths(self) -> list[str]:
        """Its data files."""
        return [path for s in self.manifest.sets for path in s.paths]


class _Kept(NamedTuple):
    """A build that stays: where its papers were, where they go, and what is left of it."""

    before: str
    home: str
    manifest: Manifest

    @property
    def configs(self) -> list[str]:
        return config_names(self.manifest)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a repository should have.

    Attributes:
        target: All of it.
        data: The data files of ours among it.
        kept: Configs that stay as they are.
    """

    target: Target
    data: Mapping[str, Content]
    kept: list[str]


def make_plan(repository: Repository, folder: Path, ours: Manifest) -> Plan:
    """Say what the repository should have.

    Args:
        repository: What it has, as it was last looked at.
        folder: An exported folder.
        ours: What of it is pushed.

    Raises:
        PublishError: The repository holds another dataset, or cannot be read.
    """
    card = repository.read(CARD).decode("utf-8") if CARD in repository.files else ""
    try:
        said = configs_of(card)
    except yaml.YAMLError as error:
        raise PublishError(
            f"{repository.id}: the head of its {CARD} is not YAML. Put it right on the Hub first."
        ) from error
    builds = published_builds(repository)
    names = {build.manifest.dataset for build in builds} - {ours.dataset}
    if names:
        raise PublishError(
            f"{repository.id} holds {', '.join(sorted(names))}, and this is {ours.dataset}. Give "
            "another name."
        )
    configs = set(config_names(ours))
    rest, kept = _what_stays(ours, builds, configs)
    described = {name for build in builds for name in config_names(build.manifest)} | configs
    foreign = [p for name, entry in said.items() if name not in described for p in _patterns(entry)]
    moved = _moved(ours, kept, foreign)
    manifest = replace(
        ours,
        sets=[replace(s, folder=moved[s.folder, s.split]) for s in ours.sets] + rest.sets,
        views=[
            replace(v, folders=[moved[folder, v.split] for folder in v.folders]) for v in ours.views
        ]
        + rest.views,
    )
    data: dict[str, Content] = {
        f"{moved[s.folder, s.split]}/{file.name}": folder / s.folder / file.name
        for s in ours.sets
        for file in s.files
    }
    files = data | _papers(folder) | {MANIFEST: _saved(manifest)} | _kept_papers(repository, kept)
    rendered = _card(folder, manifest, kept, repository.id)
    files[CARD] = merge_cards(rendered, card, computed=("size_categories",)).encode("utf-8")
    replaced = [p for name in configs & set(said) for p in _patterns(said[name])]
    needed = {path for s in manifest.sets for path in s.paths} | set(files)
    needed |= {path for build in kept for s in build.manifest.sets for path in s.paths}
    stale = [
        path
        for path in _ours_before(repository.files, builds, replaced)
        if path not in needed and not _matches(path, foreign)
    ]
    return Plan(Target(files, stale), data, sorted(set(said) - configs))


def published_builds(repository: Repository) -> list[PublishedBuild]:
    """Return the builds that have configs in a repository.

    Raises:
        PublishError: What describes one of them cannot be read.
    """
    found = []
    for path in sorted(repository.files):
        home, _, name = path.rpartition("/")
        if name != MANIFEST or (home and not home.startswith(f"{BUILDS}/")):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            (Path(scratch) / MANIFEST).write_bytes(repository.read(path))
            try:
                found.append(PublishedBuild(home, load_manifest(Path(scratch))))
            except PublishError as error:
                raise PublishError(
                    f"{repository.id}: its {path} is damaged, or made by an older or a newer "
                    "soubench. Update soubench, or remove the file on the Hub."
                ) from error
    return found


def _what_stays(
    ours: Manifest, builds: Iterable[PublishedBuild], configs: Collection[str]
) -> tuple[Manifest, list[_Kept]]:
    """Return what the repository has of the same build beside ours, and what it has of others."""
    same = replace(ours, sets=[], views=[])
    kept: list[_Kept] = []
    for build in builds:
        rest = restricted(build.manifest, set(config_names(build.manifest)) - set(configs))
        if not rest.views:
            continue
        if _fit_together(ours, rest):
            there = {(s.folder, s.split) for s in (*ours.sets, *same.sets)}
            same.sets += [s for s in rest.sets if (s.folder, s.split) not in there]
            same.views += rest.views
            continue
        name = build.home.removeprefix(f"{BUILDS}/") or rest.fingerprint[:16]
        taken = {other.home for other in kept}
        homes = (f"{BUILDS}/{name}{'-' * (n > 0)}{n or ''}" for n in range(len(taken) + 1))
        kept.append(_Kept(build.home, next(h for h in homes if h not in taken), rest))
    return same, kept


def _fit_together(a: Manifest, b: Manifest) -> bool:
    """Say whether two parts are of one export, file by file."""
    if (a.fingerprint, a.carries_names) != (b.fingerprint, b.carries_names):
        return False
    files = {(s.folder, s.split): s.files for s in a.sets}
    return all(files.get((s.folder, s.split), s.files) == s.files for s in b.sets)


def _moved(
    ours: Manifest, kept: Iterable[_Kept], foreign: Sequence[str]
) -> dict[tuple[str, str], str]:
    """Return folder and split of our file sets -> their folder in the repository.

    It is another one where configs that stay have files of the same name and other content, or
    would take ours for theirs.
    """
    taken = {
        path: file
        for build in kept
        for s in build.manifest.sets
        for path, file in zip(s.paths, s.files, strict=True)
    }

    def place(s: FileSet) -> str:
        files = list(zip(s.paths, s.files, strict=True))
        if all(taken.get(path, f) == f and not _matches(path, foreign) for path, f in files):
            return s.folder
        content = "".join(file.sha256 for file in s.files)
        return f"{s.folder}-{sha256(content.encode()).hexdigest()[:8]}"

    return {(s.folder, s.split): place(s) for s in ours.sets}


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(path, pattern) for pattern in patterns)


def _patterns(entry: Any) -> list[str]:  # noqa: ANN401 - YAML
    """Return the file patterns of a config's entry in a card, in any form it may have."""
    if isinstance(entry, str):
        return [entry]
    if isinstance(entry, Mapping):
        folder = [f"{entry['data_dir']}/*"] if entry.get("data_dir") else []
        return folder + _patterns(entry.get("data_files")) + _patterns(entry.get("path"))
    return [pattern for one in entry or () for pattern in _patterns(one)]


def _papers(folder: Path) -> dict[str, Content]:
    """Return the files of an export beside its data, card and ``export.json``.

    In a folder that was downloaded there may be hidden files, and papers of other builds.
    """
    paths = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*"))}
    return {
        name: path
        for name, path in paths.items()
        if path.is_file()
        and name not in (CARD, MANIFEST)
        and not name.startswith(("data/", f"{BUILDS}/"))
        and not any(part.startswith(".") for part in name.split("/"))
    }


def _kept_papers(repository: Repository, kept: Iterable[_Kept]) -> dict[str, Content]:
    files: dict[str, Content] = {}
    for build in kept:
        files[f"{build.home}/{MANIFEST}"] = _saved(build.manifest)
        for name in PAPERS[1:]:
            before = f"{build.before}/{name}".lstrip("/")
            if before in repository.files:
                files[f"{build.home}/{name}"] = repository.read(before)
    return files


def _saved(manifest: Manifest) -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        manifest.save(Path(scratch))
        return (Path(scratch) / MANIFEST).read_bytes()


def _card(folder: Path, manifest: Manifest, kept: Sequence[_Kept], repo_id: str) -> str:
    """Write our card for what the repository will have."""
    head, body = read_card((folder / CARD).read_text(encoding="utf-8"))
    schema = pq.read_schema(next(folder.glob("data/**/*.parquet")))
    info = datasets.DatasetInfo(
        features=datasets.Features.from_arrow_schema(schema), version=manifest.version
    )
    if kept:
        rows = [
            f"| `{b.home}` | {b.manifest.version} | {', '.join(f'`{n}`' for n in b.configs)} |"
            for b in kept
        ]
        head_row = "| papers | version | configs |\n|---|---|---|"
        table = "\n".join(("## Configs of other builds", "", head_row, *rows))
        body = f"{body.rstrip()}\n\n{table}\n"
    with tempfile.TemporaryDirectory() as scratch:
        write_readme(Path(scratch), head, body, manifest, info)
        text = (Path(scratch) / CARD).read_text(encoding="utf-8").replace(PLACEHOLDER, repo_id)
    # A reader of the Hub has built nothing.
    return text.replace(loading(manifest.dataset), loading(repo_id))


def loading(name: str) -> str:
    """Return how a snippet of a card begins to load a dataset."""
    return f'load_dataset("{name}"'


def _for_the_card(builds: Iterable[PublishedBuild]) -> set[str]:
    """Return the pictures that exports of such builds may have for their cards."""
    tasks = (*SouTask, *RrsTask)
    splits = {view.split for build in builds for view in build.manifest.views}
    return {f"examples/{task.value.lower()}.jpg" for task in tasks} | {
        f"sheets/{split}.png" for split in splits
    }


def _ours_before(
    known: Collection[str], builds: Sequence[PublishedBuild], replaced: Sequence[str]
) -> list[str]:
    """Return what earlier pushes put there, and the data of configs that are replaced."""
    before = {path for build in builds for path in build.paths}
    before |= {f"{build.home}/{name}" for build in builds if build.home for name in PAPERS}
    if builds:
        before |= set(known) & _for_the_card(builds)
    before |= {p for p in known if p.endswith(".parquet") and _matches(p, replaced)}
    return sorted(before & set(known))
