"""Compare two scored runs on the rows that both were asked."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from soubench.builders.errors import RunError
from soubench.inference.breakdowns import in_papers_order
from soubench.inference.intervals import combined, difference_interval, why_none
from soubench.inference.run_folder import RUN_FILE
from soubench.inference.score import (
    SCORES_FILE,
    VERDICTS_FILE,
    replies_digest,
    score_runs,
    write_scores,
)
from soubench.inference.scores import SCORINGS, Measure, Unit, Verdict

OVERALL = "all"


@dataclass(frozen=True, slots=True)
class ScoredFolder:
    """What ``soubench score`` wrote.

    Attributes:
        path: The folder.
        scores: What ``scores.json`` holds.
        verdicts: The verdicts.
    """

    path: Path
    scores: Mapping[str, Any]
    verdicts: Sequence[Verdict]

    @property
    def name(self) -> str:
        """Name of the model; the last folder of a local one."""
        name = str(self.scores["run"]["model"]["name"])
        return Path(name).name if Path(name).is_absolute() else name

    @property
    def fingerprints(self) -> set[tuple[str, ...]]:
        """What tells the builds of the rows from others."""
        return {
            tuple(str(run["dataset"].get(key)) for key in ("name", "split", "fingerprint"))
            for run in self.scores["runs"]
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs on the rows of one task.

    Attributes:
        task: The task; ``all`` for all rows of a kind of answer.
        split: The split.
        measure: Name of the measure.
        unit: See `Measure`.
        is_error: Lower is better.
        n: Rows that both were asked.
        clusters: Groups of rows that are independent of each other.
        a: Score of the first run on these rows.
        b: Score of the second.
        difference: ``b - a``.
        low: Lower bound of its 95 % interval, by a bootstrap over groups of pictures that draws
            the same groups for both; None where no group differs.
        high: Upper bound.
        only_a: Rows that only the first has right; None for a measure that is not 0 or 1.
        only_b: Rows that only the second has right.
        p: McNemar's exact test, two-sided. It takes rows for independent, which the interval does
            not.
        p_holm: The same corrected by Holm over the tasks; None for ``all``, which is no task.
        kind: Kind of answer, a key of ``SCORINGS``; a task may have several.
    """

    task: str
    split: str
    measure: str
    unit: Unit
    is_error: bool
    n: int
    clusters: int
    a: float | None
    b: float | None
    difference: float | None
    low: float | None
    high: float | None
    only_a: int | None = None
    only_b: int | None = None
    p: float | None = None
    p_holm: float | None = None
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """The outcome.

    Attributes:
        a: The first run.
        b: The second.
        rows: Rows that both were asked.
        only_in_a: Rows that only the first was asked.
        only_in_b: Rows that only the second was asked.
        other_question: Rows of the same id that ask something else, in builds that differ.
        comparisons: One per task and measure.
        notes: In what the two were asked differently.
    """

    a: ScoredFolder
    b: ScoredFolder
    rows: int
    only_in_a: int
    only_in_b: int
    other_question: int
    comparisons: Sequence[Comparison]
    notes: Sequence[str]


def compare_runs(first: Path, second: Path, *, across_builds: bool = False) -> Compared:
    """Compare two runs; what is not scored yet, or no longer is, is scored first.

    Rows are compared as they stand, without the rotations of a circular run.

    Args:
        first: RUN folder, or where ``soubench score`` wrote.
        second: The same.
        across_builds: Compare runs over different builds of a dataset, on the rows of the same id
            whose question, options and answer are the same.

    Raises:
        RunError: The runs are over different builds, or have no row in common.
    """
    a, b = read_scored(first), read_scored(second)
    if a.fingerprints != b.fingerprints and not a.fingerprints & b.fingerprints:
        if not across_builds:
            raise RunError(
                f"{first} and {second} were asked rows of different builds: "
                f"{_said(a)} and {_said(b)}. Pictures, options or letters may differ. Run both on "
                "one build, or compare the rows that ask the same with --across-builds."
            )
    elif a.fingerprints != b.fingerprints:
        # Some parts are of the same build; rows of the others must not slip in by their ids.
        across_builds = True
    of_a = {v.id: v for v in a.verdicts if v.rotation == 0}
    of_b = {v.id: v for v in b.verdicts if v.rotation == 0}
    shared = [key for key in of_a if key in of_b]
    same = [k for k in shared if of_a[k].question_sha256 == of_b[k].question_sha256]
    if not across_builds:
        same = shared
    if not same:
        raise RunError(
            f"{first} and {second} have no row in common: {len(of_a)} and {len(of_b)} rows, "
            f"{len(shared)} of the same id."
        )
    pairs = [(of_a[key], of_b[key]) for key in same]
    return Compared(
        a,
        b,
        rows=len(pairs),
        only_in_a=len(of_a) - len(shared),
        only_in_b=len(of_b) - len(shared),
        other_question=len(shared) - len(same),
        comparisons=holm_corrected(compare_pairs(pairs)),
        notes=_differences(a.scores, b.scores, has_boxes=any(p[0].kind == "box" for p in pairs)),
    )


