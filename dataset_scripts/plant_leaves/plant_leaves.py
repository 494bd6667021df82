"""Plant leaves: plants seen from above, the number of their leaves and each leaf's center as text.

``datasets`` runs no scripts from the Hub any more: ``soubench build plant-leaves`` prepares these
configs into the local cache, where ``load_dataset("plant-leaves", "sentence")`` finds them by name.
"""

from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import datasets
from datasets import Features, Image, List, Value

from soubench.builders.images import MAX_PICTURE_PX
from soubench.builders.plants.build import build, manifest, rows
from soubench.builders.plants.prompt import Prompt, load_prompt
from soubench.builders.plants.report import card_text, report, report_text
from soubench.builders.plants.targets import FORMATS
from soubench.builders.publishing.dataset_cache import build_folder, staging
from soubench.dataset_scripts.prepared import (
    PreparedBuilder,
    datasets_cache,
    format_configs,
    prepare_and_publish,
    write_card,
)

__all__ = ["FEATURES", "NAME", "VERSION", "PlantLeaves", "build_plant_leaves", "report_text"]

NAME = "plant-leaves"
VERSION = "1.0.0"
PACKAGE = "soubench.dataset_scripts.plant_leaves"

FEATURES = Features(
    {
        "id": Value("string"),
        "image": Image(),
        "question": Value("string"),
        "target": Value("string"),
        "leaf_count": Value("int32"),
        "centers_xy": List(List(Value("int32"), length=2)),
        "subset": Value("string"),
        "plant_id": Value("string"),
    }
)


class PlantLeaves(PreparedBuilder):
    """Two configs, one per output format, of the same pictures."""

    NAME = NAME
    PACKAGE = PACKAGE
    VERSION = datasets.Version(VERSION)
    FEATURES = FEATURES
    BUILDER_CONFIGS = format_configs(FORMATS, VERSION)


def build_plant_leaves(
    root: Path,
    *,
    seed: int = 0,
    workers: int = 1,
    cache_dir: Path | None = None,
    prompt: Prompt | None = None,
    max_pixels: int = MAX_PICTURE_PX,
) -> dict[str, Any]:
    """Read and split the plant set, and put both configs into the datasets cache.

    Args:
        root: The folder of the plant set, one above it, or one in it.
        seed: Another seed tests on another genotype.
        workers: Processes that read pictures; changes no byte of the result.
        cache_dir: The datasets cache; by default that of ``datasets``.
        prompt: The words of the question; by default the paper's.
        max_pixels: Larger pictures are dropped, in px.

    Returns:
        The report, see ``soubench.builders.plants.report.report``, with ``configs`` (names that
        can be loaded), ``report_file`` and ``folder`` (which holds the card) added.

    Raises:
        FormatError: The folder is not what the reader expects.
        BuildError: No picture can take part.
        PublishError: The cache cannot be written.
    """
    cache = datasets_cache(cache_dir)
    with staging(cache) as staged:
        pictures = staged / "build" / "pictures"
        result = build(
            root,
            VERSION,
            prompt or load_prompt(),
            seed=seed,
            workers=workers,
            pictures_folder=pictures,
            max_pixels=max_pixels,
        )
        data = report(result)
        final = build_folder(cache, NAME, result.fingerprint) / "pictures"
        configs = {
            output_format: {
                split: partial(rows, result, output_format, split, final) for split in result.splits
            }
            for output_format in FORMATS
        }
        write_card(
            PACKAGE,
            staged / "build",
            {
                split: [
                    row.picture.image_path if row.file is None else pictures / row.file
                    for row in result.rows
                    if row.split == split
                ]
                for split in result.splits
            },
            card_text(data),
        )
        for name in ("CITATION.bib", "RELEASE_NOTES.md"):
            (staged / "build" / name).write_bytes((files(PACKAGE) / name).read_bytes())
        return prepare_and_publish(
            PlantLeaves,
            configs,
            data,
            report_text(data),
            manifest=manifest(result),
            fingerprint=result.fingerprint,
            staged=staged,
            cache=cache,
        )
