"""For TRL: Parquet with ``image``, ``prompt`` and ``completion``, and a YAML for ``trl sft``."""

from pathlib import Path

from soubench.builders.errors import TrainError
from soubench.inference.dataset_rows import LoadedRows
from soubench.inference.exports.folder import Exported, write_readme, write_rows
from soubench.inference.exports.training import (
    Setting,
    Training,
    common,
    evaluated,
    refuse_numeric_scale,
    settings_text,
    target_regex,
)


def write(training: Training, target: Path) -> Exported:
    """Write the folder.

    Raises:
        TrainError: The tool cannot do what the recipe asks.
    """
    refuse_numeric_scale(training.recipe, "TRL")
    if "paligemma" in training.recipe.model.lower():
        raise TrainError(
            f"{training.recipe.model}: TRL alone does not tell this model where its reply begins, "
            "so that the reply would see itself, nor has it a chat template for it. Use soubench "
            "train, or export with --to ms-swift."
        )
    parts = [write_rows(rows, target / "data") for rows in _parts(training)]
    text = settings_text(training, "TRL", _settings(training))
    (target / "train.yaml").write_text(text, encoding="utf-8")
    write_readme(target, "trl", training.loaded, **training.readme)
    return Exported(
        sum(part.rows for part in parts),
        sum(part.pictures for part in parts),
        ("train.yaml", *(file for part in parts for file in part.files)),
    )


def _parts(training: Training) -> list[LoadedRows]:
    return [rows for rows in (training.train, training.held_out) if len(rows.rows)]


def _settings(training: Training) -> list[Setting]:
    recipe = training.recipe
    return [
        Setting("model_name_or_path", recipe.model, "model"),
        Setting("dtype", recipe.precision, "precision"),
        Setting("dataset_name", "data"),
        Setting("dataset_train_split", "train"),
        *evaluated(training, "dataset_test_split", "validation"),
        Setting("use_peft", True),
        Setting("lora_r", recipe.lora_rank, "lora_rank"),
        Setting("lora_alpha", recipe.lora_alpha, "lora_alpha"),
        Setting("lora_dropout", recipe.lora_dropout, "lora_dropout"),
        Setting("lora_target_modules", [target_regex(recipe)], "language"),
        # Cutting a conversation would cut the places of the pictures.
        Setting("max_length", None),
        *common(recipe),
        Setting("warmup_steps", recipe.warmup, "warmup"),
        Setting("output_dir", f"saves/{recipe.name}"),
    ]
