"""Vision-language models of a quarter of a million random weights, made on the spot."""

from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SIDE_PX, PATCH_PX, WIDTH = 56, 14, 64
IMAGE, END, PAD = "<image>", "<|end|>", "<pad>"
TURNS = (
    "{% for message in messages %}<|start|>{{ message['role'] }}\n"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)
NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
)
# Weights so large that the reply depends on the question and on the picture.
LAYERS = {
    "hidden_size": WIDTH,
    "intermediate_size": 2 * WIDTH,
    "num_hidden_layers": 2,
    "initializer_range": 0.3,
}
VISION = LAYERS | {"num_attention_heads": 4, "image_size": SIDE_PX, "patch_size": PATCH_PX}


def make_tokenizer(special: list[str]):
    """A byte-level tokenizer that knows hardly a word but can write any text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=512,
        special_tokens=[PAD, END, *special],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    words = "What is the category of small objects in this image? Answer with the letter only."
    tokenizer.train_from_iterator([words] * 3, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=special,
        model_max_length=4096,
    )


def text_config(tokenizer):
    return transformers.LlamaConfig(
        **LAYERS,
        vocab_size=len(tokenizer),
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )


def make_llava(template: str):
    """Every picture is scaled and cut to a square."""
    tokenizer = make_tokenizer([IMAGE, "<|start|>"])
    processor = transformers.LlavaProcessor(
        image_processor=transformers.CLIPImageProcessorPil(
            size={"shortest_edge": SIDE_PX}, crop_size={"height": SIDE_PX, "width": SIDE_PX}
        ),
        tokenizer=tokenizer,
        patch_size=PATCH_PX,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        image_token=IMAGE,
        chat_template=template,
    )
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(**VISION, projection_dim=WIDTH),
        text_config=text_config(tokenizer),
        image_token_id=tokenizer.convert_tokens_to_ids(IMAGE),
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
        image_seq_length=(SIDE_PX // PATCH_PX) ** 2,
    )
    return transformers.LlavaForConditionalGeneration(config), processor


def make_idefics3(template: str):
    """Pictures keep their shape; with splitting off, each is one tile with a mask."""
    tokenizer = make_tokenizer(
        [IMAGE, "<|start|>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>"]
    )
    processor = transformers.Idefics3Processor(
        image_processor=transformers.Idefics3ImageProcessorPil(
            size={"longest_edge": 2 * SIDE_PX},
            max_image_size={"longest_edge": SIDE_PX},
            do_image_splitting=False,
        ),
        tokenizer=tokenizer,
        image_seq_len=4,
        chat_template=template,
    )
    config = transformers.Idefics3Config(
        vision_config=VISION,
        text_config=text_config(tokenizer),
        image_token_id=tokenizer.convert_tokens_to_ids(IMAGE),
        scale_factor=2,
        pad_token_id=tokenizer.pad_token_id,
    )
    return transformers.Idefics3ForConditionalGeneration(config), processor


def make_paligemma(template: str):
    """Every picture is stretched to a square; as it is published, without a chat template."""
    tokens = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "\u2581", "\n"]
    tokens += [f"<0x{byte:02X}>" for byte in range(256)] + [chr(i) for i in range(33, 127)]
    tokenizer = transformers.GemmaTokenizer(vocab={t: i for i, t in enumerate(tokens)}, merges=[])
    image_processor = transformers.SiglipImageProcessorPil(
        size={"height": SIDE_PX, "width": SIDE_PX}
    )
    image_processor.image_seq_length = (SIDE_PX // PATCH_PX) ** 2
    # It adds the tokens of locations and segments to the tokenizer.
    processor = transformers.PaliGemmaProcessor(
        image_processor=image_processor, tokenizer=tokenizer
    )
    config = transformers.PaliGemmaConfig(
        vision_config=VISION
        | {"model_type": "siglip_vision_model", "projection_dim": WIDTH, "vision_use_head": False},
        text_config=LAYERS
        | {
            "model_type": "gemma",
            "vocab_size": len(tokenizer),
            "num_attention_heads": 4,
            "num_key_value_heads": 1,
            "head_dim": WIDTH // 4,
            "pad_token_id": tokenizer.pad_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "bos_token_id": tokenizer.bos_token_id,
        },
        projection_dim=WIDTH,
        image_token_id=tokenizer.convert_tokens_to_ids(IMAGE),
    )
    return transformers.PaliGemmaForConditionalGeneration(config), processor


MAKERS = {"llava": make_llava, "idefics3": make_idefics3, "paligemma": make_paligemma}


def save_tiny_vlm(folder: Path, kind: str, *, system_role: bool = True, seed: int = 0) -> Path:
    """Write a model that the pipeline loads; the same seed gives the same replies."""
    torch.manual_seed(seed)
    model, processor = MAKERS[kind](TURNS if system_role else NO_SYSTEM + TURNS)
    tokenizer = processor.tokenizer
    model.generation_config = transformers.GenerationConfig(
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id
    )
    model.eval().save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
