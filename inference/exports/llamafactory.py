"""For LLaMA-Factory: JSON in its ShareGPT form, ``dataset_info.json``, pictures and a YAML."""

import json
from pathlib import Path

from soubench.builders.errors import TrainError
from soubench.inference.exports.folder import Exported, Pictures, file_name, write_readme
from soubench.inference.exports.training import (
    CUTOFF,
    CUTOFF_WHY,
    Setting,
    Training,
    common,
    conversations,
    evaluated,
    refuse_numeric_scale,
    settings_text,
    write_json_lines,
)

TEMPLATES = {
    "Qwen3-VL": "qwen3_vl_nothink",
    "Qwen2.5-VL": "qwen2_vl",
    "Qwen2-VL": "qwen2_vl",
    "paligemma": "paligemma",
    "MiniCPM-V-4.6": "minicpm_v_4_6",
}
"""What a model's name starts with -> the tool's name of its chat template."""
TEMPLATE_WHY = "the tool's template of this family"
ALL_LINEAR = {"attention", "mlp"}


def write(training: Training, target: Path) -> Exported:
    """Write the folder.

    Raises:
        TrainError: The tool cannot do what the recipe asks.
    """
    recipe = training.recipe
    refuse_numeric_scale(recipe, "LLaMA-Factory")
    if recipe.vision or set(recipe.language) != ALL_LINEAR:
        raise TrainError(
            f"recipe {recipe.name}: it trains vision = {list(recipe.vision)} and language = "
            f"{list(recipe.language)}, and LLaMA-Factory names layers only by the ends of their "
            "names, which vision and language share. Export with --to ms-swift or --to trl."
        )
    name = file_name(training.loaded)
    data = target / "data"
    pictures, info, files = Pictures(), {}, []
    for rows, dataset in ((training.train, name), (training.held_out, f"{name}_held-out")):
        if not len(rows.rows):
            continue
        file = f"{dataset}.json"
        data.mkdir(exist_ok=True)
        made = conversations(rows, data / "images", pictures, "images/")
        write_json_lines(data / file, made, as_list=True)
        files.append(f"data/{file}")
        info[dataset] = {
            "file_name": file,
            "formatting": "sharegpt",
            "columns": {"messages": "messages", "images": "images"},
            "tags": {
                "role_tag": "role",
                "content_tag": "content",
                "user_tag": "user",
                "assistant_tag": "assistant",
                "system_tag": "system",
            },
        }
    (data / "dataset_info.json").write_text(json.dumps(info, indent=2) + "\n", encoding="utf-8")
    text = settings_text(training, "LLaMA-Factory", _settings(training, name))
    (target / "train.yaml").write_text(text, encoding="utf-8")
    write_readme(target, "llamafactory", training.loaded, name=name, **training.readme)
    rows_written = len(training.train.rows) + len(training.held_out.rows)
    return Exported(rows_written, len(pictures.names), ("train.yaml", *files))


def _settings(training: Training, name: str) -> list[Setting]:
    recipe = training.recipe
    settings = [Setting("model_name_or_path", recipe.model, "model")]
    if recipe.max_pixels:
        settings.append(Setting("image_max_pixels", recipe.max_pixels, "max_pixels"))
    return [
        *settings,
        Setting("stage", "sft"),
        Setting("do_train", True),
        Setting("finetuning_type", "lora"),
        Setting("lora_rank", recipe.lora_rank, "lora_rank"),
        Setting("lora_alpha", recipe.lora_alpha, "lora_alpha"),
        Setting("lora_dropout", recipe.lora_dropout, "lora_dropout"),
        Setting("lora_target", "all", "language"),
        Setting("freeze_vision_tower", True, "vision"),
        Setting("freeze_multi_modal_projector", True, "vision"),
        Setting("dataset_dir", "data"),
        Setting("dataset", name),
        *evaluated(training, "eval_dataset", f"{name}_held-out"),
        Setting("template", _template(recipe.model), note=TEMPLATE_WHY),
        Setting("cutoff_len", CUTOFF, note=CUTOFF_WHY),
        Setting("preprocessing_num_workers", 16),
        Setting("dataloader_num_workers", 4),
        *common(recipe),
        Setting("warmup_ratio", recipe.warmup, "warmup"),
        Setting("ddp_timeout", 180000000),
        Setting("output_dir", f"saves/{recipe.name}"),
    ]


def _template(model: str) -> str:
    base = model.rpartition("/")[2].lower()
    found = [name for start, name in TEMPLATES.items() if base.startswith(start.lower())]
    if not found:
        raise TrainError(
            f"{model}: no chat template of LLaMA-Factory is known for it, only for "
            f"{', '.join(TEMPLATES)}. Export with --to ms-swift, which finds it itself."
        )
    return found[0]
