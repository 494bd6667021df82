"""Score a run, or any file of replies."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from soubench.builders.errors import RunError
from soubench.commands import Commands, positive

if TYPE_CHECKING:
    from soubench.inference.score import Scored

EPILOG = """\
A RUN is what soubench predict --out made; all its shards, or runs of one model over several configs
or splits of a dataset, are scored into one table:

  soubench score runs/qwen
  soubench score runs/shapes-test runs/shapes-od_size --out scores/shapes

Replies of other tools or of people come as a file with an id and a reply per row:

  soubench score --dataset sou-vqa --config aerial --predictions answers.xlsx

The metrics are put where evaluate.load finds them, as soubench install-metrics does. Nothing is
guessed: what cannot be read is wrong and counted, and so is a row without a reply, or with an empty
cell in the file."""


def add_parser(commands: Commands) -> None:
    """Register ``score``."""
    score = commands.add_parser(
        "score",
        help="score a run or a file of replies, with intervals, tables and verdicts",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    score.add_argument("runs", nargs="*", metavar="RUN", type=Path, help="folders of one run")
    score.add_argument(
        "--predictions", metavar="FILE", type=Path, help="JSONL, CSV, TSV or XLSX instead of a RUN"
    )
    score.add_argument("--id-column", metavar="NAME", help="of the file (default: id, index, ..)")
    score.add_argument(
        "--reply-column", metavar="NAME", help="of the file (default: reply, prediction, ..)"
    )
    score.add_argument("--name", metavar="TEXT", help="of who replied (default: the file's name)")
    score.add_argument(
        "--dataset", metavar="D", help="name, folder or Hub id (default: where the run found it)"
    )
    score.add_argument("--config", metavar="C", help="of the dataset, with --predictions")
    score.add_argument("--split", metavar="S", help="of the dataset, with --predictions")
    score.add_argument("--revision", metavar="R", help="of a dataset on the Hub")
    score.add_argument(
        "--box-format",
        metavar="F",
        help="how boxes in replies are written, a format of acc_at_iou (default: as was asked)",
    )
    score.add_argument(
        "--caption-model", metavar="M", help="model of BERTScore, for captions (default: none)"
    )
    score.add_argument(
        "--caption-layers", metavar="N", type=positive, help="its layer, for a local folder"
    )
    score.add_argument(
        "--published", action="store_true", help="show the papers' figures beside, as a reference"
    )
    score.add_argument(
        "--out", metavar="DIR", type=Path, help="default: the RUN; FILE-scores for a file"
    )
    score.set_defaults(command=_score)


def _score(args: argparse.Namespace) -> None:
    # Our metrics lie in the modules cache; to ask the Hub for them first takes long.
    os.environ.setdefault("HF_EVALUATE_OFFLINE", "1")
    from soubench.inference.score import summary, write_scores
    from soubench.inference.tables import render_text

    out = _out(args)
    scored = _scored(args)
    tables = scored.tables(published=args.published)
    # Before anything is printed, so that nothing is lost to a reader that closes (.. | head).
    write_scores(scored, tables, out)
    for table in tables:
        print(f"{table.title}\n\n{render_text(table)}")
        for note in table.notes:
            print(note)
        print()
    print(summary(scored))
    for warning in scored.warnings():
        print(f"Note: {warning}")
    print(f"Written to {out}: scores.json, scores.csv, scores.md, verdicts.jsonl")


def _out(args: argparse.Namespace) -> Path:
    """Return where results go; check that the arguments fit together."""
    runs: list[Path] = args.runs
    file: Path | None = args.predictions
    out: Path | None = args.out
    if bool(runs) == (file is not None):
        raise RunError("expected either RUN folders or --predictions FILE with --dataset.")
    if file is not None:
        if args.dataset is None:
            raise RunError("--predictions needs --dataset, and --config where there are several.")
        return out or file.with_name(f"{file.stem}-scores")
    given = [f"--{name}" for name in ("config", "split", "revision", "name") if vars(args)[name]]
    given += [
        f"--{name.replace('_', '-')}" for name in ("id_column", "reply_column") if vars(args)[name]
    ]
    if given:
        raise RunError(f"{', '.join(given)}: only with --predictions; a RUN says that itself.")
    if out is None and len(runs) > 1:
        raise RunError("several RUN folders need --out DIR for their common scores.")
    return out or runs[0]


def _scored(args: argparse.Namespace) -> "Scored":
    from hashlib import sha256

    from soubench.inference.dataset_rows import open_rows
    from soubench.inference.predictions import read_predictions
    from soubench.inference.score import score_replies, score_runs
    from soubench.inference.scores import Settings

    settings = Settings(args.box_format, args.caption_model, args.caption_layers)
    if args.predictions is None:
        return score_runs(args.runs, dataset=args.dataset, settings=settings)
    replies = read_predictions(
        args.predictions, id_column=args.id_column, reply_column=args.reply_column
    )
    loaded = open_rows(args.dataset, args.config, args.split, revision=args.revision)
    return score_replies(
        replies,
        loaded,
        model=args.name or args.predictions.stem,
        settings=settings,
        digest=sha256(args.predictions.read_bytes()).hexdigest(),
    )
