"""What all datasets of the six sub-tasks share: features, building into the cache, verifying."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.compute as pc
from datasets import ClassLabel, Features, Image, List, Value

from soubench.builders.errors import BuildError, FormatError
from soubench.builders.publishing.dataset_cache import build_folder, is_live, staging
from soubench.builders.sou.build import (
    Apart,
    BuildOptions,
    SouBuild,
    SourceFolder,
    build,
    manifest,
    rows,
)
from soubench.builders.sou.prompts import Prompts, load_prompts
from soubench.builders.sou.questions import LETTERS
from soubench.builders.sou.render import file_digest
from soubench.builders.sou.report import card_sections, report, report_text
from soubench.builders.sou.subsets import Selection, Subset, Task
from soubench.builders.sou.verify import Problem, verify
from soubench.dataset_scripts.prepared import (
    CARD_MARKER,
    PreparedBuilder,
    datasets_cache,
    prepare_and_publish,
)

MANIFEST = "manifest.json"
WRITER_BATCH_ROWS = 60
"""Ten pictures. Rows hold paths, not bytes, so only their objects weigh anything."""

Row = dict[str, Any]

FEATURES = Features(
    {
        "id": Value("string"),
        "image": Image(),
        "scenario": Value("string"),
        "subset": Value("string"),
        "image_id": Value("string"),
        "group_id": Value("string"),
        "task": Value("string"),
        "question": Value("string"),
        "options": List(Value("string"), length=len(LETTERS)),
        "answer": ClassLabel(names=list(LETTERS)),
        "answer_text": Value("string"),
        "system_prompt": Value("string"),
        "objects": {
            "category": List(Value("string")),
            "box_xyxy": List(List(Value("float64"), length=4)),
            "quad_xy8": List(List(Value("float64"), length=8)),
            "area_px": List(Value("float64")),
        },
        "evidence": {
            "objects": List(Value("int32")),
            "point_xy": List(Value("int32")),
            "direction": Value("string"),
            "category": Value("string"),
            "mark": List(Value("int32")),
        },
    }
)


ROW_COLUMNS = [name for name in FEATURES if name != "image"]
"""What the fingerprint covers: a dataset's further columns follow from these."""

Views = Mapping[str, Mapping[str, Selection]]
"""Config -> split -> the rows that it holds."""


@dataclass(frozen=True)
class SouDataset:
    """A dataset of the six sub-tasks.

    Attributes:
        name: What users type after ``load_dataset``.
        version: Part of every draw's key.
        package: Where its card and ``CITATION.bib`` lie.
        views: Its configs, with their splits; those without rows are left out of a build.
        title: First line of the card, where the build's mode is put.
        features: Columns of the rows.
        extend: Adds the columns that ``FEATURES`` lacks to a row.
    """

    name: str
    version: str
    package: str
    views: Views
    title: str
    features: Features = field(default_factory=lambda: FEATURES)
    extend: Callable[[Row, Prompts], Row] | None = None

    def builder(self) -> type[PreparedBuilder]:
        """Return the class that prepares the rows of a finished build."""
        configs = [
            datasets.BuilderConfig(
                name=name,
                version=datasets.Version(self.version),
                description=_described(next(iter(splits.values()))),
            )
            for name, splits in self.views.items()
        ]
        members = {
            "NAME": self.name,
            "PACKAGE": self.package,
            "FEATURES": self.features,
            "VERSION": datasets.Version(self.version),
            "BUILDER_CONFIGS": configs,
            "DEFAULT_WRITER_BATCH_SIZE": WRITER_BATCH_ROWS,
        }
        return type("SouBuilder", (PreparedBuilder,), members)


def _described(selection: Selection) -> str:
    return f"{selection.task or 'All sub-tasks'} of {', '.join(selection.subsets)}"


