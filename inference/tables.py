"""Tables: cells with intervals, as text and as Markdown; and how verdicts become cells."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from soubench.inference.intervals import cluster_sums, combined, score_interval, why_none
from soubench.inference.scores import SCORINGS, Measure, Unit, Verdict

CIRCULAR = "circular"
EMPTY = "-"

Rotation = int | Literal["circular"]
Mask = npt.NDArray[np.bool_]
Average = Literal["rows", "tasks"]
"""What a score is a mean of: rows, each of which weighs the same (a micro average where there are
several tasks), or tasks, each of which weighs the same."""


@dataclass(frozen=True, slots=True)
class Score:
    """One measured number.

    Attributes:
        measure: Name, a key of the metric's result.
        metric: What ``evaluate.load`` takes.
        unit: See `Measure`.
        is_error: Lower is better.
        average: What it is a mean of.
        value: The number in its own unit; None without a row that has one.
        low: Lower bound of the 95 % interval; None where nothing can be said.
        high: Upper bound.
        n: Rows that have a value.
        clusters: Groups of rows that are independent of each other.
        unparsed_rate: Share of the rows with a reply that could not be read.
        error_rate: Share of the rows without a reply.
    """

    measure: str
    metric: str
    unit: Unit
    is_error: bool
    average: Average
    value: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int
    unparsed_rate: float
    error_rate: float


Cell = Score | float | str | None
"""A measured number, a printed one, words, or nothing."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table.

    Attributes:
        labels: One per head.
        cells: One per column.
        keys: What the line is about, for machines: ``group``, ``rotation``, ..
        is_reference: Figures of a paper.
    """

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    keys: Mapping[str, Any]
    is_reference: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        name: For machines, stable.
        title: What it shows.
        heads: Names of the columns of labels.
        columns: Names of the other columns.
        lines: The lines.
        notes: What has to be known to read it.
        percent: Shares are printed in %; else as fractions.
    """

    name: str
    title: str
    heads: tuple[str, ...]
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    percent: bool = True

    def text(self, cell: Cell) -> str:
        """Print the number of a cell."""
        if cell is None:
            return EMPTY
        if isinstance(cell, str):
            return cell
        if isinstance(cell, Score):
            return EMPTY if cell.value is None else self._number(cell.value, cell.unit)
        # Printed figures are in the unit of the table already.
        return f"{cell:.2f}" if self.percent else f"{cell:.3f}"

    def interval(self, cell: Cell, dash: str = "-") -> str:
        """Print the interval of a cell, or why a score has none; empty for what is no score."""
        if not isinstance(cell, Score) or cell.value is None:
            return ""
        if cell.low is None or cell.high is None:
            return why_none(cell.clusters)
        decimals = 1 if self.percent or cell.unit != "share" else 3
        low, high = (self._number(v, cell.unit, decimals) for v in (cell.low, cell.high))
        return f"{low}{dash}{high}"

    def _number(self, value: float, unit: Unit, decimals: int | None = None) -> str:
        if unit != "share":
            return f"{value:.{2 if decimals is None else decimals}f}"
        if self.percent:
            return f"{100 * value:.{2 if decimals is None else decimals}f}"
        return f"{value:.3f}"


