"""The rule finds the layers of both parts in the families that the papers train, and in others.

Models are built from small configs of the real classes without weights (meta device).
"""

import re

import pytest
import torch
import transformers

from soubench.builders.errors import TrainError
from soubench.inference.training.lora_targets import lora_targets, part_of
from soubench.inference.training.recipe import load_recipe

LAYERS = 4


def build(family):
    config = transformers.AutoConfig.for_model(family)
    parts = (getattr(config, name, None) for name in ("vision_config", "text_config"))
    for part in (config, *parts):
        for name in ("num_hidden_layers", "depth", "num_layers", "num_global_layers"):
            if isinstance(getattr(part, name, None), int):
                setattr(part, name, LAYERS)
        if getattr(part, "layer_types", None):
            part.layer_types = part.layer_types[:LAYERS]
    with torch.device("meta"):
        return transformers.AutoModelForImageTextToText.from_config(config)


# Full names per family, as modeling files of transformers have them; N layers of each.
QWEN_VISION = r"model\.visual\.blocks\.\d\.attn\.(qkv|proj)"
SIGLIP = r"model\.vision_tower\.encoder\.layers\.\d\."
SELF = r"self_attn\.([qkv]_proj|out_proj)"
TEXT = r"model\.language_model\.layers\.\d\."
RECIPES = [
    *(
        pytest.param(
            family,
            "shapes-qwen2-vl-2b-sentence",
            QWEN_VISION,
            TEXT + r"(self_attn\.[qkvo]_proj|mlp\.(up|down)_proj)",
            (8, 24),
            id=f"{family}, shapes",
        )
        for family in ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")
    ),
    pytest.param(
        "qwen3_vl",
        "sou-train-driving",
        "nothing",
        TEXT + r"(self_attn\.[qkvo]_proj|mlp\.(gate|up|down)_proj)",
        (0, 28),
        id="qwen3_vl, SOU-Train: `all` with the vision tower frozen",
    ),
    pytest.param(
        "paligemma",
        "shapes-paligemma-tuple",
        SIGLIP + rf"({SELF}|mlp\.fc[12])",
        TEXT + r"(self_attn\.[qkvo]_proj|mlp\.(gate|up|down)_proj)",
        (24, 28),
        id="paligemma, shapes",
    ),
    pytest.param(
        "minicpmv4_6",
        "plants-sentence",
        rf"model\.vision_tower\.(encoder\.layers\.\d|vit_merger)\.{SELF}",
        TEXT + r"(self_attn\.[qkvo]_proj|linear_attn\.(in_proj_qkv|out_proj))",
        (20, 10),
        id="minicpmv4_6, plants",
    ),
]


@pytest.mark.parametrize(("family", "recipe", "vision", "language", "hits"), RECIPES)
def test_the_recipes_hit_what_the_papers_name(family, recipe, vision, language, hits):
    chosen, model = load_recipe(recipe), build(family)
    found = lora_targets(model, chosen.vision, chosen.language)
    names = [name for name, _ in model.named_modules()]
    assert found == [n for n in names if re.fullmatch(vision, n) or re.fullmatch(language, n)]
    assert tuple(sum(part_of(n) == part for n in found) for part in ("vision", "language")) == hits


ATTENTION = {
    # q, k, v and the output of four layers each, or q, k, v in one.
    **dict.fromkeys(["llava", "llava_next", "llava_onevision", "idefics2", "idefics3"], (16, 16)),
    **dict.fromkeys(["smolvlm", "internvl", "gemma3", "mistral3", "deepseek_vl"], (16, 16)),
    **dict.fromkeys(["glm4v", "qwen3_vl_moe"], (8, 16)),
    "mllama": (32, 16),
}


@pytest.mark.parametrize(("family", "hits"), ATTENTION.items())
def test_attention_of_other_families(family, hits):
    found = lora_targets(build(family), ["attention"], ["attention"])
    assert tuple(sum(part_of(n) == part for n in found) for part in ("vision", "language")) == hits
    # Neither the step between the parts nor an output layer.
    assert all(re.search(r"\.\d\.(self_|cross_)?(attn|attention)\.", n) for n in found)


@pytest.mark.parametrize("family", ["llava", "internvl", "mistral3", "gemma3"])
def test_all_kinds_are_all_linear_layers_of_both_parts(family):
    model = build(family)
    both = ["attention", "mlp"]
    linear = [n for n, m in model.named_modules() if isinstance(m, torch.nn.Linear)]
    inside = [n for n in linear if re.search(r"\.layers?\.\d\.", n)]
    assert lora_targets(model, both, both) == inside


def test_a_kind_without_a_layer_ends_the_run():
    # Its experts are no linear layers; to train attention alone would not be what was asked for.
    with pytest.raises(TrainError, match=r"no layer of the language part .* kind mlp.*language ="):
        lora_targets(build("qwen3_vl_moe"), [], ["attention", "mlp"])
    text_only = build("llava").model.language_model
    with pytest.raises(TrainError, match="no layer of the vision part"):
        lora_targets(text_only, ["attention"], ["attention"])