def build_sou(
    dataset: SouDataset,
    subsets: Sequence[Subset],
    folders: Mapping[str, SourceFolder],
    options: BuildOptions,
    *,
    cache_dir: Path | None = None,
    apart: Apart | None = None,
) -> dict[str, Any]:
    """Build the views of a dataset and put them into the datasets cache.

    Args:
        dataset: The dataset, with the views to prepare.
        subsets: What they are made of, in their fixed order.
        folders: Subset name -> where its source lies.
        options: Seed, distractors, sizes, workers.
        cache_dir: The datasets cache; by default that of ``datasets``.
        apart: Leaves out what would leak into another dataset.

    Returns:
        The report, see ``soubench.builders.sou.report.report``, with ``configs`` (names that can
        be loaded), ``report_file`` and ``folder`` added.

    Raises:
        BuildError: No picture can take part.
        FormatError: A source is not what its reader expects.
        PublishError: The cache cannot be written.
    """
    for folder in folders.values():
        if not folder.root.exists():
            raise FormatError(f"--source ..={folder.root}: there is no such file or folder.")
    cache = datasets_cache(cache_dir)
    with staging(cache) as staged:
        pictures = staged / "build" / "pictures"
        result = build(
            dataset.name,
            dataset.version,
            subsets,
            folders,
            options,
            pictures_folder=pictures,
            apart=apart,
        )
        data = report(result)
        _keep_used(pictures, result)
        made = {
            name: {s: selection for s, selection in splits.items() if _has_rows(result, selection)}
            for name, splits in dataset.views.items()
        }
        made = {name: splits for name, splits in made.items() if splits}
        described = manifest(result) | {"views": _plain(made)}
        (staged / "build" / MANIFEST).write_text(json.dumps(described), encoding="utf-8")
        card = (files(dataset.package) / "README.md").read_text(encoding="utf-8")
        card = card.replace("<!-- name -->", dataset.name)
        title = f"# {dataset.title}\n"
        card = card.replace(title, f"{title[:-1]}, {options.mode} distractors\n", 1)
        (staged / "build" / "README.md").write_text(
            card.replace(CARD_MARKER, card_sections(data)), encoding="utf-8"
        )
        final = build_folder(cache, dataset.name, result.fingerprint) / "pictures"
        configs = {
            name: {
                split: partial(_extended, dataset, result, selection, final)
                for split, selection in splits.items()
            }
            for name, splits in made.items()
        }
        return prepare_and_publish(
            dataset.builder(),
            configs,
            data,
            report_text(data),
            fingerprint=result.fingerprint,
            staged=staged,
            cache=cache,
            replaced=list(dataset.views),
        )


def _extended(
    dataset: SouDataset, result: SouBuild, selection: Selection, pictures: Path
) -> Iterator[Row]:
    for row in rows(result, selection, pictures):
        yield dataset.extend(row, result.options.prompts) if dataset.extend else row


def _has_rows(result: SouBuild, selection: Selection) -> bool:
    """Say whether a config has rows; an empty one would only hide that a source is missing."""
    tasks: Sequence[Task] = tuple(Task) if selection.task is None else (selection.task,)
    return any(
        b.asked.questions.get(task)
        for b in result.subsets
        if b.subset.name in selection.subsets
        for task in tasks
    )


def _keep_used(pictures: Path, result: SouBuild) -> None:
    """Remove the files of pictures that lost their place while the sample settled."""
    used = {
        (b.subset.name, name)
        for b in result.subsets
        for files_of in b.rendered.values()
        for name in (files_of.plain, files_of.marked)
    }
    for path in pictures.glob("*/*"):
        if (path.parent.name, path.name) not in used:
            path.unlink()


def _plain(views: Views) -> dict[str, Any]:
    return {
        name: {
            split: {"subsets": list(selection.subsets), "task": selection.task}
            for split, selection in splits.items()
        }
        for name, splits in views.items()
    }


@dataclass(frozen=True, slots=True)
class Verified:
    """One build that was verified: where it lies, its configs and rows, what is wrong."""

    folder: Path
    configs: list[str]
    rows: int
    problems: list[Problem]


