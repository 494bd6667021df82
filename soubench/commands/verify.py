"""Check that a dataset holds what it says."""

import argparse
from pathlib import Path

from soubench.builders.errors import BuildError
from soubench.commands import PROBLEMS_SHOWN, Commands

EPILOG = """\
Checked: that each answer follows from the row's own evidence, that options and letters keep the
rules, that rows, configs and features (those that the card's YAML states, too) are those that the
build wrote into manifest.json, and that all of it gives the fingerprint; with --pictures also the
bytes of the pictures.

Not checked: what the card says in words. Not shown: that the labels are the source's. Who changes
rows and manifest.json alike and hashes them anew makes another dataset, with another fingerprint:
compare it with the one that was published, or give that one as --fingerprint."""


def add_parser(commands: Commands) -> None:
    """Register ``verify``."""
    verify = commands.add_parser(
        "verify",
        help="derive every answer of a build or an export anew, and check its fingerprint",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verify.add_argument("dataset", help="name of a built dataset, or the folder of an export")
    verify.add_argument(
        "--prompt", metavar="FILE", type=Path, help="the prompt file it was built with"
    )
    verify.add_argument(
        "--pictures", action="store_true", help="hash the pictures, too (takes a while)"
    )
    verify.add_argument(
        "--fingerprint", metavar="HASH", help="what the fingerprint must be, or its start"
    )
    verify.set_defaults(command=_verify)


def _verify(args: argparse.Namespace) -> None:
    from soubench.dataset_scripts.verification import verify_dataset

    wrong = 0
    every = verify_dataset(args.dataset, prompt=args.prompt, pictures=args.pictures)
    if args.fingerprint:
        every = [found for found in every if found.fingerprint.startswith(args.fingerprint)]
        if not every:
            raise BuildError(f"{args.dataset} has no build of the fingerprint {args.fingerprint}.")
    for found in every:
        says = f"{len(found.problems)} problems" if found.problems else "all is well"
        what = f"{len(found.configs)} configs, the largest of {found.rows} rows"
        print(f"{found.dataset}, {found.fingerprint[:16] or found.folder}: {what}, {says}")
        for problem in found.problems[:PROBLEMS_SHOWN]:
            print(f"  {problem.row_id or 'the dataset'}: {problem.field}: {problem.message}")
        for note in found.notes:
            print(f"  Note: {note}")
        wrong += len(found.problems)
    if not args.pictures:
        print("Pictures were not read; --pictures hashes those that are the sources' own files.")
    if wrong:
        raise BuildError(f"{args.dataset} does not hold what it says; make it again.")
