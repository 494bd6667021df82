"""Train a recipe: LoRA on layers found by rule, the checkpoint chosen on held-out rows.

In the output folder::

    training.json       everything that fixes the run: recipe, dataset fingerprint, seed, libraries
    checkpoint-N/       TRL's checkpoints; a run that was stopped goes on from the last
    held_out.json       step -> measures of the checkpoint on the held-out rows; step 0: untrained
    merged/             the chosen checkpoint merged into the model, with its processor
    README.md           the card of the trained model; also in merged/
    result.json         what came of it; where it is, the run is finished
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from math import inf
from pathlib import Path
from shutil import rmtree
from typing import Any

import PIL.Image
import torch
import transformers
from peft import LoraConfig, PeftModel, load_peft_weights, set_peft_model_state_dict
from transformers import TrainerCallback, TrainerState
from transformers.trainer import TRAINER_STATE_NAME
from trl import SFTConfig

from soubench.builders.errors import TrainError, brief
from soubench.inference.backends.pipeline import (
    folder_digest,
    is_out_of_memory,
    limit_pixels,
)
from soubench.inference.chat_templates import ensure_chat_template, has_system_role
from soubench.inference.dataset_rows import open_rows
from soubench.inference.model_card import save_card
from soubench.inference.run_folder import first_difference, taken, write_whole
from soubench.inference.scores import Measure
from soubench.inference.training.card import make_training_card
from soubench.inference.training.judge import Measures, judge, measure_of
from soubench.inference.training.lora_targets import lora_targets
from soubench.inference.training.numeric_loss import NumericSFTTrainer
from soubench.inference.training.prefix_collator import PREFIX_ATTENTION, PrefixCollator
from soubench.inference.training.recipe import Recipe
from soubench.inference.training.rows import (
    TrainingRows,
    check_conversations,
    training_rows,
)

SETTINGS_FILE = "training.json"
HELD_OUT_FILE = "held_out.json"
RESULT_FILE = "result.json"
MERGED = "merged"
CARD_FILE = "README.md"
CHECKPOINTS = 10
DATALOADER_NUM_WORKERS = 4
HELD_OUT_ROWS = 200
DEFAULTS = ("optim", "adam_beta1", "adam_epsilon", "max_grad_norm")
"""What no recipe sets."""
MAY_DIFFER = ("libraries",)
"""What need not be the same when a run goes on."""
JUDGING_TIMEOUT_S = 24 * 3600
"""So long other processes wait while the first one judges a checkpoint."""

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
        report_to: ``tensorboard``, ``trackio`` or ``none``.
        merge: Merge the chosen checkpoint into the model at the end.
        dataloader_num_workers: Processes that decode and scale pictures, per device; None for as
            many as Table 7 of SOUBench has beside a GPU, and none beside a model that needs the
            processor's cores itself. It changes nothing about the result.
    """

    out: Path
    seed: int = 0
    save_steps: int | None = None
    held_out_rows: int = HELD_OUT_ROWS
    report_to: str = "none"
    merge: bool = True
    dataloader_num_workers: int | None = None