def read_scored(path: Path) -> ScoredFolder:
    """Read what ``soubench score`` wrote for a run; score it first where that is out of date.

    Raises:
        RunError: The folder is neither a run nor scored, or is damaged.
    """
    scores = _read_json(path / SCORES_FILE)
    is_run = (path / RUN_FILE).exists()
    if scores is None and not is_run:
        raise RunError(
            f"{path}: expected a RUN folder, or one with the {SCORES_FILE} of soubench score."
        )
    if scores is None or (is_run and scores.get("replies_sha256") != replies_digest([path])):
        scored = score_runs([path])
        write_scores(scored, scored.tables(), path)
        scores = _read_json(path / SCORES_FILE) or {}
    try:
        lines = (path / VERDICTS_FILE).read_text(encoding="utf-8").splitlines()
        verdicts = [Verdict(**json.loads(line)) for line in lines]
    except (OSError, ValueError, TypeError) as error:
        raise RunError(
            f"{path / VERDICTS_FILE}: the verdicts cannot be read ({error}). Score the run again."
        ) from error
    return ScoredFolder(path, scores, verdicts)


def _read_json(file: Path) -> dict[str, Any] | None:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise RunError(f"{file} cannot be read ({error}). Score the run again.") from error
    if not isinstance(data, dict) or "runs" not in data:
        raise RunError(f"{file}: expected what soubench score writes. Score the run again.")
    return data


def compare_pairs(pairs: Sequence[tuple[Verdict, Verdict]]) -> list[Comparison]:
    """Compare two verdicts each on many rows, per split, task and measure.

    Args:
        pairs: Verdicts of the first and second run on the same row.

    Returns:
        One entry per split, task and measure, and one over all tasks where there are several;
        ``p_holm`` is not filled in.
    """
    found = []
    places = {kind: i for i, kind in enumerate(SCORINGS)}
    kinds = {(a.split, a.kind) for a, _ in pairs}
    splits = list(dict.fromkeys(a.split for a, _ in pairs))
    for split, kind in sorted(kinds, key=lambda k: (splits.index(k[0]), places[k[1]])):
        members = [(a, b) for a, b in pairs if (a.split, a.kind) == (split, kind)]
        tasks = in_papers_order(a.task for a, _ in members)
        for task in [*tasks, OVERALL] if len(tasks) > 1 else tasks:
            of_task = members if task == OVERALL else [p for p in members if p[0].task == task]
            for measure in SCORINGS[kind].measures:
                if any(measure.name in a.values and measure.name in b.values for a, b in of_task):
                    found.append(_compare(task, split, measure, of_task))
    return found


def _compare(
    task: str, split: str, measure: Measure, pairs: Sequence[tuple[Verdict, Verdict]]
) -> Comparison:
    a, b = (_values([p[i] for p in pairs], measure) for i in (0, 1))
    clusters = np.unique([v.group_id for v, _ in pairs], return_inverse=True)[1].astype(np.int64)
    sums_a, sums_b = _paired_sums(a, clusters), _paired_sums(b, clusters)
    root = measure.root
    score_a, score_b = (float(combined(sums.sum(axis=0), root=root)) for sums in (sums_a, sums_b))
    known = not (np.isnan(score_a) or np.isnan(score_b))
    interval = difference_interval(sums_a, sums_b, root=root)
    only_a = only_b = p = None
    if measure.is_binary:
        only_a, only_b = int((a > b).sum()), int((b > a).sum())
        p = mcnemar(only_a, only_b)
    return Comparison(
        task=task,
        split=split,
        measure=measure.name,
        unit=measure.unit,
        is_error=measure.is_error,
        n=len(pairs),
        clusters=len(sums_a),
        a=None if np.isnan(score_a) else score_a,
        b=None if np.isnan(score_b) else score_b,
        difference=score_b - score_a if known else None,
        low=interval.low,
        high=interval.high,
        only_a=only_a,
        only_b=only_b,
        p=p,
        kind=pairs[0][0].kind,
    )


def _values(verdicts: Sequence[Verdict], measure: Measure) -> npt.NDArray[np.float64]:
    found = (v.values.get(measure.name) for v in verdicts)
    values = np.array([np.nan if v is None else v for v in found], dtype=np.float64)
    return values**2 if measure.root else values


def _paired_sums(
    values: npt.NDArray[np.float64], clusters: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return sums of all clusters, also of those without a value, so that two runs line up."""
    known = ~np.isnan(values)
    n = int(clusters.max()) + 1
    counts = np.bincount(clusters[known], minlength=n)
    totals = np.bincount(clusters[known], weights=values[known], minlength=n)
    return np.stack([counts, totals], axis=-1)[:, None, :].astype(np.float64)


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the two-sided p-value of McNemar's exact test.

    Args:
        only_first: Rows that only the first has right.
        only_second: Rows that only the second has right.

    Raises:
        RunError: scipy is missing.
    """
    try:
        from scipy.stats import binomtest
    except ImportError as error:
        raise RunError(
            'comparing needs more than the base install: pip install "soubench[metrics]". '
            f"({error})"
        ) from error
    n = only_first + only_second
    return float(binomtest(only_first, n).pvalue) if n else 1.0


def holm_corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Fill in ``p_holm``: p-values of the tasks, corrected by Holm's step-down procedure."""
    tested = sorted(
        (c.p, i) for i, c in enumerate(comparisons) if c.p is not None and c.task != OVERALL
    )
    corrected: dict[int, float] = {}
    largest = 0.0
    for rank, (p, i) in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - rank) * p))
        corrected[i] = largest
    return [replace(c, p_holm=corrected.get(i)) for i, c in enumerate(comparisons)]


