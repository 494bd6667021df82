"""For ms-swift: JSONL of messages and pictures, and a YAML of its arguments.

A recipe with a scaled loss of numeric tokens gets a plugin, too.
"""

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
PLUGIN_FILE = "numeric_loss.py"
PLUGIN = '''\
"""The loss of numeric tokens times {scale:g}, for ms-swift. Written by soubench export."""

import re

from swift.loss_scale import LossScale, loss_scale_map


class NumericLossScale(LossScale):
    """Splits a reply into digits and the rest, each with its weight."""

    is_binary = False

    def get_loss_scale(self, context, **kwargs):
        """Return the parts of a text and their weights."""
        if not isinstance(context, str):
            return super().get_loss_scale(context, **kwargs)
        parts = [part for part in re.split("([0-9]+)", context) if part]
        return parts, [{scale:g} if part[0] in "0123456789" else 1.0 for part in parts]


loss_scale_map["numeric"] = NumericLossScale
'''
SCALED_README = """\
`numeric_loss.py` multiplies the loss of numbers by {scale:g}, over the number of labelled tokens,
as `soubench train` does. Here digits are cut from the rest of a text before it becomes tokens, and
the loss on the held-out rows is scaled, too.

"""


def write(training: Training, target: Path) -> Exported:
    """Write the folder."""
    pictures, files = Pictures(), []
    for rows, file in ((training.train, TRAIN_FILE), (training.held_out, HELD_OUT_FILE)):
        if len(rows.rows):
            made = conversations(rows, target / "images", pictures, "images/")
            write_json_lines(target / file, made, as_list=False)
            files.append(file)
    scale = training.recipe.numeric_scale
    if scale != 1:
        (target / PLUGIN_FILE).write_text(PLUGIN.format(scale=scale), encoding="utf-8")
        files.append(PLUGIN_FILE)
    text = settings_text(training, "ms-swift", _settings(training))
    (target / "train.yaml").write_text(text, encoding="utf-8")
    scaled = SCALED_README.format(scale=scale) if scale != 1 else ""
    write_readme(target, "ms-swift", training.loaded, scaled=scaled, **training.readme)
    rows_written = len(training.train.rows) + len(training.held_out.rows)
    return Exported(rows_written, len(pictures.names), ("train.yaml", *files))


def _settings(training: Training) -> list[Setting]:
    recipe = training.recipe
    settings = [Setting("model", recipe.model, "model"), Setting("use_hf", True)]
    if recipe.numeric_scale != 1:
        settings.append(Setting("external_plugins", [PLUGIN_FILE]))
        settings.append(Setting("loss_scale", "numeric", "numeric_scale"))
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
