"""Take a published dataset into the cache."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from soubench.commands import Commands

if TYPE_CHECKING:
    from soubench.builders.verification import Problem

CONFIGS_SHOWN = 6


def add_parser(commands: Commands) -> None:
    """Register ``pull``."""
    pull = commands.add_parser(
        "pull", help="download a dataset that soubench published, to load it by its name"
    )
    pull.add_argument("repo_id", metavar="ORG/NAME", help="dataset repository on the Hub")
    pull.add_argument("--revision", metavar="REV", help="tag, branch or commit")
    pull.set_defaults(command=_pull)


def _pull(args: argparse.Namespace) -> None:
    from soubench.builders.publishing.pull import pull_dataset
    from soubench.dataset_scripts.verification import verify_dataset

    def verify(folder: Path) -> "list[Problem]":
        (found,) = verify_dataset(str(folder))
        return found.problems

    for done in pull_dataset(args.repo_id, revision=args.revision, verify=verify):
        more = len(done.configs) - CONFIGS_SHOWN
        configs = ", ".join(done.configs[:CONFIGS_SHOWN]) + (f" and {more} more" * (more > 0))
        print(f"{done.dataset} {done.version}: configs {configs}, the largest of {done.rows} rows")
        if done.whole:
            print(f"Fingerprint {done.fingerprint[:16]}, derived anew from the rows: it is right")
        else:
            print(
                f"Part of the build {done.fingerprint[:16]}: every answer was derived anew and is "
                "right; the fingerprint is of all configs, which are not there"
            )
        if done.was_there:
            print("It is in the cache already, with all pictures, and was left as it is.")
        elif done.withheld:
            print(f"Without the pictures of {', '.join(done.withheld)}")
        print(f'Load it: load_dataset("{done.dataset}", "{done.configs[0]}")')
