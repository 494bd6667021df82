"""SOU-Train: the questions of SOU-VQA on training pictures, ready for a trainer.

Rows have all columns of SOU-VQA, and ``prompt`` and ``completion`` in conversational form: trainers
that know these two train on the reply alone, where a single ``messages`` column would have every
token trained, those of the picture included.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datasets import Features, List, Value

from soubench.builders.errors import BuildError
from soubench.builders.sou.apart import ApartFromEvaluation
from soubench.builders.sou.build import BuildOptions, SourceFolder
from soubench.builders.sou.prompts import Prompts
from soubench.builders.sou.subsets import GROUPS, TRAIN_SUBSETS
from soubench.builders.sources import SOURCES
from soubench.dataset_scripts.sou import FEATURES, Row, SouDataset, build_sou, conversation
from soubench.dataset_scripts.sou_scenarios import source_folders, views_of

NAME = "sou-train"
VERSION = "1.0.0"
PACKAGE = "soubench.dataset_scripts.sou_train"

_MESSAGES = List({"role": Value("string"), "content": Value("string")})
TRAIN_FEATURES = Features({**FEATURES, "prompt": _MESSAGES, "completion": _MESSAGES})


def build_sou_train(
    group: str,
    roots: Mapping[str, Path],
    options: BuildOptions,
    *,
    splits: Mapping[str, str] | None = None,
    cache_dir: Path | None = None,
) -> dict[str, Any]:
    """Build one config and all that it implies, and put them into the datasets cache.

    Pictures of the sources' evaluation splits, which SOU-VQA is made of, are left out: by file,
    pixels and perceptual hash, of whichever source, and by group within a source.

    Args:
        group: One of the seven configs without a sub-task.
        roots: Source name -> its folder, with the training split and the evaluation split.
        options: Seed, distractors, sizes, workers.
        splits: Source name -> split, where it is not the source's training split.
        cache_dir: The datasets cache; by default that of ``datasets``.

    Returns:
        The report, see ``soubench.dataset_scripts.sou.build_sou``.

    Raises:
        BuildError: A source is missing or unknown, the split is the evaluation split, imagehash is
            not installed, or no picture can take part.
        FormatError: A source is not what its reader expects, or lacks one of the two splits.
        PublishError: The cache cannot be written.
    """
    training = {name: source.train_split for name, source in SOURCES.items()}
    folders = source_folders(group, roots, splits or {}, training)
    subsets = [TRAIN_SUBSETS[name] for name in GROUPS[group]]
    evaluation: dict[str, SourceFolder] = {}
    for subset in subsets:
        root, split = folders[subset.name].root, SOURCES[subset.source].test_split
        if folders[subset.name].split == split:
            raise BuildError(
                f"--split {subset.source}={split}: sou-vqa is made of that split, and what is "
                "trained on must not be what is tested on. Name another split."
            )
        evaluation[subset.source] = SourceFolder(root, split)
    dataset = SouDataset(
        NAME,
        VERSION,
        PACKAGE,
        views_of(group, "train"),
        title="SOU-Train",
        features=TRAIN_FEATURES,
        extend=_with_conversation,
    )
    apart = ApartFromEvaluation(evaluation, workers=options.workers, max_pixels=options.max_pixels)
    return build_sou(dataset, subsets, folders, options, cache_dir=cache_dir, apart=apart)


def _with_conversation(row: Row, prompts: Prompts) -> Row:
    return row | conversation(row, prompts)
