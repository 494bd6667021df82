"""What can be scored without looking: blind baselines of a set of questions.

A baseline that knows no picture but knows the set (its most common answer, its median size) should
score a quarter. Where several options tie for a baseline, it is credited with the chance of
hitting the right one, so that no figure depends on the order of the options.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from soubench.builders.sou.geometry import box_iou, hull_xyxy, quad_iou
from soubench.builders.sou.questions import LETTERS, Question
from soubench.builders.sou.statistics import shape_area, shape_of
from soubench.builders.sou.subsets import Task

PICTURE_BASELINE = "red-box"
"""Looks at the red outline and nothing else; no blind baseline, listed beside them."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Expected number of right answers of one baseline."""

    name: str
    right: float
    n: int

    @property
    def accuracy(self) -> float:
        """Share of right answers, 0..1."""
        return self.right / self.n if self.n else 0.0


def blind_baselines(questions: Sequence[Question], letters: Sequence[int]) -> list[Baseline]:
    """Score every blind baseline on the questions of one subset and one sub-task.

    Args:
        questions: At least one question, all of one sub-task.
        letters: Index of each question's right option.
    """
    task = questions[0].task
    answers = Counter(q.target.answer for q in questions)
    scores: dict[str, Callable[[str], float]] = {"longest-string": lambda o: len(o)}
    if task in (Task.CE, Task.OC, Task.SCC):
        middle = median(int(q.target.answer) for q in questions)
        scores["smallest-number"] = lambda o: -int(o)
        scores["largest-number"] = lambda o: int(o)
        scores["median-number"] = lambda o: -abs(int(o) - middle)
        scores["most-common-number"] = lambda o: answers[o]
    elif task is Task.OL:
        size = median(shape_area(shape_of(q.target.box)) for q in questions)
        scores["median-size"] = lambda o: -abs(shape_area(shape_of(_numbers(o))) - size)
    else:
        scores["most-frequent-category"] = lambda o: answers[o]
    n = len(questions)
    constant = Counter(letters)
    baselines = [Baseline("constant-letter", max(constant[i] for i in range(len(LETTERS))), n)]
    for name, score in scores.items():
        right = sum(chance_of_best([score(o) for o in q.options(0)], 0) for q in questions)
        baselines.append(Baseline(name, right, n))
    if task is Task.OL:
        right = sum(chance_of_best(_overlap(q), 0) for q in questions)
        baselines.append(Baseline(PICTURE_BASELINE, right, n))
    return baselines


def chance_of_best(scores: Sequence[float], right: int) -> float:
    """Return the chance that the best-scored option is the right one.

    Args:
        scores: Score of each option.
        right: Index of the right option.
    """
    best = max(scores)
    ties = sum(score == best for score in scores)
    return 1 / ties if scores[right] == best else 0.0


def _overlap(question: Question) -> list[float]:
    options = [_numbers(o) for o in question.options(0)]
    mark = question.target.mark
    if len(mark) == 8:
        return [float(v) for v in quad_iou(mark, options)]
    boxes = [hull_xyxy(o) if len(o) == 8 else o for o in options]
    return [float(v) for v in box_iou(mark, boxes)]


def _numbers(option: str) -> tuple[int, ...]:
    return tuple(int(v) for v in option.strip("[]").split(","))
