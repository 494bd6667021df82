"""The ablations of 001: train each variant, ask it the test splits, and put all in one table.

``parts`` trains the vision part, the language part, or both (Table S1). ``format`` trains sentences
against tuples, and scales of the loss of numbers (Tables S3 and 5).

In the output folder::

    VARIANT/training/   as soubench train makes it
    VARIANT/SPLIT/      as soubench predict makes it
    VARIANT/scores/     as soubench score makes it, over all splits
    TABLE.csv           figures in the order of the paper's columns
    TABLE.md            the same with 95 % intervals
"""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from soubench.builders.errors import RunError, TrainError
from soubench.inference.backends.pipeline import PipelineBackend
from soubench.inference.compare import read_scored
from soubench.inference.dataset_rows import open_rows
from soubench.inference.layouts import SHAPES_SPLITS
from soubench.inference.predict import Plan, PredictOptions, plan, predict
from soubench.inference.published_tables import NOTE, published_rows, reference_line
from soubench.inference.run_folder import RUN_FILE, read_run
from soubench.inference.score import SCORES_FILE, replies_digest, score_runs, write_scores
from soubench.inference.scores import SCORINGS
from soubench.inference.tables import Board, Line, Score, Table, render_markdown
from soubench.inference.training.recipe import Recipe
from soubench.inference.training.train import TrainOptions, train

PARTS = {"both": "vision and language", "language": "language only", "vision": "vision only"}
"""Parts of a model -> label, in the order of Table S1."""
FORMATS_AND_SCALES = (
    *(("sentence", 1.0), ("sentence", 1.5), ("tuple", 1.0), ("tuple", 1.5)),
    *(("sentence", 2.0), ("sentence", 2.5), ("sentence", 3.5)),
)
"""Formats of the output, with scales of the loss of numbers: Table S3's, then those of Table 5."""
SPLITS = {"primitive-shapes": SHAPES_SPLITS, "plant-leaves": ("test", "od_test", "strong_od_test")}
"""Dataset -> splits that are asked, in the order of the paper's columns; ``test`` of others."""
MEASURES: Mapping[str, Mapping[str, str]] = {
    "shapes": {
        "sama": "SAMA",
        "center_rmse": "center RMSE, px",
        "rotation_rmse": "rotation RMSE, degrees",
    },
    "leaves": {"count_rmse": "count RMSE, leaves", "center_rmse": "center RMSE, px"},
}
"""Kind of answers -> measure -> label, in the order of Tables S1 and S3; all of others."""
INTERVALS_NOTE = "Beside or below each score its 95 % interval (bootstrap over groups of pictures)."


@dataclass(frozen=True, slots=True)
class Variant:
    """One line of an ablation.

    Attributes:
        name: Its folder.
        labels: Labels in tables.
        recipe: What is trained.
    """

    name: str
    labels: tuple[str, ...]
    recipe: Recipe


@dataclass(frozen=True, slots=True)
class AblationOptions:
    """How an ablation is run.

    Attributes:
        train: Options of every training; ``out`` is the folder of the ablation.
        splits: Splits that the trained models are asked; empty for those of the paper.
        limit: Rows asked of each split at most; None for all.
        batch_size: Rows that are answered together.
    """

    train: TrainOptions
    splits: Sequence[str] = ()
    limit: int | None = None
    batch_size: int = 1

    def splits_of(self, recipe: Recipe) -> Sequence[str]:
        """Return the splits that a recipe's models are asked.

        Raises:
            RunError: There is no such dataset, config or split to train on.
        """
        if self.splits:
            return self.splits
        # An exported folder may have any name.
        dataset = open_rows(recipe.dataset, recipe.config, recipe.split).name
        return SPLITS.get(dataset, ("test",))


def parts_variants(recipe: Recipe) -> list[Variant]:
    """Return what Table S1 compares."""
    return [Variant(parts, (label,), recipe.training(parts)) for parts, label in PARTS.items()]


def format_variants(recipe: Recipe) -> list[Variant]:
    """Return what Tables S3 and 5 compare."""
    return [
        Variant(
            f"{config}-x{scale:g}",
            (config, f"{scale:g}"),
            replace(recipe, config=config, numeric_scale=scale),
        )
        for config, scale in FORMATS_AND_SCALES
    ]


