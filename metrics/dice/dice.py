"""Dice coefficient of predicted masks, averaged over pictures and pooled."""

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import datasets
import evaluate

from .masks import (
    Mask,
    Overlap,
    Pair,
    SizeHw,
    check_columns,
    count_empty,
    describe_unparsed,
    dump_prediction,
    load_pair,
    read_mask,
    read_pair,
)
from .thought import without_thought


def _answer(prediction: object) -> object:
    """Cut the thought off a reply; anything else stays."""
    return without_thought(prediction) if isinstance(prediction, str) else prediction


def _read_one(value: object, expected_hw: SizeHw | None) -> list[Mask]:
    return [read_mask(value, expected_hw)]


def read_pairs(
    predictions: Iterable[Any] | None, references: Iterable[Any] | None, *, first_row: int = 0
) -> list[Pair]:
    """Read the masks of all rows; inputs stay untouched.

    Args:
        predictions: One mask per row, in any form of ``masks.read_mask``; in a text, a thought
            before it is cut off.
        references: The same.
        first_row: Number of the first row in messages.

    Raises:
        ValueError: The columns differ in length, a reference is no mask, or an entry has a type
            that cannot hold one; the message names the row.
    """
    columns = check_columns(first_row, predictions=predictions, references=references)
    return [
        read_pair(row, _answer(prediction), reference, _read_one)
        for row, (prediction, reference) in enumerate(zip(*columns, strict=True), start=first_row)
    ]


def _dice(overlap: Overlap) -> float:
    total = overlap.prediction + overlap.reference
    return 2 * overlap.intersection / total if total else 1.0


def score(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the Dice coefficient 2|P∩G| / (|P|+|G|) (RRS-10K, Sec. IV-B, Eq. 11).

    Args:
        pairs: One prediction and one reference each.

    Returns:
        ``dice`` (mean over rows) and ``dice_pooled`` (pixels of all rows added first), 0 to 1;
        ``dices`` (per row); ``n``; ``n_both_empty``, ``n_only_prediction_empty`` and
        ``n_only_reference_empty``; ``unparsed_rate`` and ``unparsed`` (row and reason). Two empty
        masks count 1, one empty mask 0, an unread prediction 0. Without rows the rates are 0.0.
    """
    n = len(pairs)
    overlaps = [pair.overlaps()[0] for pair in pairs]
    dices = [
        0.0 if pair.reason else _dice(overlap)
        for pair, overlap in zip(pairs, overlaps, strict=True)
    ]
    unparsed = describe_unparsed(pairs)
    total = sum(overlap.prediction + overlap.reference for overlap in overlaps)
    # Where no row has a pixel, the pool is perfect only if each prediction was read.
    pooled = (
        2 * sum(overlap.intersection for overlap in overlaps) / total
        if total
        else float(n > 0 and not unparsed)
    )
    read = [overlap for pair, overlap in zip(pairs, overlaps, strict=True) if not pair.reason]
    return {
        "dice": math.fsum(dices) / n if n else 0.0,
        "dice_pooled": pooled,
        "dices": dices,
        "n": n,
        **count_empty(read)._asdict(),
        "unparsed_rate": len(unparsed) / n if n else 0.0,
        "unparsed": unparsed,
    }


_DESCRIPTION = """
Dice coefficient of binary masks, as the mean over pictures and pooled over all pixels, counted on
COCO run lengths. Two empty masks count 1, one empty mask 0; a prediction that cannot be read counts
0 and is reported.
"""
_INPUTS = """
Args:
    predictions: list of masks, each {"size": [height, width], "counts": ...} (COCO run lengths,
        compressed or a list), {"size": ..., "polygons": [[x, y, ...], ...]}, either as JSON text, a
        2-D array or nested list, or the path of a PNG. A missing prediction is "".
    references: list of masks in the same forms.

Returns:
    dice: mean over pictures, 0 to 1, higher is better.
    dice_pooled: the same of all pixels together, 0 to 1, higher is better.
    dices: one value per picture.
    n: number of pictures.
    n_both_empty, n_only_prediction_empty, n_only_reference_empty: counts of empty pairs.
    unparsed_rate: share of predictions that are no mask, 0 to 1, lower is better.
    unparsed: their rows and the reasons.

Examples:
    >>> metric = evaluate.load("dice")
    >>> metric.compute(predictions=[[[1, 1], [0, 0]]], references=[[[1, 0], [0, 0]]])["dice"]
    0.6666666666666666
"""
_CITATION = """
@software{soubench_dice,
  title = {dice: mask overlap with named means and counted empties},
  author = {The soubench authors},
  year = {2026}
}
"""


class Dice(evaluate.Metric):  # type: ignore[misc]  # evaluate ships no types
    """Dice coefficient; see the card."""

    def _info(self) -> evaluate.MetricInfo:
        # A mask has many forms; it is read when it is added and kept as JSON run lengths.
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features(
                {
                    "predictions": datasets.Value("string"),
                    "references": datasets.Value("string"),
                }
            ),
        )

    def add_batch(
        self,
        *,
        predictions: Iterable[Any] | None = None,
        references: Iterable[Any] | None = None,
    ) -> None:
        """Read a batch of masks and keep their run lengths."""
        pairs = read_pairs(predictions, references, first_row=len(self))
        evaluate.Metric.add_batch(
            self,
            predictions=[dump_prediction(pair) for pair in pairs],
            references=[json.dumps(pair.references) for pair in pairs],
        )

    def add(self, *, prediction: object = None, reference: object = None) -> None:
        """Read one row and keep it."""
        (pair,) = read_pairs([prediction], [reference], first_row=len(self))
        evaluate.Metric.add(
            self, prediction=dump_prediction(pair), reference=json.dumps(pair.references)
        )

    def _compute(self, predictions: list[str], references: list[str]) -> dict[str, Any]:
        return score(
            [
                load_pair(prediction, json.loads(reference))
                for prediction, reference in zip(predictions, references, strict=True)
            ]
        )
