"""Write a built dataset as a folder that can be published, or for another tool."""

import argparse
from pathlib import Path

from soubench.builders.errors import PublishError
from soubench.commands import Commands, add_pictures
from soubench.inference.exports import FORMATS

CONFIGS_SHOWN = 4


def add_parser(commands: Commands) -> None:
    """Register ``export``."""
    export = commands.add_parser(
        "export", help="write a built dataset as a folder that can be published, or for a tool"
    )
    export.add_argument("dataset", help="name of a built dataset; with --to also a folder, Hub id")
    export.add_argument("folder", metavar="DIR", type=Path)
    add_pictures(export, verb="export")
    export.add_argument(
        "--to",
        metavar="FORMAT",
        choices=FORMATS,
        help=f"for your own use with another tool: {', '.join(FORMATS)}",
    )
    export.add_argument("--config", metavar="C", help="with --to")
    export.add_argument("--split", metavar="S", help="with --to (default: test; to train: train)")
    export.add_argument("--recipe", metavar="R", help="with --to a trainer: name or TOML file")
    export.set_defaults(command=_export)


def _export(args: argparse.Namespace) -> None:
    if args.to is not None:
        _export_to(args)
        return
    given = [f"--{name}" for name in ("config", "split", "recipe") if vars(args)[name]]
    if given:
        raise PublishError(f"{', '.join(given)}: only with --to; a plain export holds all configs.")
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
            f"Without the pictures of {', '.join(done['withheld'])}, which "
            f"{'may not be passed on' if args.pictures == 'all' else 'were left out as asked'}; "
            "whoever has them runs soubench attach."
        )
    if Path(done["folder"]).name == done["dataset"]:
        print(
            f"Loading it by its path takes the place of the build in the cache, since the folder "
            f"has the dataset's name: call it otherwise if you still load {done['dataset']!r}."
        )
    print(f'Load it: load_dataset("{done["folder"]}", "{done["largest_config"]}")')


def _export_to(args: argparse.Namespace) -> None:
    if args.fingerprint or args.have_the_right or args.pictures != "all":
        raise PublishError(
            "--pictures, --fingerprint, --i-have-the-right-to-redistribute: not with --to, which "
            "writes for your own use, with all pictures, what load_dataset would load."
        )
    from soubench.inference.exports.export import export_to

    done = export_to(
        args.to,
        args.dataset,
        args.folder,
        config=args.config,
        split=args.split,
        recipe=args.recipe,
    )
    print(
        f"{done['folder']}: {done['rows']} rows, {done['pictures']} pictures of "
        f"{done['config']}, {done['split']}, for {args.to}: {', '.join(done['files'][:3])}"
    )
    if done["kept"]:
        print(f"For your own use: the pictures of {', '.join(done['kept'])} may not be passed on.")
    print(f"How to run it: {done['folder']}/README.md")
