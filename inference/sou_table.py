"""Scores of SOU-VQA in the form of the paper's Tables 3 and 6."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import evaluate

from soubench.builders.sou.questions import LETTERS
from soubench.builders.sou.subsets import GROUPS, SUBSETS, Task

AVERAGE = "Average"
TABLE_GROUPS = ("driving", "aerial", "a-visdrone", "a-aitod", "a-soda", "underwater", "all")
"""Rows of the table; each aerial subset stands under the scenario that it belongs to."""

Cell = tuple[str, Task]
"""Subset and sub-task."""


@dataclass(frozen=True, slots=True)
class Score:
    """Right answers out of ``n``; what cannot be parsed is wrong."""

    right: float
    n: int

    @property
    def percent(self) -> float:
        """Accuracy in percent."""
        return 100 * self.right / self.n


def pooled(scores: Iterable[Score]) -> Score:
    """Pool scores: the micro average, in which every question weighs the same."""
    listed = list(scores)
    return Score(sum(s.right for s in listed), sum(s.n for s in listed))


@cache
def _option_match() -> evaluate.EvaluationModule:
    # Each load asks the Hub first, which takes seconds where there is no network.
    return evaluate.load("option_match")


def score_replies(rows: Sequence[Mapping[str, Any]], replies: Sequence[str]) -> dict[Cell, Score]:
    """Score replies to rows of ``sou-vqa`` with the ``option_match`` metric.

    Args:
        rows: Rows with ``subset``, ``task``, ``options`` and ``answer``.
        replies: One text per row.

    Returns:
        A score for each subset and sub-task that occurs.

    Raises:
        ValueError: Not one reply per row.
    """
    if len(rows) != len(replies):
        raise ValueError(f"expected one reply per row: {len(rows)} rows, {len(replies)} replies")
    metric = _option_match()
    members: dict[Cell, list[int]] = {}
    for i, row in enumerate(rows):
        members.setdefault((row["subset"], Task(row["task"])), []).append(i)
    scores: dict[Cell, Score] = {}
    for cell, indices in members.items():
        result = metric.compute(
            predictions=[replies[i] for i in indices],
            references=[LETTERS[rows[i]["answer"]] for i in indices],
            options=[list(rows[i]["options"]) for i in indices],
        )
        scores[cell] = Score(result["accuracy"] * len(indices), len(indices))
    return scores


def table_row(scores: Mapping[Cell, Score], group: str) -> dict[str, float]:
    """Return percent per sub-task and their average for one group, micro over its subsets.

    Columns without a question are left out; so is everything for a group without any.
    """
    row = {
        task.value: pooled(cells).percent
        for task in Task
        if (cells := [scores[s, task] for s in GROUPS[group] if (s, task) in scores])
    }
    everything = [score for (subset, _), score in scores.items() if subset in GROUPS[group]]
    return row | {AVERAGE: pooled(everything).percent} if everything else {}


def table_text(results: Mapping[str, Mapping[Cell, Score]]) -> str:
    """Write the paper's table: one block per scenario and subset, one line per model.

    Args:
        results: Model -> scores.
    """
    columns = [task.value for task in Task] + [AVERAGE]
    width = max(len("Model"), *map(len, results)) + 2
    head = f"{'Subset':<14}{'Model':<{width}}" + "".join(f"{column:>9}" for column in columns)
    lines = [head, "-" * len(head)]
    for group in TABLE_GROUPS:
        block = {model: table_row(scores, group) for model, scores in results.items()}
        name = f"  {group}" if group in SUBSETS and SUBSETS[group].scenario != group else group
        for model, row in block.items():
            if row:
                cells = (f"{row[c]:9.2f}" if c in row else f"{'-':>9}" for c in columns)
                lines.append(f"{name:<14}{model:<{width}}" + "".join(cells))
    return "\n".join(lines)
