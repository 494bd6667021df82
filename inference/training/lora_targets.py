"""Which layers of a model get a LoRA, found by rule: vision or language, attention or MLP.

Names of modules differ by family and moved between versions of transformers, so that a list of
full names may silently hit one half of a model only. Rules go by the words in a name, and a part
without a hit ends the run.
"""

import re
from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Any

from soubench.builders.errors import TrainError

VISION_WORDS = frozenset(
    {"visual", "vision_tower", "vision_model", "vision_encoder", "vpm", "vit", "img_processor"}
)
PROJECTOR_WORDS = frozenset(
    {"multi_modal_projector", "connector", "merger", "projector", "resampler", "mm_projector"}
)
KINDS = MappingProxyType(
    {
        "attention": re.compile(
            r".*(attn|attention)\.([qkvo]_proj|out_proj|qkv|qkv_proj|proj|in_proj_qkv|kv_proj)"
        ),
        "mlp": re.compile(
            r".*mlp\.(gate_proj|up_proj|down_proj|gate_up_proj|fc[12]|linear_fc[12])"
        ),
        "mlp-up-down": re.compile(r".*mlp\.(up_proj|down_proj|gate_up_proj)"),
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
        TrainError: A kind is unknown, or a part that is to be trained has no such layer.
    """
    import torch

    unknown = [kind for kind in (*vision, *language) if kind not in KINDS]
    if unknown:
        raise TrainError(
            f"vision, language: expected kinds of layers of {', '.join(KINDS)}, got {unknown[0]!r}."
        )
    names = [name for name, m in model.named_modules() if isinstance(m, torch.nn.Linear)]
    found: list[str] = []
    for part, kinds in (("vision", vision), ("language", language)):
        hits = [name for name in names if part_of(name) == part and _is_one_of(name, kinds)]
        if kinds and not hits:
            raise TrainError(
                f"{type(model).__name__} has no layer of the {part} part that is of the kind "
                f"{' or '.join(kinds)}. Its linear layers are {_examples(names)}. Change "
                f"{part} = [..] in the recipe, or choose another model."
            )
        found += hits
    return sorted(found, key=names.index)


def part_of(name: str) -> str:
    """Say which part of a model a module belongs to: vision, projector, language or head.

    >>> part_of("model.visual.blocks.0.attn.qkv"), part_of("model.visual.merger.mlp.0")
    ('vision', 'projector')
    >>> part_of("model.language_model.layers.3.mlp.up_proj"), part_of("lm_head")
    ('language', 'head')
    """
    words = set(name.split("."))
    if words & PROJECTOR_WORDS:
        return "projector"
    if words & VISION_WORDS:
        return "vision"
    return "head" if words & {"lm_head", "embed_out"} else "language"


def _is_one_of(name: str, kinds: Iterable[str]) -> bool:
    return any(KINDS[kind].fullmatch(name) for kind in kinds)


def _examples(names: Sequence[str]) -> str:
    shapes = list(dict.fromkeys(re.sub(r"\d+", "N", name) for name in names))
    return ", ".join(shapes[:12]) + (", .." if len(shapes) > 12 else "")
