"""A small dataset of each kind, without any download."""

import argparse
import os
from pathlib import Path

from soubench.commands import Commands, add_workers, positive


def add_parser(commands: Commands) -> None:
    """Register ``demo``."""
    demo = commands.add_parser(
        "demo", help="draw demo scenes, build a small sou-vqa, score baselines; no download"
    )
    demo.add_argument("dataset", nargs="?", choices=tuple(DEMOS), default="sou-vqa")
    demo.add_argument("--out", metavar="DIR", type=Path, help="where it lies (a cache folder)")
    demo.add_argument(
        "--pictures",
        metavar="N",
        type=positive,
        default=12,
        help="per source or split; plant-leaves always draws the same plants (default: 12)",
    )
    add_workers(demo)
    demo.set_defaults(command=_demo)


DEMOS = {
    "sou-vqa": "demo_sou_vqa",
    "primitive-shapes": "demo_primitive_shapes",
    "plant-leaves": "demo_plant_leaves",
    "rrs": "demo_rrs",
}
"""Dataset -> its function in ``soubench.demo``."""


def _demo(args: argparse.Namespace) -> None:
    out = args.out
    if out is None:
        home = Path(os.environ.get("HF_HOME") or "~/.cache/huggingface")
        out = home / "soubench-demo"
    out = out.expanduser().resolve()
    # The libraries read these when they are first imported. A cache of its own keeps the demo from
    # taking the place of a sou-vqa that the user has built.
    os.environ["HF_DATASETS_CACHE"] = str(out / "datasets")
    os.environ["HF_MODULES_CACHE"] = str(out / "modules")
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["HF_EVALUATE_OFFLINE"] = "1"
    from soubench import demo

    getattr(demo, DEMOS[args.dataset])(out, pictures=args.pictures, workers=args.workers)
