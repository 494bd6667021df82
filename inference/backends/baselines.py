"""Replies that need no model: what every score should be read against."""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from statistics import median
from string import ascii_uppercase as LETTERS
from types import MappingProxyType
from typing import Any

from soubench.builders.errors import RunError
from soubench.builders.keyed import KeyedRandom
from soubench.builders.sou.statistics import shape_area, shape_of
from soubench.inference.backends import Facts
from soubench.inference.chat import Picture, Request
from soubench.inference.coordinates import DECIMALS, Frame, convert_numbers, read_numbers
from soubench.inference.questions import Question
from soubench.inference.run_folder import Reply, Size

Row = Mapping[str, Any]
"""A row of a multiple-choice dataset: at least ``id``, ``options`` and ``answer``."""


def random_letter(row: Row, seed: int = 0) -> str:
    """Reply with a random letter, the same for a row in every run with this seed."""
    return LETTERS[KeyedRandom("baseline:random", seed, row["id"]).below(len(row["options"]))]


def constant_letter(row: Row) -> str:
    """Reply with the first letter, always."""
    return LETTERS[0]


def smallest_number(row: Row) -> str:
    """Reply with the smallest option where all are whole numbers, else with a random letter."""
    options: Sequence[str] = row["options"]
    if not all(option.isdecimal() for option in options):
        return random_letter(row)
    return LETTERS[min(range(len(options)), key=lambda i: int(options[i]))]


def oracle(row: Row) -> str:
    """Reply with the right letter."""
    return LETTERS[row["answer"]]


BASELINES: Mapping[str, Callable[[Row], str]] = MappingProxyType(
    {
        "random": random_letter,
        "constant letter": constant_letter,
        "smallest number": smallest_number,
        "oracle": oracle,
    }
)

PREFIX = "baseline:"
KINDS = ("random", "constant", "blind", "oracle")
YES_NO = ("yes", "no")

Asked = tuple[Question, tuple[str, ...]]
"""A question and what it is an example of."""
Score = Callable[[str], float]
"""How much a blind baseline likes an option."""


class BaselineBackend:
    """Answers by rule, without looking at a picture.

    ``random`` draws a letter, yes or no, or the answer of another row; ``constant`` says the first
    letter, yes, or one row's answer; ``oracle`` says what is right; ``blind`` knows the answers of
    the whole set but not which row has which: for each kind of question it says what scores best
    on the set without looking.

    Args:
        name: ``baseline:random``, ``baseline:constant``, ``baseline:blind``, ``baseline:oracle``.
        asked: All questions of the set, not only those of a shard.
        seed: Of the draws.

    Raises:
        RunError: There is no such baseline.
    """

    def __init__(self, name: str, asked: Sequence[Asked], *, seed: int = 0) -> None:
        self.kind = name.removeprefix(PREFIX)
        if self.kind not in KINDS:
            listed = ", ".join(f"{PREFIX}{kind}" for kind in KINDS)
            raise RunError(f"--model: expected one of {listed}, or a model; got {name!r}.")
        self.seed = seed
        self._groups: dict[tuple[str, ...], list[Question]] = {}
        for question, stratum in asked:
            self._groups.setdefault((question.answer_type, *stratum), []).append(question)
        self._blind = {
            group: blind_rule(questions, seed)
            for group, questions in self._groups.items()
            if self.kind == "blind"
        }

    @property
    def facts(self) -> Facts:
        """Return what pins the baseline."""
        rules = {"/".join(group): rule for group, (rule, _) in sorted(self._blind.items())}
        return Facts(
            model={
                "name": f"{PREFIX}{self.kind}",
                "backend": "baseline",
                "revision": None,
                "parameters": None,
                "dtype": None,
                "context": {"rules": rules} if rules else {},
            },
            decoding={},
        )

    def fed_size(self, picture: Picture) -> Size | None:
        """Return None: nothing is fed."""
        return None

    def replies(self, requests: Iterator[Request]) -> Generator[Reply]:
        """Answer every request in order."""
        for request in requests:
            question = request.question
            text = self._say(request)
            yield Reply(question.id, question.rotation, reply=text, seconds=0.0)

    def _say(self, request: Request) -> str:
        question = request.question
        group = (question.answer_type, *request.stratum)
        if self.kind == "oracle":
            return said(question.answer, question, request.frame)
        if self.kind == "blind":
            return said(self._blind[group][1](question), question, request.frame)
        if question.answer_type == "mcq":
            if self.kind == "constant":
                return LETTERS[0]
            n = len(question.options)
            return LETTERS[self._draw(question).below(n)]
        if question.answer_type == "yes_no":
            return YES_NO[0] if self.kind == "constant" else self._draw(question).choice(YES_NO)
        others = self._groups[group]
        other = others[0] if self.kind == "constant" else self._draw(question).choice(others)
        return said(other.answer, question, request.frame)

    def _draw(self, question: Question) -> KeyedRandom:
        return KeyedRandom("baseline:random", self.seed, question.id, question.rotation)


