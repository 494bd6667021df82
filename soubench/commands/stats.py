"""Histograms of a built dataset."""

import argparse
import os
from pathlib import Path

from soubench.builders.errors import BuildError
from soubench.commands import Commands


def add_parser(commands: Commands) -> None:
    """Register ``stats``."""
    stats = commands.add_parser("stats", help="write histograms of a built dataset as PNG")
    stats.add_argument("dataset", choices=("primitive-shapes",))
    stats.add_argument("--out", metavar="DIR", type=Path, default=Path("stats"))
    stats.set_defaults(command=_stats)


def _stats(args: argparse.Namespace) -> None:
    # What is built lies in the cache; to ask the Hub for it first takes long without a network.
    os.environ["HF_HUB_OFFLINE"] = "1"
    from datasets import load_dataset

    from soubench.builders.shapes.charts import count, draw_histograms

    try:
        splits = load_dataset(args.dataset, "tuple")
    except (FileNotFoundError, ConnectionError, ValueError) as error:
        raise BuildError(
            f"{args.dataset} cannot be loaded; if it is not built, run soubench build "
            f"{args.dataset} first. (A folder ./{args.dataset} would hide a build.) {error}"
        ) from error
    args.out.mkdir(parents=True, exist_ok=True)
    for name, rows in splits.items():
        counts = count(rows["shapes"], (image.width for image in rows["image"]))
        path = args.out / f"{args.dataset}-{name}.png"
        draw_histograms(counts, path, f"{args.dataset}, {name}: {len(rows)} pictures")
        print(path)
