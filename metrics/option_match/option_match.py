"""Multiple-choice accuracy that reads a model's whole reply and never guesses."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import datasets
import evaluate

from .evidence import Group, Weight, decide, group_mentions
from .letters import (
    ALPHABET,
    LetterMention,
    find_letters,
    has_numbered_option,
    promote,
    promote_numbered,
)
from .option_text import (
    OptionTable,
    find_boxes,
    find_names,
    match_none_of,
    match_polar,
    match_quantity,
    option_table,
)
from .reply import read_reply
from .rows import check_rows

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
    rf"(?<![\w'-])[\"'(]?([A-Z])[\"')]{{0,2}}[ \t]?(?:[:=.-]|is\b"
    rf"|->)?[ \t\"'(]{{0,3}}{_VERDICT_WORD}\b(?!\s(?:answer|option))",
    re.IGNORECASE,
)
_LINE_VERDICT = re.compile(
    rf"^\W{{0,6}}(?:option\s|choice\s)?[\"'(]?([A-Z])[\"')]{{0,2}}[.:)\s-][^\n]{{0,160}}?[\s:"
    rf"(=\"',-]{_VERDICT_WORD}\W{{0,4}}$",
    re.IGNORECASE | re.MULTILINE,
)
_AFFIRMATIVE = frozenset({"yes", "true", "correct", "right"})
_JOINED_LETTERS = re.compile(
    r"(?:\b(?:answers?|options?|choices?|choose|select|pick)\b(?: is| are|\s?[:=])?\s?[\"'(\[]?"
    r"|^\W*)([A-Z]{2,6})(?=\W*$|[.,;\n])",
    re.MULTILINE,
)
_FIRST_SENTENCE = re.compile(r"[\s\"'(]*([^\n.!?;:,]{1,80}?)[\s\"')]*(?:[\n.!?;:,]|- |\(|$)")
_ARTICLES = re.compile(
    r"^(?:(?:a|an|the|one|it's|it is|this is|that is|option|answer)\s+)+", re.IGNORECASE
)
_SENTENCE_BREAK = re.compile(r"[.?!:]\s|\n")
MAX_DEPTH = 3


class Reading:
    """One reply beside its options, cleaned and weighed as far as the rules ask."""

    def __init__(self, reply: str, options: tuple[str, ...], depth: int) -> None:
        """Clean the reply; letters are looked for only when a rule asks.

        Args:
            reply: The raw reply, or the content of a tag, key or box of one.
            options: The row's option texts.
            depth: How many tags, keys or boxes the reply came out of.
        """
        self.options = options
        self.depth = depth
        answered = read_reply(reply)
        self.plain_text = answered.text
        self.values = answered.values
        self.boxed = answered.boxed

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
    def mentions(self) -> list[LetterMention]:
        """The letters of ``text`` that stand for options."""
        return find_letters(self.text, self.table.folded)

    @cached_property
    def groups(self) -> list[Group]:
        """The same, joined and weighed."""
        groups = group_mentions(self.text, self.mentions)
        return _lead_and_close(self.text, self.mentions, groups)

    @property
    def letters(self) -> str:
        """The letters that have an option."""
        return ALPHABET[: len(self.options)]


def _opens_reply(text: str, mentions: Sequence[LetterMention]) -> bool:
    """Tell whether the first letter is an answer: "B. rider", or alone on the first line (R1)."""
    first = mentions[0]
    if text[: first.start].strip(" \t\n\"'([:-.,"):
        return False
    is_list = first.letter == "A" and any(
        mention.letter == "B" and mention.is_listed for mention in mentions
    )
    if first.is_listed:
        return not is_list
    line_end = text.find("\n", first.end)
    return line_end >= 0 and not text[first.end : line_end].strip(" \t\"')].:,!")


def _closes_reply(text: str, mentions: Sequence[LetterMention]) -> bool:
    """Tell whether the last letter is an answer: alone in the last line or sentence (R1, R4).

    The last line of a list of options, complete or cut off, is none (R13).
    """
    last = mentions[-1]
    start = 0
    for found in _SENTENCE_BREAK.finditer(text, max(0, last.start - 8), last.start):
        start = found.end()
    if not start or (text[start : last.start] + text[last.end :]).strip(" \t\n\"'()[].:,!-"):
        return False
    listed = [mention.letter for mention in mentions[:-1] if mention.is_listed]
    return not listed or last.letter in listed or ord(last.letter) != ord(listed[-1]) + 1


def _lead_and_close(
    text: str, mentions: Sequence[LetterMention], groups: list[Group]
) -> list[Group]:
    """Raise the letter that opens the reply and the one that closes it to answers (R1, R4, R13)."""
    if not mentions:
        return groups
    raised = set()
    if _opens_reply(text, mentions):
        raised.add(mentions[0].start)
    if _closes_reply(text, mentions):
        raised.add(mentions[-1].start)
    return [
        group._replace(weight=Weight.ANSWERED)
        if group.start in raised and group.weight is not Weight.DENIED and len(group.letters) == 1
        else group
        for group in groups
    ]


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
    if reading.values or reading.boxed:
        return None
    if not any(char.isalnum() for char in text) or _ERROR.search(text):
        return ""
    tokens = text.split()
    if len(tokens) >= 5 and len(set(tokens)) <= max(1, len(tokens) // 8):
        return ""
    return None


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


def boxed_letter(reading: Reading) -> str | None:
    r"""R3, R22: a ``\boxed{}`` that holds letters beats prose."""
    if reading.boxed is None or reading.depth >= MAX_DEPTH:
        return None
    inner = Reading(reading.boxed, reading.options, reading.depth + 1)
    letter = _bare(inner.plain_text, len(reading.options))
    if letter is not None:
        return letter
    if inner.mentions:
        return decide(inner.text, inner.groups, need_commitment=False)
    return None


def joined_letters(reading: Reading) -> str | None:
    """R12: "ANSWER: AB" picks two."""
    valid = reading.letters
    for found in _JOINED_LETTERS.finditer(reading.text):
        letters = found.group(1)
        if all(letter in valid for letter in letters) and len(set(letters)) == len(letters):
            return ""
    return None


def committed_letter(reading: Reading) -> str | None:
    """R4, R9, R11, R12, R14: the last letter that the words around it make an answer."""
    if not any(group.weight >= Weight.FAVORED for group in reading.groups):
        return None
    letter = decide(reading.text, reading.groups, need_commitment=True)
    if letter is None:
        return None
    return letter if letter in reading.letters else ""


def verdict_per_option(reading: Reading) -> str | None:
    """R4, R14: "A: no, B: yes": one option is affirmed among several judged ones."""
    verdicts: dict[str, bool] = {}
    for pattern in (_LINE_VERDICT, _CLOSE_VERDICT):
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


def boxed_text(reading: Reading) -> str | None:
    r"""R3, R5: a ``\boxed{}`` that holds an option's text."""
    if reading.boxed is None or reading.depth >= MAX_DEPTH:
        return None
    return match_option(reading.boxed, reading.options, depth=reading.depth + 1) or None