VARIANTS: Mapping[str, Callable[[Recipe], list[Variant]]] = {
    "parts": parts_variants,
    "format": format_variants,
}
"""Ablation -> what it compares."""


def chosen_variants(ablation: str, recipe: Recipe, names: Sequence[str] = ()) -> list[Variant]:
    """Return the variants of an ablation.

    Args:
        ablation: A key of ``VARIANTS``.
        recipe: What is varied.
        names: Only these; none for all.

    Raises:
        TrainError: There is no such variant.
    """
    variants = VARIANTS[ablation](recipe)
    known = [variant.name for variant in variants]
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise TrainError(f"--only: expected some of {', '.join(known)}, got {unknown!r}.")
    return [variant for variant in variants if not names or variant.name in names]


def run_variant(variant: Variant, options: AblationOptions) -> Path:
    """Train a variant, ask it all splits and score it, as far as this has not been done.

    Args:
        variant: What to train.
        options: How.

    Returns:
        The folder of its scores.

    Raises:
        TrainError: As in ``train``, or the folder holds another variant.
        RunError: A split is not there, or the model cannot be run.
    """
    folder = options.train.out / variant.name
    recipe = variant.recipe
    # All at once, so that a split that is not there is not found after hours.
    planned = [_plan(recipe, split, options, folder / split) for split in options.splits_of(recipe)]
    trained = train(recipe, replace(options.train, out=folder / "training"))
    backend: PipelineBackend | None = None
    for one in planned:
        if not _is_answered(one):
            backend = backend or PipelineBackend(
                trained["merged"],
                batch_size=options.batch_size,
                max_new_tokens=recipe.max_new_tokens,
                max_pixels=recipe.max_pixels,
            )
            predict(one, backend)
    runs, scores = [one.options.out for one in planned], folder / "scores"
    is_scored = (scores / SCORES_FILE).exists()
    if not is_scored or read_scored(scores).scores["replies_sha256"] != replies_digest(runs):
        scored = score_runs(runs)
        write_scores(scored, scored.tables(), scores)
    return scores


def _plan(recipe: Recipe, split: str, options: AblationOptions, out: Path) -> Plan:
    if split == recipe.split:
        raise TrainError(f"--splits: {split} is what is trained on; it measures nothing.")
    return plan(
        PredictOptions(
            dataset=recipe.dataset,
            config=recipe.config,
            split=split,
            out=out,
            limit=options.limit,
            seed=options.train.seed,
        )
    )


def _is_answered(planned: Plan) -> bool:
    """Say whether a split was asked all that is planned; if something else, ``predict`` tells."""
    options = planned.options
    if not (options.out / RUN_FILE).exists():
        return False
    said, replies = read_run(options.out)
    asked = (said["dataset"]["fingerprint"], said["limit"], said["seed"])
    settled = {reply.key for reply in replies if reply.settled}
    keys = planned.keys()
    return asked == (planned.loaded.fingerprint, options.limit, options.seed) and all(
        planned.key(*key) in settled for key in keys
    )


def tables_of(
    ablation: str, variants: Sequence[Variant], options: AblationOptions, *, published: bool = False
) -> list[Table]:
    """Make the tables of those variants that are done.

    Args:
        ablation: A key of ``VARIANTS``.
        variants: All of them.
        options: How they were run.
        published: Add the paper's figures.

    Raises:
        RunError: None is done, or scores are damaged.
    """
    folders = [(variant, options.train.out / variant.name / "scores") for variant in variants]
    boards = [
        (variant, Board(read_scored(folder).verdicts))
        for variant, folder in folders
        if (folder / SCORES_FILE).exists()
    ]
    if not boards:
        raise RunError(f"{options.train.out}: no variant is done yet.")
    recipe = variants[0].recipe
    made = _Tables(
        boards,
        options.splits_of(recipe),
        f"{Path(recipe.model).name}, {recipe.dataset}",
        published,
    )
    return [made.parts()] if ablation == "parts" else [made.formats(), made.scales()]