def train(recipe: Recipe, options: TrainOptions) -> dict[str, Any]:
    """Train a recipe, or go on with a run of it that was stopped.

    Started by ``torchrun`` or ``accelerate launch`` it runs on all their processes; the rows of a
    step stay ``effective_batch``, however many they are.

    Args:
        recipe: What to train.
        options: Where, and what else a user may choose.

    Returns:
        ``steps``, ``loss`` (last logged), ``held_out`` (step -> measures), ``held_out_rows``
        (how many are judged), ``measure`` (the one that chooses), ``chosen`` (step), and ``merged``
        (folder, or None).

    Raises:
        TrainError: The model, its template, the layers or the dataset do not fit the recipe, the
            folder holds another run, or the device's memory is too small.
        RunError: There is no such dataset, config or split, or another run is in the folder.
        PictureError: A picture cannot be decoded.
    """
    _check_report_to(options.report_to)
    processor, has_limit = _load_processor(recipe)
    if not has_limit:
        # It makes all pictures of one size, whatever they had.
        recipe = replace(recipe, max_pixels=None)
    rows = training_rows(recipe, system_role=has_system_role(processor), seed=options.seed)
    kind = _from_pretrained(hf.AutoConfig, recipe).model_type
    prefix = PrefixCollator(processor) if kind in PREFIX_ATTENTION else None
    for part in (rows.train, rows.held_out):
        check_conversations(part, processor, takes_turns=prefix is None)
    described = settings(recipe, options, rows)
    _check_folder(options.out, described, (*MAY_DIFFER, "lora_targets"))
    done = _finished(options)
    if done is not None:
        return done
    held = rows.held_out.select(range(min(options.held_out_rows, len(rows.held_out))))
    # Said now, not after the first checkpoint.
    measure = measure_of(recipe.metric, held) if len(held) else None
    config = _config(recipe, options, len(rows.train))
    model = _load_model(recipe)
    targets = lora_targets(model, recipe.vision, recipe.language)
    described["lora_targets"] = targets
    _check_folder(options.out, described, MAY_DIFFER)
    _write_settings(options.out, described)
    with _locked(options.out), _explained(recipe):
        # The LoRA is drawn when the trainer is made: the same one for the same seed.
        hf.set_seed(options.seed)
        trainer = NumericSFTTrainer(
            model=model,
            args=config,
            train_dataset=rows.train,
            processing_class=processor,
            data_collator=prefix,
            peft_config=LoraConfig(
                r=recipe.lora_rank,
                lora_alpha=recipe.lora_alpha,
                lora_dropout=recipe.lora_dropout,
                target_modules=targets,
                task_type="CAUSAL_LM",
            ),
            numeric_scale=recipe.numeric_scale,
        )
        checkpoints = _checkpoints(options.out)
        if measure is not None:
            judging = _Judging(trainer, processor, held, recipe, options.out)
            judging.catch_up(checkpoints)
            trainer.add_callback(judging)
        last = checkpoints[-1] if checkpoints else None
        if last is not None and last.is_the_end:
            # The trainer would go one step beyond it.
            trainer.state = last.state
        else:
            trainer.train(resume_from_checkpoint=None if last is None else str(last.folder))
        logged = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        trainer.accelerator.wait_for_everyone()
        result: dict[str, Any] = {
            "steps": trainer.state.global_step,
            "loss": logged[-1] if logged else None,
            "held_out": held_out_measures(options.out),
            "held_out_rows": len(held),
            "dtype": str(model.dtype).removeprefix("torch."),
            "processes": trainer.accelerator.num_processes,
            "defaults": {name: config.to_dict()[name] for name in DEFAULTS},
            "measure": None if measure is None else measure.name,
            "chosen": _choose(options.out, measure, trainer.state.global_step),
            "merged": str(options.out / MERGED) if options.merge else None,
        }
        if trainer.is_world_process_zero():
            if options.merge:
                _merge(recipe, options.out, result["chosen"])
            card = make_training_card(described, result)
            save_card(card, options.out / CARD_FILE)
            if options.merge:
                save_card(card, options.out / MERGED / CARD_FILE)
            write_whole(options.out / RESULT_FILE, result)
        trainer.accelerator.wait_for_everyone()
        return result


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Keep a folder to this run; the first process stands for all."""
    if int(os.environ.get("RANK", "0")):
        yield
        return
    lock = taken(out, "choose another --out")
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _explained(recipe: Recipe) -> Iterator[None]:
    """Turn what libraries raise of pictures and of memory into what a user can do about it."""
    try:
        yield
    except (OSError, SyntaxError, PIL.Image.DecompressionBombError):
        # What Pillow raises for a damaged file does not say whose it is.
        open_rows(recipe.dataset, recipe.config, recipe.split).refuse_broken_pictures()
        raise
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise TrainError(
            f"{recipe.name}: the device's memory is too small for per_device_batch = "
            f"{recipe.per_device_batch} and max_pixels = {recipe.max_pixels or '(not set)'}. "
            "Lower one of them (effective_batch keeps the step's rows the same), lower "
            "max_new_tokens if it was held-out rows that were judged, or choose a smaller model."
        ) from error


def _check_report_to(name: str) -> None:
    found = None if name == "none" else find_spec(name)
    # A folder of that name in the current one is no library.
    if name != "none" and (found is None or found.origin is None):
        raise TrainError(
            f'--report-to {name} needs more than is installed: pip install "soubench[{name}]".'
        )


def _finished(options: TrainOptions) -> dict[str, Any] | None:
    """Return what came of a run of the same settings that has nothing left to do."""
    path = options.out / RESULT_FILE
    if not path.is_file():
        return None
    try:
        result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        result["held_out"] = {int(step): value for step, value in result["held_out"].items()}
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise TrainError(f"{path} cannot be read ({error}). Remove it to go on.") from error
    if not options.merge:
        return result
    # The folder may have been moved since.
    result["merged"] = str(options.out / MERGED)
    return result if (options.out / MERGED).is_dir() else None


def _from_pretrained(kind: Any, recipe: Recipe, **options: Any) -> Any:  # noqa: ANN401  # transformers: no types
    if not recipe.model:
        raise TrainError(f"recipe {recipe.name}: it names no model; give one with --model.")
    hf.utils.logging.set_verbosity_error()
    try:
        return kind.from_pretrained(recipe.model, **options)
    except (OSError, ValueError, KeyError, ImportError, AttributeError) as error:
        # What transformers raises for a missing, gated or unknown model is not one class.
        raise TrainError(
            f"{recipe.model}: expected a vision-language model that transformers loads without "
            f"remote code. Choose another with --model. {brief(error, 400)}"
        ) from error


def _load_processor(recipe: Recipe) -> tuple[Any, bool]:
    """Return the processor, with the recipe's limit of pixels if it has such a thing."""
    processor = _from_pretrained(hf.AutoProcessor, recipe)
    if not ensure_chat_template(processor):
        raise TrainError(
            f"{recipe.model}: the processor has no chat template, so it is not known how a "
            "conversation is written. Save a copy of the model whose processor has one "
            "(processor.chat_template), and give its folder with --model."
        )
    if recipe.max_pixels is None:
        return processor, True
    return processor, limit_pixels(processor.image_processor, recipe.max_pixels)


