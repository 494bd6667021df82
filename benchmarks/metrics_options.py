"""Speed of ``option_match`` on one core, as ratios against peers of the same run.

Run: ``python benchmarks/metrics_options.py``

mixed  20,000 replies of all kinds, options of their own in each row; bar 15,000 replies/s
bare   50,000 bare letters; bar 50,000 replies/s
interval  what the clustered interval of a full benchmark adds; peer: the same call without it

Both go through ``compute``, which stores the rows in Arrow and reads them back. Peers: the same
machinery of `evaluate` around one comparison of strings a row, which no metric that stores the
options as well can beat, and a plain loop that takes the first capital letter of each reply, which
is fast and wrong: the share of replies it reads alike is printed.
"""

import random
import re
import time
from collections.abc import Callable
from typing import Any

import datasets
import evaluate

from soubench.builders.publishing.metric_cache import metric_folders

MIXED_ROWS = 20_000
BARE_ROWS = 50_000
MIXED_BAR = 15_000
BARE_BAR = 50_000
INTERVAL_ROWS = 18_204
REPEATS = 3
FIRST_CAPITAL = re.compile(r"\b[A-Z]\b")

NAMES = (
    *("crane", "barge", "pier", "silo", "tanker", "lorry", "shed", "buoy", "mast", "kiosk"),
    *("tram", "ferry", "cart", "drone", "tent", "kayak"),
)
LETTERS = (
    *("{L}", "{L}.", "({L})", "{l}", "**{L}**", "Answer: {L}", "{L}: {text}", "{L}. {text}"),
    *("The answer is {L}.", "The correct answer is ({L}).", "I would go with {L}.", "Option {L}"),
    "After looking closely at the lower left of the scene, I would choose option {L}.",
    "### Answer\n\n**{L}**",
    r"\boxed{{\text{{{L}}}}}",
    'Here it is:\n```json\n{{"reason": "long and grey", "answer": "{L}"}}\n```',
    "It is long and grey.\n<answer>{L}</answer>",
    "{L}<|im_end|>\n<|endoftext|>",
    "<think>\nIt might be {M}, or perhaps not. Let me look at it again.\n</think>\n\n{L}",
    "It is not {M}, the answer is {L}.",
    "Answer: {M}. Wait, the shape is wrong. Answer: {L}",
    "{M} is too short. Therefore the answer is {L}, because its hull is long.",
    "{L}\n\nQuestion: And what is this?\nA: a\nB: b\nAnswer: {M}",
    "答案是{L}。",
    "It is hard to be certain, but {L} seems the most plausible.",
    "{M} or {L}",
    "I take the second option.",
)
CATEGORIES = (
    *("{text}", "A {text}.", "It is a {text}.", "The object at point [31,8] is a {text}."),
    "The leftmost object is a {text}, right next to a {other}.",
    "It looks like a {other} at first, but it is a {text}.",
    "I'm sorry, I can't help with that.",
    "",
    "!!!!!!!!!!!!!!!!",
    "None of the above.",
)
COUNTS = (
    *("{text}", "There are {text} small objects.", "I count {text} of them.", "about {text}"),
    "I can see 2 cars and 3 vans, so there are {text} objects in total.",
    "{text} or {other}",
)
BOXES = ("{text}", '{{"bbox_2d": {text}, "label": "barge"}}', "The box is {text}.", "({text})")


def mixed_rows(n: int) -> dict[str, list[Any]]:
    """Draw rows of the three kinds of options; each row has its own."""
    rng = random.Random(0)
    replies, references, options = [], [], []
    for i in range(n):
        if i % 3 == 0:
            texts = rng.sample(NAMES, 4)
            pattern = rng.choice(LETTERS + CATEGORIES)
        elif i % 3 == 1:
            texts = [str(number) for number in rng.sample(range(200), 4)]
            pattern = rng.choice(LETTERS + COUNTS)
        else:
            corners = [(rng.randrange(900), rng.randrange(900)) for _ in range(4)]
            texts = [f"[{x},{y},{x + 9},{y + 17}]" for x, y in corners]
            pattern = rng.choice(LETTERS + BOXES)
        right, wrong = rng.sample(range(4), 2)
        letter = "ABCD"[right]
        replies.append(
            pattern.format(
                L=letter, l=letter.lower(), M="ABCD"[wrong], text=texts[right], other=texts[wrong]
            )
        )
        references.append(letter)
        options.append(texts)
    return {"predictions": replies, "references": references, "options": options}


class StringMatch(evaluate.Metric):  # type: ignore[misc]  # evaluate ships no types
    """The machinery of evaluate around a comparison of two strings."""

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description="",
            citation="",
            features=datasets.Features({"predictions": text, "references": text}),
        )

    def _compute(self, predictions: list[str], references: list[str]) -> dict[str, float]:
        pairs = zip(predictions, references, strict=True)
        return {"accuracy": sum(a == b for a, b in pairs) / max(1, len(predictions))}


def first_capitals(replies: list[str]) -> list[str]:
    found = [FIRST_CAPITAL.search(reply) for reply in replies]
    return [match.group() if match else "" for match in found]


def rate(function: Callable[[], object], n: int) -> float:
    """Return rows per second of processor time, the best of a few runs."""
    best = float("inf")
    for _ in range(REPEATS):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return n / best


def report(title: str, rows: dict[str, list[Any]], bar: int) -> None:
    n = len(rows["predictions"])
    metric = evaluate.load(str(metric_folders()["option_match"]))
    peer = StringMatch()
    pair = {"predictions": rows["predictions"], "references": rows["references"]}
    ours = rate(lambda: metric.compute(**rows), n)
    machinery = rate(lambda: peer.compute(**pair), n)
    loop = rate(lambda: first_capitals(rows["predictions"]), n)
    letters = metric.compute(**rows)["letters"]
    alike = sum(map(str.__eq__, letters, first_capitals(rows["predictions"]))) / n
    print(
        f"{title}: {ours:,.0f} replies/s (bar {bar:,}: {'met' if ours >= bar else 'NOT MET'}); "
        f"{ours / machinery:.2f} x comparing strings through evaluate ({machinery:,.0f}/s), "
        f"{ours / loop:.3f} x the first capital letter in a loop ({loop:,.0f}/s), "
        f"which reads {alike:.0%} alike"
    )


def interval() -> None:
    clusters = [i % 3000 for i in range(INTERVAL_ROWS)]
    letters = random.Random(0).choices("AB", k=INTERVAL_ROWS)
    rows = {
        "predictions": letters,
        "references": ["A"] * INTERVAL_ROWS,
        "options": [["crane", "barge"]] * INTERVAL_ROWS,
    }
    metric = evaluate.load(str(metric_folders()["option_match"]))
    without = rate(lambda: metric.compute(**rows), INTERVAL_ROWS)
    within = rate(lambda: metric.compute(**rows, clusters=clusters), INTERVAL_ROWS)
    print(f"interval: {INTERVAL_ROWS} rows in 3000 clusters cost {without / within:.2f} x as much")


def main() -> None:
    report("mixed", mixed_rows(MIXED_ROWS), MIXED_BAR)
    bare = random.Random(0).choices("ABCD", k=BARE_ROWS)
    options = [["crane", "barge", "pier", "silo"] for _ in bare]
    report("bare", {"predictions": bare, "references": bare[:], "options": options}, BARE_BAR)
    interval()


if __name__ == "__main__":
    main()
