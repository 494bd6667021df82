"""What the files for trainers have in common: conversations, pictures, and a recipe's settings."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped]  # PyYAML ships no types

from soubench.builders.errors import TrainError
from soubench.builders.publishing.quiet import quiet_datasets
from soubench.inference.chat import pictures_of
from soubench.inference.dataset_rows import LoadedRows
from soubench.inference.exports.folder import Pictures
from soubench.inference.questions import PICTURE_COLUMNS
from soubench.inference.training.lora_targets import KINDS, PROJECTOR_WORDS, VISION_WORDS
from soubench.inference.training.recipe import (
    Recipe,
    load_recipe,
    recipe_names,
    refuse_test_split,
)
from soubench.inference.training.rows import training_rows

PLACE = "<image>"
"""Where LLaMA-Factory and ms-swift put a picture."""
EVERY = 500
"""Steps between checkpoints."""
EVERY_WHY = "the trainer's default"
CUTOFF = 8192
CUTOFF_WHY = "must exceed the tokens of the largest picture, about 4100"


@dataclass(frozen=True, slots=True)
class Training:
    """What is exported for a trainer.

    Attributes:
        loaded: The rows as they were opened.
        recipe: The recipe, for these rows.
        train: Rows with pictures, ``id``, ``prompt`` and ``completion``.
        held_out: The same of the rows that ``soubench train`` chooses a checkpoint on.
    """

    loaded: LoadedRows
    recipe: Recipe
    train: LoadedRows
    held_out: LoadedRows

    @property
    def readme(self) -> dict[str, str]:
        """What the READMEs of all trainers say of the rows and the recipe."""
        reasons = [f"- {key}: {why}." for key, why in (self.recipe.not_in_paper or {}).items()]
        if self.recipe.substitute_for:
            reasons.append(f"- {self.recipe.model} stands in for {self.recipe.substitute_for}.")
        return {
            "recipe": self.recipe.name,
            "model": self.recipe.model,
            "train_rows": f"{len(self.train.rows):,}",
            "held_out_rows": f"{len(self.held_out.rows):,}",
            "reasons": "\n".join(reasons) or "Nothing.",
        }


class Setting(NamedTuple):
    """A line of a trainer's file.

    Attributes:
        key: Its name there.
        value: A scalar or a list.
        of: The recipe's setting that it comes from; empty if it is the trainer's own.
        note: What to say of it instead of the recipe's reason.
    """

    key: str
    value: Any
    of: str = ""
    note: str = ""


def prepare(loaded: LoadedRows, recipe: str | None) -> Training:
    """Choose the recipe and divide the rows as ``soubench train`` does.

    Args:
        loaded: The rows.
        recipe: Name or TOML file; None for the first one for this dataset and config.

    Raises:
        TrainError: No recipe is for these rows, they cannot be trained on, or are for tests.
    """
    refuse_test_split(loaded.name, loaded.split)
    chosen = load_recipe(recipe) if recipe else _recipe_for(loaded)
    chosen = replace(chosen, dataset=loaded.source, config=loaded.config, split=loaded.split)
    with quiet_datasets():
        rows = training_rows(chosen, system_role=True)
        train = rows.train
        if "image_id" in loaded.rows.column_names:
            ids = dict(zip(loaded.rows["id"], loaded.rows["image_id"], strict=True))
            train = train.add_column("image_id", [ids[row_id] for row_id in train["id"]])
    return Training(
        loaded,
        chosen,
        replace(loaded, rows=train, split="train"),
        replace(
            loaded,
            rows=rows.held_out.select_columns(list(train.column_names)),
            split="validation",
        ),
    )


def refuse_numeric_scale(recipe: Recipe, tool: str) -> None:
    """Refuse a recipe that scales the loss of numeric tokens.

    Raises:
        TrainError: It does.
    """
    if recipe.numeric_scale != 1:
        raise TrainError(
            f"recipe {recipe.name}: numeric_scale = {recipe.numeric_scale:g}, the scaled loss of "
            f"numeric tokens, is not in {tool}. Use soubench train, or export with --to ms-swift."
        )


def _recipe_for(loaded: LoadedRows) -> Recipe:
    recipes = [load_recipe(name) for name in recipe_names()]
    of_dataset = [recipe for recipe in recipes if recipe.dataset == loaded.name]
    found = next((recipe for recipe in of_dataset if recipe.config == loaded.config), None)
    if found is None:
        some = ", ".join(recipe.name for recipe in of_dataset or recipes)
        raise TrainError(
            f"{loaded.name}, {loaded.config}: no recipe is for this config. Choose one whose "
            f"settings fit with --recipe ({some}), or one of your own in TOML."
        )
    return found


def conversations(
    rows: LoadedRows, folder: Path, pictures: Pictures, prefix: str
) -> Iterator[dict[str, Any]]:
    """Yield ``id``, ``messages`` and ``images`` of each row; put the pictures into a folder.

    Args:
        rows: Rows with pictures, ``prompt`` and ``completion``.
        folder: For the pictures.
        pictures: Those that are there.
        prefix: What stands before a picture's name in ``images``.

    Raises:
        TrainError: A text holds the words that stand for a picture.
    """
    folder.mkdir(parents=True, exist_ok=True)
    columns = [name for name in PICTURE_COLUMNS if name in rows.rows.column_names]
    for row in rows.undecoded():
        names = [pictures.write(picture, folder) for picture in pictures_of(row, columns)]
        turns = [_turn(turn) for turn in (*row["prompt"], *row["completion"])]
        if any(PLACE in turn["content"] for turn in turns):
            raise TrainError(
                f"{row['id']}: its text holds {PLACE}, which these trainers take for a picture. "
                "Export with --to trl."
            )
        user = next(turn for turn in turns if turn["role"] == "user")
        user["content"] = PLACE * len(names) + user["content"]
        yield {
            "id": row["id"],
            "messages": turns,
            "images": [f"{prefix}{name}" for name in names],
        }


def _turn(turn: Mapping[str, str]) -> dict[str, str]:
    return {"role": turn["role"], "content": turn["content"]}


def write_json_lines(path: Path, records: Iterator[dict[str, Any]], *, as_list: bool) -> None:
    """Write records, one a line: as JSONL, or as a JSON list."""
    with path.open("w", encoding="utf-8") as file:
        between = "[\n" if as_list else ""
        for record in records:
            file.write(f"{between}{json.dumps(record, ensure_ascii=False)}")
            between = ",\n" if as_list else "\n"
        file.write("\n]\n" if as_list else "\n")


def settings_text(training: Training, title: str, settings: Sequence[Setting]) -> str:
    """Write settings as YAML, with the reason beside each that the paper does not give."""
    reasons = training.recipe.not_in_paper or {}
    lines = [f"# {title}, by the recipe {training.recipe.name} of soubench."]
    for setting in settings:
        text = yaml.safe_dump({setting.key: setting.value}, width=10_000, allow_unicode=True)
        why = setting.note or reasons.get(setting.of, "")
        lines.append(text.rstrip("\n") + (f"  # not in the paper: {why}" if why else ""))
    return "\n".join(lines) + "\n"


def common(recipe: Recipe) -> list[Setting]:
    """Return what is called the same in ``transformers``' trainer and so in all three.

    Raises:
        TrainError: The rows of a step cannot be divided into those that a device takes at a time.
    """
    if recipe.effective_batch % recipe.per_device_batch:
        raise TrainError(
            f"recipe {recipe.name}: effective_batch = {recipe.effective_batch} must be a multiple "
            f"of per_device_batch = {recipe.per_device_batch}."
        )
    length = (
        Setting("max_steps", recipe.max_steps, "max_steps")
        if recipe.max_steps
        else Setting("num_train_epochs", recipe.epochs, "epochs")
    )
    return [
        Setting("per_device_train_batch_size", recipe.per_device_batch, "per_device_batch"),
        Setting(
            "gradient_accumulation_steps",
            recipe.effective_batch // recipe.per_device_batch,
            "effective_batch",
        ),
        Setting("learning_rate", recipe.learning_rate, "learning_rate"),
        length,
        Setting("lr_scheduler_type", recipe.scheduler, "scheduler"),
        Setting("adam_beta2", recipe.adam_beta2, "adam_beta2"),
        Setting("weight_decay", recipe.weight_decay, "weight_decay"),
        Setting("bf16", recipe.precision == "bfloat16", "precision"),
        Setting("logging_steps", 10),
        Setting("save_steps", EVERY, note=EVERY_WHY),
    ]


def evaluated(training: Training, key: str, value: Any) -> list[Setting]:  # noqa: ANN401  # a name or a list of them
    """Return the settings of the held-out rows; none where there are no such rows."""
    if not len(training.held_out.rows):
        return []
    return [
        Setting(key, value, "held_out"),
        Setting("eval_strategy", "steps"),
        Setting("eval_steps", EVERY, note="as save_steps"),
        Setting("per_device_eval_batch_size", training.recipe.per_device_batch),
    ]


def target_regex(recipe: Recipe) -> str:
    """Return an expression that fully matches the names of the layers that get a LoRA.

    It finds what ``lora_targets`` finds in a model that is loaded.
    """
    apart = PROJECTOR_WORDS | {"lm_head", "embed_out"}
    found = []
    if recipe.vision:
        found.append(f"(?!{_named(apart)})(?={_named(VISION_WORDS)})(?:{_kinds(recipe.vision)})")
    if recipe.language:
        found.append(f"(?!{_named(apart | VISION_WORDS)})(?:{_kinds(recipe.language)})")
    return "|".join(found)


def _named(words: frozenset[str]) -> str:
    return rf"(?:.*\.)?(?:{'|'.join(sorted(words))})(?:\.|$)"


def _kinds(kinds: Sequence[str]) -> str:
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise TrainError(
            f"vision, language: expected kinds of layers of {', '.join(KINDS)}, got {unknown[0]!r}."
        )
    return "|".join(KINDS[kind].pattern for kind in kinds)
