"""Speed of ``acc_at_iou``, as ratios against a plain Python loop of the same run.

Run: ``python benchmarks/metrics_boxes.py``; best of three. The peer is the loop one writes by hand:
sort the corners, intersect, divide; one call per pair of boxes, then the share above 0.5.

pairs      one box against one reference: the vectorized ``pair_iou`` on arrays; the whole
           ``compute`` on arrays, which stores them whole, and returns IoU and box of each row as
           lists (these cost most of it); and ``compute`` on lists, which checks and stores row by
           row, and is far slower than a bare loop
sets       20 boxes against 20 references per row: IoU of all pairs by ``iou_matrix``, and the whole
           ``compute`` with its matching; the peer's loop computes the IoU only
replies    reply texts read per second, by kind; no peer
"""

import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import evaluate
import numpy as np

from soubench.metrics.acc_at_iou.acc_at_iou import KNOWN, read_boxes
from soubench.metrics.acc_at_iou.box_rows import Row, check_rows
from soubench.metrics.acc_at_iou.overlap import iou_matrix, pair_iou

PAIRS = 50_000
SETS = 300
BOXES_PER_SET = 20
FOLDER = str(Path(__file__).parents[1] / "metrics" / "acc_at_iou")
REPLIES = {
    "JSON": ("qwen3_vl", '```json\n[{"bbox_2d": [120, 340, 260, 455], "label": "ship"}]\n```'),
    "tokens": ("florence2", "</s><s>ship<loc_7><loc_70><loc_17><loc_170></s>"),
    "named": ("pixel_xyxy", "Top-left corner: (120, 340); bottom-right corner: (260, 455)."),
    "thought": (
        "qwen3_vl",
        "<think>" + "It lies left of the pier. " * 40 + "</think>At [1, 2, 3, 4].",
    ),
}


def seconds(function: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def loop_iou(a: list[float], b: list[float]) -> float:
    ax1, ax2 = min(a[0], a[2]), max(a[0], a[2])
    ay1, ay2 = min(a[1], a[3]), max(a[1], a[3])
    bx1, bx2 = min(b[0], b[2]), max(b[0], b[2])
    by1, by2 = min(b[1], b[3]), max(b[1], b[3])
    width = max(0.0, min(ax2, bx2) - max(ax1, bx1))
    height = max(0.0, min(ay2, by2) - max(ay1, by1))
    union = (ax2 - ax1) * (ay2 - ay1) + (bx2 - bx1) * (by2 - by1) - width * height
    return width * height / union if union else 0.0


def boxes(n: int, rng: random.Random) -> list[list[float]]:
    corners = [(rng.uniform(0, 900), rng.uniform(0, 900)) for _ in range(n)]
    return [[x, y, x + rng.uniform(5, 100), y + rng.uniform(5, 100)] for x, y in corners]


def read_all(rows: list[Row]) -> list[list[list[float]]]:
    return [read_boxes(row) for row in rows]


def main() -> None:
    rng = random.Random(0)
    metric = evaluate.load(FOLDER)

    a, b = boxes(PAIRS, rng), boxes(PAIRS, rng)
    loop = seconds(lambda: sum(loop_iou(p, q) > 0.5 for p, q in zip(a, b, strict=True)) / PAIRS)
    a_array, b_array = np.array(a), np.array(b)
    pure = seconds(lambda: float((pair_iou(a_array, b_array) > 0.5).mean()))
    by_array = seconds(lambda: metric.compute(predictions=a_array, references=b_array))
    whole = seconds(lambda: metric.compute(predictions=a, references=b))
    print(f"pairs: loop {PAIRS / loop:,.0f}/s")
    print(f"       pair_iou {PAIRS / pure:,.0f}/s, {loop / pure:.1f} x the loop")
    print(f"       compute on arrays {PAIRS / by_array:,.0f}/s, {loop / by_array:.2f} x the loop")
    print(f"       compute on lists {PAIRS / whole:,.0f}/s, {loop / whole:.3f} x the loop")

    sets = [(boxes(BOXES_PER_SET, rng), boxes(BOXES_PER_SET, rng)) for _ in range(SETS)]
    loop = seconds(lambda: [[loop_iou(p, q) for p in ps for q in qs] for ps, qs in sets])
    pure = seconds(lambda: [iou_matrix(ps, qs) for ps, qs in sets])
    left, right = [list(column) for column in zip(*sets, strict=True)]
    whole = seconds(lambda: metric.compute(predictions=left, references=right))
    print(f"sets:  loop {SETS / loop:,.0f} rows/s of {BOXES_PER_SET} x {BOXES_PER_SET} boxes")
    print(f"       iou_matrix {SETS / pure:,.0f} rows/s, {loop / pure:.1f} x the loop")
    print(f"       compute {SETS / whole:,.0f} rows/s, {loop / whole:.1f} x the loop")

    for kind, (name, reply) in REPLIES.items():
        rows = check_rows(
            [reply] * 2_000,
            [[0, 0, 9, 9]] * 2_000,
            format=name,
            image_sizes=[[1000, 1000]] * 2_000,
            known=KNOWN,
        )
        taken = seconds(partial(read_all, rows))
        print(f"reply: {kind} {len(rows) / taken:,.0f}/s")


if __name__ == "__main__":
    main()
