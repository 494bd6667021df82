"""The card of a model that was run."""

import argparse
import os
from pathlib import Path

from soubench.commands import Commands


def add_parser(commands: Commands) -> None:
    """Register ``model-card``."""
    card = commands.add_parser(
        "model-card",
        help="write the card of a model that was run, with its scores in the Hub's form",
        description="Write the card of a model that was run: scores with intervals, data, settings "
        "and limits for people, and a model-index for the Hub. All RUNs are of one model.",
    )
    card.add_argument("runs", nargs="+", metavar="RUN", type=Path, help="scored or not")
    card.add_argument(
        "--out", metavar="FILE", type=Path, required=True, help="such as model_cards/NAME.md"
    )
    card.add_argument(
        "--dataset", metavar="D", help="name, folder or Hub id (default: where the runs found it)"
    )
    card.set_defaults(command=_model_card)


def _model_card(args: argparse.Namespace) -> None:
    # Our metrics lie in the modules cache; to ask the Hub for them first takes long.
    os.environ.setdefault("HF_EVALUATE_OFFLINE", "1")
    from soubench.inference.model_card import check_card, write_card
    from soubench.inference.report.runs import read_runs, sections_of

    write_card(sections_of(read_runs(args.runs), args.dataset), args.out)
    print(f"{args.out}: {len(check_card(args.out))} scores in its model-index")
