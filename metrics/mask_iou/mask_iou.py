"""Intersection over union of predicted masks: per class, per picture and cumulative."""

import json
import math
import operator
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import datasets
import evaluate
import numpy as np

from .masks import (
    Mask,
    NotAMask,
    Overlap,
    Pair,
    SizeHw,
    check_columns,
    count_empty,
    describe_unparsed,
    dump_prediction,
    encode,
    load_pair,
    read_array,
    read_mask,
    read_pair,
    resolve,
    short,
)
from .thought import without_thought

ClassId = str | int
FOREGROUND = "foreground"


class Classes(NamedTuple):
    """The classes of one row.

    Attributes:
        ids: Names or numbers, all different.
        is_list: Whether the row holds a list of masks or a label map, not one bare mask.
    """

    ids: list[ClassId]
    is_list: bool


class Row(NamedTuple):
    """One picture.

    Attributes:
        classes: One per mask.
        pair: The masks.
    """

    classes: list[ClassId]
    pair: Pair


def read_rows(
    predictions: Iterable[Any] | None,
    references: Iterable[Any] | None,
    classes: Iterable[Any] | None = None,
    *,
    first_row: int = 0,
) -> list[Row]:
    """Read the masks of all rows; inputs stay untouched.

    Args:
        predictions: Per row one mask in any form of ``masks.read_mask``, or one per class as a list
            or an array (class, height, width), or a label map; in a text, a thought before it is
            cut off.
        references: The same.
        classes: Per row the class of its one mask, or the list of classes of its masks; None if
            every row holds one mask of one class, "foreground". A label map is an array or PNG
            whose values are class numbers; values that the row does not list are background.
        first_row: Number of the first row in messages.

    Raises:
        ValueError: The columns differ in length, a class is no name or number or stands twice in
            one row, a reference holds no masks, or an entry has a type that cannot; the message
            names the row.
    """
    columns = {"predictions": predictions, "references": references}
    if classes is not None:
        columns["classes"] = classes
    lists = check_columns(first_row, **columns)
    row_classes = lists[2] if classes is not None else [FOREGROUND] * len(lists[0])
    rows = []
    for row, (prediction, reference, value) in enumerate(
        zip(*lists[:2], row_classes, strict=True), start=first_row
    ):
        known = _read_classes(value, row)
        if isinstance(prediction, str):
            prediction = without_thought(prediction)
        pair = read_pair(row, prediction, reference, partial(_read_masks, known))
        rows.append(Row(known.ids, pair))
    return rows


def _read_classes(value: object, row: int) -> Classes:
    value = value.tolist() if isinstance(value, np.ndarray) else value
    is_text = isinstance(value, str | bytes)
    values = list(value) if isinstance(value, Sequence) and not is_text else None
    ids = [_class_id(item) for item in ([value] if values is None else values)]
    if not ids or None in ids or len(set(ids)) < len(ids):
        msg = (
            f"row {row}: classes: expected a name or a number of at least 0, or a list of such, "
            f"all different, got {short(value)}; unite masks of one class, or give them rows of "
            "their own"
        )
        raise ValueError(msg)
    return Classes([item for item in ids if item is not None], values is not None)


def _class_id(value: object) -> ClassId | None:
    if isinstance(value, str):
        return value or None
    if isinstance(value, bool | np.bool_):
        return None
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # a TypeError is the answer
    except TypeError:
        return None
    return number if number >= 0 else None


def _read_masks(classes: Classes, value: object, expected_hw: SizeHw | None) -> list[Mask]:
    if not classes.is_list:
        return [read_mask(value, expected_hw)]
    content = resolve(value)
    if getattr(content, "ndim", 0) == 3:
        content = list(content)
    if isinstance(content, list | tuple):
        if len(content) != len(classes.ids):
            msg = f"expected one mask per class, {len(classes.ids)}, got {len(content)}"
            raise NotAMask(msg)
        masks: list[Mask] = []
        for item in content:
            masks.append(read_mask(item, masks[0].size_hw if masks else expected_hw))
        return masks
    if isinstance(content, Mapping) or not all(isinstance(item, int) for item in classes.ids):
        msg = (
            f"expected a list of {len(classes.ids)} masks, got {short(content)}; a label map "
            "(array or PNG) needs class numbers, not names"
        )
        raise NotAMask(msg)
    labels = read_array(content, expected_hw)
    return [encode(labels == item) for item in classes.ids]


def _iou(overlap: Overlap) -> float | None:
    """Return the IoU, None where neither mask has a pixel."""
    return overlap.intersection / overlap.union if overlap.union else None


def _mean_present(values: Iterable[float | None], *, if_none: float) -> float:
    present = [value for value in values if value is not None]
    return math.fsum(present) / len(present) if present else if_none


def _add_up(overlaps: Iterable[Overlap]) -> Overlap:
    return Overlap(*(sum(column) for column in zip((0, 0, 0), *overlaps, strict=True)))


