"""Train a recipe: LoRA on layers found by rule, the checkpoint chosen on held-out rows.

In the output folder::

    training.json       everything that fixes the run: recipe, dataset fingerprint, seed, libraries
    checkpoint-N/       TRL's checkpoints; a run that was stopped goes on from the last
    held_out.jsonl      step -> measure on the held-out rows, one line per checkpoint
    merged/             the chosen checkpoint merged into the model, with its processor
    README.md           the card of the trained model
"""

import json
import os
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import transformers
from peft import LoraConfig, PeftModel
from transformers import TrainerCallback
from trl import SFTConfig

from soubench.builders.errors import TrainError, brief
from soubench.inference.backends.pipeline import (
    folder_digest,
    has_system_role,
    is_out_of_memory,
    limit_pixels,
)
from soubench.inference.run_folder import first_difference, write_whole
from soubench.inference.training.judge import judge, measure_of
from soubench.inference.training.lora_targets import lora_targets
from soubench.inference.training.numeric_loss import NumericSFTTrainer
from soubench.inference.training.recipe import Recipe
from soubench.inference.training.rows import TrainingRows, training_rows

SETTINGS_FILE = "training.json"
HELD_OUT_FILE = "held_out.jsonl"
CHECKPOINTS = 10
HELD_OUT_ROWS = 200
MAY_DIFFER = ("libraries",)
"""What need not be the same when a run goes on."""

# Few of the types that transformers declares are those it takes and returns.
hf: Any = transformers


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """What a user may choose besides the recipe.

    Attributes:
        out: Output folder.
        seed: Seed of the data's order and of the LoRA's start.
        save_steps: Steps between checkpoints; None for ten in a run.
        held_out_rows: Held-out rows that each checkpoint is judged on, at most.
        log: ``tensorboard``, ``trackio`` or ``none``.
        merge: Merge the chosen checkpoint into the model at the end.
    """

    out: Path
    seed: int = 0
    save_steps: int | None = None
    held_out_rows: int = HELD_OUT_ROWS
    log: str = "none"
    merge: bool = True


def train(recipe: Recipe, options: TrainOptions) -> dict[str, Any]:
    """Train a recipe, or go on with a run of it that was stopped.

    Started by ``torchrun`` or ``accelerate launch`` it runs on all their processes; the rows of a
    step stay ``effective_batch``, however many they are.

    Args:
        recipe: What to train.
        options: Where, and what else a user may choose.

    Returns:
        ``steps``, ``loss`` (last logged), ``held_out`` (step -> measure), ``chosen`` (step), and
        ``merged`` (folder, or None).

    Raises:
        TrainError: The model, its template, the layers or the dataset do not fit the recipe, the
            folder holds another run, or the device's memory is too small.
        RunError: There is no such dataset, config or split.
    """
    model, processor = _load(recipe)
    rows = training_rows(recipe, system_role=has_system_role(processor), seed=options.seed)
    targets = lora_targets(model, recipe.vision, recipe.language)
    resume = _check_folder(recipe, options, rows, targets)
    _freeze_start(options.seed)
    trainer = NumericSFTTrainer(
        model=model,
        args=_config(recipe, options, len(rows.train)),
        train_dataset=rows.train,
        processing_class=processor,
        peft_config=LoraConfig(
            r=recipe.lora_rank,
            lora_alpha=recipe.lora_alpha,
            lora_dropout=recipe.lora_dropout,
            target_modules=targets,
            task_type="CAUSAL_LM",
        ),
        numeric_scale=recipe.numeric_scale,
    )
    held = rows.held_out.select(range(min(options.held_out_rows, len(rows.held_out))))
    if len(held):
        measure_of(recipe.metric, held)  # said now, not after the first checkpoint
        trainer.add_callback(_Judging(trainer, processor, held, recipe, options.out))
    try:
        trainer.train(resume_from_checkpoint=resume)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise TrainError(
            f"{recipe.name}: the device's memory is too small for per_device_batch = "
            f"{recipe.per_device_batch} and max_pixels = {recipe.max_pixels or 'the processor`s'}. "
            "Lower one of them; effective_batch keeps the step's rows the same."
        ) from error
    logged = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    trainer.accelerator.wait_for_everyone()
    result: dict[str, Any] = {
        "steps": trainer.state.global_step,
        "loss": logged[-1] if logged else None,
        "held_out": held_out_measures(options.out),
        "chosen": _choose(options.out, held, recipe, trainer.state.global_step),
        "merged": None,
    }
    if options.merge and trainer.is_world_process_zero():
        result["merged"] = str(_merge(recipe, options.out, result["chosen"]))
    trainer.accelerator.wait_for_everyone()
    return result


