"""SOU-VQA: six kinds of multiple-choice questions about small objects in three scenarios.

``datasets`` runs no scripts from the Hub any more: ``soubench build sou-vqa`` prepares these
configs into the local cache, where ``load_dataset("sou-vqa", "aerial")`` finds them by name.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from soubench.builders.sou.build import BuildOptions
from soubench.builders.sou.subsets import GROUPS, SUBSETS
from soubench.builders.sources import SOURCES
from soubench.dataset_scripts.sou import SouDataset, build_sou
from soubench.dataset_scripts.sou_scenarios import source_folders, views_of

NAME = "sou-vqa"
VERSION = "1.0.0"
PACKAGE = "soubench.dataset_scripts.sou_vqa"


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
        The report, see ``soubench.dataset_scripts.sou.build_sou``.

    Raises:
        BuildError: A source is missing or unknown, or no picture can take part.
        FormatError: A source is not what its reader expects.
        PublishError: The cache cannot be written.
    """
    evaluation = {name: source.test_split for name, source in SOURCES.items()}
    folders = source_folders(group, roots, splits or {}, evaluation)
    dataset = SouDataset(NAME, VERSION, PACKAGE, views_of(group, "test"), title="SOU-VQA")
    subsets = [SUBSETS[name] for name in GROUPS[group]]
    return build_sou(dataset, subsets, folders, options, cache_dir=cache_dir)
