"""Build SOU-Train."""

import argparse

from soubench.commands import Commands
from soubench.commands.build.sou import (
    add_scenarios,
    options_of,
    print_report,
    roots_and_splits,
)


def add_parser(datasets: Commands) -> None:
    """Register ``build sou-train``."""
    build = datasets.add_parser(
        "sou-train", help="the same questions to train on, disjoint from sou-vqa"
    )
    add_scenarios(build)
    build.set_defaults(command=_build)


def _build(args: argparse.Namespace) -> None:
    roots, splits = roots_and_splits(args)

    from soubench.dataset_scripts.sou_train.sou_train import build_sou_train

    print_report(build_sou_train(args.config, roots, options_of(args), splits=splits), args.config)
