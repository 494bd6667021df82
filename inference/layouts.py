"""Which tables a dataset's scores are shown in: the papers', in the order of their columns.

A dataset with tables of its own is one entry of ``LAYOUTS``; any other gets a plain table per task.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from soubench.builders.rrs.taxonomy import SUB_DIMENSIONS
from soubench.builders.sou.subsets import SUBSETS, Task
from soubench.inference.published_tables import NOTE, published_rows, reference_line
from soubench.inference.scores import (
    ACCURACY,
    BERTSCORE_F1,
    OPTION_KINDS,
    SCORINGS,
    Measure,
    Verdict,
)
from soubench.inference.tables import (
    CIRCULAR,
    Board,
    Cell,
    Line,
    Mask,
    Rotation,
    Score,
    Table,
    all_rotations_right,
)

AVERAGE = "Average"
SOU_COLUMNS = (*map(str, Task), AVERAGE)
OVERALL = "all"
SCENARIOS = tuple(dict.fromkeys(s.scenario for s in SUBSETS.values()))
SHAPES_SPLITS = ("od_composition", "od_occlusion", "od_rotation", "od_spatial", "test", "od_size")
LEAVES_SPLITS = ("test", "train", "od_test", "strong_od_test")
RRS_TASKS = (
    *("SU", "SC", "IC", "OC", "VG", "AR", "OE", "API", "RSI", "ASI", "AC", "DC"),
    *("UI", "AI", "TAI", "CI", "NR", "OR", "HD", "RS"),
)
RRS_DIMENSIONS: Mapping[str, str] = {
    sub.column or "PLS": name
    for name, sub in sorted(SUB_DIMENSIONS.items(), key=lambda item: not item[1].column)
}
"""The columns of RRS-10K's Table 3, and pixel-level segmentation, which it leaves out."""
CAPTION_COLUMNS = ("Bleu-1", "Bleu-2", "Bleu-3", "Bleu-4")
CAPTION_MEASURES: Mapping[str, str] = {
    "Rouge-1": "rouge1",
    "Rouge-2": "rouge2",
    "Rouge-L": "rougeL",
    "BERT-P": "bertscore_p",
    "BERT-R": "bertscore_r",
    "BERT-F1": "bertscore_f1",
}
MICRO_NOTE = (
    "Average: micro average, every question weighs the same; a scenario over its subsets, "
    "all over everything."
)


@dataclass(frozen=True, slots=True)
class Context:
    """What stands in every table.

    Attributes:
        title: Dataset, config, split, distractors, and how it was asked.
        model: Name of the model.
        published: Show the papers' figures, too.
        bleu: Task -> BLEU-1 to BLEU-4 over all its captions, 0 to 100.
    """

    title: str
    model: str
    published: bool = False
    bleu: Mapping[str, Sequence[float]] = field(default_factory=dict)


Boards = list[tuple[Rotation, Board]]
Make = Callable[[Sequence[Verdict], Context], list[Table]]


@dataclass(frozen=True, slots=True)
class Layout:
    """The tables of one kind of dataset.

    Attributes:
        takes: Says whether a row belongs into them.
        make: Makes them.
    """

    takes: Callable[[Verdict], bool]
    make: Make


def tables_of(verdicts: Sequence[Verdict], context: Context) -> list[Table]:
    """Make the tables of scores for rows of any dataset."""
    chosen = [next(i for i, one in enumerate(LAYOUTS) if one.takes(v)) for v in verdicts]
    made = []
    for i, layout in enumerate(LAYOUTS):
        members = [v for v, place in zip(verdicts, chosen, strict=True) if place == i]
        if members:
            made += layout.make(members, context)
    return made


def by_rotation(verdicts: Sequence[Verdict]) -> Boards:
    """Return the verdicts of each rotation, and those of all rotations together if several."""
    rotations = sorted({v.rotation for v in verdicts})
    boards: Boards = [(r, Board([v for v in verdicts if v.rotation == r])) for r in rotations]
    if len(rotations) > 1:
        boards.append(("circular", Board(all_rotations_right(verdicts))))
    return boards


