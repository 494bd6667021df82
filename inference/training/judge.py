"""Judge a model on held-out rows by this project's own metrics."""

from collections.abc import Iterator, Sequence
from math import sqrt
from statistics import fmean
from typing import Any

import datasets
import transformers

from soubench.builders.errors import RunError, TrainError, brief
from soubench.inference.questions import PICTURE_COLUMNS, question_of
from soubench.inference.run_folder import Reply
from soubench.inference.scores import SCORINGS, Asked, Measure, Settings, kind_of
from soubench.inference.training.recipe import Recipe
from soubench.inference.training.rows import chat_of

Measures = dict[str, float | None]
# Few of the types that transformers declares are those it takes and returns.
hf: Any = transformers


def measure_of(metric: str, rows: datasets.Dataset) -> Measure:
    """Return the number that chooses a checkpoint.

    Args:
        metric: The main metric of the rows' kind of answers, or the name of one of its measures.
        rows: Rows of one kind, at least one.

    Raises:
        TrainError: These rows have no such number.
    """
    kinds: dict[str, str] = {}
    for row in _light(rows):
        try:
            kinds.setdefault(kind_of(question_of(row), row), str(row["id"]))
        except RunError as error:
            raise TrainError(
                "held-out rows are judged by their question and answer, and those of row "
                f"{row['id']} cannot be used: {brief(error, 300)} Mend it, or train without "
                "judging, with held_out = 0 in the recipe."
            ) from error
    if len(kinds) > 1:
        named = ", ".join(f"{kind} (row {row_id})" for kind, row_id in kinds.items())
        raise TrainError(
            f"held-out rows are judged by one metric, and their answers are of several kinds: "
            f"{named}. Choose a config whose rows are alike, or held_out = 0 in the recipe."
        )
    measures = SCORINGS[next(iter(kinds))].measures
    if metric == measures[0].metric:
        return measures[0]
    found = next((measure for measure in measures if measure.name == metric), None)
    if found is None:
        names = (measures[0].metric, *(measure.name for measure in measures))
        named = ", ".join(dict.fromkeys(names))
        raise TrainError(f"metric: expected one of {named} for these rows, got {metric!r}.")
    return found


def judge(
    model: Any,  # noqa: ANN401  # transformers: no types
    processor: Any,  # noqa: ANN401
    rows: datasets.Dataset,
    recipe: Recipe,
) -> Measures:
    """Let a model answer rows greedily, as many at a time as it trains on, and score them.

    Raises:
        RunError: The metric is not installed.
    """
    replies = _replies(model, processor, rows, recipe.max_new_tokens, recipe.per_device_batch)
    return score(rows, list(replies))


def score(rows: datasets.Dataset, replies: Sequence[str]) -> Measures:
    """Return all measures of replies to rows of one kind, as ``soubench score`` has them.

    Returns:
        Measure -> value, None where no reply has one; and ``unparsed``, a share of 0 to 1.
    """
    asked = [
        Asked(row, question_of(row), Reply(id=str(row["id"]), reply=reply))
        for row, reply in zip(_light(rows), replies, strict=True)
    ]
    scoring = SCORINGS[kind_of(asked[0].question, asked[0].row)]
    judged = scoring.judge(asked, Settings())
    found: Measures = {}
    for measure in scoring.measures:
        values = [v for one in judged if (v := one.values.get(measure.name)) is not None]
        mean = fmean(v * v if measure.root else v for v in values) if values else None
        found[measure.name] = sqrt(mean) if mean is not None and measure.root else mean
    found["unparsed"] = fmean(one.is_unparsed for one in judged)
    return found


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
    # Replies start where the prompt ends, so shorter prompts are padded in front.
    tokenizer.padding_side = "left"
    pipe = hf.pipeline(
        "image-text-to-text", model=model.eval(), processor=processor, device=model.device
    )
    try:
        for start in range(0, len(rows), batch_size):
            batch = rows.select(range(start, min(start + batch_size, len(rows))))
            answers = pipe(
                text=[chat_of(row) for row in batch],
                batch_size=batch_size,
                return_full_text=False,
                max_new_tokens=max_new_tokens,
                generate_kwargs={"do_sample": False},
            )
            yield from (answer[0]["generated_text"] for answer in answers)
    finally:
        tokenizer.padding_side = side
        model.train(training)
