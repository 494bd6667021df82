"""Primitive shapes: pictures of a few drawn shapes, and every attribute of them as text."""

from functools import partial
from pathlib import Path
from typing import Any

import datasets
from datasets import Features, Image, List, Value

from soubench.builders.publishing.dataset_cache import build_folder, staging
from soubench.builders.shapes.build import ShapesOptions, build_shapes, manifest, rows
from soubench.builders.shapes.targets import FORMATS
from soubench.dataset_scripts.prepared import (
    PreparedBuilder,
    datasets_cache,
    format_configs,
    prepare_and_publish,
    write_card,
)

NAME = "primitive-shapes"
VERSION = "1.0.0"
PACKAGE = "soubench.dataset_scripts.primitive_shapes"

FEATURES = Features(
    {
        "id": Value("string"),
        "image": Image(),
        "question": Value("string"),
        "target": Value("string"),
        "shapes": {
            "shape": List(Value("string")),
            "color": List(Value("string")),
            "quadrant": List(Value("string")),
            "center_xy": List(List(Value("int32"), length=2)),
            "relative_position": List(Value("string")),
            "rotation": List(Value("int32")),
            "occluded": List(Value("bool")),
            "half_long": List(Value("int32")),
            "half_short": List(Value("int32")),
            "depth": List(Value("int32")),
        },
        "config_md5": Value("string"),
    }
)


class PrimitiveShapes(PreparedBuilder):
    """Two configs, one per output format, of the same pictures."""

    NAME = NAME
    PACKAGE = PACKAGE
    VERSION = datasets.Version(VERSION)
    FEATURES = FEATURES
    LICENSE = "apache-2.0"
    BUILDER_CONFIGS = format_configs(FORMATS, VERSION)


def build_primitive_shapes(
    options: ShapesOptions, *, cache_dir: Path | None = None
) -> dict[str, Any]:
    """Sample and draw all splits, and put both configs into the datasets cache.

    Args:
        options: Seed, renderer, sizes, workers.
        cache_dir: The datasets cache; by default that of ``datasets``.

    Returns:
        ``dataset``, ``version``, ``fingerprint``, ``seed``, ``renderer``, ``pictures`` per split,
        ``configs``, ``report_file`` and ``folder``, which holds the card with a contact sheet per
        split.

    Raises:
        BuildError: A rule cannot be met or the renderer is not installed.
        PublishError: The cache cannot be written.
    """
    cache = datasets_cache(cache_dir)
    with staging(cache) as staged:
        pictures = staged / "build" / "pictures"
        result = build_shapes(VERSION, options, pictures)
        final = build_folder(cache, NAME, result.fingerprint)
        configs = {
            output_format: {
                split: partial(rows, result, output_format, split, final / "pictures")
                for split in result.configurations
            }
            for output_format in FORMATS
        }
        write_card(
            PACKAGE,
            staged / "build",
            {split: sorted((pictures / split).iterdir()) for split in result.configurations},
            f"Built as version {VERSION} with seed {options.seed} and the {options.renderer} "
            f"renderer; fingerprint `{result.fingerprint}`.",
        )
        report = {
            "dataset": NAME,
            "version": VERSION,
            "fingerprint": result.fingerprint,
            "seed": options.seed,
            "renderer": options.renderer,
            "pictures": {split: len(found) for split, found in result.configurations.items()},
        }
        return prepare_and_publish(
            PrimitiveShapes,
            configs,
            report,
            report_text(report),
            manifest=manifest(result),
            fingerprint=result.fingerprint,
            staged=staged,
            cache=cache,
        )


def report_text(report: dict[str, Any]) -> str:
    """Write a report for a person."""
    lines = [
        f"{report['dataset']} {report['version']}  seed {report['seed']}  renderer "
        f"{report['renderer']}  fingerprint {report['fingerprint'][:16]}"
    ]
    lines += [f"  {split:<17}{n:>7} pictures" for split, n in report["pictures"].items()]
    return "\n".join(lines)