def _load_model(recipe: Recipe) -> Any:  # noqa: ANN401
    dtype = torch.float32
    if recipe.precision == "bfloat16" and torch.cuda.is_available():
        dtype = torch.bfloat16
    return _from_pretrained(hf.AutoModelForImageTextToText, recipe, dtype=dtype)


def _config(recipe: Recipe, options: TrainOptions, n: int) -> Any:  # noqa: ANN401  # trl: no types
    world = int(os.environ.get("WORLD_SIZE", "1"))
    share = recipe.per_device_batch * world
    if recipe.effective_batch % share:
        raise TrainError(
            f"recipe {recipe.name}: effective_batch = {recipe.effective_batch} cannot be shared "
            f"out over {world} processes of per_device_batch = {recipe.per_device_batch}. Change "
            "one of the two."
        )
    if torch.cuda.device_count() > 1 and world == 1:
        raise TrainError(
            f"there are {torch.cuda.device_count()} GPUs and one process. Start one process per "
            "GPU (torchrun --nproc_per_node N -m soubench train ..), or let it see one GPU "
            "(CUDA_VISIBLE_DEVICES=0)."
        )
    if recipe.held_out and _is_sharded():
        raise TrainError(
            "FSDP and ZeRO-3 divide the model among the processes, and judging held-out rows asks "
            "the whole of it. Set held_out = 0 in the recipe, or share rows only (torchrun, "
            "accelerate launch --multi_gpu, ZeRO-1 or 2)."
        )
    steps_per_epoch = max(1, -(-n // recipe.effective_batch))
    total = recipe.max_steps or max(1, round((recipe.epochs or 1) * steps_per_epoch))
    on_gpu = torch.cuda.is_available()
    workers = options.dataloader_num_workers
    if workers is None:
        workers = DATALOADER_NUM_WORKERS if on_gpu else 0
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
        report_to=options.report_to,
        dataloader_num_workers=workers,
        ddp_timeout=JUDGING_TIMEOUT_S,
        seed=options.seed,
        data_seed=options.seed,
        disable_tqdm=False,
    )


def _is_sharded() -> bool:
    """Say whether ``accelerate launch`` was told to divide the model."""
    told = os.environ.get
    zero_3 = told("ACCELERATE_DEEPSPEED_ZERO_STAGE") == "3"
    return told("ACCELERATE_USE_FSDP", "").lower() == "true" or (
        told("ACCELERATE_USE_DEEPSPEED", "").lower() == "true" and zero_3
    )


def settings(recipe: Recipe, options: TrainOptions, rows: TrainingRows) -> dict[str, Any]:
    """Return everything that fixes a run, the layers of the LoRA aside."""
    model = Path(recipe.model)
    described = {
        "recipe": asdict(recipe) | {"not_in_paper": dict(recipe.not_in_paper or {})},
        "model_files": folder_digest(model) if model.is_dir() else recipe.model,
        "dataset": {"source": rows.source, "fingerprint": rows.fingerprint},
        "rows": {"train": len(rows.train), "held_out": len(rows.held_out)},
        "seed": options.seed,
        "held_out_rows": options.held_out_rows,
        "libraries": {
            name: version(name)
            for name in ("torch", "transformers", "trl", "peft", "accelerate", "datasets")
        },
    }
    # As it is read back from the file: lists, no tuples.
    read_back: dict[str, Any] = json.loads(json.dumps(described))
    return read_back


def _check_folder(out: Path, described: dict[str, Any], may_differ: tuple[str, ...]) -> None:
    """Check that the folder is new, or holds a run of the same settings."""
    path = out / SETTINGS_FILE
    if not path.exists():
        # Another process of this run may be writing the settings right now.
        known = f"{SETTINGS_FILE}.incomplete"
        if out.exists() and any(entry.name != known for entry in out.iterdir()):
            raise TrainError(f"{out} is not empty and holds no run. Choose another --out.")
        return
    try:
        there = dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise TrainError(f"{path} cannot be read ({error}). Choose another --out.") from error
    difference = first_difference(there, described, may_differ)
    if difference is not None:
        field, old, new = difference
        raise TrainError(
            f"{out} holds another run: {field} was {old!r:.80} there and is {new!r:.80} now. "
            "Choose another --out, or go back to what that run was started with."
        )


def _write_settings(out: Path, described: dict[str, Any]) -> None:
    if int(os.environ.get("RANK", "0")) == 0 and not (out / SETTINGS_FILE).exists():
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / SETTINGS_FILE, described)


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

    def catch_up(self, checkpoints: Sequence["_Checkpoint"]) -> None:
        """Judge the model as it came, and checkpoints that a run was stopped before judging."""
        # Before the first wait, so that all processes find the same.
        judged = held_out_measures(self._out)
        # DeepSpeed would move it when the training begins.
        self._trainer.model.to(self._trainer.args.device)
        # The LoRA adds nothing yet.
        self.judge(0)
        for checkpoint in checkpoints:
            if checkpoint.step not in judged:
                weights = load_peft_weights(str(checkpoint.folder))
                set_peft_model_state_dict(self._trainer.model, weights)
                self.judge(checkpoint.step)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ANN401
        self.judge(state.global_step)

    def judge(self, step: int) -> None:
        """Judge the model at a step, if it was not yet."""
        judged = held_out_measures(self._out)
        if self._trainer.is_world_process_zero() and step not in judged:
            model = self._trainer.accelerator.unwrap_model(self._trainer.model).get_base_model()
            # Sampling of the data goes on as if no one had looked.
            drawn = torch.get_rng_state()
            measures = judge(model, self._processor, self._rows, self._recipe)
            torch.set_rng_state(drawn)
            judged[step] = measures
            write_whole(self._out / HELD_OUT_FILE, {str(s): judged[s] for s in judged})
        self._trainer.accelerator.wait_for_everyone()


