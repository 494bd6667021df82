"""Build SOU-VQA."""

import argparse

from soubench.commands import Commands
from soubench.commands.build.sou import (
    add_scenarios,
    options_of,
    print_report,
    roots_and_splits,
)


def add_parser(datasets: Commands) -> None:
    """Register ``build sou-vqa``."""
    build = datasets.add_parser("sou-vqa", help="questions about small objects")
    add_scenarios(build)
    build.set_defaults(command=_build)


def _build(args: argparse.Namespace) -> None:
    roots, splits = roots_and_splits(args)

    from soubench.dataset_scripts.sou_vqa.sou_vqa import build_sou_vqa

    print_report(build_sou_vqa(args.config, roots, options_of(args), splits=splits), args.config)