def only_letter(reading: Reading) -> str | None:
    """R1, R9, R12: one letter is left after the denied ones, and no option's text gainsays it."""
    letter = decide(reading.text, reading.groups, need_commitment=False)
    if not letter:
        return None
    if letter not in reading.letters:
        return ""
    if _is_refusal(reading.plain_text):
        return ""
    return letter


def leading_yes_or_no(reading: Reading) -> str | None:
    """R1, R5: a reply that opens or concludes with yes or no, but "No, I can't help" is none."""
    if not reading.table.polar:
        return None
    letter = match_polar(reading.plain_text, reading.table, is_plain=True)
    return letter if letter and not _NO_HELP.search(reading.plain_text) else None


def refusal(reading: Reading) -> str | None:
    """R25: a refusal names options without choosing one."""
    return "" if _is_refusal(reading.plain_text) else None


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
    """R5, R16: options that are numbers, with or without units."""
    return match_quantity(reading.plain_text, reading.table) if reading.table.quantities else None


def stated_text(reading: Reading) -> str | None:
    """R5, R6, R7, R14: the option whose box or name the reply gives."""
    text = reading.plain_text
    table = reading.table
    mentions = find_boxes(text, table) if table.boxes else find_names(text, table)
    if not mentions:
        return None
    groups = group_mentions(text, mentions)
    lead = _FIRST_SENTENCE.match(text)
    if lead and groups and groups[0].weight is Weight.NAMED:
        spoken = _ARTICLES.sub("", lead.group(1)).strip()
        first = mentions[0]
        if spoken.lower() == text[first.start : first.end].lower():
            groups[0] = (
                groups[0]._replace(weight=Weight.FAVORED)
                if len(groups[0].letters) == 1
                else groups[0]
            )
    has_rivals = (
        len({letter for group in reading.groups for letter in group.letters if group.weight}) > 1
    )
    return decide(text, groups, need_commitment=has_rivals)


RULES: tuple[Callable[[Reading], str | None], ...] = (
    bare_letter,
    no_answer,
    marked_value,
    boxed_letter,
    joined_letters,
    committed_letter,
    verdict_per_option,
    boxed_text,
    only_letter,
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
    predictions: Sequence[str], references: Sequence[str], options: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Return the accuracy of replies whose letters are read by ``match_option``.

    Args:
        predictions: Replies.
        references: Capital letters.
        options: Option texts of each row.

    Returns:
        ``accuracy`` (0..1, an unparsed reply is wrong), ``unparsed_rate`` (0..1), ``letters``
        ("" if unparsed), ``letter_counts`` and ``reference_counts`` (by letter; "unparsed" among
        the first), ``n``. Without rows both rates are 0.0.
    """
    letters = [
        match_option(reply, texts) for reply, texts in zip(predictions, options, strict=True)
    ]
    n = len(letters)
    seen = ALPHABET[: max((len(texts) for texts in options), default=0)]
    found = Counter(letters)
    wanted = Counter(references)
    n_right = sum(
        letter == reference for letter, reference in zip(letters, references, strict=True)
    )
    return {
        "accuracy": n_right / n if n else 0.0,
        "unparsed_rate": found[""] / n if n else 0.0,
        "letters": letters,
        "letter_counts": {**{letter: found[letter] for letter in seen}, "unparsed": found[""]},
        "reference_counts": {letter: wanted[letter] for letter in seen},
        "n": n,
    }


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

Returns:
    accuracy: share of rows whose letter is right, 0 to 1, higher is better.
    unparsed_rate: share of rows without a letter, 0 to 1, lower is better.
    letters: the letter read from each reply, "" where there is none.
    letter_counts: how often each letter was read, and "unparsed".
    reference_counts: how often each letter is right.
    n: number of rows.

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

    def _compute(
        self, predictions: list[str], references: list[str], options: list[list[str]]
    ) -> dict[str, Any]:
        return score(predictions, references, options)
