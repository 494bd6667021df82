"""Multiple-choice accuracy that reads a model's whole reply and never guesses."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import datasets
import evaluate

from .evidence import NAME_BEFORE, Group, Weight, decide, group_mentions, lower
from .interval import clustered_interval
from .letters import (
    ALPHABET,
    find_letters,
    has_numbered_option,
    promote,
    promote_numbered,
)
from .option_text import (
    OptionTable,
    find_amounts,
    find_boxes,
    find_names,
    match_none_of,
    match_polar,
    option_table,
)
from .reply import read_reply
from .rows import Label, check_labels, check_rows
from .thought import without_thought

_BARE = {
    form: index
    for index, letter in enumerate(ALPHABET)
    for cased in (letter, letter.lower())
    for form in (
        cased,
        f"{cased}.",
        f"{cased})",
        f"({cased})",
        f"{cased}:",
        f"**{cased}**",
        f"[{cased}]",
    )
}
_BARE_LETTER = re.compile(
    r"(?:(?:final\s)?(?:answer|option|choice"
    r"|ans)\b)?[\s\"'(\[:*.=,-]{0,8}([A-Za-z])[\s\"')\].:,!*-]{0,8}",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"^\W{0,4}(?:failed to obtain|error\b(?:\s(?:code|\d|occurred|:)|:)|(?:\w{1,40}error"
    r"|exception|traceback)\b|http(?:\serror|/\d|\s\d)"
    r"|rate.?limit|request (?:timed out|failed)|timed? ?out|internal server error"
    r"|service unavailable|bad gateway|cuda (?:error|out of)"
    r"|<!doctype|<html|nan$|null$|n/?a$|\[(?:error|empty|no response)\]|no response"
    r"|content.?filter)",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\b(?:can(?:'t|not| not)|unable to|not able to|won't|will not|couldn't|could not"
    r"|not possible to|impossible to)\s(?:\w+\s){0,2}?"
    r"(?:assist|help|comply|provide|view|see|access|process|open|answer|determine|identify|tell"
    r"|say|make out|discern|distinguish|analy[sz]e|be (?:given|determined|identified)"
    r"|confirm|decide)\b(?! for (?:sure|certain))"
    r"|\bas an ai\b|\b(?:i'm|i am) (?:sorry|unable)\b|^\W*(?:sorry|i apologi[sz]e)\b"
    r"|\bagainst (?:my|the) (?:policy|guidelines)"
    r"|\b(?:don't|do not) (?:know|have (?:access|the ability|enough))\b|\bnot sure (?:if"
    r"|whether)\b|\bno (?:image|picture)\b|\bunclear (?:if|whether)\b"
    r"|无法|不能确定|抱歉|对不起|申し訳|わかりません|できません|죄송|알 수 없",
)
_NO_HELP = re.compile(
    r"\b(?:can(?:'t|not)|unable to|won't)\s(?:\w+\s){0,2}?(?:assist|help|comply|provide|answer|tell"
    r"|say|determine|process|access|view|see (?:the|any|this) (?:image|picture|photo))\b"
    r"|\b(?:image|picture)\b.{0,20}\b(?:provided|attached|available)\b",
    re.IGNORECASE,
)
_BUT = re.compile(
    r"\b(?:but|however|nevertheless|nonetheless|still|that said|best guess|if i had to|although"
    r"|though|yet|i'd guess|i would guess|my guess)\b|但|しかし|하지만",
)
_VERDICT_WORD = r"(yes|true|correct|right|no|false|incorrect|wrong|not)"
_CLOSE_VERDICT = re.compile(
    rf"(?<![\w'-])[\"'(]?([A-Z])[\"')]{{0,2}}[ \t]?(?:[:=.?-]|is\b"
    rf"|->)?[ \t\"'(]{{0,3}}{_VERDICT_WORD}\b(?!\s(?:answer|option))",
    re.IGNORECASE,
)
_LINE_VERDICT = re.compile(
    rf"^\W{{0,6}}(?:option\s|choice\s)?[\"'(]?([A-Z])[\"')]{{0,2}}[.:)\s-][^\n.;]{{0,160}}?[\s:"
    rf"(=\"',-]{_VERDICT_WORD}\W{{0,4}}$",
    re.IGNORECASE | re.MULTILINE,
)
_AFFIRMATIVE = frozenset({"yes", "true", "correct", "right"})
_ARTICLES = re.compile(
    r"[\s\"'(]*(?:(?:a|an|the|one|it's|it is|this is|that is|option|answer)\s+)*", re.IGNORECASE
)
_SENTENCE_BREAK_AFTER = re.compile(r"[\s\"')]*(?:[\n.!?;:,(]|- |$)")
_SENTENCE_BREAK = re.compile(r"[.?!:]\s|\n")
_LEADS = re.compile(r"[.):]|[ \t\"')\].:,!]*\n")
MAX_DEPTH = 3


class Reading:
    """One reply beside its options, cleaned and weighed as far as the rules ask."""

    def __init__(self, reply: str, options: tuple[str, ...], depth: int) -> None:
        """Clean the reply; letters are looked for only when a rule asks.

        Args:
            reply: The raw reply, or the content of a tag or key of one.
            options: The row's option texts.
            depth: How many tags or keys the reply came out of.
        """
        self.options = options
        self.depth = depth
        answered = read_reply(without_thought(reply))
        self.plain_text = answered.text
        self.values = answered.values

    @cached_property
    def table(self) -> OptionTable:
        """The options, prepared."""
        return option_table(self.options)

    @cached_property
    def text(self) -> str:
        """The cleaned reply with ordinals and lower-case options written as capitals."""
        text = promote(self.plain_text, len(self.options))
        if has_numbered_option(text) and not self.table.quantities:
            text = promote_numbered(text)
        return text

    @cached_property
    def groups(self) -> list[Group]:
        """The letters of ``text`` that stand for options, joined and weighed."""
        mentions = find_letters(self.text, self.table.folded, NAME_BEFORE)
        return _lead_and_close(self.text, group_mentions(self.text, mentions))

    @property
    def letters(self) -> str:
        """The letters that have an option."""
        return ALPHABET[: len(self.options)]


def _lead_and_close(text: str, groups: list[Group]) -> list[Group]:
    """Raise a letter that opens the reply, and one alone at its end, to answers (R1, R4).

    A list of the options is one group of several letters, and stays what it is (R13).
    """
    raised = []
    for group in groups:
        start, end = group.start, group.end
        opens = not text[:start].strip(" \t\n\"'([:-.,") and _LEADS.match(text, end)
        breaks = [found.end() for found in _SENTENCE_BREAK.finditer(text, max(0, start - 8), start)]
        closes = breaks and not (text[breaks[-1] : start] + text[end:]).strip(" \t\n\"'()[].:,!-")
        is_answer = (
            (opens or closes) and group.weight is not Weight.DENIED and len(group.letters) == 1
        )
        raised.append(group._replace(weight=Weight.ANSWERED) if is_answer else group)
    return raised


def _bare(text: str, n_options: int) -> str | None:
    """Return a letter that is the whole text, "" if it lies outside the options (R1, R8, R11)."""
    found = _BARE_LETTER.fullmatch(text)
    if found is None:
        return None
    index = ord(found.group(1).upper()) - ord("A")
    return ALPHABET[index] if index < n_options else ""


def bare_letter(reading: Reading) -> str | None:
    """R1, R8, R11: the whole reply is a letter, perhaps in brackets or after "Answer:"."""
    return _bare(reading.plain_text, len(reading.options))


def no_answer(reading: Reading) -> str | None:
    """R2, R25: nothing is left, an error message, or one token over and over."""
    text = reading.plain_text
    if reading.values:
        return None
    if not any(char.isalnum() for char in text) or _ERROR.search(text):
        return ""
    tokens = text.split()
    is_loop = len(set(tokens)) <= min(2, len(tokens) // 5) and tokens[-1] in tokens[:-1]
    return "" if is_loop else None


def marked_value(reading: Reading) -> str | None:
    """R3: an answer tag or a JSON answer key beats prose, even when it holds no option."""
    if not reading.values or reading.depth >= MAX_DEPTH:
        return None
    read = [
        match_option(value, reading.options, depth=reading.depth + 1) for value in reading.values
    ]
    for value, letter in zip(reversed(reading.values), reversed(read), strict=True):
        if _bare(value.strip(), len(reading.options)):
            return letter
    return read[-1]


def verdict_per_option(reading: Reading) -> str | None:
    """R4, R14: "A: no, B: yes": one option is affirmed among several judged ones."""
    if len(reading.groups) < 2:
        return None
    verdicts: dict[str, bool] = {}
    for pattern in (_CLOSE_VERDICT, _LINE_VERDICT):
        for found in pattern.finditer(reading.text):
            letter = found.group(1)
            if letter in reading.letters:
                verdicts.setdefault(letter, found.group(2).lower() in _AFFIRMATIVE)
    if len(verdicts) < 2:
        return None
    affirmed = [letter for letter, is_right in verdicts.items() if is_right]
    if len(affirmed) == 1:
        return affirmed[0]
    return "" if affirmed else None


def stated_letter(reading: Reading) -> str | None:
    """R1, R4, R9, R11, R12, R14: the letter that the words around it make an answer.

    A letter that is only named counts if no other is left after the denied ones.
    """
    letter = decide(reading.groups)
    is_committed = max((group.weight for group in reading.groups), default=0) >= Weight.FAVORED
    if not letter and not is_committed:
        return None
    is_refused = not is_committed and _is_refusal(reading.plain_text)
    return letter if letter and letter in reading.letters and not is_refused else ""


def leading_yes_or_no(reading: Reading) -> str | None:
    """R1, R5: a reply that opens or concludes with yes or no, but "No, I can't help" is none."""
    if not reading.table.polar:
        return None
    letter = match_polar(reading.plain_text, reading.table, is_plain=True)
    return letter if letter and not _NO_HELP.search(reading.plain_text) else None


def refusal(reading: Reading) -> str | None:
    """R10, R25: a refusal names options without choosing one, unless it is an option itself."""
    text = reading.plain_text
    if not _is_refusal(text):
        return None
    options = zip(reading.letters, reading.table.folded, strict=True)
    said = [letter for letter, option in options if _is_refusal(option) and option in text.lower()]
    return said[0] if said else ""


def none_of_the_above(reading: Reading) -> str | None:
    """R10: "none of the above", only where it is offered."""
    return match_none_of(reading.plain_text, reading.table) or None


def any_yes_or_no(reading: Reading) -> str | None:
    """R1, R5: the only yes or no of the reply, or "there is no ..."."""
    if not reading.table.polar:
        return None
    letter = match_polar(reading.plain_text, reading.table, is_plain=False)
    return letter or (None if len(reading.options) > len(reading.table.polar) else "")


def stated_quantity(reading: Reading) -> str | None:
    """R5, R16: options that are numbers, with or without units; a total beats its parts."""
    if not reading.table.quantities:
        return None
    text = lower(reading.plain_text)
    ranks = dict(find_amounts(text, reading.table, NAME_BEFORE))
    starts = {mention.start: Weight(rank + 1) for mention, rank in ranks.items()}
    groups = [
        group._replace(weight=starts[group.start])
        if Weight.DENIED < group.weight < Weight.ANSWERED
        else group
        for group in group_mentions(text, list(ranks), in_list=False)
    ]
    letter = decide(groups, last_from=Weight.FAVORED)
    return letter if letter and letter in reading.letters else ""


def stated_text(reading: Reading) -> str | None:
    """R5, R6, R7, R14: the option whose box or name the reply gives."""
    text = reading.plain_text
    table = reading.table
    mentions = find_boxes(text, table) if table.boxes else find_names(text, table)
    groups = group_mentions(text, mentions)
    if groups and Weight.DENIED < groups[0].weight < Weight.FAVORED:
        lead = groups[0]
        if _ARTICLES.fullmatch(text, 0, lead.start) and _SENTENCE_BREAK_AFTER.match(text, lead.end):
            groups[0] = lead._replace(weight=Weight.FAVORED)
    has_rivals = (
        len({letter for group in reading.groups for letter in group.letters if group.weight}) > 1
    )
    return decide(groups, least=Weight.FAVORED if has_rivals else Weight.ASIDE)


RULES: tuple[Callable[[Reading], str | None], ...] = (
    bare_letter,
    no_answer,
    marked_value,
    verdict_per_option,
    stated_letter,
    leading_yes_or_no,
    refusal,
    none_of_the_above,
    any_yes_or_no,
    stated_quantity,
    stated_text,
)


def _is_refusal(text: str) -> bool:
    text = text.lower()
    found = _REFUSAL.search(text)
    return found is not None and _BUT.search(text, found.end()) is None


def match_option(reply: str, options: Sequence[str], *, depth: int = 0) -> str:
    """Return the letter of the option that a reply commits to, "" if it commits to none.

    The rules of ``RULES`` are asked in order; the first that has an opinion decides, and "" is an
    opinion. Nothing is ever guessed.

    Args:
        reply: What the model said, raw.
        options: The option texts of the row, 2 to 26, in the order of their letters.
        depth: How many answer tags or JSON keys the text came out of.
    """
    index = _BARE.get(reply.strip())
    if index is not None:
        return ALPHABET[index] if index < len(options) else ""
    letter = _bare(reply.strip(), len(options))
    if letter is not None:
        return letter
    reading = Reading(reply, tuple(options), depth)
    for rule in RULES:
        letter = rule(reading)
        if letter is not None:
            return letter
    return ""


def score(
    predictions: Sequence[str],
    references: Sequence[str],
    options: Sequence[Sequence[str]],
    *,
    groups: Sequence[Label] | None = None,
    clusters: Sequence[Label] | None = None,
    question_ids: Sequence[Label] | None = None,
) -> dict[str, Any]:
    """Return the accuracy of replies whose letters are read by ``match_option``.

    Args:
        predictions: Replies.
        references: Capital letters.
        options: Option texts of each row.
        groups: A label per row, for an accuracy per label.
        clusters: The picture or source of each row, for an interval.
        question_ids: The question of each row; rows of one question are its rotations.

    Returns:
        ``accuracy`` (0..1, an unparsed reply is wrong), ``unparsed_rate`` (0..1), ``letters``
        ("" if unparsed), ``letter_counts`` and ``reference_counts`` (by letter; "unparsed" among
        the first), ``n``. Without rows both rates are 0.0. With groups ``accuracy_per_group`` and
        ``n_per_group``, with clusters ``accuracy_interval`` and ``n_clusters``, with question ids
        ``circular_accuracy`` and ``n_questions``.
    """
    letters = [
        match_option(reply, texts) for reply, texts in zip(predictions, options, strict=True)
    ]
    n = len(letters)
    seen = ALPHABET[: max((len(texts) for texts in options), default=0)]
    found = Counter(letters)
    wanted = Counter(references)
    right = [letter == reference for letter, reference in zip(letters, references, strict=True)]
    result: dict[str, Any] = {
        "accuracy": sum(right) / n if n else 0.0,
        "unparsed_rate": found[""] / n if n else 0.0,
        "letters": letters,
        "letter_counts": {**{letter: found[letter] for letter in seen}, "unparsed": found[""]},
        "reference_counts": {letter: wanted[letter] for letter in seen},
        "n": n,
    }
    if groups is not None:
        members = _right_by_label(right, groups)
        result["accuracy_per_group"] = {
            label: sum(rows) / len(rows) for label, rows in members.items()
        }
        result["n_per_group"] = {label: len(rows) for label, rows in members.items()}
    if clusters is not None:
        result["accuracy_interval"] = clustered_interval(right, clusters)
        result["n_clusters"] = len(set(clusters))
    if question_ids is not None:
        questions = _right_by_label(right, question_ids).values()
        n_right = sum(all(rotations) for rotations in questions)
        result["circular_accuracy"] = n_right / len(questions) if questions else 0.0
        result["n_questions"] = len(questions)
    return result


def _right_by_label(right: Sequence[bool], labels: Sequence[Label]) -> dict[Label, list[bool]]:
    members: dict[Label, list[bool]] = {}
    for label, is_right in zip(labels, right, strict=True):
        members.setdefault(label, []).append(is_right)
    return members


_DESCRIPTION = """
Accuracy on multiple-choice questions with 2 to 26 options, from a model's whole reply. The letter
is read by ordered rules (answer tags and JSON, declared letters, verdicts, option texts, numbers,
boxes); a reply that commits to no option is unparsed and wrong. Nothing is guessed.
"""
_INPUTS = """
Args:
    predictions: list of str, the raw replies; a missing reply is "".
    references: list of letters ("A" or "a"), or of their indices 0 to n-1.
    options: list of lists of str, the option texts of each row, in the order of their letters.
    groups: optional list with a label (str or int) per row.
    clusters: optional list with the id of each row's picture or source.
    question_ids: optional list with the id of each row's question; rows of one question are its
        rotations.
    The optional lists go to compute and cover all rows, in the order in which they were added.