def _who(model: str, rotation: Rotation, boards: Boards) -> str:
    if len(boards) == 1:
        return model
    return f"{model}, {CIRCULAR if rotation == CIRCULAR else f'rotation {rotation}'}"


def _circular_note(boards: Boards) -> tuple[str, ...]:
    if len(boards) == 1:
        return ()
    return ("circular: rows that are right in every rotation of their options.",)


def groups_of(verdicts: Sequence[Verdict]) -> dict[str, tuple[str, ...]]:
    """Return group -> its subsets: scenarios, their subsets where there are several, and all."""
    subsets: dict[str, list[str]] = {}
    for v in verdicts:
        of_scenario = subsets.setdefault(v.scenario, [])
        if v.subset not in of_scenario:
            of_scenario.append(v.subset)
    known = list(SUBSETS)

    def place(name: str, order: Sequence[str]) -> tuple[int, str]:
        return (order.index(name) if name in order else len(order)), name

    groups: dict[str, tuple[str, ...]] = {}
    for scenario in sorted(subsets, key=lambda name: place(name, SCENARIOS)):
        members = tuple(sorted(subsets[scenario], key=lambda name: place(name, known)))
        groups[scenario] = members
        if members != (scenario,):
            groups |= {subset: (subset,) for subset in members}
    if len(subsets) > 1:
        groups[OVERALL] = tuple(dict.fromkeys(s for members in groups.values() for s in members))
    return groups


def sou_lines(
    models: Mapping[str, Sequence[Verdict]], *, rates: bool = True, published: bool = False
) -> tuple[Line, ...]:
    """Return the lines of the paper's Tables 3 and 6: a block per scenario and subset.

    Args:
        models: Model -> its verdicts.
        rates: Add what could not be read, errors, and the number of rows.
        published: Add the papers' figures to each block.
    """
    boards = {model: by_rotation(rows) for model, rows in models.items()}
    verdicts = [verdict for rows in models.values() for verdict in rows]
    width = len(Task) + 1 + (len(RATES) if rates else 0)
    lines = []
    for group, subsets in groups_of(verdicts).items():
        label = f"  {group}" if _is_inner(group, subsets, verdicts) else group
        for model, of_model in boards.items():
            for rotation, board in of_model:
                cells = _task_cells(board, subsets)
                if cells is not None:
                    keys = {"group": group, "rotation": rotation}
                    who = _who(model, rotation, of_model)
                    lines.append(Line((label, who), cells[:width], keys))
        if published:
            lines += _sou_references(group, label)
    return tuple(lines)


def _is_inner(group: str, subsets: tuple[str, ...], verdicts: Sequence[Verdict]) -> bool:
    return subsets == (group,) and not any(v.scenario == group for v in verdicts)


def _task_cells(board: Board, subsets: Sequence[str]) -> tuple[Cell, ...] | None:
    inside = board.where(subset=tuple(subsets))
    if not inside.any():
        return None
    cells: list[Cell] = [
        board.score(inside & board.where(task=str(task)), ACCURACY) for task in Task
    ]
    return (*cells, board.score(inside, ACCURACY), *_rates(board, inside))


def _rates(board: Board, mask: Mask) -> tuple[Cell, ...]:
    """Return the cells that stand beside every accuracy: unparsed, errors, rows."""
    score = board.score(mask, ACCURACY)
    if score is None:
        return (None, None, None)
    n = int(mask.sum())
    return (f"{100 * score.unparsed_rate:.2f}", f"{100 * score.error_rate:.2f}", f"{n}")


RATES = ("unparsed", "errors", "n")
RATES_NOTE = (
    "unparsed, errors: % of the rows; both count as wrong. Below each score its 95 % interval "
    "(bootstrap over groups of pictures, 2,000 draws)."
)


