"""Compare two runs on the rows that both were asked."""

import argparse
import json
import os
from pathlib import Path

from soubench.commands import Commands

EPILOG = """\
Each RUN is what soubench predict --out made (it is scored first where need be) or a folder of
soubench score. Per task: the difference B - A with a 95 % interval (paired bootstrap over groups of
pictures), McNemar's exact test, and its p-value corrected by Holm over the tasks. Measures that are
not right or wrong have the interval only. Where there is one group, or all groups agree, there is
no interval, and the table says so."""


def add_parser(commands: Commands) -> None:
    """Register ``compare``."""
    compare = commands.add_parser(
        "compare",
        help="compare two runs on the same rows: McNemar, paired bootstrap, Holm",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    compare.add_argument("a", metavar="RUN_A", type=Path)
    compare.add_argument("b", metavar="RUN_B", type=Path)
    compare.add_argument("--out", metavar="FILE", type=Path, help="write the numbers as JSON")
    compare.add_argument(
        "--across-builds",
        action="store_true",
        help="runs over different builds: compare rows whose question, options and answer agree",
    )
    compare.set_defaults(command=_compare)


def _compare(args: argparse.Namespace) -> None:
    # Our metrics lie in the modules cache; to ask the Hub for them first takes long.
    os.environ.setdefault("HF_EVALUATE_OFFLINE", "1")
    from soubench.inference.compare import as_json, as_text, compare_runs

    compared = compare_runs(args.a, args.b, across_builds=args.across_builds)
    print(as_text(compared))
    if args.out is not None:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        temporary = args.out.with_name(f"{args.out.name}.incomplete")
        temporary.write_text(json.dumps(as_json(compared), indent=1) + "\n", encoding="utf-8")
        temporary.replace(args.out)
        print(f"Written to {args.out}")