def score(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the IoU per class, per picture and of all pixels.

    Args:
        rows: Pictures with their classes and masks.

    Returns:
        ``miou`` (RRS-10K, Sec. IV-B, Eq. 10: pixels of each class added over all pictures, then the
        mean over classes), ``mean_iou`` (classes averaged within a picture, then the mean over
        pictures), ``cumulative_iou`` (all intersections / all unions), each 0 to 1;
        ``iou_per_class`` (pooled; None for a class without a pixel, which no mean counts);
        ``ious`` (per row); ``n`` rows and ``n_masks`` pairs of masks; ``n_both_empty``,
        ``n_only_prediction_empty``, ``n_only_reference_empty`` among those; ``unparsed_rate`` and
        ``unparsed`` (row and reason). Without rows the rates are 0.0.
    """
    n = len(rows)
    per_class: defaultdict[ClassId, list[Overlap]] = defaultdict(list)
    read: list[Overlap] = []
    ious: list[float] = []
    for row in rows:
        overlaps = row.pair.overlaps()
        for class_id, overlap in zip(row.classes, overlaps, strict=True):
            per_class[class_id].append(overlap)
        if row.pair.reason:
            ious.append(0.0)
        else:
            read += overlaps
            ious.append(_mean_present(map(_iou, overlaps), if_none=1.0))
    pooled = {class_id: _add_up(overlaps) for class_id, overlaps in per_class.items()}
    iou_per_class = {class_id: _iou(overlap) for class_id, overlap in pooled.items()}
    unparsed = describe_unparsed([row.pair for row in rows])
    # Where no row has a pixel, the pool is perfect only if each prediction was read.
    if_none = float(n > 0 and not unparsed)
    cumulative = _iou(_add_up(pooled.values()))
    return {
        "miou": _mean_present(iou_per_class.values(), if_none=if_none),
        "mean_iou": math.fsum(ious) / n if n else 0.0,
        "cumulative_iou": if_none if cumulative is None else cumulative,
        "iou_per_class": iou_per_class,
        "ious": ious,
        "n": n,
        "n_masks": sum(len(row.classes) for row in rows),
        **count_empty(read)._asdict(),
        "unparsed_rate": len(unparsed) / n if n else 0.0,
        "unparsed": unparsed,
    }


def _dump_reference(row: Row) -> str:
    return json.dumps([row.classes, row.pair.references])


_DESCRIPTION = """
Intersection over union of masks, with each mean named: per class and averaged over classes (miou),
averaged over pictures (mean_iou), and of all pixels (cumulative_iou), counted on COCO run lengths.
A class absent from prediction and reference is left out, one that is only predicted counts 0; a
prediction that cannot be read counts 0 and is reported.
"""
_INPUTS = """
Args:
    predictions: list of masks, each {"size": [height, width], "counts": ...} (COCO run lengths,
        compressed or a list), {"size": ..., "polygons": [[x, y, ...], ...]}, either as JSON text, a
        2-D array or nested list, or the path of a PNG. With a list of classes, a list of masks per
        row, or a label map (array or PNG). A missing prediction is "".
    references: list of the same.
    classes: optional, per row the class of its mask, or the list of classes of its masks.

Returns:
    miou: mean over classes of the IoU of all pixels of a class, 0 to 1, higher is better.
    mean_iou: mean over pictures, 0 to 1, higher is better.
    cumulative_iou: all intersections / all unions, 0 to 1, higher is better.
    iou_per_class: the values behind miou; None for a class without a pixel.
    ious: one value per picture.
    n: number of pictures.
    n_masks: number of pairs of masks.
    n_both_empty, n_only_prediction_empty, n_only_reference_empty: counts of empty pairs.
    unparsed_rate: share of predictions that are no mask, 0 to 1, lower is better.
    unparsed: their rows and the reasons.

Examples:
    >>> metric = evaluate.load("mask_iou")
    >>> metric.compute(predictions=[[[1, 1], [0, 0]]], references=[[[1, 0], [0, 0]]])["miou"]
    0.5
"""
_CITATION = """
@software{soubench_mask_iou,
  title = {mask_iou: mask overlap with named means and counted empties},
  author = {The soubench authors},
  year = {2026}
}
"""


class MaskIou(evaluate.Metric):  # type: ignore[misc]  # evaluate ships no types
    """Intersection over union of masks; see the card."""

    def _info(self) -> evaluate.MetricInfo:
        # A mask has many forms; it is read when it is added and kept as JSON run lengths, the
        # classes beside the references: a column of their own could not be left out.
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
        classes: Iterable[Any] | None = None,
    ) -> None:
        """Read a batch of masks and keep their run lengths."""
        rows = read_rows(predictions, references, classes, first_row=len(self))
        evaluate.Metric.add_batch(
            self,
            predictions=[dump_prediction(row.pair) for row in rows],
            references=[_dump_reference(row) for row in rows],
        )

    def add(
        self, *, prediction: object = None, reference: object = None, classes: object = None
    ) -> None:
        """Read one row and keep it."""
        columns = [[prediction], [reference], None if classes is None else [classes]]
        (row,) = read_rows(*columns, first_row=len(self))
        evaluate.Metric.add(
            self, prediction=dump_prediction(row.pair), reference=_dump_reference(row)
        )

    def compute(
        self,
        *,
        predictions: Iterable[Any] | None = None,
        references: Iterable[Any] | None = None,
        classes: Iterable[Any] | None = None,
    ) -> dict[str, Any] | None:
        """Add the rows given, if any, and score all that were added."""
        if not (predictions is None and references is None and classes is None):
            self.add_batch(predictions=predictions, references=references, classes=classes)
        result: dict[str, Any] | None = evaluate.Metric.compute(self)
        return result

    def _compute(self, predictions: list[str], references: list[str]) -> dict[str, Any]:
        rows = []
        for prediction, reference in zip(predictions, references, strict=True):
            classes, masks = json.loads(reference)
            rows.append(Row(classes, load_pair(prediction, masks)))
        return score(rows)
