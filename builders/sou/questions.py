"""Questions of a whole sampled subset: targets, frozen statistics, distractors, letters."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from soubench.builders.keyed import KeyedRandom, keyed_hash
from soubench.builders.scene import normalized
from soubench.builders.sou.distractors import draw_distractors
from soubench.builders.sou.picture import SouPicture
from soubench.builders.sou.statistics import OPTIONS, Statistics, freeze, thinned_count
from soubench.builders.sou.subsets import SMALL_AREA_PX, Task
from soubench.builders.sou.tasks import ASK, Mode, Target

LETTERS = "ABCD"

TASK_SHIFTS: Mapping[Task, int] = {
    Task.CE: 0,
    Task.OC: 1,
    Task.CR: 2,
    Task.OL: 3,
    Task.SCC: 0,
    Task.POI: 2,
}
"""Where each sub-task starts in the cycle of letters.

0 and 2 start twice, 1 and 3 once, so that what is left over when a subset's size is no multiple of
four spreads over the letters: where all sub-tasks have the same number of rows, any config's
letters differ by at most one, whatever that number is.
"""


class Key(NamedTuple):
    """What every draw of a build is keyed by, besides source, image id and sub-task."""

    version: str
    seed: int

    def rng(self, picture: SouPicture, task: Task, use: str) -> KeyedRandom:
        """Return the draws of one question; ``use`` keeps target and distractors apart."""
        return KeyedRandom(
            self.version, self.seed, picture.source, picture.image_id, task.value, use
        )

    def rank(self, picture: SouPicture, task: Task, use: str) -> tuple[int, str]:
        """Return a sort key that orders rows at random, the same everywhere."""
        value = keyed_hash(
            self.version, self.seed, picture.source, picture.image_id, task.value, use
        )
        return value, picture.image_id


@dataclass(frozen=True, slots=True)
class Candidate:
    """A picture with its targets, independent of every other picture."""

    picture: SouPicture
    targets: Mapping[Task, Target]


@dataclass(frozen=True, slots=True)
class Question:
    """One question without its letter."""

    task: Task
    picture: SouPicture
    target: Target
    distractors: tuple[str, ...]

    def options(self, letter: int) -> list[str]:
        """Return the four options with the answer at index ``letter``."""
        options = list(self.distractors)
        options.insert(letter, self.target.answer)
        return options


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions of one subset.

    Attributes:
        questions: Per sub-task, in the order of the candidates.
        statistics: What the distractors were drawn from.
        unable: Image id -> reason, for pictures that cannot be given distractors.
        thinned: Rows that balanced mode left out, per sub-task.
        unbalanced: Sub-tasks that balanced mode cannot balance: fewer than four answers occur.
    """

    questions: Mapping[Task, tuple[Question, ...]]
    statistics: Statistics
    unable: Mapping[str, str]
    thinned: Mapping[Task, int]
    unbalanced: tuple[Task, ...]


def sample_key(seed: int, picture: SouPicture) -> tuple[int, str]:
    """Return the order in which pictures are sampled: smallest keyed hash first."""
    return keyed_hash("sample", seed, picture.source, picture.image_id), picture.image_id


def tasks_for(categories: Iterable[str]) -> tuple[Task, ...]:
    """Return the sub-tasks that labels of these categories can carry.

    CR and POI need four categories for their options, CE three for four numbers from 0.

    >>> tasks_for(["ship", "plane", "car"])
    (<Task.CE: 'CE'>, <Task.OC: 'OC'>, <Task.OL: 'OL'>, <Task.SCC: 'SCC'>)
    """
    n = len({normalized(category) for category in categories})
    least = {Task.CE: OPTIONS - 1, Task.CR: OPTIONS, Task.POI: OPTIONS}
    return tuple(task for task in Task if n >= least.get(task, 1))


def candidate(picture: SouPicture, mode: Mode, key: Key, tasks: Iterable[Task]) -> Candidate | str:
    """Find the targets of all ``tasks``, or the first reason why one cannot be asked."""
    targets: dict[Task, Target] = {}
    for task in tasks:
        target = ASK[mode][task](picture, key.rng(picture, task, "target"))
        if isinstance(target, str):
            return target
        targets[task] = target
    return Candidate(picture, targets)


