"""Judge a model on held-out rows by this project's own metrics."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import datasets
import torch

from soubench.builders.errors import TrainError
from soubench.inference.training.recipe import Recipe

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of a metric.

    Attributes:
        key: Its name among the metric's results.
        higher_is_better: Which way is better.
    """

    key: str
    higher_is_better: bool = True


MEASURES = {
    "option_match": Measure("accuracy"),
    "sama": Measure("sama"),
    "attribute_f1": Measure("f1_macro"),
    "matched_rmse": Measure("count_rmse", higher_is_better=False),
}
"""Metric -> the number that chooses a checkpoint."""


def judge(
    model: Any,  # noqa: ANN401  # transformers: no types
    processor: Any,  # noqa: ANN401
    rows: datasets.Dataset,
    recipe: Recipe,
    *,
    batch_size: int = 4,
) -> float:
    """Let a model answer rows greedily, and return the measure of the recipe's metric.

    Raises:
        TrainError: The metric is none of those that choose a checkpoint, or not installed.
    """
    replies = list(_replies(model, processor, rows, recipe.max_new_tokens, batch_size))
    return score(recipe.metric, rows, replies)


def score(metric: str, rows: datasets.Dataset, replies: Sequence[str]) -> float:
    """Return the measure of a metric for replies to rows."""
    if metric not in MEASURES:
        raise TrainError(f"metric: expected one of {', '.join(MEASURES)}, got {metric!r}.")
    import evaluate

    from soubench.builders.publishing.metric_cache import install_metrics

    install_metrics([metric])
    try:
        module = evaluate.load(metric)
    except ImportError as error:
        raise TrainError(
            f'{metric} needs more than is installed: pip install "soubench[metrics]". ({error})'
        ) from error
    if metric == "option_match":
        found = module.compute(
            predictions=list(replies),
            references=[LETTERS[answer] for answer in rows["answer"][:]],
            options=rows["options"][:],
        )
    else:
        found = module.compute(predictions=list(replies), references=rows["target"][:])
    return float(found[MEASURES[metric].key])


def _replies(
    model: Any,  # noqa: ANN401
    processor: Any,  # noqa: ANN401
    rows: datasets.Dataset,
    max_new_tokens: int,
    batch_size: int,
) -> Iterator[str]:
    tokenizer = processor.tokenizer
    side, training = tokenizer.padding_side, model.training
    tokenizer.padding_side = "left"
    model.eval()
    try:
        for start in range(0, len(rows), batch_size):
            batch = [rows[i] for i in range(start, min(start + batch_size, len(rows)))]
            inputs = processor.apply_chat_template(
                [_chat(row) for row in batch],
                tokenize=True,
                add_generation_prompt=True,
                return_dict=True,
                return_tensors="pt",
                processor_kwargs={"padding": True},
            ).to(model.device)
            with torch.inference_mode():
                made = model.generate(**inputs, max_new_tokens=max_new_tokens, do_sample=False)
            new = made[:, inputs["input_ids"].shape[1] :]
            yield from processor.batch_decode(new, skip_special_tokens=True)
    finally:
        tokenizer.padding_side = side
        model.train(training)


def _chat(row: dict[str, Any]) -> list[dict[str, Any]]:
    pictures = row["images"] if "images" in row else [row["image"]]
    parts: list[dict[str, Any]] = [{"type": "image", "image": picture} for picture in pictures]
    chat = []
    for turn in row["prompt"]:
        text = {"type": "text", "text": turn["content"]}
        content = [*parts, text] if turn["role"] == "user" else [text]
        parts = [] if turn["role"] == "user" else parts
        chat.append({"role": turn["role"], "content": content})
    return chat
