"""Build SOU-VQA."""

import argparse
import sys
from pathlib import Path

from soubench.commands import Commands, pairs, positive
from soubench.commands.build.common import add_common, add_max_pixels


def add_parser(datasets: Commands) -> None:
    """Register ``build sou-vqa``."""
    build = datasets.add_parser("sou-vqa", help="questions about small objects")
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
        help="read another split of a source than its evaluation split",
    )
    size = build.add_mutually_exclusive_group()
    size.add_argument("--limit", metavar="N", type=positive, help="pictures per subset")
    size.add_argument("--all", action="store_true", help="take every picture that can take part")
    build.add_argument(
        "--distractors",
        choices=("paper", "balanced"),
        default="paper",
        help="how wrong options are drawn (default: paper)",
    )
    add_common(build)
    add_max_pixels(build)
    build.set_defaults(command=_build)


def _build(args: argparse.Namespace) -> None:
    roots = {name: Path(v).expanduser() for name, v in pairs("--source", args.source).items()}
    splits = pairs("--split", args.split)

    from soubench.builders.images import MAX_PICTURE_PX
    from soubench.builders.sou.build import BuildOptions
    from soubench.builders.sou.prompts import load_prompts
    from soubench.builders.sou.report import report_text, warnings_of
    from soubench.dataset_scripts.sou_vqa.sou_vqa import build_sou_vqa

    options = BuildOptions(
        seed=args.seed,
        mode=args.distractors,
        pictures="all" if args.all else args.limit,
        workers=args.workers,
        max_pixels=args.max_pixels or MAX_PICTURE_PX,
        prompts=load_prompts(args.prompt),
    )
    report = build_sou_vqa(args.config, roots, options, splits=splits)
    print(report_text(report))
    print(f"\nCard and report: {report['folder']}")
    for warning in warnings_of(report):
        print(f"soubench: {args.config} is incomplete; {warning}", file=sys.stderr)
    print(f'Load it from any folder: load_dataset("sou-vqa", "{args.config}")')