Returns:
    accuracy: share of rows whose letter is right, 0 to 1, higher is better.
    unparsed_rate: share of rows without a letter, 0 to 1, lower is better.
    letters: the letter read from each reply, "" where there is none.
    letter_counts: how often each letter was read, and "unparsed".
    reference_counts: how often each letter is right.
    n: number of rows.
    accuracy_per_group, n_per_group: with groups, dicts by label.
    accuracy_interval, n_clusters: with clusters, the 95 % interval (low, high) of accuracy.
    circular_accuracy, n_questions: with question_ids, the share of questions that are right in
        every rotation, 0 to 1, higher is better.

Examples:
    >>> metric = evaluate.load("option_match")
    >>> metric.compute(predictions=["B"], references=["B"], options=[["ship", "van"]])["accuracy"]
    1.0
"""
_CITATION = """
@software{soubench_option_match,
  title = {option_match: multiple-choice accuracy without guessing},
  author = {The soubench authors},
  year = {2026}
}
"""


class OptionMatch(evaluate.Metric):  # type: ignore[misc]  # evaluate ships no types
    """Multiple-choice accuracy; see the card."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features(
                {
                    "predictions": datasets.Value("string"),
                    "references": datasets.Value("string"),
                    "options": datasets.Sequence(datasets.Value("string")),
                }
            ),
        )

    def add_batch(
        self,
        *,
        predictions: Iterable[Any] | None = None,
        references: Iterable[Any] | None = None,
        options: Iterable[Any] | None = None,
    ) -> None:
        """Check a batch of rows and keep it; integer references become letters."""
        rows = check_rows(predictions, references, options, first_row=len(self))
        evaluate.Metric.add_batch(self, **rows._asdict())

    def add(
        self,
        *,
        prediction: object = None,
        reference: object = None,
        options: object = None,
    ) -> None:
        """Check one row and keep it."""
        rows = check_rows([prediction], [reference], [options], first_row=len(self))
        evaluate.Metric.add(
            self,
            prediction=rows.predictions[0],
            reference=rows.references[0],
            options=rows.options[0],
        )

    def compute(
        self,
        *,
        predictions: Iterable[Any] | None = None,
        references: Iterable[Any] | None = None,
        options: Iterable[Any] | None = None,
        groups: Iterable[Any] | None = None,
        clusters: Iterable[Any] | None = None,
        question_ids: Iterable[Any] | None = None,
    ) -> dict[str, Any] | None:
        """Score the rows given here and those added before.

        The optional lists have one label per row, in the order in which the rows were added, those
        of this call last. They are checked before anything is added.
        """
        columns = {"predictions": predictions, "references": references, "options": options}
        given = {"groups": groups, "clusters": clusters, "question_ids": question_ids}
        if any(labels is not None for labels in given.values()):
            n_rows = len(self)
            if any(column is not None for column in columns.values()):
                rows = check_rows(**columns, first_row=n_rows)
                columns = dict(rows._asdict())
                n_rows += len(rows.predictions)
            given = {
                name: None if labels is None else check_labels(name, labels, n_rows)
                for name, labels in given.items()
            }
        result: dict[str, Any] | None = evaluate.Metric.compute(self, **columns, **given)
        return result

    def _compute(
        self,
        predictions: list[str],
        references: list[str],
        options: list[list[str]],
        groups: list[Label] | None = None,
        clusters: list[Label] | None = None,
        question_ids: list[Label] | None = None,
    ) -> dict[str, Any]:
        return score(
            predictions,
            references,
            options,
            groups=groups,
            clusters=clusters,
            question_ids=question_ids,
        )
