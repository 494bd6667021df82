"""Errors of counted and located points: how many there are, and where."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import datasets
import evaluate
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from .point_rows import check_point_rows
from .point_text import Points, read_points
from .thought import without_thought


class SampleError(NamedTuple):
    """What one picture scores.

    Attributes:
        count_error: Predicted minus reference count.
        center_rmse: Mean over the pairs of sqrt((dx^2 + dy^2) / 2), in pixels; None without a pair.
        n_pairs: Matched pairs.
    """

    count_error: int
    center_rmse: float | None
    n_pairs: int


def score_points(predicted: Points, reference: Points) -> SampleError:
    """Match the points of one picture at the least total center error, and compare the counts."""
    count_error = predicted.total - reference.total
    if not predicted.points or not reference.points:
        return SampleError(count_error, None, 0)
    errors = cdist(np.array(predicted.points), np.array(reference.points)) / math.sqrt(2)
    rows, columns = linear_sum_assignment(errors)
    return SampleError(count_error, float(errors[rows, columns].mean()), len(rows))


def _as_points(value: str | Sequence[Sequence[float]]) -> Points | None:
    if isinstance(value, str):
        return read_points(without_thought(value))
    return Points(len(value), [(x, y) for x, y in value])


def _reference(value: str | Sequence[Sequence[float]], row: int) -> Points:
    points = _as_points(value)
    if points is None:
        msg = (
            f"row {row}: references: expected a count and points ('There are 2 leaves, centred at "
            f"coordinates (10, 20), (30, 40).'), got {str(value)[:60]!r}; nothing to count is "
            "'There are 0 leaves.' or []"
        )
        raise ValueError(msg)
    return points


def score(
    predictions: Sequence[str | Sequence[Sequence[float]]],
    references: Sequence[str | Sequence[Sequence[float]]],
) -> dict[str, Any]:
    """Score points or replies against points or target texts.

    Args:
        predictions: A reply, or points (N, 2) in pixels, for each picture.
        references: The same of the truth.

    Returns:
        The result keys that the card lists.

    Raises:
        ValueError: A reference text states neither a count nor a point.
    """
    samples = []
    unparsed = []
    for row, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
        found = _as_points(prediction)
        unparsed.append(found is None)
        samples.append(score_points(found or Points(0, []), _reference(reference, row)))
    n = len(samples)
    centers = [sample.center_rmse for sample in samples]
    located = [center for center in centers if center is not None]
    center_rmse = sum(located) / len(located) if located else None
    squares = sum(sample.count_error**2 for sample in samples)
    return {
        "count_rmse": math.sqrt(squares / n) if n else None,
        "center_rmse": center_rmse,
        "center_distance": None if center_rmse is None else center_rmse * math.sqrt(2),
        "n_samples": n,
        "n_pairs": sum(sample.n_pairs for sample in samples),
        "n_rmse_samples": len(located),
        "unparsed": sum(unparsed),
        "unparsed_rate": sum(unparsed) / n if n else 0.0,
        "unparsed_per_sample": unparsed,
        "per_sample": centers,
        "count_errors": [sample.count_error for sample in samples],
    }


_DESCRIPTION = """
Root mean square error of counts, and center error of points that are matched at the least total
error. Made for leaves of plants; works for any points.
"""
_INPUTS = """
Args:
    predictions: list of replies ("There are 2 leaves, centred at coordinates (10, 20), (30, 40).",
        "(leaves=2, centers=[(10, 20), (30, 40)])"), or list of lists of points (x, y) in pixels.
    references: the same of the truth; texts and points may be combined.

Returns:
    count_rmse: 0 or more, lower is better; None without rows.
    center_rmse, center_distance: pixels, 0 or more, lower is better; None without a pair.
    n_samples, n_pairs, n_rmse_samples, unparsed, unparsed_rate, unparsed_per_sample, per_sample,
        count_errors: see the card.

Examples:
    >>> metric = evaluate.load("matched_rmse")
    >>> metric.compute(predictions=[[(10, 20)]], references=[[(10, 20), (3, 4)]])["count_rmse"]
    1.0
"""
_CITATION = """
@misc{primitive_visual_measurement,
  title = {Exploring Primitive Visual Measurement Understanding and the Role of Output Format in
           Learning in Vision-Language Models},
  note  = {Sec. 4.1}
}
"""
_TEXT = datasets.Value("string")
_POINTS = datasets.Sequence(datasets.Sequence(datasets.Value("float64")))


class MatchedRmse(evaluate.Metric):  # type: ignore[misc]  # evaluate ships no types
    """Count and center errors of matched points; see the card."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=[
                datasets.Features({"predictions": predictions, "references": references})
                for predictions in (_TEXT, _POINTS)
                for references in (_TEXT, _POINTS)
            ],
        )

    def _finalize(self) -> None:
        if self.writer is None:  # No row came, so none has told what the columns hold.
            self.selected_feature_format = self.features[0]
            self._init_writer()
        evaluate.Metric._finalize(self)

    def _kept_texts(self) -> tuple[bool | None, bool | None]:
        """Tell which columns of the rows that are kept are texts."""
        kept = self.selected_feature_format
        if not len(self):
            return None, None
        return kept["predictions"] == _TEXT, kept["references"] == _TEXT

    def add_batch(
        self,
        *,
        predictions: Iterable[Any] | None = None,
        references: Iterable[Any] | None = None,
    ) -> None:
        """Check a batch of rows and keep it."""
        rows = check_point_rows(
            predictions, references, first_row=len(self), texts=self._kept_texts()
        )
        # An empty batch would settle for good whether columns hold texts or points.
        if rows.predictions:
            evaluate.Metric.add_batch(self, **rows._asdict())

    def add(self, *, prediction: object = None, reference: object = None) -> None:
        """Check one row and keep it."""
        rows = check_point_rows(
            [prediction], [reference], first_row=len(self), texts=self._kept_texts()
        )
        evaluate.Metric.add(self, prediction=rows.predictions[0], reference=rows.references[0])

    def _compute(
        self,
        predictions: Sequence[str | Sequence[Sequence[float]]],
        references: Sequence[str | Sequence[Sequence[float]]],
    ) -> dict[str, Any]:
        return score(predictions, references)