def _load(recipe: Recipe) -> tuple[Any, Any]:
    if not recipe.model:
        raise TrainError(f"recipe {recipe.name}: it names no model; give one with --model.")
    dtype = torch.float32
    if recipe.precision == "bfloat16" and torch.cuda.is_available():
        dtype = torch.bfloat16
    hf.utils.logging.set_verbosity_error()
    try:
        processor = hf.AutoProcessor.from_pretrained(recipe.model)
        model = hf.AutoModelForImageTextToText.from_pretrained(recipe.model, dtype=dtype)
    except (OSError, ValueError, KeyError, ImportError, AttributeError) as error:
        # What transformers raises for a missing, gated or unknown model is not one class.
        raise TrainError(
            f"{recipe.model}: expected a vision-language model that transformers loads without "
            f"remote code. {brief(error, 400)}"
        ) from error
    if getattr(processor, "chat_template", None) is None:
        raise TrainError(
            f"{recipe.model}: the processor has no chat template, so it is not known how a "
            "conversation is written. Save a copy of the model whose processor has one "
            "(processor.chat_template), and give its folder with --model."
        )
    if recipe.max_pixels is not None:
        limit_pixels(processor.image_processor, recipe.max_pixels)
    return model, processor


def _config(recipe: Recipe, options: TrainOptions, n: int) -> Any:  # noqa: ANN401  # trl: no types
    world = int(os.environ.get("WORLD_SIZE", "1"))
    share = recipe.per_device_batch * world
    if recipe.effective_batch % share:
        raise TrainError(
            f"recipe {recipe.name}: effective_batch = {recipe.effective_batch} cannot be shared "
            f"out over {world} processes of per_device_batch = {recipe.per_device_batch}. Change "
            "one of the two."
        )
    steps_per_epoch = max(1, -(-n // recipe.effective_batch))
    total = recipe.max_steps or max(1, round((recipe.epochs or 1) * steps_per_epoch))
    on_gpu = torch.cuda.is_available()
    return SFTConfig(
        output_dir=str(options.out),
        max_steps=recipe.max_steps or -1,
        num_train_epochs=recipe.epochs or 1,
        per_device_train_batch_size=recipe.per_device_batch,
        gradient_accumulation_steps=recipe.effective_batch // share,
        learning_rate=recipe.learning_rate,
        lr_scheduler_type=recipe.scheduler,
        warmup_steps=recipe.warmup,
        adam_beta2=recipe.adam_beta2,
        weight_decay=recipe.weight_decay,
        bf16=recipe.precision == "bfloat16" and on_gpu,
        use_cpu=not on_gpu,
        gradient_checkpointing=on_gpu,
        # Cutting a conversation would cut the places of the pictures.
        max_length=None,
        save_steps=options.save_steps or max(1, total // CHECKPOINTS),
        logging_steps=max(1, min(10, total // CHECKPOINTS)),
        report_to=options.log,
        seed=options.seed,
        data_seed=options.seed,
        disable_tqdm=False,
    )


def _freeze_start(seed: int) -> None:
    """The LoRA is drawn when the trainer is made: the same one for the same seed."""
    hf.set_seed(seed)


def settings(
    recipe: Recipe, options: TrainOptions, rows: TrainingRows, targets: list[str]
) -> dict[str, Any]:
    """Return everything that fixes a run."""
    model = Path(recipe.model)
    return {
        "recipe": asdict(recipe) | {"not_in_paper": dict(recipe.not_in_paper or {})},
        "model_files": folder_digest(model) if model.is_dir() else recipe.model,
        "dataset": {"source": rows.source, "fingerprint": rows.fingerprint},
        "rows": {"train": len(rows.train), "held_out": len(rows.held_out)},
        "seed": options.seed,
        "lora_targets": targets,
        "libraries": {
            name: version(name)
            for name in ("torch", "transformers", "trl", "peft", "accelerate", "datasets")
        },
    }


def _check_folder(
    recipe: Recipe, options: TrainOptions, rows: TrainingRows, targets: list[str]
) -> bool:
    """Write what fixes the run, or check that the folder holds the same; say if it goes on.

    Versions of libraries may differ.
    """
    asked = json.loads(json.dumps(settings(recipe, options, rows, targets)))
    path = options.out / SETTINGS_FILE
    if path.exists():
        try:
            there = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise TrainError(f"{path} cannot be read ({error}). Choose another --out.") from error
        difference = first_difference(there, asked, MAY_DIFFER)
        if difference is not None:
            field, old, new = difference
            raise TrainError(
                f"{options.out} holds another run: {field} was {old!r:.80} there and is "
                f"{new!r:.80} now. Choose another --out, or go back to what that run was started "
                "with."
            )
        return any(options.out.glob("checkpoint-*"))
    if options.out.exists() and any(options.out.iterdir()):
        raise TrainError(f"{options.out} is not empty and holds no run. Choose another --out.")
    if int(os.environ.get("RANK", "0")) == 0:
        options.out.mkdir(parents=True, exist_ok=True)
        write_whole(path, asked)
    return False


class _Judging(TrainerCallback):
    """Judges every checkpoint on the held-out rows, on the first process, while others wait."""

    def __init__(
        self,
        trainer: Any,  # noqa: ANN401
        processor: Any,  # noqa: ANN401
        rows: Any,  # noqa: ANN401
        recipe: Recipe,
        out: Path,
    ) -> None:
        self._trainer, self._processor = trainer, processor
        self._rows, self._recipe, self._out = rows, recipe, out

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ANN401
        done = held_out_measures(self._out)
        if state.is_world_process_zero and state.global_step not in done:
            model = self._trainer.accelerator.unwrap_model(self._trainer.model)
            # Sampling of the data goes on as if no one had looked.
            drawn = torch.get_rng_state()
            value = judge(model, self._processor, self._rows, self._recipe)
            torch.set_rng_state(drawn)
            name = measure_of(self._recipe.metric, self._rows).name
            line = {"step": state.global_step, name: value}
            with (self._out / HELD_OUT_FILE).open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        self._trainer.accelerator.wait_for_everyone()


def held_out_measures(out: Path) -> dict[int, float]:
    """Return step -> measure of the checkpoints that were judged."""
    path = out / HELD_OUT_FILE
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    found = {}
    for line in lines:
        entry = json.loads(line)
        step = entry.pop("step")
        (found[int(step)],) = entry.values()
    return found


def _choose(out: Path, held: Any, recipe: Recipe, last: int) -> int:  # noqa: ANN401
    """Return the step of the best checkpoint; of equal ones the earliest, the last without any."""
    measures = {s: v for s, v in held_out_measures(out).items() if _checkpoint(out, s).is_dir()}
    if not measures:
        return last
    sign = -1 if measure_of(recipe.metric, held).is_error else 1
    return max(sorted(measures), key=lambda step: sign * measures[step])


def _checkpoint(out: Path, step: int) -> Path:
    return out / f"checkpoint-{step}"


def _merge(recipe: Recipe, out: Path, step: int) -> Path:
    """Merge a checkpoint into the model and save it whole, or not at all."""
    model, processor = _load(recipe)
    merged = PeftModel.from_pretrained(model, str(_checkpoint(out, step))).merge_and_unload()
    incomplete, folder = out / "merged.incomplete", out / "merged"
    merged.save_pretrained(incomplete)
    processor.save_pretrained(incomplete)
    if folder.exists():
        folder.rename(out / f"merged.replaced-{os.getpid()}")
    incomplete.rename(folder)
    return folder


def with_overrides(recipe: Recipe, **given: Any) -> Recipe:  # noqa: ANN401  # any setting
    """Return a recipe with other settings, those that are not None."""
    changes = {key: value for key, value in given.items() if value is not None}
    if "max_steps" in changes:
        changes["epochs"] = None
    return replace(recipe, **changes)
