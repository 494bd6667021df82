"""Build primitive-shapes."""

import argparse
from pathlib import Path

from soubench.builders.errors import BuildError
from soubench.commands import Commands, pairs
from soubench.commands.build.common import add_common, print_built


def add_parser(datasets: Commands) -> None:
    """Register ``build primitive-shapes``."""
    build = datasets.add_parser("primitive-shapes", help="drawn shapes")
    build.add_argument(
        "--pictures",
        metavar="SPLIT=N",
        action="append",
        default=[],
        help="pictures of a split, such as train=5000; the paper's numbers where not given",
    )
    build.add_argument("--renderer", choices=("pillow", "tikz"), default="pillow")
    build.add_argument(
        "--keep-tex", metavar="DIR", type=Path, help="keep the .tex files of the TikZ renderer"
    )
    add_common(build)
    build.set_defaults(command=_build)


def _build(args: argparse.Namespace) -> None:
    from soubench.builders.shapes.build import ShapesOptions
    from soubench.dataset_scripts.primitive_shapes.primitive_shapes import (
        build_primitive_shapes,
        report_text,
    )

    given = pairs("--pictures", args.pictures, "train=5000")
    wrong = {split: n for split, n in given.items() if not n.isdecimal()}
    if wrong:
        raise BuildError(f"--pictures expects SPLIT=NUMBER, such as train=5000; got {wrong}.")
    if args.keep_tex and args.renderer != "tikz":
        raise BuildError("--keep-tex goes with --renderer tikz.")
    options = ShapesOptions(
        seed=args.seed,
        renderer=args.renderer,
        pictures={split: int(n) for split, n in given.items()},
        workers=args.workers,
        keep_tex=args.keep_tex and args.keep_tex.expanduser(),
        prompt=args.prompt,
    )
    report = build_primitive_shapes(options)
    print(report_text(report))
    print_built(report)
    print('Load it from any folder: load_dataset("primitive-shapes", "sentence")')
