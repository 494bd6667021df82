"""Build a dataset of any detection set, under a name of the user's."""

import argparse
import sys
from pathlib import Path

from soubench.builders.errors import BuildError
from soubench.commands import Commands, pairs, positive
from soubench.commands.build.sou import add_sou, options_of, print_report

ANY_NAME = "NAME"


def add_parser(datasets: Commands) -> None:
    """Register ``build`` for every name that no other dataset has."""
    build = datasets.add_parser(
        ANY_NAME, help="any other name: questions made from any detection set (--source FORMAT=DIR)"
    )
    build.add_argument("name", help="what to call the dataset, such as my-set")
    build.add_argument(
        "--source",
        metavar="FORMAT=DIR",
        action="append",
        default=[],
        help="its annotations, such as coco=DIR, yolo=DIR, voc=DIR or dota=DIR",
    )
    build.add_argument(
        "--split",
        metavar="SPLIT",
        action="append",
        default=[],
        help="a split of the source, once per split (default: train, val and test, if there)",
    )
    build.add_argument("--limit", metavar="N", type=positive, help="pictures per split")
    build.add_argument(
        "--small-area",
        metavar="PX2",
        type=positive,
        default=1024,
        help="largest area of a small object in px² (default: 1024)",
    )
    add_sou(build)
    build.set_defaults(command=_build)


def _build(args: argparse.Namespace) -> None:
    sources = pairs("--source", args.source, "coco=DIR")
    if len(sources) != 1:
        raise BuildError(
            f"{args.name} needs one detection set: --source FORMAT=DIR, such as coco=DIR; got "
            f"{', '.join(args.source) or 'no --source'}."
        )
    ((source, root),) = sources.items()

    from soubench.dataset_scripts.detection.detection import build_detection

    report = build_detection(
        args.name,
        source,
        Path(root).expanduser(),
        options_of(args),
        splits=args.split,
        small_area_px=args.small_area,
    )
    print_report(report, "all")
    for split, why in report["missing_splits"].items():
        print(f"soubench: no split {split}: {why:.200}", file=sys.stderr)