def verify_sou(
    name: str,
    *,
    cache_dir: Path | None = None,
    prompts: Prompts | None = None,
    pictures: bool = False,
) -> list[Verified]:
    """Verify every build of a dataset that the datasets cache holds; no picture is decoded.

    Args:
        name: What users type after ``load_dataset``.
        cache_dir: The datasets cache; by default that of ``datasets``.
        prompts: The prompt file that the builds were made with; by default the package's own.
        pictures: Hash the source pictures, too; else only their being there is checked.

    Raises:
        BuildError: Nothing is built.
    """
    cache = datasets_cache(cache_dir)
    live: dict[str, dict[str, Path]] = {}
    for path in sorted((cache / name).glob("*/*/*/dataset_info.json")):
        if is_live(path.parent):
            live.setdefault(path.parent.name, {})[path.parts[-4]] = path.parent
    if not live:
        raise BuildError(f"{name} is not built in {cache}: run soubench build {name} first.")
    return [
        _verify_build(
            build_folder(cache, name, digest), configs, prompts or load_prompts(), pictures=pictures
        )
        for digest, configs in live.items()
    ]


def _verify_build(
    folder: Path, configs: Mapping[str, Path], prompts: Prompts, *, pictures: bool
) -> Verified:
    problems: list[Problem] = []
    rows = 0
    try:
        described = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        order = [subset["name"] for subset in described["head"]["subsets"]]
        tables = {name: _tables(path) for name, path in configs.items()}
        largest = max(tables, key=lambda name: sum(map(len, tables[name].values())))
        splits = sorted(tables[largest].values(), key=lambda table: order.index(table[0]["subset"]))
        everything = datasets.concatenate_datasets(splits)
        rows = len(everything)
        problems += verify(everything.select_columns(ROW_COLUMNS), described, prompts)
        problems += _view_problems(tables, described["views"], everything, largest)
        problems += _picture_problems(everything, described, pictures=pictures)
    except (OSError, ValueError, KeyError, TypeError, SystemError, AttributeError) as error:
        # Whatever a damaged file makes the libraries say.
        message = f"{folder}: a file of this build is damaged or missing ({error!r:.200})"
        problems.append(Problem("", "files", message))
    return Verified(folder, list(configs), rows, problems)


def _tables(folder: Path) -> dict[str, datasets.Dataset]:
    """Return the splits of a prepared config, in their order, pictures left as paths."""
    info = datasets.DatasetInfo.from_directory(str(folder))
    (name,) = {path.name.rpartition("-")[0] for path in folder.glob("*.arrow")} or {""}
    tables = {
        split: datasets.Dataset.from_file(str(folder / f"{name}-{split}.arrow"))
        for split in info.splits
    }
    return {
        split: table.cast_column("image", Image(decode=False)) for split, table in tables.items()
    }


def _view_problems(
    tables: Mapping[str, Mapping[str, datasets.Dataset]],
    views: Mapping[str, Any],
    everything: datasets.Dataset,
    largest: str,
) -> Iterator[Problem]:
    """Check that every config holds the rows of the largest that it should, and no others."""
    every = everything.data.table
    for name, splits in tables.items():
        if set(splits) != set(views.get(name, ())):
            yield Problem("", "config", f"the splits of {name} are not those of the manifest")
            continue
        for split, table in splits.items():
            view = views[name][split]
            wanted = pc.is_in(every["subset"], pa.array(view["subsets"]))
            if view["task"] is not None:
                wanted = pc.and_(wanted, pc.equal(every["task"], view["task"]))
            if not every.filter(wanted).equals(table.data.table):
                message = f"the rows of {name}, {split}, are not those of {largest}"
                yield Problem("", "config", message)


def _picture_problems(
    rows: datasets.Dataset, described: Mapping[str, Any], *, pictures: bool
) -> list[Problem]:
    problems: list[Problem] = []
    checked: set[str] = set()
    for row in rows.select_columns(["id", "image", "subset", "image_id"]):
        path = Path(row["image"]["path"])
        if str(path) in checked:
            continue
        checked.add(str(path))
        known = described["pictures"][row["subset"]][row["image_id"]]
        if not path.is_file():
            problems.append(Problem(row["id"], "image", f"there is no file {path}"))
        elif pictures and path.name == known["file_name"] and file_digest(path) != known["sha256"]:
            problems.append(Problem(row["id"], "image", f"{path} has changed since the build"))
    return problems