@dataclass(frozen=True, slots=True)
class _Tables:
    """What the tables of one ablation have in common.

    Attributes:
        boards: Of the variants that are done.
        splits: The columns.
        title: Model and dataset.
        published: Add the paper's figures, where it has some.
    """

    boards: Sequence[tuple[Variant, Board]]
    splits: Sequence[str]
    title: str
    published: bool

    def parts(self) -> Table:
        """Make Table S1: a line per measure and part, a column per split."""
        lines = []
        for measure, label in self._measures.items():
            for variant, board in self.boards:
                cells = tuple(self._cell(board, split, measure) for split in self.splits)
                lines.append(Line((label, *variant.labels), cells, {"group": variant.name}))
            lines += [
                line
                for row in self._published("shapes_tableS1_parts")
                if row["metric"] == measure
                and (line := reference_line((label, row["model"]), row, self.splits))
            ]
        return self._table("parts", "Parts trained", ("Measure", "Trained"), self.splits, lines)

    def formats(self) -> Table:
        """Make Table S3: a line per format and scale, a column per split and measure."""
        wanted = [(split, measure) for split in self.splits for measure in self._measures]
        columns = [f"{split} {self._measures[measure]}" for split, measure in wanted]
        lines = [
            Line(
                variant.labels,
                tuple(self._cell(board, *w) for w in wanted),
                {"group": variant.name},
            )
            for variant, board in self.boards
        ]
        keys = [f"{split}_{measure}" for split, measure in wanted]
        lines += [
            line
            for row in self._published("shapes_tableS3_formats")
            if (line := reference_line((_format_of(row["model"]), row["model"]), row, keys))
        ]
        heads, title = ("Format", "Scale"), "Formats and scales of the loss of numbers"
        return self._table("formats", title, heads, columns, lines)

    def scales(self) -> Table:
        """Make Table 5: an error by scale, a column per split."""
        measures = self._measures
        measure = "center_rmse" if "center_rmse" in measures else next(iter(measures))
        lines = [
            Line(
                variant.labels,
                tuple(self._cell(board, split, measure) for split in self.splits),
                {"group": variant.name},
            )
            for variant, board in self.boards
        ]
        lines += [
            line
            for row in self._published("shapes_table5_center_rmse_scaling")
            if (line := reference_line((row["format"], row["model"]), row, self.splits))
        ]
        heads, title = ("Format", "Scale"), f"Scales of the loss of numbers, {measures[measure]}"
        return self._table("scales", title, heads, self.splits, lines)

    @property
    def _kind(self) -> str:
        return self.boards[0][1].verdicts[0].kind

    @property
    def _measures(self) -> Mapping[str, str]:
        every = {measure.name: measure.name for measure in SCORINGS[self._kind].measures}
        return MEASURES.get(self._kind, every)

    def _cell(self, board: Board, split: str, measure: str) -> Score | None:
        return board.score(board.where(split=split), SCORINGS[self._kind].measure(measure))

    def _published(self, name: str) -> Sequence[Mapping[str, str]]:
        return published_rows(name) if self.published and self._kind == "shapes" else ()

    def _table(
        self,
        name: str,
        title: str,
        heads: tuple[str, ...],
        columns: Sequence[str],
        lines: Sequence[Line],
    ) -> Table:
        is_compared = self.published and self._kind == "shapes"
        notes = (NOTE, INTERVALS_NOTE) if is_compared else (INTERVALS_NOTE,)
        title = f"{title}: {self.title}"
        return Table(name, title, heads, tuple(columns), tuple(lines), notes, percent=False)


def _format_of(model: str) -> str:
    """Return the format of a line of Table S3: ``SF`` and ``SW`` are sentences, ``TW`` tuples."""
    return "sentence" if re.search(r"\bS[FW]\b", model) else "tuple"


def write_tables(tables: Sequence[Table], out: Path) -> list[Path]:
    """Write each table as CSV and as Markdown; return the files."""
    written = []
    for table in tables:
        for suffix, text in (("csv", _csv(table)), ("md", render_markdown(table))):
            path = out / f"{table.name}.{suffix}"
            partial = path.with_name(f"{path.name}.incomplete")
            partial.write_text(text, encoding="utf-8")
            partial.replace(path)
            written.append(path)
    return written


def _csv(table: Table) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*table.heads, *table.columns])
    for line in table.lines:
        values = [cell.value if isinstance(cell, Score) else cell for cell in line.cells]
        writer.writerow([*line.labels, *values])
    return file.getvalue()
