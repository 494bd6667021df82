"""Build a dataset into the local datasets cache."""

from soubench.commands import Commands
from soubench.commands.build import plant_leaves, primitive_shapes, sou_vqa

DATASETS = (sou_vqa, primitive_shapes, plant_leaves)
"""Modules of the datasets, in the order of ``soubench build --help``."""


def add_parser(commands: Commands) -> None:
    """Register ``build``."""
    datasets = commands.add_parser(
        "build", help="build a dataset into the local datasets cache"
    ).add_subparsers(required=True, metavar="DATASET")
    for dataset in DATASETS:
        dataset.add_parser(datasets)