def held_out_measures(out: Path) -> dict[int, Measures]:
    """Return step -> measures of what was judged; step 0 is the model as it came."""
    path = out / HELD_OUT_FILE
    if not path.is_file():
        return {}
    try:
        judged = json.loads(path.read_text(encoding="utf-8"))
        return {int(step): dict(measures) for step, measures in judged.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise TrainError(
            f"{path} cannot be read ({error}). Remove it: all checkpoints are judged again."
        ) from error


def _choose(out: Path, measure: Measure | None, last: int) -> int:
    """Return the step of the best checkpoint; of equal ones the earliest, the last without any."""
    judged = held_out_measures(out)
    steps = sorted(step for step in judged if _checkpoint(out, step).is_dir())
    if measure is None or not steps:
        return last
    sign = -1 if measure.is_error else 1

    def goodness(step: int) -> float:
        value = judged[step][measure.name]
        return -inf if value is None else sign * value

    return max(steps, key=goodness)


def _checkpoint(out: Path, step: int) -> Path:
    return out / f"checkpoint-{step}"


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """A checkpoint that was written to its end."""

    folder: Path
    state: TrainerState

    @property
    def step(self) -> int:
        return int(self.state.global_step)

    @property
    def is_the_end(self) -> bool:
        return self.step >= int(self.state.max_steps)


def _checkpoints(out: Path) -> list[_Checkpoint]:
    """Return the checkpoints that are there, in their order."""
    complete = []
    for path in out.glob("checkpoint-*"):
        try:
            # Written last.
            state = TrainerState.load_from_json(str(path / TRAINER_STATE_NAME))
        except (OSError, ValueError, TypeError):
            continue
        complete.append(_Checkpoint(path, state))
    return sorted(complete, key=lambda one: one.step)


def _merge(recipe: Recipe, out: Path, step: int) -> None:
    """Merge a checkpoint into the model and save it whole, or not at all."""
    model, (processor, _) = _load_model(recipe), _load_processor(recipe)
    merged = PeftModel.from_pretrained(model, str(_checkpoint(out, step))).merge_and_unload()
    incomplete = out / f"{MERGED}.incomplete"
    # Left by a run that was stopped here.
    for folder in (incomplete, out / MERGED):
        if folder.exists():
            rmtree(folder)
    merged.save_pretrained(incomplete)
    processor.save_pretrained(incomplete)
    incomplete.rename(out / MERGED)
