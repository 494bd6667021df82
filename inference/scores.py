"""From replies to verdicts: each row is judged by the metric of its kind of answer.

Nothing is guessed: a reply that cannot be read is wrong and counted as unparsed, and a row without
a reply is wrong and counted as an error.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

import evaluate

from soubench.builders.errors import RunError
from soubench.builders.publishing.metric_cache import install_metrics
from soubench.inference.coordinates import BOX_FORMATS, read_numbers
from soubench.inference.questions import Question
from soubench.inference.run_folder import Reply, Size

YES_NO = ("yes", "no")
TAU = 0.5
"""A box is right if its IoU exceeds this (RRS-10K, Eq. 9)."""
MISSING = "missing"
"""Kind of the error of a row that was asked and has no line, or one without a reply."""

Unit = Literal["share", "points", "px", "degrees", "leaves"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A number that a metric gives for each row, and how rows add up.

    Attributes:
        name: The metric's key for it over all rows.
        metric: What ``evaluate.load`` takes.
        unit: ``share`` lies between 0 and 1, ``points`` between 0 and 100.
        is_error: Lower is better.
        root: The score is the root of the mean of squares, else the mean.
        is_binary: A row is right or wrong.
    """

    name: str
    metric: str
    unit: Unit = "share"
    is_error: bool = False
    root: bool = False
    is_binary: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked and what came.

    Attributes:
        row: The row's columns, as far as they are needed.
        question: The question with its options in the order in which they were shown.
        reply: What came; None if nothing did.
        picture_wh: Width and height of the row's picture in px, where needed.
    """

    row: Mapping[str, Any]
    question: Question
    reply: Reply | None
    picture_wh: Size | None = None

    @property
    def text(self) -> str:
        """What the model said; empty where it said nothing."""
        return (self.reply.reply or "") if self.reply is not None else ""

    @property
    def error(self) -> str | None:
        """Why there is no reply, in a word or two."""
        if self.reply is not None and self.reply.error is not None:
            return self.reply.error.kind
        # A model may say nothing, which is a reply; a file of replies may have an empty cell.
        return MISSING if self.reply is None or self.reply.reply is None else None


@dataclass(frozen=True, slots=True)
class Judged:
    """What a metric says of one reply.

    Attributes:
        parsed: What was read from it; empty for nothing.
        values: Measure -> value; None where there is none, such as the error of a center that was
            not named.
        is_unparsed: Nothing could be read.
    """

    parsed: str
    values: Mapping[str, float | None]
    is_unparsed: bool


@dataclass(frozen=True, slots=True)
class Settings:
    """What replies have to be read with.

    Attributes:
        box_format: How boxes are written, as ``acc_at_iou`` knows it; None for what was asked for.
        caption_model: Model of BERTScore; None to leave it out.
        caption_layers: Its layer that is compared; needed for a local folder.
    """

    box_format: str | None = None
    caption_model: str | None = None
    caption_layers: int | None = None


Judge = Callable[[Sequence[Asked], Settings], list[Judged]]


@dataclass(frozen=True, slots=True)
class Scoring:
    """How answers of one kind are scored.

    Attributes:
        measures: What is reported; the first is the main one.
        judge: Judges many rows at once.
    """

    measures: tuple[Measure, ...]
    judge: Judge

    def measure(self, name: str) -> Measure:
        """Return the measure of this name."""
        return next(m for m in self.measures if m.name == name)


@cache
def load_metric(name: str) -> evaluate.EvaluationModule:
    """Load one of our metrics by its name; it is put into the modules cache first.

    Raises:
        RunError: A library that the metric needs is missing.
        PublishError: The modules cache cannot be written.
    """
    install_metrics([name])
    # It says that it found the metric in the cache, which is where it belongs.
    evaluate.utils.logging.set_verbosity_error()
    try:
        return evaluate.load(name)
    except ImportError as error:
        raise RunError(
            f"scoring with {name} needs more than the base install: "
            f'pip install "soubench[metrics]". ({error})'
        ) from error


def _judge_options(asked: Sequence[Asked], settings: Settings) -> list[Judged]:
    return _match([a.question.options for a in asked], [a.question.answer for a in asked], asked)


def _judge_yes_no(asked: Sequence[Asked], settings: Settings) -> list[Judged]:
    answers = []
    for a in asked:
        answer = a.question.answer.strip().lower()
        if answer not in YES_NO:
            raise RunError(f"{a.question.id}: expected the answer yes or no, got {answer!r}.")
        answers.append("AB"[YES_NO.index(answer)])
    judged = _match([("Yes", "No")] * len(asked), answers, asked)
    said = {"A": "yes", "B": "no", "": ""}
    return [Judged(said[j.parsed], j.values, j.is_unparsed) for j in judged]


def _match(
    options: Sequence[Sequence[str]], answers: Sequence[str], asked: Sequence[Asked]
) -> list[Judged]:
    letters = load_metric("option_match").compute(
        predictions=[a.text for a in asked],
        references=list(answers),
        options=[list(row) for row in options],
    )["letters"]
    return [
        Judged(letter, {"accuracy": float(letter == answer)}, not letter)
        for letter, answer in zip(letters, answers, strict=True)
    ]


def _judge_shapes(asked: Sequence[Asked], settings: Settings) -> list[Judged]:
    texts = _texts(asked)
    sama = load_metric("sama").compute(**texts)
    f1 = load_metric("attribute_f1").compute(**texts)
    columns = {
        "sama": sama["sama_per_sample"],
        "sama_exact": sama["sama_exact_per_sample"],
        "center_rmse": sama["center_rmse_per_sample"],
        "rotation_rmse": sama["rotation_rmse_per_sample"],
        "precision_macro": f1["precision_per_sample"],
        "recall_macro": f1["recall_per_sample"],
        "f1_macro": f1["f1_per_sample"],
    }
    return _judged(asked, columns, sama["unparsed_per_sample"])


def _judge_points(asked: Sequence[Asked], settings: Settings) -> list[Judged]:
    result = load_metric("matched_rmse").compute(**_texts(asked))
    columns = {"count_rmse": result["count_errors"], "center_rmse": result["per_sample"]}
    return _judged(asked, columns, result["unparsed_per_sample"])


def _judge_captions(asked: Sequence[Asked], settings: Settings) -> list[Judged]:
    options: dict[str, Any] = {"scores": ["rouge"]}
    if settings.caption_model is not None:
        options = {"scores": ["rouge", "bertscore"], "model_type": settings.caption_model}
        if settings.caption_layers is not None:
            options["num_layers"] = settings.caption_layers
    try:
        columns = load_metric("caption_scores").compute(
            predictions=[a.text for a in asked],
            references=[list(a.question.references) for a in asked],
            **options,
        )["per_row"]
    except ImportError as error:
        raise RunError(
            f'BERTScore needs more than this install: pip install "soubench[caption]". ({error})'
        ) from error
    return _judged(asked, columns, [not a.text.strip() for a in asked])


def _judge_boxes(asked: Sequence[Asked], settings: Settings) -> list[Judged]:
    references = []
    for a in asked:
        numbers = read_numbers(a.question.answer)
        if numbers is None or len(numbers) not in (4, 8):
            raise RunError(
                f"{a.question.id}: expected the right box as [x1,y1,x2,y2] or a quad of 8 "
                f"numbers, got {a.question.answer[:60]!r}."
            )
        references.append(numbers)
    options: dict[str, Any] = {
        "format": settings.box_format or BOX_FORMATS["pixel"],
        "thresholds": [TAU],
    }
    if all(a.picture_wh is not None for a in asked):
        options["image_sizes"] = [list(a.picture_wh or ()) for a in asked]
        # Where a reply came and what the model saw is not known, the metric says that it needs it.
        if all(a.error is not None or _fed_size(a) is not None for a in asked):
            options["input_sizes"] = [list(_fed_size(a) or a.picture_wh or ()) for a in asked]
    result = load_metric("acc_at_iou").compute(
        predictions=[a.text for a in asked], references=references, **options
    )
    columns = {
        f"acc@{TAU}": [float(iou > TAU) for iou in result["ious"]],
        "mean_iou": result["ious"],
    }
    boxes = result["boxes"]
    parsed = [json.dumps(found[0]) if found else "" for found in boxes]
    return _judged(asked, columns, [not found for found in boxes], parsed)


def _judge_masks(asked: Sequence[Asked], settings: Settings) -> list[Judged]:
    # The metrics read a text that ends in .png as a file; a reply must not name one of ours.
    texts = _texts(asked)
    texts["predictions"] = [
        "" if text.rstrip().lower().endswith(".png") else text for text in texts["predictions"]
    ]
    overlap = load_metric("mask_iou").compute(**texts)
    columns = {
        "mean_iou": overlap["ious"],
        "dice": load_metric("dice").compute(**texts)["dices"],
    }
    unparsed = {found["row"] for found in overlap["unparsed"]}
    return _judged(asked, columns, [i in unparsed for i in range(len(asked))])


def _texts(asked: Sequence[Asked]) -> dict[str, list[str]]:
    return {
        "predictions": [a.text for a in asked],
        "references": [a.question.answer for a in asked],
    }


def _judged(
    asked: Sequence[Asked],
    columns: Mapping[str, Sequence[float | None]],
    unparsed: Sequence[bool],
    parsed: Sequence[str] | None = None,
) -> list[Judged]:
    """Turn columns into rows; what was read is the reply itself unless it is given."""
    if parsed is None:
        parsed = ["" if lost else a.text for a, lost in zip(asked, unparsed, strict=True)]
    values = zip(*columns.values(), strict=True)
    return [
        Judged(text, dict(zip(columns, row, strict=True)), bool(lost))
        for text, row, lost in zip(parsed, values, unparsed, strict=True)
    ]


ACCURACY = Measure("accuracy", "option_match", is_binary=True)
OPTION_KINDS = ("mcq", "yes_no")
"""Kinds of answers whose measure that is."""
SAMA = Measure("sama", "sama")
BERTSCORE_F1 = Measure("bertscore_f1", "caption_scores", "points")

SCORINGS: Mapping[str, Scoring] = MappingProxyType(
    {
        "mcq": Scoring((ACCURACY,), _judge_options),
        "yes_no": Scoring((ACCURACY,), _judge_yes_no),
        "box": Scoring(
            (
                Measure(f"acc@{TAU}", "acc_at_iou", is_binary=True),
                Measure("mean_iou", "acc_at_iou"),
            ),
            _judge_boxes,
        ),
        "mask": Scoring((Measure("mean_iou", "mask_iou"), Measure("dice", "dice")), _judge_masks),
        "text": Scoring(
            (
                Measure("rougeL", "caption_scores", "points"),
                Measure("rouge1", "caption_scores", "points"),
                Measure("rouge2", "caption_scores", "points"),
                Measure("bertscore_p", "caption_scores", "points"),
                Measure("bertscore_r", "caption_scores", "points"),
                BERTSCORE_F1,
            ),
            _judge_captions,
        ),
        "shapes": Scoring(
            (
                SAMA,
                Measure("sama_exact", "sama"),
                Measure("center_rmse", "sama", "px", is_error=True),
                Measure("rotation_rmse", "sama", "degrees", is_error=True),
                Measure("precision_macro", "attribute_f1"),
                Measure("recall_macro", "attribute_f1"),
                Measure("f1_macro", "attribute_f1"),
            ),
            _judge_shapes,
        ),
        "leaves": Scoring(
            (
                Measure("count_rmse", "matched_rmse", "leaves", is_error=True, root=True),
                Measure("center_rmse", "matched_rmse", "px", is_error=True),
            ),
            _judge_points,
        ),
    }
)
"""Kind of answer -> how it is scored. A new kind is one entry; a dataset whose texts are more than
captions also needs one in ``TEXT_KINDS``."""

TEXT_KINDS: Mapping[str, str] = MappingProxyType({"shapes": "shapes", "leaf_count": "leaves"})
"""A column that only rows of one dataset have -> the kind of their texts."""


def right_share(kind: str, values: Mapping[str, float | None]) -> float:
    """Return the main measure as a share; for errors, 1 where there is none."""
    main = SCORINGS[kind].measures[0]
    value = values[main.name]
    if main.is_error:
        return float(value == 0)
    return (value or 0.0) / (100 if main.unit == "points" else 1)


def kind_of(question: Question, row: Mapping[str, Any]) -> str:
    """Return the kind of a row's answer, a key of ``SCORINGS``."""
    if question.answer_type == "text":
        return next((kind for column, kind in TEXT_KINDS.items() if column in row), "text")
    return question.answer_type


