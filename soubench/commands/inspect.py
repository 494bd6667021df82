"""Look at an annotation folder."""

import argparse
from pathlib import Path

from soubench.builders.errors import BuildError
from soubench.commands import Commands, positive
from soubench.commands.build.common import add_max_pixels


def add_parser(commands: Commands) -> None:
    """Register ``inspect``."""
    inspect = commands.add_parser(
        "inspect", help="count what an annotation folder holds, and draw its boxes"
    )
    inspect.add_argument("source", help="format: soda-d, visdrone, ai-tod, soda-a, ruod, coco, ..")
    inspect.add_argument("folder", metavar="DIR", type=Path)
    inspect.add_argument("--split", help="default: the format's evaluation split")
    inspect.add_argument(
        "--out", metavar="DIR", type=Path, help="write a sheet of drawn boxes there"
    )
    inspect.add_argument("--pictures", metavar="N", type=positive, default=12, help="on the sheet")
    inspect.add_argument("--seed", type=int, default=0, help="which pictures are drawn")
    inspect.add_argument(
        "--small-area",
        metavar="PX2",
        type=positive,
        default=1024,
        help="largest area of a small object in px² (default: 1024)",
    )
    add_max_pixels(inspect)
    inspect.set_defaults(command=_inspect)


def _inspect(args: argparse.Namespace) -> None:
    from soubench.builders.images import MAX_PICTURE_PX
    from soubench.builders.inspection import inspect_source, inspection_text
    from soubench.builders.sources import SOURCES

    if args.source not in SOURCES:
        raise BuildError(f"There is no format {args.source!r}. Expected {', '.join(SOURCES)}.")
    data = inspect_source(
        args.source,
        args.folder.expanduser(),
        args.split or SOURCES[args.source].test_split,
        out=args.out and args.out.expanduser(),
        pictures=args.pictures,
        seed=args.seed,
        small_area_px=args.small_area,
        max_pixels=args.max_pixels or MAX_PICTURE_PX,
    )
    print(inspection_text(data))
