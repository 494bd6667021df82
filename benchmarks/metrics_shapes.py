"""Speed of the shape metrics on one core, each as a ratio against a peer of the same run.

Run: ``python benchmarks/metrics_shapes.py [samples]``; 10,000 by default.

sama          samples of 4 shapes per second through ``compute``, in the templates' exact words, in
              others, and in two sentences a shape, and whether the cost is linear; peer: the same
              score written plainly, with a Levenshtein distance in pure Python and every assignment
              tried
attribute_f1  samples of 4 shapes per second through ``compute``
matched_rmse  plants of 12 leaves per second through ``compute``; peer: a double loop over the
              points for the costs and the same assignment, bare: without checks and tables

A peer runs on fewer samples, its speed is taken from these.
"""

import itertools
import math
import os
import random
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import evaluate
from scipy.optimize import linear_sum_assignment

from soubench.metrics.matched_rmse.matched_rmse import score as matched_score

Points = list[list[tuple[int, int]]]
METRICS = Path(__file__).parent.parent / "metrics"
KINDS = ("Circle", "Rectangle", "Ellipse", "Triangle", "Square")
COLORS = ("Orange", "Red", "Blue", "Green", "Yellow", "Magenta")
SIDES = ("left of", "right of", "above", "below")
TEMPLATE = re.compile(
    r"A (\w+) (\w+) is located in the (\w+ \w+) quadrant, centred at coordinates \((\d+), (\d+)\), "
    r"with relative positions described as ([^,]+), rotated by (\d+) degrees, "
    r"and is (not )?occluded\."
)


def timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def speed(function: Callable[[], object], n: int) -> float:
    """Return samples per second, the best of three runs."""
    return n / min(timed(function) for _ in range(3))


def picture(rng: random.Random) -> str:
    return " ".join(
        f"A {rng.choice(COLORS)} {rng.choice(KINDS)} is located in the "
        f"{rng.choice(('top', 'bottom'))} {rng.choice(('left', 'right'))} quadrant, centred at "
        f"coordinates ({rng.randrange(224)}, {rng.randrange(224)}), with relative positions "
        f"described as {rng.choice(SIDES)} {rng.choice(KINDS)}, rotated by "
        f"{rng.choice((0, 15, 30))} degrees, and is {rng.choice(('', 'not '))}occluded."
        for _ in range(4)
    )


def plain_distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


def plain_sama(predictions: list[str], references: list[str]) -> float:
    total = 0.0
    for prediction, reference in zip(predictions, references, strict=True):
        found = list(TEMPLATE.finditer(prediction))
        wanted = list(TEMPLATE.finditer(reference))
        costs = [[plain_distance(p[0].lower(), r[0].lower()) for r in wanted] for p in found]
        order = min(
            itertools.permutations(range(len(wanted))),
            key=lambda order, costs=costs: sum(costs[i][j] for i, j in enumerate(order)),
        )
        right = sum(
            found[i][k] == wanted[j][k] for i, j in enumerate(order) for k in (1, 2, 3, 6, 8)
        )
        total += right / 5 / len(wanted)
    return total / len(predictions)


def plain_centers(predictions: Points, references: Points) -> float:
    total = 0.0
    for predicted, reference in zip(predictions, references, strict=True):
        costs = [
            [math.sqrt(((a - c) ** 2 + (b - d) ** 2) / 2) for c, d in reference]
            for a, b in predicted
        ]
        rows, columns = linear_sum_assignment(costs)
        total += sum(costs[i][j] for i, j in zip(rows, columns, strict=True)) / len(rows)
    return total / len(predictions)


def shapes(n: int) -> None:
    rng = random.Random(0)
    predictions, references = ([picture(rng) for _ in range(n)] for _ in range(2))
    metric = evaluate.load(str(METRICS / "sama"))
    found = speed(lambda: metric.compute(predictions=predictions, references=references), n)
    few = 20
    peer = few / timed(lambda: plain_sama(predictions[:few], references[:few]))
    print(f"sama, {n} samples of 4 shapes: {found:.0f} samples/s")
    print(
        f"  ratio to pure Python and all permutations ({peer:.1f} samples/s): {found / peer:.0f} x"
    )
    own = [text.replace("centred", "centered").replace(". ", ".\n") for text in predictions]
    worded = speed(lambda: metric.compute(predictions=own, references=references), n)
    print(f"  replies in other words than the template: {worded:.0f} samples/s")
    split = [text.replace(", centred at", ". It is centered at") for text in predictions]
    several = speed(lambda: metric.compute(predictions=split, references=references), n)
    print(f"  replies in two sentences a shape: {several:.0f} samples/s")
    part = n // 10
    small = speed(
        lambda: metric.compute(predictions=predictions[:part], references=references[:part]), part
    )
    print(f"  linear: time per sample at {n} is {small / found:.2f} x that at {part}")
    f1 = evaluate.load(str(METRICS / "attribute_f1"))
    found = speed(lambda: f1.compute(predictions=predictions, references=references), n)
    print(f"attribute_f1, {n} samples of 4 shapes: {found:.0f} samples/s")


def plants(n: int) -> None:
    rng = random.Random(0)
    predictions, references = (
        [[(rng.randrange(500), rng.randrange(500)) for _ in range(12)] for _ in range(n)]
        for _ in range(2)
    )
    metric = evaluate.load(str(METRICS / "matched_rmse"))
    found = speed(lambda: metric.compute(predictions=predictions, references=references), n)
    peer = speed(lambda: plain_centers(predictions, references), n)
    bare = speed(lambda: matched_score(predictions, references), n)
    print(f"matched_rmse, {n} plants of 12 leaves: {found:.0f} plants/s")
    print(f"  ratio to a bare double loop ({peer:.0f} plants/s): {found / peer:.2f} x")
    print(f"  the score alone, without evaluate's tables: {bare / peer:.2f} x")


if __name__ == "__main__":
    N = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    shapes(N)
    plants(N)
