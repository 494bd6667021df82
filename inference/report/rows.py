"""The rows of a section with their verdicts, as plain data for the page."""

from dataclasses import dataclass, field
from typing import Any

from soubench.builders.errors import RunError
from soubench.inference.dataset_rows import LoadedRows
from soubench.inference.predict import COLUMNS_READ
from soubench.inference.questions import Question, question_of, stratum_of
from soubench.inference.report.figures import values_text
from soubench.inference.report.runs import Section
from soubench.inference.scores import Verdict

STATES = ("wrong", "right", "partly", "unparsed", "error")

Key = tuple[str, str]
"""Id of a row, and the hash of its question: configs of one dataset may ask differently."""


def key_of(verdict: Verdict) -> Key:
    """Return what tells the row of a verdict from others of its section."""
    return verdict.id, verdict.question_sha256


@dataclass(slots=True)
class Listed:
    """The rows of a section that some run answered.

    Attributes:
        section: The section.
        sources: Where each comes from: the rows of its config and split, and its index there.
        questions: Of each, as it stands in the row.
        facts: Of each, a verdict, which says its task and subset.
        place: Key -> place in the list.
        strata: What each is an example of.
        views: Place -> pictures of the row, for the page's data.
    """

    section: Section
    sources: list[tuple[LoadedRows, int]] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    facts: list[Verdict] = field(default_factory=list)
    place: dict[Key, int] = field(default_factory=dict)
    strata: list[tuple[str, ...]] = field(default_factory=list)
    views: dict[int, list[dict[str, Any]]] = field(default_factory=dict)


def list_rows(section: Section) -> Listed:
    """Find the rows of all verdicts, in the order of the datasets."""
    wanted: dict[tuple[str, str], dict[str, Verdict]] = {}
    for run in section.runs:
        for verdict in run.verdicts:
            wanted.setdefault((verdict.config, verdict.split), {})[verdict.id] = verdict
    found = Listed(section)
    for part, verdicts in wanted.items():
        loaded = section.parts[part]
        names = [name for name in COLUMNS_READ if name in loaded.rows.column_names]
        for i, row in enumerate(loaded.rows.select_columns(names).to_list()):
            if row["id"] not in verdicts:
                continue
            verdict = verdicts.pop(row["id"])
            if key_of(verdict) in found.place:
                continue
            found.place[key_of(verdict)] = len(found.questions)
            found.sources.append((loaded, i))
            found.questions.append(question_of(row))
            found.facts.append(verdict)
            found.strata.append(stratum_of(row))
        if verdicts:
            raise RunError(
                f"{section.name}: {len(verdicts):,} scored rows are not in the dataset, such as "
                f"{min(verdicts)}. Score the run again."
            )
    return found


def section_data(rows: Listed, reply_characters: int) -> dict[str, Any]:
    """Return a section as plain lists; texts that come again and again are numbers."""
    subsets, tasks, questions = _Numbers(), _Numbers(), _Numbers()
    table = []
    for question, fact in zip(rows.questions, rows.facts, strict=True):
        area = fact.object_area_px
        table.append(
            [
                question.id,
                subsets.of(fact.subset),
                tasks.of(fact.task),
                questions.of(question.question),
                list(question.options),
                question.answer,
                fact.group_id,
                None if area is None else round(area),
            ]
        )
    return {
        "name": rows.section.name,
        "runs": [{"name": run.name} for run in rows.section.runs],
        "subsets": subsets.texts,
        "tasks": tasks.texts,
        "questions": questions.texts,
        "rows": table,
        "verdicts": [
            [_verdict_data(v, rows.place[key_of(v)], reply_characters) for v in run.verdicts]
            for run in rows.section.runs
        ],
        "views": {},
    }


def _verdict_data(verdict: Verdict, place: int, reply_characters: int) -> list[Any]:
    reply = verdict.reply
    if reply is not None and len(reply) > reply_characters:
        reply = f"{reply[:reply_characters]} [.. {len(reply) - reply_characters:,} more characters]"
    # What was read from a text is the text.
    parsed = verdict.parsed if verdict.kind in ("mcq", "yes_no", "box") else ""
    state = state_of(verdict)
    right = round(verdict.right, 4) if state == "partly" else 0
    error, values = verdict.error, values_text(verdict)
    data = [place, verdict.rotation, reply, parsed, right, STATES.index(state), error, values]
    while data[-1] in (None, ""):
        data.pop()
    return data


def state_of(verdict: Verdict) -> str:
    """Return how a verdict is called: wrong, right, partly, unparsed or error."""
    if verdict.error is not None:
        return "error"
    if verdict.unparsed:
        return "unparsed"
    if verdict.right >= 1:
        return "right"
    return "partly" if verdict.right > 0 else "wrong"


class _Numbers:
    """Texts, each once, by number."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._number: dict[str, int] = {}

    def of(self, text: str) -> int:
        if text not in self._number:
            self._number[text] = len(self.texts)
            self.texts.append(text)
        return self._number[text]