@dataclass(frozen=True, slots=True)
class Verdict:
    """One line of ``verdicts.jsonl``: a row, its reply, and what came of it.

    Attributes:
        id: The row.
        rotation: By how many places its options were rotated.
        config: Config that the row was asked from.
        split: Its split.
        scenario: Scenario or dimension; empty where there is none.
        subset: Subset or sub-dimension; empty where there is none.
        task: Sub-task or leaf task; the kind of answer where there is none.
        group_id: Rows with the same one are no independent evidence; intervals are clustered by
            it.
        kind: Kind of answer, a key of ``SCORINGS``.
        question_sha256: Of the question, the options in the row's own order, and the answer, so
            that rows of two builds can be told to be the same.
        reply: What the model said; None where ``error`` says why.
        parsed: What was read from it; empty for nothing.
        answer: What is right: a letter, yes or no, a text.
        right: The main measure, 0 to 1: 0 or 1 for options and boxes. For leaves, whose measures
            are errors, 1 where their number is right.
        unparsed: There is a reply that could not be read.
        error: Why there is no reply, in a word or two; None if there is one.
        object_area_px: Area of the object that the question is about, in px² of the row's picture,
            where there is exactly one.
        model_area_px: The same after the model's own resize, where known.
        values: Measure -> value. The error of a count has its sign.
        options: Number of options; 0 where there are none.
        clean_id: The row that this one is a copy of, with its picture corrupted; empty for none.
        corruption: What was done to the picture; empty for nothing.
        severity: How much of it, from 1; 0 for nothing.
    """

    id: str
    rotation: int
    config: str
    split: str
    scenario: str
    subset: str
    task: str
    group_id: str
    kind: str
    question_sha256: str
    reply: str | None
    parsed: str
    answer: str
    right: float
    unparsed: bool
    error: str | None
    object_area_px: float | None = None
    model_area_px: float | None = None
    values: Mapping[str, float | None] = field(default_factory=dict)
    options: int = 0
    clean_id: str = ""
    corruption: str = ""
    severity: int = 0


def judge(asked: Sequence[Asked], settings: Settings) -> Iterator[tuple[Asked, str, Judged]]:
    """Judge replies of any mix of kinds.

    Yields:
        Each entry with its kind and what the metric says, in the order given.

    Raises:
        RunError: A right answer makes no sense, or a library is missing.
    """
    kinds = [kind_of(a.question, a.row) for a in asked]
    found: dict[int, Judged] = {}
    for kind in dict.fromkeys(kinds):
        members = [i for i, k in enumerate(kinds) if k == kind]
        try:
            judged = SCORINGS[kind].judge([asked[i] for i in members], settings)
        except ValueError as error:
            # The metrics name the row by its place among those they were given.
            raise RunError(
                f"the {len(members)} rows of kind {kind}, from {asked[members[0]].question.id} on, "
                f"cannot be scored: {error}"
            ) from error
        found.update(zip(members, judged, strict=True))
    for i, a in enumerate(asked):
        yield a, kinds[i], found[i]


def _fed_size(asked: Asked) -> Size | None:
    sizes = asked.reply.picture_wh if asked.reply is not None else None
    return sizes[0] if sizes else None
