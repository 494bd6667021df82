"""Build rrs."""

import argparse
from importlib.resources import files
from pathlib import Path

from soubench.commands import Commands, pairs, positive
from soubench.commands.build.common import add_common, add_max_pixels, print_built


def add_parser(datasets: Commands) -> None:
    """Register ``build rrs``."""
    build = datasets.add_parser("rrs", help="rare remote sensing: 20 tasks from records or labels")
    build.add_argument(
        "--records",
        metavar="FILE_OR_DIR",
        type=Path,
        help="records of pictures and what is known of them (see --print-schema)",
    )
    build.add_argument(
        "--print-schema",
        action=_PrintSchema,
        nargs=0,
        help="print the format of a record as a JSON Schema, and exit",
    )
    build.add_argument(
        "--source",
        metavar="FORMAT=DIR",
        action="append",
        default=[],
        help="a label set, such as dota=DIR or coco=DIR; once per set",
    )
    build.add_argument(
        "--split",
        metavar="FORMAT=SPLIT",
        action="append",
        default=[],
        help="read another split of a label set than its usual one",
    )
    build.add_argument(
        "--north-up", action="store_true", help="north is at the top of all pictures of label sets"
    )
    build.add_argument(
        "--gsd",
        metavar="FORMAT=METRES",
        action="append",
        default=[],
        help="m per px of a label set whose labels do not say: distances and areas need it",
    )
    build.add_argument(
        "--distractors",
        choices=("sdfs", "random"),
        default="sdfs",
        help="filter wrong options by CLIP, or draw them at random (default: sdfs)",
    )
    build.add_argument(
        "--clip",
        metavar="MODEL",
        help="name or folder of a CLIP model (default: openai/clip-vit-base-patch32)",
    )
    build.add_argument(
        "--similarities",
        metavar="FILE",
        type=Path,
        help="similarities.json of an earlier build, instead of a model",
    )
    build.add_argument(
        "--ways",
        metavar="N",
        type=positive,
        default=4,
        help="options of a multiple-choice question, 2 to 5 (default: 4)",
    )
    build.add_argument("--pools", metavar="FILE", type=Path, help="a TOML file of further options")
    build.add_argument(
        "--hide-evidence",
        action="store_true",
        help="let occlusion hide what the answer rests on, too",
    )
    build.add_argument("--strict", action="store_true", help="stop at the first bad record")
    build.add_argument("--limit", metavar="N", type=positive, help="records, and pictures per set")
    add_common(build)
    add_max_pixels(build)
    build.set_defaults(command=_build)


class _PrintSchema(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from soubench.builders.rrs.record import SCHEMA_FILE

        print((files("soubench.builders.rrs") / SCHEMA_FILE).read_text(encoding="utf-8"), end="")
        parser.exit()


def _build(args: argparse.Namespace) -> None:
    roots = pairs("--source", args.source, "dota=DIR")
    splits = pairs("--split", args.split, "dota=train")
    metres = pairs("--gsd", args.gsd, "coco=0.5")

    from soubench.builders.errors import BuildError
    from soubench.builders.images import MAX_PICTURE_PX
    from soubench.builders.rrs.build import RrsOptions, SourceFolder
    from soubench.builders.rrs.clip import DEFAULT_MODEL
    from soubench.builders.rrs.prompts import load_prompts
    from soubench.builders.sources import SOURCES
    from soubench.dataset_scripts.rrs.rrs import build_rrs_dataset, report_text

    stray = [name for name in (*roots, *splits) if name not in SOURCES or name not in roots]
    if stray:
        raise BuildError(
            f"--source and --split expect any of {', '.join(SOURCES)}, and --split only what "
            f"--source names; got {stray[0]!r}."
        )
    if args.distractors == "random" and (args.clip or args.similarities):
        raise BuildError("--clip and --similarities go with --distractors sdfs.")
    if args.clip and args.similarities:
        raise BuildError(
            "--clip computes similarities and --similarities takes those of an earlier build: give "
            "one of the two."
        )
    folders = {
        name: SourceFolder(Path(root).expanduser(), splits.get(name, SOURCES[name].test_split))
        for name, root in roots.items()
    }
    options = RrsOptions(
        seed=args.seed,
        distractors=args.distractors,
        clip=args.clip or DEFAULT_MODEL,
        similarities=args.similarities and args.similarities.expanduser(),
        ways=args.ways,
        strict=args.strict,
        limit=args.limit,
        north_up=args.north_up,
        gsd_m={name: _number(name, text) for name, text in metres.items()},
        hide_evidence=args.hide_evidence,
        pools=args.pools and args.pools.expanduser(),
        workers=args.workers,
        max_pixels=args.max_pixels or MAX_PICTURE_PX,
        prompts=load_prompts(args.prompt),
    )
    report = build_rrs_dataset(args.records and args.records.expanduser(), folders, options)
    print(report_text(report))
    print_built(report)
    print(f'Load it from any folder: load_dataset("rrs", "all"); configs: {_listed(report)}')


def _number(name: str, text: str) -> float:
    from soubench.builders.errors import BuildError

    try:
        return float(text)
    except ValueError as error:
        raise BuildError(
            f"--gsd {name}= expects the m per px, such as 0.5; got {text!r}."
        ) from error


def _listed(report: dict[str, list[str]]) -> str:
    return ", ".join(report["configs"])
