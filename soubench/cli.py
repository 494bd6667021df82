"""The ``soubench`` command."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from soubench.builders.errors import BuildError, SoubenchError

Command = Callable[[argparse.Namespace], None]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; errors of ours become one message and exit status 2."""
    args = _parser().parse_args(argv)
    command: Command = args.command
    try:
        command(args)
    except (SoubenchError, OSError) as error:
        print(f"soubench: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("soubench: interrupted; nothing half-made is left", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="soubench", description="Build VQA datasets from detection labels and score models."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    build = commands.add_parser(
        "build", help="build a dataset from annotation folders into the local datasets cache"
    )
    build.add_argument("dataset", help="name of the dataset: sou-vqa")
    build.add_argument("config", help="what to build: driving, aerial, underwater, all, ..")
    build.add_argument(
        "--source",
        metavar="NAME=DIR",
        action="append",
        default=[],
        help="where a source lies, such as visdrone=DIR; once per source",
    )
    build.add_argument(
        "--split",
        metavar="NAME=SPLIT",
        action="append",
        default=[],
        help="read another split of a source than its evaluation split",
    )
    size = build.add_mutually_exclusive_group()
    size.add_argument("--limit", metavar="N", type=_positive, help="pictures per subset")
    size.add_argument("--all", action="store_true", help="take every picture that can take part")
    build.add_argument(
        "--distractors",
        choices=("paper", "balanced"),
        default="paper",
        help="how wrong options are drawn (default: paper)",
    )
    build.add_argument("--seed", type=int, default=0, help="seed of every draw (default: 0)")
    build.add_argument(
        "--workers",
        metavar="N",
        type=_positive,
        default=os.cpu_count() or 1,
        help="processes that decode and mark pictures (default: all cores)",
    )
    build.add_argument("--prompt", metavar="FILE", type=Path, help="a prompt file of your own")
    build.add_argument(
        "--max-pixels", metavar="N", type=_positive, help="refuse larger pictures (100000000)"
    )
    build.set_defaults(command=_build)

    install = commands.add_parser(
        "install-metrics", help="make evaluate.load find the metrics by name"
    )
    install.add_argument("names", nargs="*", help="metrics to install (default: all)")
    install.set_defaults(command=_install_metrics)

    demo = commands.add_parser(
        "demo", help="draw demo scenes, build a small sou-vqa, score baselines; no download"
    )
    demo.add_argument("--out", metavar="DIR", type=Path, help="where it lies (a cache folder)")
    demo.add_argument("--pictures", metavar="N", type=_positive, default=12, help="per source")
    demo.add_argument("--workers", metavar="N", type=_positive, default=os.cpu_count() or 1)
    demo.set_defaults(command=_demo)
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, got {text}")
    return number


def _pairs(flag: str, values: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for value in values:
        name, sign, rest = value.partition("=")
        if not (name and sign and rest):
            raise BuildError(f"{flag} expects NAME=VALUE, such as visdrone=DIR; got {value!r}.")
        if name in pairs:
            raise BuildError(f"{flag} {name}=.. is given twice: {pairs[name]!r} and {rest!r}.")
        pairs[name] = rest
    return pairs


def _build(args: argparse.Namespace) -> None:
    if args.dataset != "sou-vqa":
        raise BuildError(f"There is no dataset {args.dataset!r} to build. Expected sou-vqa.")
    roots = {name: Path(v).expanduser() for name, v in _pairs("--source", args.source).items()}
    splits = _pairs("--split", args.split)

    from soubench.builders.images import MAX_PICTURE_PX
    from soubench.builders.sou.build import BuildOptions
    from soubench.builders.sou.prompts import load_prompts
    from soubench.builders.sou.report import report_text
    from soubench.dataset_scripts.sou_vqa.sou_vqa import build_sou_vqa

    options = BuildOptions(
        seed=args.seed,
        mode=args.distractors,
        pictures="all" if args.all else args.limit,
        workers=args.workers,
        max_pixels=args.max_pixels or MAX_PICTURE_PX,
        prompts=load_prompts(args.prompt),
    )
    report = build_sou_vqa(args.config, roots, options, splits=splits)
    print(report_text(report))
    print(f"\nReport: {report['report_file']}")
    print(f'Load it from any folder: load_dataset("sou-vqa", "{args.config}")')


def _install_metrics(args: argparse.Namespace) -> None:
    from soubench.builders.publishing.metric_cache import install_metrics

    for folder in install_metrics(args.names or None):
        name = folder.parent.name.removeprefix("evaluate-metric--")
        print(f'evaluate.load("{name}")  {folder}')


def _demo(args: argparse.Namespace) -> None:
    out = args.out
    if out is None:
        home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface"))
        out = home / "soubench-demo"
    out = out.expanduser().resolve()
    # The libraries read these when they are first imported. A cache of its own keeps the demo from
    # taking the place of a sou-vqa that the user has built.
    os.environ["HF_DATASETS_CACHE"] = str(out / "datasets")
    os.environ["HF_MODULES_CACHE"] = str(out / "modules")
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["HF_EVALUATE_OFFLINE"] = "1"
    from soubench.demo import demo_sou_vqa

    demo_sou_vqa(out, pictures=args.pictures, workers=args.workers)
