"""Fine-tune a model by one of the papers' recipes, or one of the user's own."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from soubench.builders.errors import TrainError
from soubench.commands import Commands, not_negative, positive

if TYPE_CHECKING:
    from soubench.inference.training.recipe import Recipe
    from soubench.inference.training.train import TrainOptions

EPILOG = """\
On several GPUs or machines the same command is started by a launcher; the rows of a step stay
effective_batch, however many processes share them:

  torchrun --nproc_per_node 8 -m soubench train sou-train-driving --out runs/driving
  torchrun --nnodes 4 --nproc_per_node 8 --rdzv_backend c10d --rdzv_endpoint HEAD:29500 \\
    -m soubench train shapes-qwen2-vl-7b-sentence --out /shared/runs/qwen
  accelerate launch --multi_gpu --num_processes 8 -m soubench train sou-train-driving \\
    --out runs/driving

The folder then holds README.md, the card of the model, and merged/, which soubench predict takes as
--model."""


def add_parser(commands: Commands) -> None:
    """Register ``train``."""
    train = commands.add_parser(
        "train",
        help="fine-tune a model with LoRA by a recipe",
        description="Fine-tune a model with LoRA by a recipe of the papers, or one of your own in "
        "TOML. Stopped in whatever way, the same command goes on from the last checkpoint.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    train.add_argument("recipe", nargs="?", help="name of a recipe, or a TOML file")
    train.add_argument("--list", action="store_true", help="name the recipes")
    train.add_argument("--show", action="store_true", help="show the settings of the recipe")
    train.add_argument("--out", metavar="DIR", type=Path, help="output folder (needed)")
    add_overrides(train)
    train.add_argument("--config", metavar="C", help="another config of the dataset")
    train.add_argument(
        "--parts", choices=("vision", "language", "both"), help="train only this part"
    )
    train.add_argument("--numeric-scale", metavar="X", type=float, help="loss of numbers times X")
    add_options(train)
    train.add_argument("--no-merge", dest="merge", action="store_false", help="keep the LoRA apart")
    train.set_defaults(command=_train)


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """Add the flags that take the place of a recipe's settings."""
    parser.add_argument("--model", help="another model than the recipe's: Hub id or folder")
    parser.add_argument("--dataset", help="another dataset: name, folder or Hub id")
    parser.add_argument("--max-steps", metavar="N", type=positive, help="train only so long")
    parser.add_argument("--per-device-batch", metavar="N", type=positive, help="rows at a time")
    parser.add_argument("--effective-batch", metavar="N", type=positive, help="rows of a step")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the flags of how a training is run."""
    parser.add_argument("--save-steps", metavar="N", type=positive, help="steps per checkpoint")
    parser.add_argument(
        "--held-out-rows",
        metavar="N",
        type=positive,
        default=200,
        help="rows that each checkpoint is judged on, at most (default: 200)",
    )
    parser.add_argument("--seed", type=_seed, default=0)
    parser.add_argument(
        "--dataloader-num-workers",
        metavar="N",
        type=not_negative,
        help="processes that decode pictures, per device (default: 4 with a GPU, else 0)",
    )
    parser.add_argument(
        "--report-to",
        choices=("tensorboard", "trackio", "none"),
        default="none",
        help="where losses are logged (default: none)",
    )


def _seed(text: str) -> int:
    """Read a number that the random generators of all libraries take."""
    seed = not_negative(text)
    if seed >= 1 << 32:
        raise argparse.ArgumentTypeError(f"expected a number below 2^32, got {text}")
    return seed


def _train(args: argparse.Namespace) -> None:
    from soubench.inference.training.recipe import load_recipe

    if args.list:
        _list()
        return
    if args.recipe is None:
        raise TrainError("Which recipe? soubench train --list names them.")
    recipe = overridden(load_recipe(args.recipe), args)
    recipe = recipe.changed(config=args.config, numeric_scale=args.numeric_scale)
    if args.parts:
        recipe = recipe.training(args.parts)
    if args.show:
        _show(recipe)
        return
    if args.out is None:
        raise TrainError("Where to? Give --out DIR.")
    require_libraries()
    from soubench.inference.training.train import train

    result = train(recipe, train_options(args, args.out.expanduser().resolve(), merge=args.merge))
    if int(os.environ.get("RANK", "0")) == 0:
        for step, measures in result["held_out"].items():
            value = measures[result["measure"]]
            shown = "-" if value is None else f"{value:.4f}"
            mark = "  <- chosen" if step == result["chosen"] else ""
            mark = "  (before training)" if step == 0 else mark
            print(f"step {step}: {result['measure']} {shown} on held-out rows{mark}")
        if not result["held_out"]:
            print("Nothing is held out (held_out = 0, or one group): the last checkpoint counts")
        print(f"{result['steps']} steps; checkpoint {result['chosen']} is chosen")
        if result["merged"]:
            print(f"Merged model: {result['merged']}")


def require_libraries() -> None:
    """Import what training needs, or say what to install.

    Raises:
        TrainError: A library is missing.
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        import soubench.inference.training.train  # noqa: F401  # whether it can be
    except ImportError as error:
        raise TrainError(
            f'training needs more than is installed: pip install "soubench[train]". ({error})'
        ) from error


def overridden(recipe: "Recipe", args: argparse.Namespace) -> "Recipe":
    """Return a recipe with the settings that were given as flags."""
    return recipe.changed(
        model=args.model,
        dataset=args.dataset,
        max_steps=args.max_steps,
        per_device_batch=args.per_device_batch,
        effective_batch=args.effective_batch,
    )


def train_options(args: argparse.Namespace, out: Path, *, merge: bool = True) -> "TrainOptions":
    """Return the options that were given as flags."""
    from soubench.inference.training.train import TrainOptions

    return TrainOptions(
        out=out,
        seed=args.seed,
        save_steps=args.save_steps,
        held_out_rows=args.held_out_rows,
        report_to=args.report_to,
        merge=merge,
        dataloader_num_workers=args.dataloader_num_workers,
    )


def _list() -> None:
    from soubench.inference.training.recipe import load_recipe, recipe_names, unavailable

    for name in recipe_names():
        recipe = load_recipe(name)
        length = f"{recipe.max_steps} steps" if recipe.max_steps else f"{recipe.epochs:g} epochs"
        scale = f", numbers x {recipe.numeric_scale:g}" if recipe.numeric_scale != 1 else ""
        print(f"{name:<34}{recipe.dataset}, {recipe.config}; {recipe.model}; {length}{scale}")
    for model, why in unavailable().items():
        print(f"not trainable here: {model}: {why}")


def _show(recipe: object) -> None:
    import json
    from dataclasses import asdict

    settings = asdict(recipe)  # type: ignore[call-overload]  # a Recipe; imported when it runs
    reasons = settings.pop("not_in_paper") or {}
    settings.pop("name")
    for key, value in settings.items():
        if value is None:
            continue
        why = f"    # not in the paper: {reasons[key]}" if key in reasons else ""
        # Numbers, texts and lists are written alike in JSON and TOML.
        print(f"{key} = {json.dumps(value, ensure_ascii=False)}{why}")
