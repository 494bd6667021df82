"""What all datasets of the six sub-tasks share: features, building into the cache."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import datasets
from datasets import ClassLabel, Features, Image, List, Value

from soubench.builders.errors import FormatError
from soubench.builders.publishing.dataset_cache import build_folder, staging
from soubench.builders.sou.build import (
    Apart,
    BuildOptions,
    SouBuild,
    SourceFolder,
    build,
    manifest,
    rows,
)
from soubench.builders.sou.prompts import Prompts
from soubench.builders.sou.questions import LETTERS
from soubench.builders.sou.report import card_sections, report, report_text
from soubench.builders.sou.subsets import SMALL_AREA_PX, Selection, Subset, Task
from soubench.dataset_scripts.prepared import (
    CARD_MARKER,
    PreparedBuilder,
    datasets_cache,
    prepare_and_publish,
)

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
            raise FormatError(f"{folder.root}: there is no such file or folder. Check --source.")
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
        card = (files(dataset.package) / "README.md").read_text(encoding="utf-8")
        card = card.replace("<!-- name -->", dataset.name)
        card = card.replace("<!-- source -->", subsets[0].source)
        card = card.replace("<!-- flags -->", _flags(options, subsets[0].small_area_px))
        title = f"# {dataset.title}\n"
        card = card.replace(title, f"{title[:-1]}, {options.mode} distractors\n", 1)
        (staged / "build" / "README.md").write_text(
            card.replace(CARD_MARKER, card_sections(data, list(made))), encoding="utf-8"
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
            manifest=described,
            fingerprint=result.fingerprint,
            staged=staged,
            cache=cache,
            replaced=list(dataset.views),
        )


def _flags(options: BuildOptions, small_area_px: float) -> str:
    """Return what a user has to say to get such a build, where it is not what goes without."""
    usual = BuildOptions()
    flags = [
        (options.mode != usual.mode, f"--distractors {options.mode}"),
        (options.seed != usual.seed, f"--seed {options.seed}"),
        (options.pictures == "all", "--all"),
        (isinstance(options.pictures, int), f"--limit {options.pictures}"),
        (options.max_pixels != usual.max_pixels, f"--max-pixels {options.max_pixels}"),
        (options.prompts.digest != usual.prompts.digest, "--prompt FILE"),
        (small_area_px != SMALL_AREA_PX, f"--small-area {small_area_px:g}"),
    ]
    return "".join(f" {flag}" for given, flag in flags if given)


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


def conversation(row: Mapping[str, Any], prompts: Prompts) -> Row:
    """Return ``prompt`` and ``completion``: word for word what a model is asked in a test.

    Args:
        row: A row with ``question``, ``options``, ``answer`` (a letter) and ``system_prompt``.
        prompts: The words that go around a question.
    """
    user = prompts.multiple_choice(row["question"], row["options"])
    return {
        "prompt": [
            {"role": "system", "content": row["system_prompt"]},
            {"role": "user", "content": user},
        ],
        "completion": [{"role": "assistant", "content": row["answer"]}],
    }
