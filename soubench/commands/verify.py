"""Check that a dataset holds what it says."""

import argparse
from pathlib import Path

from soubench.builders.errors import BuildError
from soubench.commands import PROBLEMS_SHOWN, Commands


def add_parser(commands: Commands) -> None:
    """Register ``verify``."""
    verify = commands.add_parser(
        "verify", help="derive every answer of a built dataset anew and check its fingerprint"
    )
    verify.add_argument("dataset", help="name of a built dataset")
    verify.add_argument(
        "--prompt", metavar="FILE", type=Path, help="the prompt file it was built with"
    )
    verify.add_argument(
        "--pictures", action="store_true", help="hash the source pictures, too (takes a while)"
    )
    verify.set_defaults(command=_verify)


def _verify(args: argparse.Namespace) -> None:
    from soubench.builders.sou.prompts import load_prompts
    from soubench.dataset_scripts.sou import verify_sou

    wrong = 0
    for build in verify_sou(
        args.dataset, prompts=load_prompts(args.prompt), pictures=args.pictures
    ):
        found = f"{len(build.problems)} problems" if build.problems else "all is well"
        what = f"{len(build.configs)} configs, the largest of {build.rows} rows"
        print(f"{args.dataset}, {build.folder.name[:16]}: {what}, {found}")
        for problem in build.problems[:PROBLEMS_SHOWN]:
            print(f"  {problem.row_id or 'the dataset'}: {problem.field}: {problem.message}")
        wrong += len(build.problems)
    if not args.pictures:
        print("Pictures: that they are there; --pictures hashes those of the sources.")
    if wrong:
        raise BuildError(f"{args.dataset} does not hold what it says; build it again.")
