"""Grounding accuracy: the share of boxes that overlap the true one by more than a threshold."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import datasets
import evaluate
import numpy as np
import numpy.typing as npt

from .box_rows import (
    HOW_TO_CALL,
    MAX_PIXEL,
    Row,
    check_flag,
    check_options,
    check_rows,
    check_thresholds,
    plain_arrays,
    sorted_corners,
)
from .box_text import RawBox, find_boxes
from .formats import AUTO, FORMATS, TOLERANCE, Format, Frame, are_units, recognize, to_pixels
from .overlap import Floats, best_match, iou_matrix, pair_iou
from .reply import first_turn
from .thought import without_thought

KNOWN = (AUTO, *FORMATS)
UNITS = FORMATS["unit_xyxy"]


class Reading(NamedTuple):
    """How the numbers of one row are to be read.

    Attributes:
        name: Name of the format.
        form: Its entry in the table.
        only_units: Whether only decimals up to 1 are read (``auto`` without a wrapper).
    """

    name: str
    form: Format
    only_units: bool = False


def declared(row: Row, text: str) -> Reading:
    """Return the format of a row; ``auto`` takes the one that the reply's wrapper names.

    Numbers under ``auto`` are pixels of the picture; a reply without a naming wrapper is read as
    decimals up to 1, and as nothing else.

    Args:
        row: The row.
        text: Its reply, thoughts removed.
    """
    name = row.format or AUTO
    if name != AUTO:
        return Reading(name, FORMATS[name])
    if row.boxes:
        return Reading(name, FORMATS["pixel_xyxy"])
    named = recognize(text)
    return Reading(name, FORMATS[named or "unit_xyxy"], only_units=named is None)


def read_boxes(row: Row) -> list[list[float]]:
    """Return the predicted boxes of a row in pixels of the picture; invalid ones are left out.

    Thoughts, an echoed prompt and later turns are cut off a text. Its quads, and the angle of a
    GeoChat box, count only where a reference of the row is a quad; else the upright hull does.

    Args:
        row: The row; its sizes must be there (``require_sizes``).
    """
    text = first_turn(without_thought(row.text).strip())
    if not (row.boxes or text):
        return []
    reading = declared(row, text)
    form = reading.form
    quads = any(len(values) == 8 for values in row.references)
    raw = [RawBox(tuple(values), has_point=any(v % 1 for v in values)) for values in row.boxes]
    boxes = []
    for box in raw or find_boxes(text, wrapper=form.wrapper, quads=quads):
        is_unit = are_units(box.values, box.has_point)
        if reading.only_units and not is_unit:
            continue
        pixels = to_pixels(
            box.values,
            UNITS if form.reads_units and is_unit else form,
            order=box.order or form.order,
            image_size=row.image_size,
            input_size=row.input_size,
            limit=MAX_PIXEL,
            degrees=box.degrees if quads else None,
            upright=not quads,
        )
        if pixels is not None:
            boxes.append(pixels)
    return boxes


def require_sizes(rows: Sequence[Row]) -> None:
    """Check that every row has the sizes that its format needs.

    Args:
        rows: Checked rows.

    Raises:
        ValueError: A size is missing, or numbers are given where only tokens can be read.
    """
    for i, row in enumerate(rows):
        if not (row.boxes or row.text.strip()):
            continue
        reading = declared(row, "")
        frame = reading.form.frame
        for name, size, is_needed in (
            ("image_sizes", row.image_size, frame is not Frame.IMAGE),
            ("input_sizes", row.input_size, frame is Frame.INPUT),
        ):
            if is_needed and not size:
                msg = (
                    f"row {i}: {name}: format {reading.name!r} counts in {frame.value}, so it "
                    f"needs [width, height]; got none; pass {name}=[[width, height], ...]"
                )
                raise ValueError(msg)
        if row.boxes and reading.form.wrapper == "patch":
            msg = (
                f"row {i}: predictions: expected a reply text for format {reading.name!r}, whose "
                "boxes are tokens, got numbers; pass pixels with format='pixel_xyxy'"
            )
            raise ValueError(msg)


def threshold_key(threshold: float) -> str:
    """Return the result key of a threshold: ``acc@0.5``, all digits where it needs them."""
    short = f"{threshold:g}"
    return f"acc@{short if float(short) == threshold else repr(threshold)}"


def score(
    rows: Sequence[Row], *, thresholds: Sequence[float] = (0.5,), strict: bool = True
) -> dict[str, Any]:
    """Return the share of hits, the mean IoU, and what was read (RRS-10K, Eq. 9).

    A row with one reference scores its first box: 1 for a hit, else 0. A row with several scores
    hits / max(boxes, references) of the one-to-one matching with the largest sum of IoU.

    Args:
        rows: Checked rows whose sizes are there.
        thresholds: IoU thresholds, 0 to 1.
        strict: Whether a hit has IoU > threshold (Eq. 9), or >= (RefCOCO practice).

    Returns:
        ``acc@<threshold>`` (0..1) for each threshold, ``mean_iou`` (0..1), ``unparsed_rate``
        (0..1), ``extra_boxes`` (boxes beyond the number of references, summed over rows), ``n``,
        ``ious`` (per row, 0..1) and ``boxes`` (per row, pixels of the picture). All rates are 0.0
        without rows.
    """
    boxes = [read_boxes(row) for row in rows]
    ious = np.zeros(len(rows))
    hits = np.zeros((len(thresholds), len(rows)))
    passes = np.greater if strict else np.greater_equal
    levels = np.asarray(thresholds, dtype=np.float64)[:, None]
    single = [i for i, row in enumerate(rows) if boxes[i] and len(row.references) == 1]
    plain = [i for i in single if len(boxes[i][0]) == len(rows[i].references[0]) == 4]
    if plain:
        ious[plain] = pair_iou([boxes[i][0] for i in plain], [rows[i].references[0] for i in plain])
    for i in set(single).difference(plain):
        ious[i] = iou_matrix(boxes[i][:1], rows[i].references).item()
    hits[:, single] = passes(ious[single], levels)
    for i, row in enumerate(rows):
        if boxes[i] and len(row.references) > 1:
            iou = iou_matrix(boxes[i], row.references)
            size = max(iou.shape)
            for level, threshold in enumerate(thresholds):
                total, n_hits = best_match(iou, passes(iou, threshold))
                ious[i] = total / size
                hits[level, i] = n_hits / size
    extra = sum(
        max(0, len(found) - len(row.references)) for found, row in zip(boxes, rows, strict=True)
    )
    return _summary(thresholds, hits, ious, boxes, extra)


def score_plain(
    pairs: Floats, *, thresholds: Sequence[float] = (0.5,), strict: bool = True
) -> dict[str, Any]:
    """Return what ``score`` does, for upright boxes in pixels without sizes, as one array.

    Args:
        pairs: Predicted and true box of each row, ``(N, 8)``, from ``plain_arrays``.
        thresholds: IoU thresholds, 0 to 1.
        strict: Whether a hit has IoU > threshold, or >=.
    """
    predicted, truths = pairs[:, :4], pairs[:, 4:]
    margin = TOLERANCE * MAX_PIXEL
    # NaN fails too.
    is_valid = ((predicted >= -margin) & (predicted <= MAX_PIXEL + margin)).all(axis=1)
    clipped = sorted_corners(np.clip(predicted, 0.0, MAX_PIXEL))
    ious = np.where(is_valid, pair_iou(clipped, truths), 0.0)
    passes = np.greater if strict else np.greater_equal
    hits = passes(ious, np.asarray(thresholds)[:, None]) & is_valid
    boxes = clipped[:, None].tolist()
    for i in np.flatnonzero(~is_valid):
        boxes[i] = []
    return _summary(thresholds, hits, ious, boxes, 0)


def _summary(
    thresholds: Sequence[float],
    hits: npt.NDArray[Any],
    ious: Floats,
    boxes: list[list[list[float]]],
    extra_boxes: int,
) -> dict[str, Any]:
    n = len(boxes)
    return {
        **{
            threshold_key(threshold): float(hits[level].mean()) if n else 0.0
            for level, threshold in enumerate(thresholds)
        },
        "mean_iou": float(ious.mean()) if n else 0.0,
        "unparsed_rate": boxes.count([]) / n if n else 0.0,
        "extra_boxes": extra_boxes,
        "n": n,
        "ious": ious.tolist(),
        "boxes": boxes,
    }


_DESCRIPTION = """
Grounding accuracy: the share of rows whose box overlaps the true one by more than a threshold
(IoU), from reply texts in the declared format of a model family, or from boxes. Nothing is guessed
from the size of numbers; a reply without a whole box is unparsed and wrong.
"""
_INPUTS = """
Args:
    predictions: list of reply texts, boxes [x1, y1, x2, y2], quads of 8 numbers, or lists of
        boxes and quads; they may mix. A missing reply is "".
    references: list of boxes or quads in pixels of the picture, or of lists of them.
    format: name of the format for all rows, or a list of names, one per row; "auto" reads what
        its own wrapper names and decimals up to 1. Numbers under "auto" are pixels.
    image_sizes: list of [width, height], pixels of the pictures.
    input_sizes: list of [width, height], pixels of the resized pictures that the model saw.
    thresholds: IoU thresholds, 0 to 1.
    strict: True for IoU > threshold, False for IoU >= threshold.

