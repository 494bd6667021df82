"""Build plant-leaves."""

import argparse
from pathlib import Path

from soubench.builders.errors import BuildError
from soubench.commands import Commands, pairs
from soubench.commands.build.common import add_common, add_max_pixels, print_built


def add_parser(datasets: Commands) -> None:
    """Register ``build plant-leaves``."""
    build = datasets.add_parser("plant-leaves", help="leaf counts and leaf centers")
    build.add_argument(
        "--source",
        metavar="plants=DIR",
        action="append",
        default=[],
        help="the folder of the plant phenotyping set (Minervini et al., 2016)",
    )
    add_common(build)
    add_max_pixels(build)
    build.set_defaults(command=_build)


def _build(args: argparse.Namespace) -> None:
    roots = pairs("--source", args.source)
    if set(roots) != {"plants"}:
        raise BuildError(
            "plant-leaves needs the folder of the plant phenotyping set and nothing else: "
            f"--source plants=DIR; got {args.source or 'no --source'}."
        )

    from soubench.builders.images import MAX_PICTURE_PX
    from soubench.builders.plants.prompt import load_prompt
    from soubench.dataset_scripts.plant_leaves.plant_leaves import build_plant_leaves, report_text

    report = build_plant_leaves(
        Path(roots["plants"]).expanduser(),
        seed=args.seed,
        workers=args.workers,
        prompt=load_prompt(args.prompt),
        max_pixels=args.max_pixels or MAX_PICTURE_PX,
    )
    print(report_text(report))
    print_built(report)
    print('Load it from any folder: load_dataset("plant-leaves", "sentence")')
