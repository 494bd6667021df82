"""Tables and charts of a section: what was run, scores, letters, sizes, what was not understood."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, NamedTuple

from soubench.inference.breakdowns import (
    LetterBias,
    LetterUse,
    drop_tables,
    letter_table,
    rate_table,
    size_tables,
)
from soubench.inference.layouts import OVERALL, Context
from soubench.inference.layouts import tables_of as score_tables
from soubench.inference.report.charts import Chart, Series, Value, round_up
from soubench.inference.report.runs import ScoredRun, Section
from soubench.inference.report.svg import short_number
from soubench.inference.scores import SCORINGS, Measure, Verdict
from soubench.inference.tables import Board, Cell, Line, Score, Table

MODEL = "Model"
PLAIN = "plain_"
SIZES: Mapping[str, str] = {
    "object_area": "area of the object in the picture, px²",
    "model_area": "area of the object as the model saw it, px²",
}
RATES_COLUMNS = ("unparsed", "errors", "n")


class Figures(NamedTuple):
    """Everything of a section that is not a row.

    Attributes:
        runs: What was run, and what came of it as a whole.
        scores: Scores as the papers show them.
        details: Letters, sizes, unparsed replies and errors.
        charts: All of them, drawn.
    """

    runs: Table
    scores: tuple[Table, ...]
    details: tuple[Table, ...]
    charts: tuple[Chart, ...]


def figures_of(section: Section, *, published: bool = False) -> Figures:
    """Make tables and charts of a section.

    Args:
        section: The section.
        published: Show the papers' figures beside.
    """
    scores = _merged(
        (run, score_tables(run.verdicts, context_of(section, run, published=published and i == 0)))
        for i, run in enumerate(section.runs)
    )
    letters = _merged((run, _letters(run, section.name)) for run in section.runs)
    sizes = _merged((run, size_tables(run.verdicts, section.name)) for run in section.runs)
    drops = _merged((run, drop_tables(run.verdicts, section.name)) for run in section.runs)
    rates = _merged((run, _rates(run, section.name)) for run in section.runs)
    charts = [
        *_score_charts(section, scores),
        *_size_charts(section, sizes),
        *_letter_charts(section),
        *_parameter_charts(section),
    ]
    return Figures(_runs_table(section), scores, (*rates, *drops, *sizes, *letters), tuple(charts))


def context_of(section: Section, run: ScoredRun, *, published: bool = False) -> Context:
    """Return what stands in the tables of a run."""
    title = section.name
    if section.distractors:
        title += f", {section.distractors} distractors"
    return Context(title, run.name, published, run.scores.get("bleu") or {})


def _runs_table(section: Section) -> Table:
    columns = ("asked", "answered", "unparsed", "errors", "parameters", "revision", "coordinates")
    lines = []
    for run in section.runs:
        counts, model = run.scores["counts"], run.description["model"]
        cells: tuple[Cell, ...] = (
            *(f"{counts[name]:,}" for name in columns[:4]),
            short_number(run.parameters) if run.parameters else "-",
            str(model.get("revision") or "-")[:10],
            str(run.description.get("coords", "pixel")),
        )
        lines.append(Line((run.name,), cells, {}))
    return Table("runs", "Runs", (MODEL,), columns, tuple(lines))


def details_of(section: Section, run: ScoredRun) -> list[Table]:
    """Return the tables of a run beside its scores: what failed, sizes, letters."""
    return [
        *_rates(run, section.name),
        *drop_tables(run.verdicts, section.name),
        *size_tables(run.verdicts, section.name),
        *_letters(run, section.name),
    ]


def _letters(run: ScoredRun, title: str) -> list[Table]:
    biases = _biases(run)
    return [letter_table(biases, title)] if biases else []


def _biases(run: ScoredRun) -> list[LetterBias]:
    # As scored, since the test needs a library that a page does not.
    return [
        LetterBias(**{**found, "letters": tuple(LetterUse(**use) for use in found["letters"])})
        for found in run.scores.get("letters", ())
    ]


def _rates(run: ScoredRun, title: str) -> list[Table]:
    table = rate_table(run.verdicts, title)
    return [table] if table is not None else []


def _merged(tables: Iterable[tuple[ScoredRun, Sequence[Table]]]) -> tuple[Table, ...]:
    """Join tables of the same name: lines about the same stand together, one per run."""
    groups: dict[str, list[tuple[ScoredRun, Table]]] = {}
    for run, listed in tables:
        for table in listed:
            groups.setdefault(table.name, []).append((run, table))
    return tuple(_joined(members) for members in groups.values())


def _joined(members: Sequence[tuple[ScoredRun, Table]]) -> Table:
    first = members[0][1]
    if MODEL not in first.heads:
        members = [(run, _with_model(run, table)) for run, table in members]
    columns = list(dict.fromkeys(c for _, table in members for c in table.columns))
    rates = [c for c in RATES_COLUMNS if c in columns]
    columns = [c for c in columns if c not in rates] + rates
    heads = members[0][1].heads
    at = heads.index(MODEL)
    lines: dict[tuple[str, ...], list[Line]] = {}
    for _, table in members:
        for line in table.lines:
            of = dict(zip(table.columns, line.cells, strict=True))
            about = (*line.labels[:at], *line.labels[at + 1 :])
            cells = tuple(of.get(c) for c in columns)
            lines.setdefault(about, []).append(replace(line, cells=cells))
    # The papers' figures come last, below all measured ones.
    ordered = [
        line for group in lines.values() for line in sorted(group, key=lambda x: x.is_reference)
    ]
    shared = set(members[0][1].notes).intersection(*(table.notes for _, table in members))
    notes = [
        note if note in shared else f"{run.name}: {note}"
        for run, table in members
        for note in table.notes
    ]
    return replace(
        first,
        heads=heads,
        columns=tuple(columns),
        lines=tuple(ordered),
        notes=tuple(dict.fromkeys(notes)),
    )


def _with_model(run: ScoredRun, table: Table) -> Table:
    lines = [replace(line, labels=(*line.labels, run.name)) for line in table.lines]
    return replace(table, heads=(*table.heads, MODEL), lines=tuple(lines))


def _value(cell: Cell) -> Value | None:
    if not isinstance(cell, Score) or cell.value is None:
        return None
    scale = 100 if cell.unit == "share" else 1
    value = scale * cell.value
    low = value if cell.low is None else scale * cell.low
    high = value if cell.high is None else scale * cell.high
    return Value(value, low, high, cell.n)


def _score_charts(section: Section, tables: Sequence[Table]) -> list[Chart]:
    """Draw each block of a table of scores: bars per column, one color per run."""
    charts = []
    chances = _chances(section)
    for table in tables:
        measured = [line for line in table.lines if _is_plain_line(line)]
        if table.name.startswith(PLAIN):
            charts += _plain_charts(section, table, measured, chances)
            continue
        at = table.heads.index(MODEL)
        blocks: dict[tuple[str, ...], list[Line]] = {}
        for line in measured:
            blocks.setdefault((*line.labels[:at], *line.labels[at + 1 :]), []).append(line)
        # What is over everything comes first.
        for about, lines in sorted(blocks.items(), key=lambda block: block[0] != (OVERALL,)):
            name = "-".join([table.name, *about])
            title = f"{table.title.partition(':')[0]}, {' '.join(about).strip()}".rstrip(", ")
            bars = [
                (column, [line.cells[i] for line in lines])
                for i, column in enumerate(table.columns)
            ]
            runs = [_run_of(section, line.labels[at]) for line in lines]
            charts += _bar_chart(section, name, title, bars, runs, chances)
    return charts


def _plain_charts(
    section: Section, table: Table, lines: Sequence[Line], chances: Mapping[str, float]
) -> list[Chart]:
    """Draw the main measure of a plain table: bars per subset and task."""
    at = table.heads.index(MODEL)
    names = list(dict.fromkeys((*x.labels[:at], *x.labels[at + 1 :]) for x in lines))
    runs = list(dict.fromkeys(_run_of(section, line.labels[at]) for line in lines))
    cells = {
        ((*x.labels[:at], *x.labels[at + 1 :]), _run_of(section, x.labels[at])): x.cells[0]
        for x in lines
    }
    bars = [
        (
            " ".join(dict.fromkeys(part for part in name if part)) or "all rows",
            [cells.get((name, run)) for run in runs],
        )
        for name in names
    ]
    return _bar_chart(section, table.name, table.columns[0], bars, runs, chances)


def _is_plain_line(line: Line) -> bool:
    return not line.is_reference and line.keys.get("rotation", 0) == 0


def _run_of(section: Section, label: str) -> int:
    """Return the index of the run that a label names; it may say a rotation or format, too."""
    names = [run.name for run in section.runs]
    if label in names:
        return names.index(label)
    return max(
        (i for i, name in enumerate(names) if label.startswith(name)),
        key=lambda i: len(names[i]),
    )


def _bar_chart(
    section: Section,
    name: str,
    title: str,
    bars: Sequence[tuple[str, Sequence[Cell]]],
    runs: Sequence[int],
    chances: Mapping[str, float],
) -> list[Chart]:
    shown = [(label, cells) for label, cells in bars if any(map(_value, cells))]
    units = {cell.unit for _, cells in shown for cell in cells if isinstance(cell, Score)}
    if not shown or len(units) > 1:
        return []
    unit = units.pop()
    series = [
        Series(section.runs[run].name, run, tuple(_value(cells[i]) for _, cells in shown))
        for i, run in enumerate(runs)
    ]
    is_bounded = unit in ("share", "points")
    ends = [v.high for s in series for v in s.values if v is not None]
    is_error = any(isinstance(c, Score) and c.is_error for _, cells in shown for c in cells)
    chance = tuple(chances.get(label) for label, _ in shown)
    note = "lower is better" if is_error else ""
    if any(c is not None for c in chance):
        note = "dashed: chance"
    return [
        Chart(
            _file_name(name),
            "bars",
            title,
            note,
            tuple(label for label, _ in shown),
            tuple(series),
            top=100.0 if is_bounded else round_up(max(ends) or 1.0),
            unit="%" if is_bounded else unit,
            reference=chance if any(c is not None for c in chance) else (),
        )
    ]


def _chances(section: Section) -> dict[str, float]:
    """Return what guessing gives in tasks whose rows all have options, in %."""
    options: dict[str, list[int]] = {}
    for run in section.runs:
        for verdict in run.verdicts:
            options.setdefault(verdict.task, []).append(verdict.options)
    return {task: 100 * fmean(1 / n for n in ns) for task, ns in options.items() if all(ns)}


def _size_charts(section: Section, tables: Sequence[Table]) -> list[Chart]:
    charts = []
    for table in tables:
        bins = list(dict.fromkeys(line.labels[0] for line in table.lines))
        cells = {(x.labels[0], x.labels[-1]): x.cells for x in table.lines}
        for i, task in enumerate(table.columns):
            series = []
            for j, run in enumerate(section.runs):
                of = [cells.get((area, run.name)) for area in bins]
                values = tuple(_value(found[i]) if found else None for found in of)
                if any(values):
                    series.append(Series(run.name, j, values))
            if series:
                charts.append(
                    Chart(
                        _file_name(f"{table.name}-{task}"),
                        "lines",
                        f"{task} by size",
                        "accuracy with its 95 % interval",
                        tuple(map(_short_bin, bins)),
                        tuple(series),
                        axis=SIZES.get(table.name, table.title),
                    )
                )
    return charts


def _short_bin(label: str) -> str:
    """Shorten a bin of areas: ``0 < area <= 64`` to ``≤ 64``, one without an end to ``> 1024``."""
    low, _, high = label.partition(" < area")
    return f"≤ {high.removeprefix(' <= ')}" if high else f"> {low}"


def _letter_charts(section: Section) -> list[Chart]:
    """Draw how often each letter was replied; where that is not how often it is right, a bias."""
    by_options: dict[int, list[tuple[int, LetterBias]]] = {}
    for i, run in enumerate(section.runs):
        for bias in _biases(run):
            by_options.setdefault(bias.options, []).append((i, bias))
    charts = []
    for n, members in by_options.items():
        first = members[0][1]
        series = []
        for i, bias in members:
            read = max(1, bias.n - bias.unread)
            shares = [100 * use.replied / read for use in bias.letters]
            values = tuple(
                Value(x, x, x, u.replied) for x, u in zip(shares, bias.letters, strict=True)
            )
            series.append(Series(section.runs[i].name, i, values))
        charts.append(
            Chart(
                f"letters-{n}",
                "bars",
                f"Letters replied, {n} options",
                "share of the replies with a letter; dashed: how often it is right",
                tuple(use.letter for use in first.letters),
                tuple(series),
                reference=tuple(100 * use.right / first.n for use in first.letters),
            )
        )
    return charts


def headline(run: ScoredRun) -> list[tuple[str, Score]]:
    """Return the main score of each kind of answer, over all rows as they stand."""
    rows = [v for v in run.verdicts if v.rotation == 0]
    board = Board(rows)
    found = []
    for kind in board.distinct("kind"):
        measure: Measure = SCORINGS[kind].measures[0]
        score = board.score(board.where(kind=kind), measure)
        if score is not None and score.value is not None:
            found.append((kind, score))
    return found


def _parameter_charts(section: Section) -> list[Chart]:
    """Draw scores over the number of parameters, where that is known of two models or more."""
    known = [(i, run) for i, run in enumerate(section.runs) if run.parameters]
    if len({run.parameters for _, run in known}) < 2:
        return []
    charts = []
    kinds: dict[str, list[tuple[int, ScoredRun, Score]]] = {}
    for i, run in known:
        for kind, score in headline(run):
            kinds.setdefault(kind, []).append((i, run, score))
    for kind, members in kinds.items():
        unit = members[0][2].unit
        is_bounded = unit in ("share", "points")
        series = tuple(
            Series(run.name, i, (_value(score),), (float(run.parameters or 0),))
            for i, run, score in members
        )
        ends = [v.high for s in series for v in s.values if v is not None]
        charts.append(
            Chart(
                f"parameters-{kind}",
                "scatter",
                f"{members[0][2].measure} by size of the model",
                "all rows, with 95 % intervals"
                + (" where groups differ" if any(s.low is None for _, _, s in members) else ""),
                (),
                series,
                top=100.0 if is_bounded else round_up(max(ends) or 1.0),
                unit="%" if is_bounded else unit,
                axis="parameters",
            )
        )
    return charts


def _file_name(text: str) -> str:
    kept = "".join(c if c.isalnum() or c in "_.@" else "-" for c in text.strip().lower())
    return "-".join(part for part in kept.split("-") if part)


def values_text(verdict: Verdict) -> str:
    """Write what a metric said of one row, where it is more than right or wrong."""
    if verdict.kind in ("mcq", "yes_no"):
        return ""
    measures: dict[str, Measure] = {m.name: m for m in SCORINGS[verdict.kind].measures}
    said: list[str] = []
    for name, value in verdict.values.items():
        if value is not None and name in measures:
            unit: Any = measures[name].unit
            said.append(
                f"{name} {100 * value:.1f} %" if unit == "share" else f"{name} {value:.1f} {unit}"
            )
    return ", ".join(said)
