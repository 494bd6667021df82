"""What an average hides: letters that a model likes, small objects that it misses, errors."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import pstdev
from string import ascii_uppercase as LETTERS
from typing import NamedTuple

from soubench.builders.errors import RunError
from soubench.builders.rrs.taxonomy import Task as LeafTask
from soubench.builders.sou.subsets import Task
from soubench.inference.intervals import cluster_sums, combined, difference_interval
from soubench.inference.scores import ACCURACY, OPTION_KINDS, Verdict
from soubench.inference.tables import Board, Cell, Line, Table

AREA_BOUNDS_PX = (0.0, 64.0, 144.0, 400.0, 1024.0, float("inf"))
"""Bounds of the bins of object areas, in px²; the paper's figures have none. 144, 400 and 1024 are
those of SODA (extremely, relatively and generally small), 1024 is what is small here at most, and
64 parts off AI-TOD's very tiny objects (8 × 8)."""
TASK_ORDERS = (tuple(map(str, Task)), tuple(map(str, LeafTask)))
"""Of the papers; codes that both use, such as OC, are told apart by the tasks beside them."""
ALL = "all"


def in_papers_order(tasks: Iterable[str]) -> list[str]:
    """Return the different tasks in the order of their paper; others as they came, at the end.

    >>> in_papers_order(["OL", "CE", "OL", "OC"])
    ['CE', 'OC', 'OL']
    """
    there = list(dict.fromkeys(tasks))
    order = max(TASK_ORDERS, key=lambda names: len({*names} & {*there}))
    return [*(t for t in order if t in there), *(t for t in there if t not in order)]


class LetterUse(NamedTuple):
    """How a letter was used.

    Attributes:
        letter: The letter.
        replied: How often it was replied.
        right: How often it is right.
        right_replies: How often it was replied where it is right.
    """

    letter: str
    replied: int
    right: int
    right_replies: int

    @property
    def recall(self) -> float | None:
        """Accuracy where this letter is right; None if it never is."""
        return self.right_replies / self.right if self.right else None


@dataclass(frozen=True, slots=True)
class LetterBias:
    """How letters were used in all questions with the same number of options.

    Attributes:
        options: Number of options.
        letters: One entry per letter.
        n: Questions, rotations counted apart.
        unread: Of these, replies without a letter, and errors.
        chi_square: Of replied letters against how often each is right in the rows with a letter.
            The more replies are right, the smaller it is by that alone; it finds strong bias.
        p: Its p-value with one degree of freedom less than letters; None where a letter is never
            right.
        recall_std: Standard deviation of the recalls, 0 to 0.5: the measure of selection bias that
            does not shrink with the number of rows (Zheng et al. 2024, RStd).
    """

    options: int
    letters: tuple[LetterUse, ...]
    n: int
    unread: int
    chi_square: float | None
    p: float | None
    recall_std: float | None


def letter_bias(verdicts: Sequence[Verdict]) -> list[LetterBias]:
    """Compare how often each letter is replied with how often it is right.

    Args:
        verdicts: Any; only multiple-choice rows count, all rotations together.

    Returns:
        One entry per number of options.

    Raises:
        RunError: scipy is missing.
    """
    try:
        from scipy.stats import chisquare
    except ImportError as error:
        raise RunError(
            f'scoring needs more than the base install: pip install "soubench[metrics]". ({error})'
        ) from error
    found = []
    for n_options in sorted({v.options for v in verdicts if v.kind == "mcq"}):
        rows = [v for v in verdicts if v.kind == "mcq" and v.options == n_options]
        read = [v for v in rows if v.parsed]
        replied = Counter(v.parsed for v in read)
        right = Counter(v.answer for v in rows)
        hits = Counter(v.answer for v in read if v.parsed == v.answer)
        letters = tuple(LetterUse(x, replied[x], right[x], hits[x]) for x in LETTERS[:n_options])
        expected = Counter(v.answer for v in read)
        chi_square = p = None
        if all(expected[use.letter] for use in letters):
            test = chisquare(
                [use.replied for use in letters], [expected[use.letter] for use in letters]
            )
            chi_square, p = float(test.statistic), float(test.pvalue)
        recalls = [use.recall for use in letters if use.recall is not None]
        std = pstdev(recalls) if len(recalls) > 1 else None
        unread = len(rows) - len(read)
        found.append(LetterBias(n_options, letters, len(rows), unread, chi_square, p, std))
    return found


