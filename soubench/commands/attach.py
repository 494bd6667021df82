"""Put pictures into an export without them."""

import argparse
from pathlib import Path

from soubench.commands import PROBLEMS_SHOWN, Commands


def add_parser(commands: Commands) -> None:
    """Register ``attach``."""
    attach = commands.add_parser(
        "attach", help="put your own copies of the pictures into an export without them"
    )
    attach.add_argument("folder", metavar="DIR", type=Path)
    attach.add_argument("--pictures", metavar="DIR", type=Path, required=True)
    attach.set_defaults(command=_attach)


def _attach(args: argparse.Namespace) -> None:
    from soubench.builders.publishing.attach import attach_pictures

    done = attach_pictures(args.folder.expanduser(), args.pictures.expanduser())
    for part, n in done["attached"].items():
        print(f"{part}: {n} pictures attached")
    for part, left in done["left"].items():
        for why, names in left.items():
            if names:
                listed = ", ".join(names[:PROBLEMS_SHOWN])
                print(f"{part}: {len(names)} {why}: {listed}")
