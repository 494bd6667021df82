"""The ablations of the shapes paper as one command each."""

import argparse
import os
from pathlib import Path

from soubench.builders.errors import TrainError
from soubench.commands import Commands, positive
from soubench.commands.train import add_options, add_overrides, overridden, require_libraries
from soubench.commands.train import train_options as options_of

ABLATIONS = {
    "parts": "train the vision part, the language part, or both (Table S1)",
    "format": "sentences against tuples, with scales of the loss of numbers (Tables S3 and 5)",
}
RECIPE = "shapes-minicpm-v-sentence"
EPILOG = """\
Each variant is trained, asked the test splits, and scored. Stopped in whatever way, the same
command goes on; what is done is not done again. Tables are written after each variant. Variants may
be shared out:

  CUDA_VISIBLE_DEVICES=0 soubench ablate parts --out runs/parts --only both
  CUDA_VISIBLE_DEVICES=1 soubench ablate parts --out runs/parts --only language
  soubench ablate parts --out runs/parts

A training on several GPUs is started by itself, and the ablation goes on from there:

  torchrun --nproc_per_node 8 -m soubench train shapes-minicpm-v-sentence --parts both \\
    --out runs/parts/both/training"""


def add_parser(commands: Commands) -> None:
    """Register ``ablate``."""
    ablate = commands.add_parser(
        "ablate",
        help="train variants of a recipe, and put their scores in the papers' table",
        description="; ".join(f"{name}: {what}" for name, what in ABLATIONS.items()) + ".",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ablate.add_argument("ablation", choices=ABLATIONS)
    ablate.add_argument(
        "recipe", nargs="?", default=RECIPE, help=f"what is varied (default: {RECIPE})"
    )
    ablate.add_argument("--out", metavar="DIR", type=Path, required=True, help="output folder")
    add_overrides(ablate)
    add_options(ablate)
    ablate.add_argument(
        "--only", metavar="VARIANT", nargs="+", default=[], help="run only these variants"
    )
    ablate.add_argument(
        "--splits", metavar="S", nargs="+", help="splits that are asked (default: the papers')"
    )
    ablate.add_argument("--limit", metavar="N", type=positive, help="rows of each split, at most")
    ablate.add_argument(
        "--batch-size", metavar="N", type=positive, default=1, help="rows answered together"
    )
    ablate.add_argument(
        "--published", action="store_true", help="show the paper's figures beside, as a reference"
    )
    ablate.set_defaults(command=_ablate)


def _ablate(args: argparse.Namespace) -> None:
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise TrainError(
            "soubench ablate runs in one process. Start the training of a variant on several with "
            "torchrun (see soubench ablate --help), then this command without it."
        )
    # Our metrics lie in the modules cache; to ask the Hub for them first takes long.
    os.environ.setdefault("HF_EVALUATE_OFFLINE", "1")
    require_libraries()
    from soubench.inference.tables import render_text
    from soubench.inference.training.ablation import (
        AblationOptions,
        chosen_variants,
        run_variant,
        tables_of,
        write_tables,
    )
    from soubench.inference.training.recipe import load_recipe

    recipe = overridden(load_recipe(args.recipe), args)
    options = AblationOptions(
        train=options_of(args, args.out.expanduser().resolve()),
        limit=args.limit,
        batch_size=args.batch_size,
        splits=tuple(args.splits or ()),
    )
    everything = chosen_variants(args.ablation, recipe)
    for variant in chosen_variants(args.ablation, recipe, args.only):
        print(f"{variant.name}: {', '.join(variant.labels)}")
        run_variant(variant, options)
        tables = tables_of(args.ablation, everything, options, published=args.published)
        written = write_tables(tables, options.train.out)
    for table in tables:
        print(f"\n{table.title}\n\n{render_text(table)}")
        for note in table.notes:
            print(note)
    print(f"\nWritten to {options.train.out}: {', '.join(path.name for path in written)}")