def letter_table(biases: Sequence[LetterBias], title: str) -> Table:
    """Show how letters were used."""
    lines = []
    notes = []
    for bias in biases:
        read = bias.n - bias.unread
        for use in bias.letters:
            cells: tuple[Cell, ...] = (
                str(use.replied),
                _percent(use.replied / read if read else None),
                str(use.right),
                _percent(use.right / bias.n),
                _percent(use.recall),
            )
            keys = {"group": f"{bias.options} options"}
            lines.append(Line((f"{use.letter} of {bias.options}",), cells, keys))
        p = "" if bias.p is None else f", p = {bias.p:.2g}"
        chi = "-" if bias.chi_square is None else f"{bias.chi_square:.1f}{p}"
        notes.append(
            f"{bias.options} options: chi-square {chi}; standard deviation of the accuracies by "
            f"right letter {_percent(bias.recall_std)} points; {bias.unread} of {bias.n} replies "
            "without a letter."
        )
    columns = ("replied", "replied %", "right", "right %", "accuracy if right")
    return Table("letters", f"Letters: {title}", ("Letter",), columns, tuple(lines), tuple(notes))


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f}"


def size_tables(verdicts: Sequence[Verdict], title: str) -> list[Table]:
    """Show accuracy by the area of the object that a question is about.

    Only tasks take part in which every row is about one object: where a question about several
    happens to have one, its size is not what makes it hard.

    Returns:
        A table by area in the picture, and one by area after the model's resize, where known.
    """
    single = {v.task for v in verdicts} - {v.task for v in verdicts if v.object_area_px is None}
    rows = [v for v in verdicts if v.task in single and v.rotation == 0]
    made = []
    for name, of, areas in (
        ("object_area", "in the picture", [v.object_area_px for v in rows]),
        ("model_area", "as the model saw it", [v.model_area_px for v in rows]),
    ):
        known = [(v, area) for v, area in zip(rows, areas, strict=True) if area is not None]
        if known:
            made.append(_size_table(known, name, f"{of}: {title}", len(rows) - len(known)))
    return made


def _size_table(
    rows: Sequence[tuple[Verdict, float]], name: str, title: str, unknown: int
) -> Table:
    tasks = in_papers_order(v.task for v, _ in rows)
    lines = []
    for low, high in pairwise(AREA_BOUNDS_PX):
        board = Board([v for v, area in rows if low < area <= high])
        if not board.verdicts:
            continue
        cells: list[Cell] = []
        for task in tasks:
            mask = board.where(task=task)
            measure = board.main_measure(mask)
            cells.append(None if measure is None else board.score(mask, measure))
        label = f"{low:.0f} < area <= {high:.0f}" if high < float("inf") else f"{low:.0f} < area"
        lines.append(Line((label,), (*cells, str(len(board.verdicts))), {"group": label}))
    notes = ["Tasks whose questions are about one object; rotation 0."]
    if unknown:
        notes.append(f"{unknown} rows are left out: the size that the model saw is not known.")
    return Table(
        name,
        f"Accuracy in % by object area in px², {title}",
        ("Area",),
        (*tasks, "n"),
        tuple(lines),
        tuple(notes),
    )