Returns:
    acc@0.5 (one key per threshold): share of hits, 0 to 1, higher is better.
    mean_iou: mean IoU, 0 to 1, higher is better; a row without a box counts 0.
    unparsed_rate: share of rows without a valid box, 0 to 1, lower is better.
    extra_boxes: boxes beyond the number of references, in all.
    n: number of rows.
    ious: IoU of each row.
    boxes: boxes read from each row, pixels of the picture.

Examples:
    >>> metric = evaluate.load("acc_at_iou")
    >>> metric.compute(
    ...     predictions=['[{"bbox_2d": [100, 200, 300, 400], "label": "ship"}]'],
    ...     references=[[200, 100, 600, 200]],
    ...     format="qwen3_vl",
    ...     image_sizes=[[2000, 500]],
    ... )["acc@0.5"]
    1.0
"""
_CITATION = """
@software{soubench_acc_at_iou,
  title = {acc_at_iou: grounding accuracy in declared box formats},
  author = {The soubench authors},
  year = {2026}
}
"""


class AccAtIou(evaluate.Metric):  # type: ignore[misc]  # evaluate ships no types
    """Grounding accuracy; see the card."""

    def _info(self) -> evaluate.MetricInfo:
        # A row has many forms; it is checked when it is added and kept as JSON. Arrays of plain
        # boxes are kept whole, as one row whose references are empty.
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features(
                {
                    "predictions": datasets.Value("binary"),
                    "references": datasets.Value("binary"),
                }
            ),
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  # evaluate's own
        super().__init__(*args, **kwargs)
        # Rows wait here until `compute` knows their format; `evaluate` cannot change stored ones.
        self._rows: list[Row] = []

    def __len__(self) -> int:
        """Return the number of rows added."""
        return len(self._rows)

    def add_batch(
        self,
        *,
        predictions: object = None,
        references: object = None,
        format: object = None,
        image_sizes: object = None,
        input_sizes: object = None,
    ) -> None:
        """Check a batch of rows and keep it, with the formats and sizes that come with it."""
        self._rows += check_rows(
            predictions,
            references,
            format=format,
            image_sizes=image_sizes,
            input_sizes=input_sizes,
            known=KNOWN,
            first_row=len(self),
        )

    def add(
        self,
        *,
        prediction: object = None,
        reference: object = None,
        format: str | None = None,
        image_size: object = None,
        input_size: object = None,
    ) -> None:
        """Check one row and keep it."""
        self.add_batch(
            predictions=[prediction],
            references=[reference],
            format=format,
            image_sizes=[image_size],
            input_sizes=[input_size],
        )

    def compute(
        self,
        *,
        predictions: object = None,
        references: object = None,
        format: object = AUTO,
        image_sizes: object = None,
        input_sizes: object = None,
        thresholds: object = (0.5,),
        strict: bool = True,
    ) -> dict[str, Any] | None:
        """Score the rows added before, then those given here.

        Format and sizes go to every row that was added without its own. A list has an entry for
        each row, or for each row given here. After an error the rows added before are still there.
        """
        levels, is_strict = check_thresholds(thresholds), check_flag("strict", strict)
        is_bare = isinstance(format, str) and format in (AUTO, "pixel_xyxy")
        if is_bare and image_sizes is None and input_sizes is None and not self._rows:
            pairs = plain_arrays(predictions, references)
            if pairs is not None:
                return self._finish([pairs.tobytes()], [b""], levels, is_strict)
        has_rows = predictions is not None or references is not None
        given = (
            check_rows(predictions, references, known=KNOWN, first_row=len(self))
            if has_rows
            else []
        )
        rows = [*self._rows, *given]
        options = check_options(
            len(rows),
            format=format,
            image_sizes=image_sizes,
            input_sizes=input_sizes,
            known=KNOWN,
            n_last=len(given) if has_rows else None,
        )
        rows = [
            row._replace(
                format=row.format or name,
                image_size=row.image_size or image_size,
                input_size=row.input_size or input_size,
            )
            for row, (name, image_size, input_size) in zip(rows, options, strict=True)
        ]
        require_sizes(rows)
        if not rows and not has_rows:
            msg = f"there are no rows; {HOW_TO_CALL}"
            raise ValueError(msg)
        return self._finish(
            [json.dumps(row._replace(references=[])).encode() for row in rows],
            [json.dumps(row.references).encode() for row in rows],
            levels,
            is_strict,
        )

    def _finish(
        self, predictions: list[bytes], references: list[bytes], levels: list[float], strict: bool
    ) -> dict[str, Any] | None:
        evaluate.Metric.add_batch(self, predictions=predictions, references=references)
        self._rows = []
        result: dict[str, Any] | None = evaluate.Metric.compute(
            self, thresholds=levels, strict=strict
        )
        return result

    def _compute(
        self,
        predictions: list[bytes],
        references: list[bytes],
        thresholds: list[float],
        strict: bool,
    ) -> dict[str, Any]:
        rows: list[Row] = []
        for row, truths in zip(predictions, references, strict=True):
            if truths:
                rows.append(Row(*json.loads(row))._replace(references=json.loads(truths)))
                continue
            pairs = np.frombuffer(row).reshape(-1, 8)
            if len(predictions) == 1:
                return score_plain(pairs, thresholds=thresholds, strict=strict)
            # Another process gave rows of other forms.
            rows += [Row("", [pair[:4]], [pair[4:]], "", [], []) for pair in pairs.tolist()]
        return score(rows, thresholds=thresholds, strict=strict)
