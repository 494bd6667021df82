"""Check that a dataset holds what it says."""

import argparse
from pathlib import Path

from soubench.builders.errors import BuildError
from soubench.commands import PROBLEMS_SHOWN, Commands


def add_parser(commands: Commands) -> None:
    """Register ``verify``."""
    verify = commands.add_parser(
        "verify", help="derive every answer of a build or an export anew, and check its fingerprint"
    )
    verify.add_argument("dataset", help="name of a built dataset, or the folder of an export")
    verify.add_argument(
        "--prompt", metavar="FILE", type=Path, help="the prompt file it was built with"
    )
    verify.add_argument(
        "--pictures", action="store_true", help="hash the pictures, too (takes a while)"
    )
    verify.set_defaults(command=_verify)


def _verify(args: argparse.Namespace) -> None:
    from soubench.dataset_scripts.verification import verify_dataset

    wrong = 0
    for found in verify_dataset(args.dataset, prompt=args.prompt, pictures=args.pictures):
        says = f"{len(found.problems)} problems" if found.problems else "all is well"
        what = f"{len(found.configs)} configs, the largest of {found.rows} rows"
        print(f"{found.dataset}, {found.folder.name[:16]}: {what}, {says}")
        for problem in found.problems[:PROBLEMS_SHOWN]:
            print(f"  {problem.row_id or 'the dataset'}: {problem.field}: {problem.message}")
        wrong += len(found.problems)
    if not args.pictures:
        print("Pictures were not read; --pictures hashes those that are the sources' own files.")
    if wrong:
        raise BuildError(f"{args.dataset} does not hold what it says; make it again.")