def ask(
    candidates: Sequence[Candidate],
    categories: tuple[str, ...],
    mode: Mode,
    key: Key,
    *,
    small_area_px: float = SMALL_AREA_PX,
) -> Asked:
    """Ask every sub-task about every picture of one sampled subset.

    Args:
        candidates: The sampled pictures, at least one, all with targets of the same sub-tasks.
        categories: The subset's category list.
        mode: How distractors are drawn.
        key: Version and seed of the build.
        small_area_px: The subset's bound of what is small, in px².
    """
    asked = {task: list(candidates) for task in candidates[0].targets}
    thinned: dict[Task, int] = {}
    unbalanced: list[Task] = []
    if mode == "balanced":
        for task in asked:
            if task is Task.OL:
                continue
            kept = _thin(asked[task], task, key)
            if kept is None:
                unbalanced.append(task)
                continue
            if len(kept) < len(asked[task]):
                thinned[task] = len(asked[task]) - len(kept)
            asked[task] = kept
    statistics = freeze(
        [c.picture for c in candidates],
        {task: [c.targets[task] for c in rows] for task, rows in asked.items()},
        categories,
        small_area_px,
    )
    unable: dict[str, str] = {}
    questions: dict[Task, tuple[Question, ...]] = {}
    for task, rows in asked.items():
        made: list[Question] = []
        for c in rows:
            target = c.targets[task]
            drawn = draw_distractors(
                task, target, c.picture, statistics, mode, key.rng(c.picture, task, "distractors")
            )
            if isinstance(drawn, str):
                unable.setdefault(c.picture.image_id, drawn)
                continue
            if len({normalized(o) for o in (target.answer, *drawn)}) < OPTIONS:
                unable.setdefault(c.picture.image_id, "options_equal_after_normalization")
                continue
            made.append(Question(task, c.picture, target, tuple(drawn)))
        questions[task] = tuple(made)
    return Asked(questions, statistics, unable, thinned, tuple(unbalanced))


def _thin(candidates: Sequence[Candidate], task: Task, key: Key) -> list[Candidate] | None:
    """Keep so few rows of each answer that none is right more than once in four."""
    by_answer: dict[str, list[Candidate]] = {}
    for c in candidates:
        by_answer.setdefault(c.targets[task].answer, []).append(c)
    most = thinned_count([len(rows) for rows in by_answer.values()])
    if most is None:
        return None
    kept = {
        c.picture.image_id
        for rows in by_answer.values()
        for c in sorted(rows, key=lambda c: key.rank(c.picture, task, "thin"))[:most]
    }
    return [c for c in candidates if c.picture.image_id in kept]


def assign_letters(
    subsets: Sequence[Mapping[Task, Sequence[Question]]], key: Key
) -> list[dict[Task, dict[str, int]]]:
    """Give every question the index of its right option.

    The rows of a subset × sub-task are ranked by a keyed hash; the letter is (rank + offset) mod 4
    with the offset chained over the subsets, so that within a subset, a scenario and all of them
    the letters of a sub-task differ by at most one. Where the chains of the sub-tasks start is
    chosen so that they differ as little as can be over all sub-tasks together, too.

    Args:
        subsets: Questions per sub-task, subset by subset in their fixed order.
        key: Version and seed of the build.

    Returns:
        Per subset: sub-task -> image id -> 0..3.
    """
    letters: list[dict[Task, dict[str, int]]] = []
    sizes = [{task: len(rows) for task, rows in questions.items()} for questions in subsets]
    offsets = _task_shifts(sizes)
    for questions in subsets:
        chosen: dict[Task, dict[str, int]] = {}
        for task, rows in questions.items():
            ranked = sorted(rows, key=lambda q: key.rank(q.picture, q.task, "letter"))
            chosen[task] = {
                q.picture.image_id: (rank + offsets[task]) % OPTIONS
                for rank, q in enumerate(ranked)
            }
            offsets[task] += len(rows)
        letters.append(chosen)
    return letters


def _task_shifts(sizes: Sequence[Mapping[Task, int]]) -> dict[Task, int]:
    """Choose where the chains of letters start.

    ``TASK_SHIFTS`` is kept unless other shifts make the letters of some run of subsets differ by
    less: balanced mode leaves the sub-tasks with different numbers of rows.
    """
    tasks = list(TASK_SHIFTS)
    totals = np.array([[size.get(task, 0) for task in tasks] for size in sizes], dtype=np.int64)
    starts = np.vstack([np.zeros(len(tasks), np.int64), totals.cumsum(axis=0)])
    runs = [(i, j) for i in range(len(sizes)) for j in range(i + 1, len(sizes) + 1)]
    others = product(range(OPTIONS), repeat=len(tasks) - 1)
    shifts = np.array([tuple(TASK_SHIFTS.values()), *((0, *rest) for rest in others)])
    worst = np.zeros(len(shifts), np.int64)
    for i, j in runs:
        # Rows that are left over after whole rounds of A to D, and the letter they start at.
        left = (starts[j] - starts[i]) % OPTIONS
        first = (shifts + starts[i]) % OPTIONS
        counts = [(((k - first) % OPTIONS) < left).sum(axis=1) for k in range(OPTIONS)]
        worst = np.maximum(worst, np.max(counts, axis=0) - np.min(counts, axis=0))
    best = shifts[int(worst.argmin())]
    return dict(zip(tasks, best.tolist(), strict=True))
