"""A CLIP of a few thousand weights, made on the spot from the library's own classes."""

from pathlib import Path

SIDE_PX = 32
LONGEST_TEXT = 48


def write_tiny_clip(folder: Path, *, seed: int = 0) -> Path:
    """Save a CLIP of random weights with its processor; texts are read letter by letter."""
    import torch
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import (
        CLIPConfig,
        CLIPImageProcessorPil,
        CLIPModel,
        CLIPProcessor,
        CLIPTokenizer,
    )

    letters = sorted(ByteLevel.alphabet())
    names = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    tokenizer = CLIPTokenizer(
        vocab={name: i for i, name in enumerate(names)}, merges=[], model_max_length=LONGEST_TEXT
    )
    small = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "projection_dim": 16,
    }
    config = CLIPConfig(
        text_config=small
        | {
            "vocab_size": len(tokenizer),
            "max_position_embeddings": LONGEST_TEXT,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
        },
        vision_config=small | {"image_size": SIDE_PX, "patch_size": 8},
        projection_dim=16,
    )
    torch.manual_seed(seed)
    model = CLIPModel(config).eval()
    with torch.no_grad():
        # Freshly made weights are so small that all pictures and texts look alike.
        for weights in model.parameters():
            weights.mul_(3 if weights.ndim > 1 else 1)
    model.save_pretrained(folder)
    images = CLIPImageProcessorPil(
        size={"shortest_edge": SIDE_PX}, crop_size={"height": SIDE_PX, "width": SIDE_PX}
    )
    CLIPProcessor(image_processor=images, tokenizer=tokenizer).save_pretrained(folder)
    return folder
