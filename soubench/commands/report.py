"""One page about scored runs: tables, plots, and every row with its picture."""

import argparse
import os
from pathlib import Path

from soubench.commands import Commands, add_workers, not_negative

EPILOG = """\
Each RUN is what soubench predict --out made (it is scored first where need be) or a folder of
soubench score. Runs over different builds of data get sections of their own.

  soubench report runs/qwen runs/intern --out report.html
  soubench report runs/* --out report.html --pictures report-pictures --plots report-plots

The page is one file that loads nothing from the network. It holds the pictures of up to 300 rows,
those that were missed first; --pictures writes those of all others beside it."""


def add_parser(commands: Commands) -> None:
    """Register ``report``."""
    report = commands.add_parser(
        "report",
        help="one page about runs: tables, plots, every row with its picture",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    report.add_argument("runs", nargs="+", metavar="RUN", type=Path, help="scored or not")
    report.add_argument(
        "--out", metavar="FILE", type=Path, default=Path("report.html"), help="default: report.html"
    )
    report.add_argument("--title", metavar="TEXT", help="default: the models and datasets")
    report.add_argument(
        "--pictures", metavar="DIR", type=Path, help="write the pictures of all other rows there"
    )
    report.add_argument(
        "--plots", metavar="DIR", type=Path, help='write PNG plots there (needs "soubench[plots]")'
    )
    report.add_argument(
        "--embed",
        metavar="N",
        type=not_negative,
        default=300,
        help="pictures in the page (default: 300)",
    )
    report.add_argument(
        "--published", action="store_true", help="show the papers' figures beside, as a reference"
    )
    report.add_argument(
        "--dataset", metavar="D", help="name, folder or Hub id (default: where the runs found it)"
    )
    report.add_argument(
        "--seed", type=int, default=0, help="of the draw of rows with pictures (default: 0)"
    )
    add_workers(report)
    report.set_defaults(command=_report)


def _report(args: argparse.Namespace) -> None:
    # Our metrics lie in the modules cache; to ask the Hub for them first takes long.
    os.environ.setdefault("HF_EVALUATE_OFFLINE", "1")
    from soubench.inference.report.figures import figures_of
    from soubench.inference.report.page import PageOptions, write_page
    from soubench.inference.report.plots import write_plots
    from soubench.inference.report.runs import read_runs, sections_of

    sections = sections_of(read_runs(args.runs), args.dataset)
    figures = [figures_of(section, published=args.published) for section in sections]
    options = PageOptions(
        out=args.out,
        title=args.title,
        pictures=args.pictures,
        embedded=args.embed,
        seed=args.seed,
        workers=args.workers,
    )
    written = write_page(sections, figures, options)
    size = f"{written.bytes / 1e6:.1f} MB"
    print(f"{args.out}: {written.rows:,} rows, {written.embedded:,} with a picture in it, {size}")
    if args.pictures is not None:
        print(f"{args.pictures}: pictures of {written.beside:,} more; keep it beside the page")
    if written.unreadable:
        print(f"Note: the pictures of {written.unreadable:,} rows are not there or damaged.")
    if written.cut_at:
        print(f"Note: replies are cut after {written.cut_at:,} characters to keep the page small.")
    if args.plots is not None:
        charts = [
            (i, section.name, chart)
            for i, (section, drawn) in enumerate(zip(sections, figures, strict=True))
            for chart in drawn.charts
        ]
        plots = write_plots(charts, args.plots, numbered=len(sections) > 1)
        print(f"{args.plots}: {len(plots)} plots")