def _sou_references(group: str, label: str) -> list[Line]:
    columns = [*map(str, Task), "average"]
    table, key = ("sou_vqa_table3", "scenario")
    if any(row["subset"] == group for row in published_rows("sou_vqa_table6_aerial")):
        table, key = ("sou_vqa_table6_aerial", "subset")
    found = (
        reference_line((label, row["model"]), row, columns)
        for row in published_rows(table)
        if row[key] == group
    )
    return [
        Line(line.labels, (*line.cells, *[None] * len(RATES)), {}, is_reference=True)
        for line in found
        if line is not None
    ]


def _sou(verdicts: Sequence[Verdict], context: Context) -> list[Table]:
    notes = (MICRO_NOTE, RATES_NOTE, *_circular_note(by_rotation(verdicts)))
    if context.published:
        notes += (NOTE,)
    lines = sou_lines({context.model: verdicts}, published=context.published)
    columns = (*SOU_COLUMNS, *RATES)
    title = f"Accuracy in %: {context.title}"
    return [Table("sou_tables_3_and_6", title, ("Subset", "Model"), columns, lines, notes)]


def _splits(board: Board, order: Sequence[str], published: bool) -> list[str]:
    there = board.distinct("split")
    return [s for s in order if s in there or published] + [s for s in there if s not in order]


def _by_split(
    name: str,
    title: str,
    board: Board,
    context: Context,
    measures: Sequence[tuple[str, Measure]],
    order: Sequence[str],
    notes: tuple[str, ...] = (),
) -> Table:
    """Make a table with a column per split and a line per measure and output format."""
    splits = _splits(board, order, context.published)
    lines = []
    for label, measure in measures:
        for config in board.distinct("config"):
            cells = tuple(
                board.score(board.where(split=split, config=config), measure) for split in splits
            )
            keys = {"group": config, "rotation": 0}
            lines.append(Line((label, f"{context.model} ({config})"), cells, keys))
            if context.published:
                lines += _split_references(name, label, measure, config, splits)
    if context.published:
        notes += (NOTE,)
    return Table(
        name,
        f"{title}: {context.title}",
        ("Measure", "Model"),
        tuple(splits),
        tuple(lines),
        (*notes, "Below each score its 95 % interval (bootstrap over groups of pictures)."),
        percent=False,
    )


PUBLISHED_BY_SPLIT: Mapping[tuple[str, str], tuple[str, str]] = {
    # Table 2 fits the share of shapes with all attributes right; see the card of sama.
    ("shapes_table_2", "sama_exact"): ("shapes_table2_sama", "{split}"),
    ("shapes_table_3", "center_rmse"): ("shapes_table3_rmse", "{split}_center_rmse"),
    ("shapes_table_3", "rotation_rmse"): ("shapes_table3_rmse", "{split}_rotation_rmse"),
    ("shapes_table_6", "precision_macro"): ("shapes_table6_prf", "{split}_precision"),
    ("shapes_table_6", "recall_macro"): ("shapes_table6_prf", "{split}_recall"),
    ("shapes_table_6", "f1_macro"): ("shapes_table6_prf", "{split}_f1"),
    ("plants_table_S4", "count_rmse"): ("plants_tableS4_rmse", "{split}_count_rmse"),
    ("plants_table_S4", "center_rmse"): ("plants_tableS4_rmse", "{split}_center_rmse"),
}
"""Table and measure -> the file of the paper's figures, and its column for a split."""


def _split_references(
    table: str, label: str, measure: Measure, config: str, splits: Sequence[str]
) -> list[Line]:
    if (table, measure.name) not in PUBLISHED_BY_SPLIT:
        return []
    file, column = PUBLISHED_BY_SPLIT[table, measure.name]
    lines = (
        reference_line(
            (label, f"{row['model']} ({config})"), row, [column.format(split=s) for s in splits]
        )
        for row in published_rows(file)
        # Table S4 names the format in the model's name.
        if row.get("format", row["model"].lower().removeprefix("plant_")) == config
    )
    return [line for line in lines if line is not None]


def _named(kind: str, *names: tuple[str, str]) -> list[tuple[str, Measure]]:
    return [(label, SCORINGS[kind].measure(name)) for label, name in names]