def said(answer: str, question: Question, frame: Frame) -> str:
    """Write an answer as it was asked for: boxes in the question's frame."""
    numbers = read_numbers(answer) if question.answer_type == "box" else None
    if numbers is None or frame.coords == "pixel":
        return answer
    # Small boxes: a whole thousandth may be too coarse for an oracle.
    decimals = DECIMALS[frame.coords] + 1
    return convert_numbers(numbers, frame, decimals=decimals)


def blind_rule(questions: Sequence[Question], seed: int) -> tuple[str, Callable[[Question], str]]:
    """Find what scores best on questions of one kind for someone who knows the set only.

    The rules are those of ``soubench.builders.sou.blind``; where a rule likes several options
    alike, a keyed draw decides.

    Returns:
        The rule's name, and what it says.
    """
    answers = Counter(q.answer for q in questions)
    common = answers.most_common(1)[0][0]
    if questions[0].answer_type != "mcq":
        return "most-common-answer", lambda _: common
    scores = _scores(questions)
    expected = {
        name: sum(_chance(q, score) for q in questions) for name, score in scores.items()
    } | {"constant-letter": float(answers[common])}
    best = max(sorted(expected), key=lambda name: expected[name])
    if best == "constant-letter":
        return best, lambda _: common
    score = scores[best]

    def reply(question: Question) -> str:
        values = [score(option) for option in question.options]
        liked = [i for i, value in enumerate(values) if value == max(values)]
        key = ("baseline:blind", seed, question.id, question.rotation)
        return LETTERS[KeyedRandom(*key).choice(liked)]

    return best, reply


def _scores(questions: Sequence[Question]) -> dict[str, Score]:
    """Return the rules that make sense for the options of all questions."""
    texts = Counter(q.answer_text for q in questions)
    scores: dict[str, Score] = {"longest-string": len}
    # Where hardly two answers are alike, to know them all is to know which row has which.
    if 2 * len(texts) <= len(questions):
        scores["most-common-answer"] = lambda o: texts[o]
    options = [option for q in questions for option in q.options]
    if all(option.isdecimal() for option in options):
        middle = median(int(q.answer_text) for q in questions)
        scores["smallest-number"] = lambda o: -int(o)
        scores["largest-number"] = lambda o: int(o)
        scores["median-number"] = lambda o: -abs(int(o) - middle)
    elif all(len(read_numbers(option) or ()) in (4, 8) for option in options):
        size = median(_box_area(q.answer_text) for q in questions)
        scores["median-size"] = lambda o: -abs(_box_area(o) - size)
    return scores


def _box_area(option: str) -> float:
    numbers = read_numbers(option) or []
    return shape_area(shape_of([round(1000 * v) for v in numbers])) / 1e6


def _chance(question: Question, score: Score) -> float:
    """Return the chance that a draw among the options that a rule likes best is right."""
    values = [score(option) for option in question.options]
    best = max(values)
    return (score(question.answer_text) == best) / values.count(best)
