"""Blind baselines of the rows of a leaf task: what can be scored without looking.

They know the set (its most common answer, its median number), but no picture. Captions and masks
have none: no answer of one row is worth anything to another.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import median

from soubench.builders.rrs.build import Row
from soubench.builders.sou.blind import Baseline, chance_of_best
from soubench.builders.sou.geometry import box_iou

CENTER_MARGIN = 0.25
"""The box in the center leaves this share of width and height on each side: the middle half."""
MIN_IOU = 0.5
"""A box is right above it, as `acc_at_iou` scores by default."""


def blind_baselines(rows: Sequence[Row]) -> list[Baseline]:
    """Score every blind baseline on the rows of one leaf task.

    Rows of noise and occlusion are of several kinds; each baseline is measured on those that it can
    answer.

    Args:
        rows: Rows of one leaf task.

    Returns:
        For multiple choice ``chance``, ``constant-letter`` (the most frequent one),
        ``longest-string`` and ``most-common-answer`` (of those that are right more than once);
        where options are numbers also ``smallest-number``, ``median-number`` (nearest to the median
        of the right answers) and ``largest-number``; ``constant-yes`` and ``constant-no``;
        ``center-box``. Captions and masks have none.
    """
    choices = [row for row in rows if row.options]
    answers = Counter(row.draft.answer for row in choices)
    # What is right once would be known from the row itself.
    common = Counter({answer: n for answer, n in answers.items() if n > 1})
    baselines: list[Baseline] = []
    if choices:
        letters = Counter(row.answer_index for row in choices)
        n = len(choices)
        baselines += [
            Baseline("chance", sum(1 / len(row.options) for row in choices), n),
            Baseline("constant-letter", max(letters.values()), n),
            _best_scored("longest-string", choices, len),
            _best_scored("most-common-answer", choices, lambda option: common[option]),
        ]
    # What is drawn around a number has no pool.
    numbers = [row for row in choices if not row.draft.pool]
    if numbers:
        middle = median(_number(row.draft.answer) for row in numbers)
        baselines += [
            _best_scored("smallest-number", numbers, lambda option: -_number(option)),
            _best_scored("median-number", numbers, lambda option: -abs(_number(option) - middle)),
            _best_scored("largest-number", numbers, _number),
        ]
    said = [row.answer for row in rows if row.draft.answer_type == "yes_no"]
    if said:
        baselines += [Baseline(f"constant-{a}", said.count(a), len(said)) for a in ("yes", "no")]
    boxes = [row for row in rows if row.draft.answer_type == "box"]
    if boxes:
        baselines.append(Baseline("center-box", sum(map(_is_central, boxes)), len(boxes)))
    return baselines


def _best_scored(name: str, rows: Sequence[Row], score: Callable[[str], float]) -> Baseline:
    right = sum(
        chance_of_best([score(option) for option in row.options], row.answer_index) for row in rows
    )
    return Baseline(name, right, len(rows))


def _number(option: str) -> float:
    """Return a count, or a length or area without its unit."""
    return float(option.split()[0])


def _is_central(row: Row) -> bool:
    width, height = row.site.pictures[-1].size_wh
    far = 1 - CENTER_MARGIN
    center = (CENTER_MARGIN * width, CENTER_MARGIN * height, far * width, far * height)
    return bool(box_iou(row.draft.box_xyxy, center)[0] > MIN_IOU)