def _shapes(verdicts: Sequence[Verdict], context: Context) -> list[Table]:
    board = Board(verdicts)
    sama = _named("shapes", ("SAMA", "sama"), ("SAMA, all right", "sama_exact"))
    errors = _named(
        "shapes", ("center RMSE, px", "center_rmse"), ("rotation RMSE, degrees", "rotation_rmse")
    )
    prf = _named(
        "shapes",
        ("precision", "precision_macro"),
        ("recall", "recall_macro"),
        ("F1", "f1_macro"),
    )
    fits = ("The paper's Table 2 fits SAMA, all right; do not read it beside SAMA.",)
    order = SHAPES_SPLITS
    return [
        _by_split("shapes_table_2", "SAMA (0 to 1)", board, context, sama, order, fits),
        _by_split("shapes_table_3", "Errors of shapes", board, context, errors, order),
        _by_split("shapes_table_6", "Attributes (0 to 1)", board, context, prf, order),
    ]


def _leaves(verdicts: Sequence[Verdict], context: Context) -> list[Table]:
    measures = _named(
        "leaves", ("count RMSE, leaves", "count_rmse"), ("center RMSE, px", "center_rmse")
    )
    board, order = Board(verdicts), LEAVES_SPLITS
    return [_by_split("plants_table_S4", "Errors of leaves", board, context, measures, order)]


def _leaf_task(board: Board, task: str) -> Score | None:
    mask = board.where(task=task)
    if not mask.any():
        return None
    if "text" in board.distinct("kind", mask):
        found = board.score(mask, BERTSCORE_F1)
        return found if found is not None and found.value is not None else None
    measure = board.main_measure(mask)
    return None if measure is None else board.score(mask, measure)


def _rrs(verdicts: Sequence[Verdict], context: Context) -> list[Table]:
    boards = by_rotation(verdicts)
    return [_rrs_tasks(boards, context), _rrs_dimensions(boards, context)]


def _rrs_tasks(boards: Boards, context: Context) -> Table:
    there = [str(t) for t in dict.fromkeys(t for _, b in boards for t in b.distinct("task"))]
    tasks = [t for t in RRS_TASKS if t in there or context.published]
    tasks += [t for t in there if t not in RRS_TASKS]
    lines = []
    for rotation, board in boards:
        average = board.score(board.where(kind=OPTION_KINDS), ACCURACY)
        cells = (average, *(_leaf_task(board, task) for task in tasks))
        keys = {"group": OVERALL, "rotation": rotation}
        rates = _rates(board, board.where())
        lines.append(Line((_who(context.model, rotation, boards),), (*cells, *rates), keys))
    notes = [
        "Avg: micro average over the rows that are answered by an option. VG: accuracy at IoU > "
        "0.5. RS: mean IoU. IC: F1 of BERTScore, the papers' column ID (empty without "
        "--caption-model).",
        RATES_NOTE,
        *_circular_note(boards),
    ]
    if context.published:
        columns = ["Avg", *("ID" if task == "IC" else task for task in tasks)]
        lines += _rrs_references("rrs_table2_tasks", columns, len(RATES))
        notes.append(NOTE)
    title = f"Leaf tasks, in %: {context.title}"
    columns_shown = ("Avg", *tasks, *RATES)
    return Table("rrs_table_2", title, ("Model",), columns_shown, tuple(lines), tuple(notes))


