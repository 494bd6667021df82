"""Which layers of a model get a LoRA, found by rule: vision or language, attention or MLP.

Names of modules differ by family and moved between versions of transformers, so that a list of
full names may silently hit one half of a model only. Rules go by the words in a name, and a part
without a hit ends the run.
"""

import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from soubench.builders.errors import TrainError

VISION_WORDS = frozenset(
    {"visual", "vision_tower", "vision_model", "vision_encoder", "vpm", "vit", "img_processor"}
)
PROJECTOR_WORDS = frozenset(
    {
        *("multi_modal_projector", "connector", "merger", "projector", "resampler"),
        *("mm_projector", "deepstack_merger_list", "vision_adapter", "aligner", "qformer"),
    }
)
HEAD_WORDS = frozenset({"lm_head", "embed_out", "head"})
"""Output layers, and the pooling at the end of a vision tower, which no language model reads."""
KINDS = MappingProxyType(
    {
        "attention": re.compile(
            r".*(attn|attention)\.([qkvo]_proj|out_proj|qkv|qkv_proj|in_proj_qkv|kv_proj"
            r"|proj|projection|projection_layer)"
        ),
        "mlp": re.compile(
            r".*(mlp|feed_forward|ffn)"
            r"\.(gate_proj|up_proj|down_proj|gate_up_proj|fc[12]|linear_fc[12])"
        ),
        "mlp-up-down": re.compile(r".*(mlp|feed_forward|ffn)\.(up_proj|down_proj|gate_up_proj)"),
    }
)
"""Kind of layer -> what its name ends with."""


def lora_targets(model: Any, vision: Sequence[str], language: Sequence[str]) -> list[str]:  # noqa: ANN401  # torch is imported late
    """Return the full names of the linear layers that get a LoRA, in the order of the model.

    Args:
        model: A vision-language model.
        vision: Kinds of layers of the vision part, keys of ``KINDS``; empty for none.
        language: The same of the language part. Projectors between the two get none.

    Raises:
        TrainError: A part has no layer of a kind that is to be trained.
    """
    import torch

    names = [name for name, m in model.named_modules() if isinstance(m, torch.nn.Linear)]
    found: set[str] = set()
    for part, kinds in (("vision", vision), ("language", language)):
        for kind in kinds:
            hits = {n for n in names if part_of(n) == part and KINDS[kind].fullmatch(n)}
            if not hits:
                raise TrainError(
                    f"{type(model).__name__} has no layer of the {part} part that is of the kind "
                    f"{kind}. Its linear layers are {_examples(names)}. Change {part} = [..] in "
                    "the recipe, or choose another model."
                )
            found |= hits
    return sorted(found, key=names.index)


def part_of(name: str) -> str:
    """Say which part of a model a module belongs to: vision, projector, language or head.

    >>> part_of("model.visual.blocks.0.attn.qkv"), part_of("model.visual.merger.mlp.0")
    ('vision', 'projector')
    >>> part_of("model.language_model.layers.3.mlp.up_proj"), part_of("lm_head")
    ('language', 'head')
    """
    words = set(name.split("."))
    if words & HEAD_WORDS:
        return "head"
    if words & PROJECTOR_WORDS:
        return "projector"
    return "vision" if words & VISION_WORDS else "language"


def _examples(names: Sequence[str]) -> str:
    shapes = list(dict.fromkeys(re.sub(r"\d+", "N", name) for name in names))
    return ", ".join(shapes[:12]) + (", .." if len(shapes) > 12 else "")
