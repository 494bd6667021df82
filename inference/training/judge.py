"""Judge a model on held-out rows by this project's own metrics."""

from collections.abc import Iterator, Sequence
from math import inf, sqrt
from statistics import fmean
from typing import Any

import datasets
import torch

from soubench.builders.errors import TrainError
from soubench.inference.questions import PICTURE_COLUMNS, question_of
from soubench.inference.run_folder import Reply
from soubench.inference.scores import SCORINGS, Asked, Measure, Settings, kind_of
from soubench.inference.training.recipe import Recipe


def measure_of(metric: str, rows: datasets.Dataset) -> Measure:
    """Return the number that chooses a checkpoint.

    Args:
        metric: The main metric of the rows' kind of answers, or the name of one of its measures.
        rows: Rows of one kind, at least one.

    Raises:
        TrainError: These rows have no such number.
    """
    row = _light(rows)[0]
    measures = SCORINGS[kind_of(question_of(row), row)].measures
    if metric == measures[0].metric:
        return measures[0]
    found = next((measure for measure in measures if measure.name == metric), None)
    if found is None:
        named = ", ".join((measures[0].metric, *(measure.name for measure in measures)))
        raise TrainError(f"metric: expected one of {named} for these rows, got {metric!r}.")
    return found


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
        TrainError: The rows have no such measure.
        RunError: The metric is not installed.
    """
    replies = list(_replies(model, processor, rows, recipe.max_new_tokens, batch_size))
    return score(recipe.metric, rows, replies)


def score(metric: str, rows: datasets.Dataset, replies: Sequence[str]) -> float:
    """Return the measure of a metric for replies to rows, as ``soubench score`` has it."""
    measure = measure_of(metric, rows)
    asked = [
        Asked(row, question_of(row), Reply(id=str(row["id"]), reply=reply))
        for row, reply in zip(_light(rows), replies, strict=True)
    ]
    kind = kind_of(asked[0].question, asked[0].row)
    judged = SCORINGS[kind].judge(asked, Settings())
    values = [value for one in judged if (value := one.values[measure.name]) is not None]
    if not values:
        return inf if measure.is_error else 0.0
    return sqrt(fmean(v * v for v in values)) if measure.root else fmean(values)


def _light(rows: datasets.Dataset) -> datasets.Dataset:
    """Return rows without pictures, which would be decoded in vain."""
    return rows.remove_columns([name for name in PICTURE_COLUMNS if name in rows.column_names])


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