def _rrs_dimensions(boards: Boards, context: Context) -> Table:
    names = [
        name
        for name, subset in RRS_DIMENSIONS.items()
        if context.published or any(b.where(subset=subset).any() for _, b in boards)
    ]
    lines: list[Line] = []
    members: dict[str, list[str]] = {}
    for rotation, board in boards:
        # Captions have no share of right answers that a mean of tasks could take in.
        shares = board.where(kind=tuple(k for k in SCORINGS if k != "text"))
        cells: list[Cell] = [board.score(board.where(kind=OPTION_KINDS), ACCURACY)]
        for name in names:
            mask = shares & board.where(subset=RRS_DIMENSIONS[name])
            cells.append(board.mean_of_tasks(mask))
            members.setdefault(name, board.distinct("task", mask))
        captions = board.where(kind="text")
        bleu = context.bleu.get("IC") if rotation == 0 else None
        cells += [f"{value:.2f}" for value in bleu] if bleu else [None] * len(CAPTION_COLUMNS)
        cells += [
            board.score(captions, SCORINGS["text"].measure(m)) for m in CAPTION_MEASURES.values()
        ]
        keys = {"group": OVERALL, "rotation": rotation}
        lines.append(Line((_who(context.model, rotation, boards),), tuple(cells), keys))
    told = "; ".join(f"{name} of {', '.join(members[name])}" for name in names if members[name])
    notes = [
        "Avg: micro average over the rows that are answered by an option. Dimensions: unweighted "
        f"means of leaf tasks: {told}. Caption scores: 0 to 100; Bleu has no interval.",
        *_circular_note(boards),
    ]
    columns = ["Avg", *names, *CAPTION_COLUMNS, *CAPTION_MEASURES]
    if context.published:
        lines += _rrs_references("rrs_table3_dimensions", columns, 0)
        notes.append(NOTE)
    title = f"Dimensions, in %: {context.title}"
    return Table("rrs_table_3", title, ("Model",), tuple(columns), tuple(lines), tuple(notes))


def _rrs_references(file: str, columns: Sequence[str], empty: int) -> list[Line]:
    lines = (reference_line((row["model"],), row, columns) for row in published_rows(file))
    return [
        Line(line.labels, (*line.cells, *[None] * empty), {}, is_reference=True)
        for line in lines
        if line is not None
    ]


def _plain(verdicts: Sequence[Verdict], context: Context) -> list[Table]:
    """Make a table per kind of answer: a line per subset and task, a column per measure."""
    made = []
    boards = by_rotation(verdicts)
    for kind in dict.fromkeys(v.kind for v in verdicts):
        measures = SCORINGS[kind].measures
        lines = []
        for rotation, board in boards:
            of_kind = board.where(kind=kind)
            subsets, tasks = (board.distinct(name, of_kind) for name in ("subset", "task"))
            names = list(product(subsets, tasks))
            for subset, task in [*names, (OVERALL, OVERALL)] if len(names) > 1 else names:
                is_all = (subset, task) == (OVERALL, OVERALL)
                mask = of_kind if is_all else of_kind & board.where(subset=subset, task=task)
                if not mask.any():
                    continue
                cells = [board.score(mask, measure) for measure in measures]
                bleu = context.bleu.get(task) if kind == "text" else None
                more = [f"{value:.2f}" for value in bleu] if bleu else [None] * 4
                cells_shown = (*cells, *(more if kind == "text" else ()), *_rates(board, mask))
                keys = {"group": subset, "task": task, "rotation": rotation}
                who = _who(context.model, rotation, boards)
                lines.append(Line((subset or "-", task, who), cells_shown, keys))
        notes = ["all: every row weighs the same.", RATES_NOTE, *_circular_note(boards)]
        if kind == "text" and context.bleu:
            notes.append("Bleu is of all captions together and has no interval.")
        columns = [m.name for m in measures] + (list(CAPTION_COLUMNS) if kind == "text" else [])
        made.append(
            Table(
                f"plain_{kind}",
                f"{kind.replace('_', '/')}, shares in %: {context.title}",
                ("Subset", "Task", "Model"),
                (*columns, *RATES),
                tuple(lines),
                tuple(notes),
            )
        )
    return made


LAYOUTS: tuple[Layout, ...] = (
    Layout(lambda v: v.kind == "shapes", _shapes),
    Layout(lambda v: v.kind == "leaves", _leaves),
    Layout(lambda v: v.subset in RRS_DIMENSIONS.values(), _rrs),
    Layout(lambda v: v.kind == "mcq" and v.task in set(Task) and bool(v.scenario), _sou),
    Layout(lambda v: True, _plain),
)
"""The first that takes a row shows it."""