class Board:
    """Verdicts in columns, to score any selection of them.

    Args:
        verdicts: The verdicts.
    """

    def __init__(self, verdicts: Sequence[Verdict]) -> None:
        self.verdicts = verdicts
        groups = np.array([v.group_id for v in verdicts], dtype=object)
        self._clusters = np.unique(groups.astype(str), return_inverse=True)[1].astype(np.int64)
        self._unparsed = np.array([v.unparsed for v in verdicts], dtype=bool)
        self._errors = np.array([v.error is not None for v in verdicts], dtype=bool)
        self._columns = {
            name: np.array([getattr(v, name) for v in verdicts], dtype=object)
            for name in ("kind", "config", "split", "scenario", "subset", "task", "rotation")
        }
        self._values: dict[str, npt.NDArray[np.float64]] = {}

    def where(self, **wanted: object) -> Mask:
        """Return which rows have these values; a list or tuple stands for any of its members."""
        mask = np.ones(len(self.verdicts), dtype=bool)
        for name, value in wanted.items():
            values = value if isinstance(value, (list, tuple)) else [value]
            mask &= np.isin(self._columns[name], np.array(values, dtype=object))
        return mask

    def distinct(self, name: str, mask: Mask | None = None) -> list[Any]:
        """Return the different values of a column in the order of the rows."""
        column = self._columns[name]
        return list(dict.fromkeys(column if mask is None else column[mask]))

    def score(self, mask: Mask, measure: Measure) -> Score | None:
        """Score rows, each with the same weight; None if there are none."""
        return self._score(mask, measure, None)

    def main_measure(self, mask: Mask) -> Measure | None:
        """Return the main measure of rows; None if they have several, or there are none."""
        mains = {SCORINGS[kind].measures[0] for kind in self.distinct("kind", mask)}
        return mains.pop() if len(mains) == 1 else None

    def mean_of_tasks(self, mask: Mask) -> Score | None:
        """Return the unweighted mean of the tasks' main measures; None if there are none."""
        measures = {SCORINGS[kind].measures[0] for kind in self.distinct("kind", mask)}
        if not measures:
            return None
        names = sorted({m.name for m in measures})
        metrics = sorted({m.metric for m in measures})
        both = Measure(", ".join(names), ", ".join(metrics), "share")
        tasks = {task: i for i, task in enumerate(self.distinct("task", mask))}
        parts = np.array([tasks.get(task, 0) for task in self._columns["task"]], dtype=np.int64)
        return self._score(mask, both, parts)

    def _score(
        self, mask: Mask, measure: Measure, parts: npt.NDArray[np.int64] | None
    ) -> Score | None:
        if not mask.any():
            return None
        values = self._main_values() if parts is not None else self.values(measure)
        sums = cluster_sums(
            values[mask], self._clusters[mask], None if parts is None else parts[mask]
        )
        value = float(combined(sums.sum(axis=0), root=measure.root)) if len(sums) else None
        found = score_interval(sums, root=measure.root, is_share=measure.unit == "share")
        return Score(
            measure=measure.name,
            metric=measure.metric,
            unit=measure.unit,
            is_error=measure.is_error,
            average="rows" if parts is None else "tasks",
            value=value,
            low=found.low,
            high=found.high,
            n=int(sums[..., 0].sum()),
            clusters=len(sums),
            unparsed_rate=float(self._unparsed[mask].mean()),
            error_rate=float(self._errors[mask].mean()),
        )

    def values(self, measure: Measure) -> npt.NDArray[np.float64]:
        """Return a measure of every row; its square where the score is a root mean square."""
        if measure.name not in self._values:
            self._values[measure.name] = _numbers(v.values.get(measure.name) for v in self.verdicts)
        found = self._values[measure.name]
        return found**2 if measure.root else found

    def _main_values(self) -> npt.NDArray[np.float64]:
        """Return the main measure of every row as a share."""
        return _numbers(v.right for v in self.verdicts)

    def clusters(self) -> npt.NDArray[np.int64]:
        """Return the number of each row's cluster."""
        return self._clusters


def _numbers(values: Iterable[float | None]) -> npt.NDArray[np.float64]:
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


def all_rotations_right(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return one verdict per row that was asked in several rotations: right if all of them are.

    Rows that were asked once only, having no options to rotate, are left out.
    """
    rows: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        rows.setdefault(verdict.id, []).append(verdict)
    joined = []
    for members in rows.values():
        if len(members) > 1:
            right = min(m.right for m in members)
            error = next((m.error for m in members if m.error is not None), None)
            joined.append(
                replace(
                    members[0],
                    right=right,
                    values={"accuracy": right},
                    unparsed=error is None and any(m.unparsed for m in members),
                    error=error,
                )
            )
    return joined


def render_text(table: Table, *, intervals: bool = True) -> str:
    """Write a table for a terminal: numbers, and their intervals in a line below.

    Args:
        table: The table.
        intervals: Write the lines of intervals.
    """
    rows: list[tuple[list[str], list[str]]] = []
    for line in table.lines:
        rows.append(([*line.labels], [table.text(cell) for cell in line.cells]))
        below = [table.interval(cell) for cell in line.cells]
        if intervals and any(below):
            rows.append(([""] * len(line.labels), below))
    heads, columns = list(table.heads), list(table.columns)
    widths = [max(len(r[0][i]) for r in [*rows, (heads, columns)]) + 2 for i in range(len(heads))]
    if not intervals:
        widths[0] = max(widths[0], 14)
    spans = [
        max([len(r[1][i]) for r in [*rows, (heads, columns)]] + [7]) + 2
        for i in range(len(columns))
    ]

    def joined(labels: Sequence[str], cells: Sequence[str]) -> str:
        left = "".join(f"{text:<{w}}" for text, w in zip(labels, widths, strict=True))
        return (left + "".join(f"{t:>{w}}" for t, w in zip(cells, spans, strict=True))).rstrip()

    head = joined(heads, columns)
    return "\n".join([head, "-" * len(head), *(joined(*row) for row in rows)])


def render_markdown(table: Table) -> str:
    """Write a table in Markdown, with title and notes."""

    def escaped(text: str) -> str:
        return " ".join(text.replace("|", "\\|").split())

    head = [*table.heads, *table.columns]
    lines = [f"### {table.title}", "", f"| {' | '.join(map(escaped, head))} |"]
    lines.append("|" + "---|" * len(table.heads) + "--:|" * len(table.columns))
    for line in table.lines:
        cells = []
        for cell in line.cells:
            text, below = table.text(cell), table.interval(cell, "–")
            cells.append(f"{text} ({below})" if below else text)
        lines.append(f"| {' | '.join(escaped(c) for c in [*line.labels, *cells])} |")
    notes = [f"{escaped(note)}\n" for note in table.notes]
    return "\n".join([*lines, "", *notes])
