"""Write a built dataset as a folder that can be published."""

import argparse
from pathlib import Path

from soubench.commands import Commands, add_pictures

CONFIGS_SHOWN = 4


def add_parser(commands: Commands) -> None:
    """Register ``export``."""
    export = commands.add_parser(
        "export", help="write a built dataset as a folder that can be published"
    )
    export.add_argument("dataset", help="name of a built dataset")
    export.add_argument("folder", metavar="DIR", type=Path)
    add_pictures(export, verb="export")
    export.set_defaults(command=_export)


def _export(args: argparse.Namespace) -> None:
    from soubench.builders.publishing.export import export_dataset

    done = export_dataset(
        args.dataset,
        args.folder.expanduser(),
        fingerprint=args.fingerprint,
        pictures=args.pictures,
        have_the_right=args.have_the_right,
    )
    more = len(done["configs"]) - CONFIGS_SHOWN
    configs = ", ".join(done["configs"][:CONFIGS_SHOWN]) + (f" and {more} more" * (more > 0))
    print(
        f"{done['folder']}: {done['rows']} rows, {done['pictures']} pictures, "
        f"{done['parquet_bytes'] / 1e6:.1f} MB, configs {configs}"
    )
    if done["withheld"]:
        print(
            f"Without the pictures of {', '.join(done['withheld'])}, which may not be passed on; "
            "whoever has them runs soubench attach."
        )
    print(f'Load it: load_dataset("{done["folder"]}", "{done["largest_config"]}")')
