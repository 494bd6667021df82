"""What the builds of the six sub-tasks share: flags, options, and what is said afterwards."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soubench.commands import pairs, positive
from soubench.commands.build.common import add_common, add_max_pixels

if TYPE_CHECKING:
    from soubench.builders.sou.build import BuildOptions


def add_sou(build: argparse.ArgumentParser) -> None:
    """Add the flags of a build of the six sub-tasks."""
    build.add_argument(
        "--distractors",
        choices=("paper", "balanced"),
        default="paper",
        help="how wrong options are drawn (default: paper)",
    )
    add_common(build)
    add_max_pixels(build)


def add_scenarios(build: argparse.ArgumentParser) -> None:
    """Add the flags of a build of scenarios."""
    build.add_argument("config", help="what to build: driving, aerial, underwater, all, ..")
    build.add_argument(
        "--source",
        metavar="NAME=DIR",
        action="append",
        default=[],
        help="where a source lies, such as visdrone=DIR; once per source",
    )
    build.add_argument(
        "--split",
        metavar="NAME=SPLIT",
        action="append",
        default=[],
        help="read another split of a source than its usual one",
    )
    size = build.add_mutually_exclusive_group()
    size.add_argument("--limit", metavar="N", type=positive, help="pictures per subset")
    size.add_argument("--all", action="store_true", help="take every picture that can take part")
    add_sou(build)


def roots_and_splits(args: argparse.Namespace) -> tuple[dict[str, Path], dict[str, str]]:
    """Return source -> folder and source -> split, as they were given."""
    roots = {name: Path(v).expanduser() for name, v in pairs("--source", args.source).items()}
    return roots, pairs("--split", args.split)


def options_of(args: argparse.Namespace) -> "BuildOptions":
    """Return what the user chose."""
    from soubench.builders.images import MAX_PICTURE_PX
    from soubench.builders.sou.build import BuildOptions
    from soubench.builders.sou.prompts import load_prompts

    return BuildOptions(
        seed=args.seed,
        mode=args.distractors,
        pictures="all" if getattr(args, "all", False) else args.limit,
        workers=args.workers,
        max_pixels=args.max_pixels or MAX_PICTURE_PX,
        prompts=load_prompts(args.prompt),
    )


def print_report(report: dict[str, Any], config: str) -> None:
    """Say what was built, what is missing, and how to load it."""
    from soubench.builders.sou.report import report_text, warnings_of

    print(report_text(report))
    print(f"\nCard and report: {report['folder']}")
    for warning in warnings_of(report):
        print(f"soubench: {config} is incomplete; {warning}", file=sys.stderr)
    print(f'Load it from any folder: load_dataset("{report["dataset"]}", "{config}")')
