"""Precision, recall and F1 of attribute frequencies: are the right attributes there at all?"""

from collections.abc import Iterable, Sequence
from typing import Any

import datasets
import evaluate

from .frequency import agreement, check_zero_division, mean_agreement
from .shape_text import (
    CATEGORICAL,
    Format,
    Shape,
    check_format,
    read_reference,
    read_shapes,
    says_something,
)
from .text_rows import check_text_rows
from .thought import without_thought


def _values(shapes: Sequence[Shape], name: str) -> list[str | None]:
    return [getattr(shape, name) for shape in shapes]


def score(
    predictions: Sequence[str],
    references: Sequence[str],
    *,
    output_format: Format = "auto",
    zero_division: float = 0.0,
) -> dict[str, Any]:
    """Compare attribute frequencies picture by picture, then average (001, Eq. 1-2).

    Args:
        predictions: Replies.
        references: Target texts, in sentence or tuple form whatever the replies are in.
        output_format: The form in which replies are read.
        zero_division: What a quotient with nothing in its divisor is; 0 in the paper.

    Returns:
        The result keys that the card lists.

    Raises:
        ValueError: A reference that is not blank holds no shape.
    """
    samples = []
    macros = []
    unparsed = []
    for row, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
        reply = without_thought(prediction)
        found, wanted = read_shapes(reply, output_format), read_reference(reference, row)
        unparsed.append(not found and (bool(wanted) or says_something(reply)))
        sample = {
            name: agreement(_values(found, name), _values(wanted, name), zero_division)
            for name in CATEGORICAL
        }
        samples.append(sample)
        macros.append(mean_agreement(list(sample.values())))
    n = len(samples)
    means = {name: mean_agreement([sample[name] for sample in samples]) for name in CATEGORICAL}
    macro = mean_agreement(list(means.values()))
    return {
        "precision_macro": macro.precision,
        "recall_macro": macro.recall,
        "f1_macro": macro.f1,
        "precision": {name: mean.precision for name, mean in means.items()},
        "recall": {name: mean.recall for name, mean in means.items()},
        "f1": {name: mean.f1 for name, mean in means.items()},
        "n_samples": n,
        "unparsed": sum(unparsed),
        "unparsed_rate": sum(unparsed) / n if n else 0.0,
        "unparsed_per_sample": unparsed,
        "precision_per_sample": [sample.precision for sample in macros],
        "recall_per_sample": [sample.recall for sample in macros],
        "f1_per_sample": [sample.f1 for sample in macros],
    }


_DESCRIPTION = """
Precision, recall and F1 of the attributes of described shapes, by how often each value occurs in a
picture, whichever shape it is said of. Averaged over pictures; a reply without readable shapes
scores 0 and is counted.
"""
_INPUTS = """
Args:
    predictions: list of str, the replies, in sentence or tuple form; a missing reply is "".
    references: list of str, the target texts, in sentence or tuple form.
    format: the form in which replies are read: "auto" (both), "sentence" or "tuple".
    zero_division: what a quotient with nothing in its divisor is, 0 to 1; 0 in the paper.

Returns:
    precision_macro, recall_macro, f1_macro: means over the attributes, 0 to 1, higher is better.
    precision, recall, f1: dicts by attribute, 0 to 1, higher is better.
    n_samples, unparsed, unparsed_rate, and lists per sample; see the card.

Examples:
    >>> metric = evaluate.load("attribute_f1")
    >>> reply = "(Circle, color=Red), (Square, color=Blue)"
    >>> metric.compute(predictions=[reply], references=[reply])["f1"]["color"]
    1.0
"""
_CITATION = """
@misc{primitive_visual_measurement,
  title = {Exploring Primitive Visual Measurement Understanding and the Role of Output Format in
           Learning in Vision-Language Models},
  note  = {Sec. 3.5, Eq. 1-2}
}
"""


class AttributeF1(evaluate.Metric):  # type: ignore[misc]  # evaluate ships no types
    """Precision, recall and F1 of attribute frequencies; see the card."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features(
                {"predictions": datasets.Value("string"), "references": datasets.Value("string")}
            ),
        )

    def add_batch(
        self,
        *,
        predictions: Iterable[Any] | None = None,
        references: Iterable[Any] | None = None,
    ) -> None:
        """Check a batch of rows and keep it."""
        rows = check_text_rows(predictions, references, first_row=len(self))
        evaluate.Metric.add_batch(self, **rows._asdict())

    def add(self, *, prediction: object = None, reference: object = None) -> None:
        """Check one row and keep it."""
        rows = check_text_rows([prediction], [reference], first_row=len(self))
        evaluate.Metric.add(self, prediction=rows.predictions[0], reference=rows.references[0])

    def _compute(
        self,
        predictions: list[str],
        references: list[str],
        format: str = "auto",
        zero_division: float = 0.0,
    ) -> dict[str, Any]:
        return score(
            predictions,
            references,
            output_format=check_format(format),
            zero_division=check_zero_division(zero_division),
        )
