"""Any detection set as a dataset of questions about its small objects.

``soubench build my-set --source coco=DIR`` prepares ``load_dataset("my-set", "all")`` and a config
for each sub-task that the labels can carry, with one split per split of the source.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from datasets.packaged_modules import _PACKAGED_DATASETS_MODULES

from soubench.builders.errors import BuildError, SplitError
from soubench.builders.scene import ReadReport
from soubench.builders.sou.build import BuildOptions, SourceFolder
from soubench.builders.sou.subsets import SMALL_AREA_PX, Selection, Subset, Task
from soubench.builders.sources import SOURCES
from soubench.dataset_scripts.sou import SouDataset, build_sou

VERSION = "1.0.0"
PACKAGE = "soubench.dataset_scripts.detection"
SPLITS = ("train", "val", "test")
"""Splits that are looked for where none is named."""
COMPARED = 20
"""Pictures by which two splits are told apart."""
RESERVED = ("soubench", "staging", "lock")
"""Folders and files of the cache beside the datasets'."""

_NAME = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*")


def build_detection(
    name: str,
    source: str,
    root: Path,
    options: BuildOptions,
    *,
    splits: Sequence[str] = (),
    small_area_px: float = SMALL_AREA_PX,
    cache_dir: Path | None = None,
) -> dict[str, Any]:
    """Build a dataset of the user's own name and put it into the datasets cache.

    Args:
        name: What users type after ``load_dataset``.
        source: Format of the annotations, a name in the table of sources.
        root: Their folder.
        options: Seed, distractors, sizes, workers.
        splits: The source's splits; by default each of ``SPLITS`` that is there.
        small_area_px: Largest area of a small object in px².
        cache_dir: The datasets cache; by default that of ``datasets``.

    Returns:
        The report, see ``soubench.dataset_scripts.sou.build_sou``, with ``missing_splits`` added:
        those of ``SPLITS`` that were looked for and are not there -> why.

    Raises:
        BuildError: The name cannot be one of a dataset, the format is unknown, two splits are the
            same, or no picture can take part.
        FormatError: The source is not what its reader expects.
        PublishError: The cache cannot be written.
    """
    if not _NAME.fullmatch(name):
        raise BuildError(
            f"{name!r} cannot be the name of a dataset: use small letters, digits, and single "
            "hyphens, underscores or dots between them, such as my-set."
        )
    if name in RESERVED:
        raise BuildError(f"{name!r} is a name that the cache itself uses. Choose another one.")
    if name in _PACKAGED_DATASETS_MODULES or name.endswith(".py"):
        raise BuildError(
            f"load_dataset({name!r}, ..) reads files of that kind, whatever lies in the cache. "
            "Choose another name."
        )
    if source not in SOURCES:
        raise BuildError(f"There is no format {source!r}. Expected one of {', '.join(SOURCES)}.")
    wanted, missing = (list(splits), {}) if splits else _splits_of(source, root)
    names = {split: re.sub(r"\W", "_", split) for split in wanted}
    if len(set(names.values())) < len(wanted):
        raise BuildError(f"--split: the splits {', '.join(wanted)} would share one name.")
    subsets = [Subset(names[split], name, source, small_area_px=small_area_px) for split in wanted]
    folders = {names[split]: SourceFolder(root, split) for split in wanted}
    views = {
        config: {subset.name: Selection((subset.name,), task) for subset in subsets}
        for config, task in _configs()
    }
    dataset = SouDataset(name, VERSION, PACKAGE, views, title=name)
    report = build_sou(dataset, subsets, folders, options, cache_dir=cache_dir)
    return report | {"missing_splits": missing}


def _configs() -> Iterator[tuple[str, Task | None]]:
    yield "all", None
    for task in Task:
        yield f"all-{task.lower()}", task


def _splits_of(source: str, root: Path) -> tuple[list[str], dict[str, str]]:
    """Return which of ``SPLITS`` a folder has, and why the others are not there.

    Formats whose files say no split find the same pictures whatever split is asked for.
    """
    if root.is_file():
        return [SOURCES[source].test_split], {}
    first: dict[str, list[Path]] = {}
    missing: dict[str, SplitError] = {}
    for split in SPLITS:
        try:
            scenes = SOURCES[source].read(root.resolve(), split, ReadReport())
            first[split] = [scene.image_path for scene in islice(scenes, COMPARED)]
        except SplitError as error:
            missing[split] = error
    if not first and missing:
        raise missing[SOURCES[source].test_split]
    found = list(first.values())
    same = [split for split, paths in first.items() if paths and found.count(paths) > 1]
    if same:
        raise BuildError(
            f"{root}: its pictures are found whatever split is asked for ({', '.join(same)}). "
            "Say with --split what to call it, such as --split val."
        )
    return list(first), {split: str(error) for split, error in missing.items()}
