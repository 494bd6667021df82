"""The ``soubench`` command."""

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from soubench.builders.errors import BuildError, FormatError, SoubenchError

PROBLEMS_SHOWN = 10
Command = Callable[[argparse.Namespace], None]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; errors of ours become one message and exit status 2."""
    args = _parser().parse_args(argv)
    command: Command = args.command
    try:
        command(args)
    except BrokenPipeError:
        # Whoever read our output has closed it (soubench .. | head); the work is done.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (SoubenchError, OSError) as error:
        advice = ""
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            advice = ". Make room, or set HF_DATASETS_CACHE to another disk"
        print(f"soubench: error: {error}{advice}", file=sys.stderr)
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
        "build", help="build a dataset into the local datasets cache"
    ).add_subparsers(required=True, metavar="DATASET")
    _add_sou_vqa(build.add_parser("sou-vqa", help="questions about small objects"))
    _add_primitive_shapes(build.add_parser("primitive-shapes", help="drawn shapes"))
    _add_plant_leaves(build.add_parser("plant-leaves", help="leaf counts and leaf centers"))

    render = commands.add_parser("render", help="draw one configuration of primitive shapes")
    render.add_argument("configuration", metavar="CONFIG.json", type=Path)
    render.add_argument("--renderer", choices=("pillow", "tikz"), default="pillow")
    render.add_argument("--out", metavar="FILE.png", type=Path, help="default: CONFIG.png")
    render.set_defaults(command=_render)

    stats = commands.add_parser("stats", help="write histograms of a built dataset as PNG")
    stats.add_argument("dataset", choices=("primitive-shapes",))
    stats.add_argument("--out", metavar="DIR", type=Path, default=Path("stats"))
    stats.set_defaults(command=_stats)

    inspect = commands.add_parser(
        "inspect", help="count what an annotation folder holds, and draw its boxes"
    )
    inspect.add_argument("source", help="format: soda-d, visdrone, ai-tod, soda-a, ruod, coco, ..")
    inspect.add_argument("folder", metavar="DIR", type=Path)
    inspect.add_argument("--split", help="default: the format's evaluation split")
    inspect.add_argument(
        "--out", metavar="DIR", type=Path, help="write a sheet of drawn boxes there"
    )
    inspect.add_argument("--pictures", metavar="N", type=_positive, default=12, help="on the sheet")
    inspect.add_argument("--seed", type=int, default=0, help="which pictures are drawn")
    inspect.add_argument(
        "--small-area",
        metavar="PX2",
        type=_positive,
        default=1024,
        help="largest area of a small object in px² (default: 1024)",
    )
    inspect.set_defaults(command=_inspect)

    verify = commands.add_parser(
        "verify", help="derive every answer of a built dataset anew and check its fingerprint"
    )
    verify.add_argument("dataset", choices=("sou-vqa",))
    verify.add_argument(
        "--prompt", metavar="FILE", type=Path, help="the prompt file it was built with"
    )
    verify.add_argument(
        "--pictures", action="store_true", help="hash the source pictures, too (takes a while)"
    )
    verify.set_defaults(command=_verify)

    export = commands.add_parser(
        "export", help="write a built dataset as a folder that can be published"
    )
    export.add_argument("dataset", help="name of a built dataset")
    export.add_argument("folder", metavar="DIR", type=Path)
    export.add_argument(
        "--pictures",
        choices=("all", "none"),
        default="all",
        help="all that may be passed on (default), or none: labels only",
    )
    export.add_argument(
        "--i-have-the-right-to-redistribute",
        dest="have_the_right",
        action="store_true",
        help="export pictures whose licenses do not allow it as such",
    )
    export.add_argument("--fingerprint", help="which build, where the cache holds several")
    export.set_defaults(command=_export)

    attach = commands.add_parser(
        "attach", help="put your own copies of the pictures into an export without them"
    )
    attach.add_argument("folder", metavar="DIR", type=Path)
    attach.add_argument("--pictures", metavar="DIR", type=Path, required=True)
    attach.set_defaults(command=_attach)

    install = commands.add_parser(
        "install-metrics", help="make evaluate.load find the metrics by name"
    )
    install.add_argument("names", nargs="*", help="metrics to install (default: all)")
    install.set_defaults(command=_install_metrics)

    demo = commands.add_parser(
        "demo", help="draw demo scenes, build a small sou-vqa, score baselines; no download"
    )
    demo.add_argument("dataset", nargs="?", choices=tuple(DEMOS), default="sou-vqa")
    demo.add_argument("--out", metavar="DIR", type=Path, help="where it lies (a cache folder)")
    demo.add_argument(
        "--pictures",
        metavar="N",
        type=_positive,
        default=12,
        help="per source or split; plant-leaves always draws the same plants (default: 12)",
    )
    _add_workers(demo)
    demo.set_defaults(command=_demo)
    return parser


DEMOS = {
    "sou-vqa": "demo_sou_vqa",
    "primitive-shapes": "demo_primitive_shapes",
    "plant-leaves": "demo_plant_leaves",
}
"""Dataset -> its function in ``soubench.demo``."""


def _add_workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers",
        metavar="N",
        type=_positive,
        default=os.cpu_count() or 1,
        help="processes; changes no byte of the result (default: all cores)",
    )


def _add_common(build: argparse.ArgumentParser) -> None:
    build.add_argument("--seed", type=int, default=0, help="seed of every draw (default: 0)")
    build.add_argument("--prompt", metavar="FILE", type=Path, help="a prompt file of your own")
    _add_workers(build)


def _add_max_pixels(build: argparse.ArgumentParser) -> None:
    build.add_argument(
        "--max-pixels", metavar="N", type=_positive, help="refuse larger pictures (100000000)"
    )


def _add_sou_vqa(build: argparse.ArgumentParser) -> None:
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
    _add_common(build)
    _add_max_pixels(build)
    build.set_defaults(command=_build_sou_vqa)


def _add_primitive_shapes(build: argparse.ArgumentParser) -> None:
    build.add_argument(
        "--pictures",
        metavar="SPLIT=N",
        action="append",
        default=[],
        help="pictures of a split, such as train=5000; the paper's numbers where not given",
    )
    build.add_argument("--renderer", choices=("pillow", "tikz"), default="pillow")
    build.add_argument(
        "--keep-tex", metavar="DIR", type=Path, help="keep the .tex files of the TikZ renderer"
    )
    _add_common(build)
    build.set_defaults(command=_build_primitive_shapes)


def _add_plant_leaves(build: argparse.ArgumentParser) -> None:
    build.add_argument(
        "--source",
        metavar="plants=DIR",
        action="append",
        default=[],
        help="the folder of the plant phenotyping set (Minervini et al., 2016)",
    )
    _add_common(build)
    _add_max_pixels(build)
    build.set_defaults(command=_build_plant_leaves)


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, got {text}")
    return number


def _pairs(flag: str, values: Sequence[str], example: str = "visdrone=DIR") -> dict[str, str]:
    pairs: dict[str, str] = {}
    for value in values:
        name, sign, rest = value.partition("=")
        if not (name and sign and rest):
            raise BuildError(f"{flag} expects NAME=VALUE, such as {example}; got {value!r}.")
        if name in pairs:
            raise BuildError(f"{flag} {name}=.. is given twice: {pairs[name]!r} and {rest!r}.")
        pairs[name] = rest
    return pairs


def _build_sou_vqa(args: argparse.Namespace) -> None:
    roots = {name: Path(v).expanduser() for name, v in _pairs("--source", args.source).items()}
    splits = _pairs("--split", args.split)

    from soubench.builders.images import MAX_PICTURE_PX
    from soubench.builders.sou.build import BuildOptions
    from soubench.builders.sou.prompts import load_prompts
    from soubench.builders.sou.report import report_text, warnings_of
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
    print(f"\nCard and report: {report['folder']}")
    for warning in warnings_of(report):
        print(f"soubench: {args.config} is incomplete; {warning}", file=sys.stderr)
    print(f'Load it from any folder: load_dataset("sou-vqa", "{args.config}")')


def _build_primitive_shapes(args: argparse.Namespace) -> None:
    from soubench.builders.shapes.build import ShapesOptions
    from soubench.dataset_scripts.primitive_shapes.primitive_shapes import (
        build_primitive_shapes,
        report_text,
    )

    pairs = _pairs("--pictures", args.pictures, "train=5000")
    wrong = {split: n for split, n in pairs.items() if not n.isdecimal()}
    if wrong:
        raise BuildError(f"--pictures expects SPLIT=NUMBER, such as train=5000; got {wrong}.")
    if args.keep_tex and args.renderer != "tikz":
        raise BuildError("--keep-tex goes with --renderer tikz.")
    options = ShapesOptions(
        seed=args.seed,
        renderer=args.renderer,
        pictures={split: int(n) for split, n in pairs.items()},
        workers=args.workers,
        keep_tex=args.keep_tex and args.keep_tex.expanduser(),
        prompt=args.prompt,
    )
    report = build_primitive_shapes(options)
    print(report_text(report))
    _print_built(report)
    print('Load it from any folder: load_dataset("primitive-shapes", "sentence")')


def _build_plant_leaves(args: argparse.Namespace) -> None:
    roots = _pairs("--source", args.source)
    if set(roots) != {"plants"}:
        raise BuildError(
            "plant-leaves needs the folder of the plant phenotyping set and nothing else: "
            f"--source plants=DIR; got {args.source or 'no --source'}."
        )

    from soubench.builders.images import MAX_PICTURE_PX
    from soubench.builders.plants.prompt import load_prompt
    from soubench.dataset_scripts.plant_leaves.plant_leaves import build_plant_leaves, report_text

    report = build_plant_leaves(
        Path(roots["plants"]).expanduser(),
        seed=args.seed,
        workers=args.workers,
        prompt=load_prompt(args.prompt),
        max_pixels=args.max_pixels or MAX_PICTURE_PX,
    )
    print(report_text(report))
    _print_built(report)
    print('Load it from any folder: load_dataset("plant-leaves", "sentence")')


def _print_built(report: dict[str, Any]) -> None:
    print(f"\nCard with contact sheets: {report['folder']}/README.md")


def _render(args: argparse.Namespace) -> None:
    import json

    from soubench.builders.shapes.configuration import from_dict
    from soubench.builders.shapes.draw import draw_picture
    from soubench.builders.shapes.tikz import render_tikz

    path: Path = args.configuration
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: expected JSON of one configuration, but {error}.") from error
    configuration = from_dict(data, str(path))
    out = args.out or path.with_suffix(".png")
    if out.suffix.lower() != ".png" or out == path:
        raise BuildError(f"{out}: a picture is written as PNG: pass --out FILE.png.")
    if args.renderer == "tikz":
        (image,) = render_tikz([configuration])
    else:
        image = draw_picture(configuration)
    image.save(out)
    print(f"{out}: {image.width} x {image.height} px, configuration {configuration.md5()}")


def _stats(args: argparse.Namespace) -> None:
    # What is built lies in the cache; to ask the Hub for it first takes long without a network.
    os.environ["HF_HUB_OFFLINE"] = "1"
    from datasets import load_dataset

    from soubench.builders.shapes.charts import count, draw_histograms

    try:
        splits = load_dataset(args.dataset, "tuple")
    except (FileNotFoundError, ConnectionError, ValueError) as error:
        raise BuildError(
            f"{args.dataset} cannot be loaded; if it is not built, run soubench build "
            f"{args.dataset} first. (A folder ./{args.dataset} would hide a build.) {error}"
        ) from error
    args.out.mkdir(parents=True, exist_ok=True)
    for name, rows in splits.items():
        counts = count(rows["shapes"], (image.width for image in rows["image"]))
        path = args.out / f"{args.dataset}-{name}.png"
        draw_histograms(counts, path, f"{args.dataset}, {name}: {len(rows)} pictures")
        print(path)


def _inspect(args: argparse.Namespace) -> None:
    from soubench.builders.inspection import inspect_source, inspection_text
    from soubench.builders.sources import SOURCES

    if args.source not in SOURCES:
        raise BuildError(f"There is no format {args.source!r}. Expected {', '.join(SOURCES)}.")
    data = inspect_source(
        args.source,
        args.folder.expanduser(),
        args.split or SOURCES[args.source].test_split,
        out=args.out and args.out.expanduser(),
        pictures=args.pictures,
        seed=args.seed,
        small_area_px=args.small_area,
    )
    print(inspection_text(data))


def _verify(args: argparse.Namespace) -> None:
    from soubench.builders.sou.prompts import load_prompts
    from soubench.dataset_scripts.sou_vqa.sou_vqa import verify_sou_vqa

    wrong = 0
    for build in verify_sou_vqa(prompts=load_prompts(args.prompt), pictures=args.pictures):
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


def _export(args: argparse.Namespace) -> None:
    from soubench.builders.publishing.export import export_dataset

    done = export_dataset(
        args.dataset,
        args.folder.expanduser(),
        fingerprint=args.fingerprint,
        pictures=args.pictures,
        have_the_right=args.have_the_right,
    )
    print(
        f"{done['folder']}: {done['rows']} rows, {done['pictures']} pictures, "
        f"{done['parquet_bytes'] / 1e6:.1f} MB, configs {', '.join(done['configs'][:4])}, .."
    )
    if done["withheld"]:
        print(
            f"Without the pictures of {', '.join(done['withheld'])}, which may not be passed on; "
            "whoever has them runs soubench attach."
        )
    print(f'Load it: load_dataset("{done["folder"]}", "{done["configs"][0]}")')


def _attach(args: argparse.Namespace) -> None:
    from soubench.builders.publishing.attach import attach_pictures

    done = attach_pictures(args.folder.expanduser(), args.pictures.expanduser())
    for part, n in done["attached"].items():
        print(f"{part}: {n} pictures attached")
    for part, left in done["left"].items():
        for why, names in left.items():
            if names:
                listed = ", ".join(names[:PROBLEMS_SHOWN])
                print(f"{part}: {len(names)} {why}: {listed}")


def _install_metrics(args: argparse.Namespace) -> None:
    from soubench.builders.publishing.metric_cache import install_metrics

    for folder in install_metrics(args.names or None):
        name = folder.parent.name.removeprefix("evaluate-metric--")
        print(f'evaluate.load("{name}")  {folder}')


def _demo(args: argparse.Namespace) -> None:
    out = args.out
    if out is None:
        home = Path(os.environ.get("HF_HOME") or "~/.cache/huggingface")
        out = home / "soubench-demo"
    out = out.expanduser().resolve()
    # The libraries read these when they are first imported. A cache of its own keeps the demo from
    # taking the place of a sou-vqa that the user has built.
    os.environ["HF_DATASETS_CACHE"] = str(out / "datasets")
    os.environ["HF_MODULES_CACHE"] = str(out / "modules")
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["HF_EVALUATE_OFFLINE"] = "1"
    from soubench import demo

    getattr(demo, DEMOS[args.dataset])(out, pictures=args.pictures, workers=args.workers)
