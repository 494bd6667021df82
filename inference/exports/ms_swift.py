"""For ms-swift: JSONL of messages and pictures, and a YAML of its arguments."""

from pathlib import Path

from soubench.inference.exports.folder import Exported, Pictures, write_readme
from soubench.inference.exports.training import (
    CUTOFF,
    CUTOFF_WHY,
    Setting,
    Training,
    common,
    conversations,
    evaluated,
    settings_text,
    target_regex,
    write_json_lines,
)

TRAIN_FILE = "train.jsonl"
HELD_OUT_FILE = "held-out.jsonl"


def write(training: Training, target: Path) -> Exported:
    """Write the folder."""
    pictures, files = Pictures(), []
    for rows, file in ((training.train, TRAIN_FILE), (training.held_out, HELD_OUT_FILE)):
        if len(rows.rows):
            made = conversations(rows, target / "images", pictures, "images/")
            write_json_lines(target / file, made, as_list=False)
            files.append(file)
    text = settings_text(training, "ms-swift", _settings(training))
    (target / "train.yaml").write_text(text, encoding="utf-8")
    write_readme(target, "ms-swift", training.loaded, **training.readme)
    rows_written = len(training.train.rows) + len(training.held_out.rows)
    return Exported(rows_written, len(pictures.names), ("train.yaml", *files))


def _settings(training: Training) -> list[Setting]:
    recipe = training.recipe
    settings = [Setting("model", recipe.model, "model"), Setting("use_hf", True)]
    if recipe.max_pixels:
        settings.append(Setting("max_pixels", recipe.max_pixels, "max_pixels"))
    return [
        *settings,
        Setting("tuner_type", "lora"),
        Setting("lora_rank", recipe.lora_rank, "lora_rank"),
        Setting("lora_alpha", recipe.lora_alpha, "lora_alpha"),
        Setting("lora_dropout", recipe.lora_dropout, "lora_dropout"),
        Setting("target_regex", target_regex(recipe), "language"),
        Setting("torch_dtype", recipe.precision, "precision"),
        Setting("dataset", [TRAIN_FILE]),
        *evaluated(training, "val_dataset", [HELD_OUT_FILE]),
        Setting("max_length", CUTOFF, note=CUTOFF_WHY),
        *common(recipe),
        Setting("warmup_ratio", recipe.warmup, "warmup"),
        Setting("output_dir", f"saves/{recipe.name}"),
    ]
