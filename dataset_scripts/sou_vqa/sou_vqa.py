"""SOU-VQA: six kinds of multiple-choice questions about small objects in three scenarios.

``datasets`` runs no scripts from the Hub any more: ``soubench build sou-vqa`` prepares these
configs into the local cache, where ``load_dataset("sou-vqa", "aerial")`` finds them by name.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
from soubench.builders.sou.subsets import CONFIGS, GROUPS, SUBSETS, Selection, Task
from soubench.builders.sou.verify import Problem, verify
from soubench.builders.sources import SOURCES
from soubench.dataset_scripts.prepared import (
    CARD_MARKER,
    PreparedBuilder,
    datasets_cache,
    prepare_and_publish,
)

NAME = "sou-vqa"
VERSION = "1.0.0"
PACKAGE = "soubench.dataset_scripts.sou_vqa"
MANIFEST = "manifest.json"
WRITER_BATCH_ROWS = 60
"""Ten pictures. Rows hold paths, not bytes, so only their objects weigh anything."""

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


@dataclass
class SouVqaConfig(datasets.BuilderConfig):  # type: ignore[misc]  # datasets ships no types
    """One of the 49 configs: a scenario, an aerial subset or all, whole or one sub-task."""

    selection: Selection = CONFIGS["all"]


def _config(name: str, selection: Selection) -> SouVqaConfig:
    return SouVqaConfig(
        name=name,
        version=datasets.Version(VERSION),
        description=f"{selection.task or 'All six sub-tasks'} of {', '.join(selection.subsets)}",
        selection=selection,
    )


class SouVqa(PreparedBuilder):
    """Prepares the rows of a finished build."""

    NAME = NAME
    PACKAGE = PACKAGE
    FEATURES = FEATURES
    VERSION = datasets.Version(VERSION)
    BUILDER_CONFIG_CLASS = SouVqaConfig
    BUILDER_CONFIGS = [_config(name, selection) for name, selection in CONFIGS.items()]  # noqa: RUF012
    DEFAULT_WRITER_BATCH_SIZE = WRITER_BATCH_ROWS


def configs_of(group: str) -> list[str]:
    """Return the configs that are complete once ``group`` is built.

    >>> configs_of("driving")[:3]
    ['driving', 'driving-ce', 'driving-oc']

    Raises:
        BuildError: No such group.
    """
    if group not in GROUPS:
        raise BuildError(
            f"sou-vqa has no config {group!r} that can be built. Expected one of "
            f"{', '.join(GROUPS)}; the sub-tasks of each ({group.split('-')[0]}-ce, ..) are "
            "prepared with it."
        )
    within = set(GROUPS[group])
    return [name for name, selection in CONFIGS.items() if within.issuperset(selection.subsets)]


def needed_sources(group: str) -> dict[str, str]:
    """Return source name -> subset name for everything that ``group`` is made of."""
    configs_of(group)
    return {SUBSETS[name].source: name for name in GROUPS[group]}


def build_sou_vqa(
    group: str,
    roots: Mapping[str, Path],
    options: BuildOptions,
    *,
    splits: Mapping[str, str] | None = None,
    cache_dir: Path | None = None,
) -> dict[str, Any]:
    """Build one config and all that it implies, and put them into the datasets cache.

    Args:
        group: One of the seven configs without a sub-task.
        roots: Source name -> its folder.
        options: Seed, distractors, sizes, workers.
        splits: Source name -> split, where it is not the source's evaluation split.
        cache_dir: The datasets cache; by default that of ``datasets``.

    Returns:
        The report, see ``soubench.builders.sou.report.report``, with ``configs`` (names that can
        be loaded) and ``report_file`` added.

    Raises:
        BuildError: A source is missing or unknown, or no picture can take part.
        FormatError: A source is not what its reader expects.
        PublishError: The cache cannot be written.
    """
    sources = needed_sources(group)
    _check_sources(group, sources, roots, splits or {})
    for source in sources:
        if not roots[source].exists():
            raise FormatError(
                f"--source {source}={roots[source]}: there is no such file or folder."
            )
    cache = datasets_cache(cache_dir)
    folders = {
        source: SourceFolder(roots[source], (splits or {}).get(source, SOURCES[source].test_split))
        for source in sources
    }
    with staging(cache) as staged:
        pictures = staged / "build" / "pictures"
        result = build(
            NAME,
            VERSION,
            [SUBSETS[name] for name in GROUPS[group]],
            folders,
            options,
            pictures_folder=pictures,
        )
        data = report(result)
        _keep_used(pictures, result)
        (staged / "build" / MANIFEST).write_text(json.dumps(manifest(result)), encoding="utf-8")
        card = (files(PACKAGE) / "README.md").read_text(encoding="utf-8")
        card = card.replace("# SOU-VQA\n", f"# SOU-VQA, {options.mode} distractors\n", 1)
        (staged / "build" / "README.md").write_text(
            card.replace(CARD_MARKER, card_sections(data)), encoding="utf-8"
        )
        final = build_folder(cache, NAME, result.fingerprint) / "pictures"
        configs = {
            name: {"test": partial(rows, result, CONFIGS[name], final)}
            for name in _with_rows(configs_of(group), result)
        }
        return prepare_and_publish(
            SouVqa,
            configs,
            data,
            report_text(data),
            fingerprint=result.fingerprint,
            staged=staged,
            cache=cache,
            replaced=configs_of(group),
        )


def _check_sources(
    group: str,
    needed: Mapping[str, str],
    roots: Mapping[str, Path],
    splits: Mapping[str, str],
) -> None:
    for flag, names in (("--source", roots), ("--split", splits)):
        for name in names:
            if name not in needed:
                raise BuildError(
                    f"{flag} {name}=..: the config {group!r} has no use for it. "
                    f"Its sources are {', '.join(needed)}."
                )
    missing = {source: subset for source, subset in needed.items() if source not in roots}
    if missing:
        flags = " ".join(f"--source {source}=DIR" for source in missing)
        raise BuildError(
            f"The config {group!r} needs the annotations of {', '.join(missing.values())}, "
            f"which were not given. Add {flags}."
        )


def _with_rows(configs: Iterable[str], result: SouBuild) -> list[str]:
    """Return the configs that have rows; an empty one would only hide that a source is missing."""
    counts = {
        (b.subset.name, task): len(q)
        for b in result.subsets
        for task, q in b.asked.questions.items()
    }

    def has_rows(selection: Selection) -> bool:
        tasks: Sequence[Task] = tuple(Task) if selection.task is None else (selection.task,)
        return any(counts.get((name, task)) for name in selection.subsets for task in tasks)

    return [name for name in configs if has_rows(CONFIGS[name])]


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


@dataclass(frozen=True, slots=True)
class Verified:
    """One build that was verified: where it lies, its configs and rows, what is wrong."""

    folder: Path
    configs: list[str]
    rows: int
    problems: list[Problem]


def verify_sou_vqa(
    *, cache_dir: Path | None = None, prompts: Prompts | None = None, pictures: bool = False
) -> list[Verified]:
    """Verify every build of sou-vqa that the datasets cache holds; no picture is decoded.

    Args:
        cache_dir: The datasets cache; by default that of ``datasets``.
        prompts: The prompt file that the builds were made with; by default the package's own.
        pictures: Hash the source pictures, too; else only their being there is checked.

    Raises:
        BuildError: Nothing is built.
    """
    cache = datasets_cache(cache_dir)
    live: dict[str, list[str]] = {}
    for path in sorted((cache / NAME).glob(f"*/{VERSION}/*/dataset_info.json")):
        if is_live(path.parent):
            live.setdefault(path.parent.name, []).append(path.parts[-4])
    if not live:
        raise BuildError(f"sou-vqa is not built in {cache}: run soubench build sou-vqa first.")
    return [
        _verify_build(cache, digest, configs, prompts or load_prompts(), pictures=pictures)
        for digest, configs in live.items()
    ]


def _verify_build(
    cache: Path, digest: str, configs: list[str], prompts: Prompts, *, pictures: bool
) -> Verified:
    folder = build_folder(cache, NAME, digest)
    problems: list[Problem] = []
    rows = 0
    try:
        described = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        tables = {name: _table(cache, name, digest) for name in configs}
        largest = max(tables, key=lambda name: len(tables[name]))
        everything = tables[largest]
        rows = len(everything)
        problems += verify(everything.remove_columns("image"), described, prompts)
        for name, table in tables.items():
            selection = CONFIGS[name]
            every = everything.data.table
            wanted = pc.is_in(every["subset"], pa.array(selection.subsets))
            if selection.task is not None:
                wanted = pc.and_(wanted, pc.equal(every["task"], selection.task.value))
            if not every.filter(wanted).equals(table.data.table):
                message = f"the rows of {name} are not those of {largest}"
                problems.append(Problem("", "config", message))
        problems += _picture_problems(everything, described, pictures=pictures)
    except (OSError, ValueError, KeyError, TypeError, SystemError, AttributeError) as error:
        # Whatever a damaged file makes the libraries say.
        message = f"{folder}: a file of this build is damaged or missing ({error!r:.200})"
        problems.append(Problem("", "files", message))
    return Verified(folder, configs, rows, problems)


def _table(cache: Path, config: str, digest: str) -> datasets.Dataset:
    path = cache / NAME / config / VERSION / digest / f"{NAME}-test.arrow"
    table = datasets.Dataset.from_file(str(path))
    return table.cast_column("image", Image(decode=False))


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
