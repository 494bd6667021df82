"""What SOU-VQA and SOU-Train share: scenarios, and which sources they need."""

from collections.abc import Mapping
from pathlib import Path

from soubench.builders.errors import BuildError
from soubench.builders.sou.build import SourceFolder
from soubench.builders.sou.subsets import CONFIGS, GROUPS, SUBSETS
from soubench.dataset_scripts.sou import Views


def configs_of(group: str) -> list[str]:
    """Return the configs that are complete once ``group`` is built.

    >>> configs_of("driving")[:3]
    ['driving', 'driving-ce', 'driving-oc']

    Raises:
        BuildError: No such group.
    """
    if group not in GROUPS:
        raise BuildError(
            f"There is no config {group!r} that can be built. Expected one of "
            f"{', '.join(GROUPS)}; the sub-tasks of each ({group.split('-')[0]}-ce, ..) are "
            "prepared with it."
        )
    within = set(GROUPS[group])
    return [name for name, selection in CONFIGS.items() if within.issuperset(selection.subsets)]


def views_of(group: str, split: str) -> Views:
    """Return the configs that ``group`` completes, each with one split."""
    return {name: {split: CONFIGS[name]} for name in configs_of(group)}


def needed_sources(group: str) -> dict[str, str]:
    """Return source name -> subset name for everything that ``group`` is made of."""
    configs_of(group)
    return {SUBSETS[name].source: name for name in GROUPS[group]}


def source_folders(
    group: str,
    roots: Mapping[str, Path],
    splits: Mapping[str, str],
    default_splits: Mapping[str, str],
) -> dict[str, SourceFolder]:
    """Pair the subsets of ``group`` with the folders that a user gave.

    Args:
        group: One of the seven configs without a sub-task.
        roots: Source name -> its folder.
        splits: Source name -> split, where it is not the default.
        default_splits: Source name -> split.

    Raises:
        BuildError: A source is missing or unknown.
    """
    needed = needed_sources(group)
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
    return {
        subset: SourceFolder(roots[source], splits.get(source, default_splits[source]))
        for source, subset in needed.items()
    }