def _said(folder: ScoredFolder) -> str:
    return ", ".join(f"{name} {split} {f[:12]}" for name, split, f in sorted(folder.fingerprints))


def _differences(a: Mapping[str, Any], b: Mapping[str, Any], *, has_boxes: bool) -> list[str]:
    """Say in what the two were asked differently, which a difference may be due to.

    Args:
        a: What ``scores.json`` of the first holds.
        b: The same of the second.
        has_boxes: Boxes were asked for in both, so that it matters how they were to be written.
    """
    first, second = a["run"], b["run"]
    names = ["coords", *(["box_format"] if has_boxes else []), "circular", "blind", "limit"]
    notes = [
        f"{name} is {_value_said(name, first)} in the first run and {_value_said(name, second)} in "
        "the second."
        for name in names
        if first.get(name) != second.get(name)
    ]
    prompts = [run.get("prompt") for run in (first, second)]
    if None not in prompts and prompts[0] != prompts[1]:
        notes.append("the words of the prompt differ.")
    elif prompts[0] != prompts[1]:
        which = "first" if prompts[0] is None else "second"
        notes.append(f"the words of the prompt are not said in the {which} run.")
    return notes


def _value_said(name: str, run: Mapping[str, Any]) -> str:
    value = run.get(name)
    if value is None:
        return "not limited" if name == "limit" else "not said"
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def as_json(compared: Compared) -> dict[str, Any]:
    """Return what ``--out`` writes."""
    return {
        "a": {"path": str(compared.a.path), "run": compared.a.scores["run"]},
        "b": {"path": str(compared.b.path), "run": compared.b.scores["run"]},
        "rows": compared.rows,
        "only_in_a": compared.only_in_a,
        "only_in_b": compared.only_in_b,
        "other_question": compared.other_question,
        "notes": list(compared.notes),
        "comparisons": [asdict(c) for c in compared.comparisons],
    }


def as_text(compared: Compared) -> str:
    """Write the comparison for a terminal."""
    a, b = compared.a, compared.b
    lines = [
        f"A: {a.name}, {a.scores['title']} ({a.path})",
        f"B: {b.name}, {b.scores['title']} ({b.path})",
        f"{compared.rows} rows in both, {compared.only_in_a} only in A, "
        f"{compared.only_in_b} only in B"
        + (f", {compared.other_question} ask another question" if compared.other_question else "")
        + ".",
        *(f"Note: {note}" for note in compared.notes),
        "",
    ]
    heads = ["Task", "Measure", "n", "A", "B", "B - A", "95 %", "only A", "only B", "p", "p Holm"]
    rows = [[_task(c, compared), *_cells(c)] for c in compared.comparisons]
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    for row in [heads, ["-" * w for w in widths], *rows]:
        first, second, *others = (
            cell.ljust(w) if i < 2 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join([first, second, *others]).rstrip())
    lines += [
        "",
        "Shares in %. 95 %: paired bootstrap over groups of pictures, 2,000 draws. p: McNemar's "
        "exact test, which takes rows for independent; Holm: corrected over the tasks.",
    ]
    return "\n".join(lines)


def _task(comparison: Comparison, compared: Compared) -> str:
    """Name a task, with its kind of answer and split where it has several."""
    splits = {c.split for c in compared.comparisons}
    kinds = {c.kind for c in compared.comparisons if c.task == comparison.task}
    name = comparison.task
    if len(kinds) > 1:
        name += f" ({comparison.kind.replace('_', '/')})"
    return f"{name}, {comparison.split}" if len(splits) > 1 else name


def _cells(c: Comparison) -> list[str]:
    scale = 100 if c.unit == "share" else 1

    def number(value: float | None, sign: str = "") -> str:
        return "-" if value is None else f"{scale * value:{sign}.2f}"

    interval = "-" if c.difference is None else why_none(c.clusters)
    if c.low is not None:
        interval = f"[{number(c.low, '+')}, {number(c.high, '+')}]"
    return [
        f"{c.measure}, lower is better" if c.is_error else c.measure,
        str(c.n),
        number(c.a),
        number(c.b),
        number(c.difference, "+"),
        interval,
        "-" if c.only_a is None else str(c.only_a),
        "-" if c.only_b is None else str(c.only_b),
        "-" if c.p is None else f"{c.p:.2g}",
        "-" if c.p_holm is None else f"{c.p_holm:.2g}",
    ]