def drop_tables(verdicts: Sequence[Verdict], title: str) -> list[Table]:
    """Show what corrupted pictures cost: pairs of a row and its copy with a corrupted picture.

    Returns:
        A table with a line per corruption and severity; none where there is no such pair.
    """
    plain = {v.id: v for v in verdicts if v.rotation == 0}
    copies = [v for v in plain.values() if v.clean_id and v.kind in OPTION_KINDS]
    pairs = [(plain[v.clean_id], v) for v in copies if v.clean_id in plain]
    if not pairs:
        return []
    lines = []
    for kind in sorted({copy.corruption for _, copy in pairs}):
        of_kind = [pair for pair in pairs if pair[1].corruption == kind]
        for severity in sorted({copy.severity for _, copy in of_kind}):
            members = [pair for pair in of_kind if pair[1].severity == severity]
            lines.append(_drop_line(members, kind.replace("_", " "), str(severity)))
        lines.append(_drop_line(of_kind, kind.replace("_", " "), ALL))
    lines.append(_drop_line(pairs, ALL, ALL))
    notes = [
        "Pairs of a row and its copy with a corrupted picture; rotation 0. Drop: accuracy of the "
        "clean rows minus that of their copies, in points; its interval is of paired draws."
    ]
    if len(pairs) < len(copies):
        notes.append(
            f"Copies left out since their clean rows were not asked: {len(copies) - len(pairs)}. "
            "Score the configs that hold those together with this one."
        )
    columns = ("clean", "corrupted", "drop", "n")
    return [
        Table(
            "corruption_drop",
            f"Accuracy in % of clean and corrupted pictures: {title}",
            ("Corruption", "Severity"),
            columns,
            tuple(lines),
            tuple(notes),
        )
    ]


def _drop_line(pairs: Sequence[tuple[Verdict, Verdict]], corruption: str, severity: str) -> Line:
    # A pair is of one picture, and one cluster, whatever group each of its rows was given.
    clean = Board([replace(one, group_id=copy.group_id) for one, copy in pairs])
    copies = Board([copy for _, copy in pairs])
    scores = [board.score(board.where(), ACCURACY) for board in (clean, copies)]
    sums = [cluster_sums(b.values(ACCURACY), b.clusters()) for b in (clean, copies)]
    found = difference_interval(sums[1], sums[0])
    drop = None
    if scores[0] is not None:
        before, after = (float(combined(s.sum(axis=0))) for s in sums)
        drop = replace(
            scores[0], measure="drop", value=before - after, low=found.low, high=found.high
        )
    keys = {"group": corruption, "severity": severity}
    return Line((corruption, severity), (*scores, drop, str(len(pairs))), keys)


def error_counts(verdicts: Sequence[Verdict]) -> Mapping[str, int]:
    """Return kind of error -> rows, the most frequent first."""
    return dict(Counter(v.error for v in verdicts if v.error is not None).most_common())


def rate_table(verdicts: Sequence[Verdict], title: str) -> Table | None:
    """Show where replies could not be read or are missing; None where none are."""
    if not any(v.unparsed or v.error for v in verdicts):
        return None
    board = Board(verdicts)
    lines = []
    for subset in board.distinct("subset"):
        for task in in_papers_order(board.distinct("task", board.where(subset=subset))):
            mask = board.where(subset=subset, task=task)
            members = [v for v, inside in zip(verdicts, mask, strict=True) if inside]
            unparsed = sum(v.unparsed for v in members)
            errors = sum(v.error is not None for v in members)
            if unparsed or errors:
                n = len(members)
                cells = (
                    str(unparsed),
                    _percent(unparsed / n),
                    str(errors),
                    _percent(errors / n),
                    str(n),
                )
                keys = {"group": subset, "task": task}
                lines.append(Line((subset or "-", task), cells, keys))
    kinds = ", ".join(f"{kind} {n}" for kind, n in error_counts(verdicts).items())
    return Table(
        "rates",
        f"Unparsed and errors: {title}",
        ("Subset", "Task"),
        ("unparsed", "unparsed %", "errors", "errors %", "n"),
        tuple(lines),
        ("Both count as wrong." + (f" Errors by kind: {kinds}." if kinds else ""),),
    )
