"""What scoring a full benchmark costs: python benchmarks/score.py.

18,204 rows of the form of SOU-VQA (3,034 pictures, 60 objects each) with replies of a sentence are
scored into all tables with their intervals and written. Peers in the same run: ``option_match``
alone, which is the part without intervals, and one of the table's intervals by a plain Python loop
over the same draws (a hundredth of them, times a hundred).
"""

import tempfile
import time
from pathlib import Path

import datasets
import numpy as np

from soubench.builders.sou.subsets import SUBSETS, Task
from soubench.inference.dataset_rows import LoadedRows, open_rows
from soubench.inference.intervals import DRAWS
from soubench.inference.run_folder import Reply
from soubench.inference.score import score_replies, write_scores
from soubench.inference.scores import load_metric

BAR_S = 10.0
OBJECTS = 60
LOOP_DRAWS = DRAWS // 100
LETTERS = "ABCD"
REPLIES = ("{}", "The answer is **{}**.", "It must be ({}), since the others are too large.")


def write_rows(folder: Path) -> LoadedRows:
    """Write the rows without pictures, and open them as a user would."""
    rng = np.random.default_rng(0)
    rows = []
    for subset in SUBSETS.values():
        for i in range(subset.pictures or 0):
            areas = rng.integers(20, 1025, OBJECTS).astype(float).tolist()
            boxes = rng.integers(0, 900, (OBJECTS, 4)).astype(float).tolist()
            rows += [
                {
                    "id": f"{subset.name}/{i}/{task}",
                    "scenario": subset.scenario,
                    "subset": subset.name,
                    "image_id": str(i),
                    "group_id": str(i),
                    "task": str(task),
                    "question": f"What is asked about picture {i} by {task}?",
                    "options": [f"{n + 10 * i}" for n in range(4)],
                    "answer": int(rng.integers(4)),
                    "system_prompt": "",
                    "objects": {"area_px": areas, "box_xyxy": boxes},
                    "evidence": {"objects": [i % OBJECTS], "point_xy": []},
                }
                for task in Task
            ]
    folder.mkdir()
    datasets.Dataset.from_list(rows).to_parquet(str(folder / "test.parquet"))
    return open_rows(str(folder), None, None)


def loop_seconds(right: list[bool], groups: list[str]) -> float:
    """Return what one interval takes as a plain loop."""
    members: dict[str, list[bool]] = {}
    for value, group in zip(right, groups, strict=True):
        members.setdefault(group, []).append(value)
    clusters = list(members.values())
    rng = np.random.default_rng(0)
    started = time.perf_counter()
    for _ in range(LOOP_DRAWS):
        drawn = [clusters[i] for i in rng.integers(len(clusters), size=len(clusters))]
        sum(map(sum, drawn)) / sum(map(len, drawn))
    return (time.perf_counter() - started) * DRAWS / LOOP_DRAWS


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        loaded = write_rows(Path(home) / "rows")
        rows = loaded.rows.select_columns(["id", "options", "answer"]).to_list()
        rng = np.random.default_rng(1)
        texts = [
            REPLIES[i % len(REPLIES)].format(
                LETTERS[row["answer"]] if rng.random() < 0.4 else LETTERS[rng.integers(4)]
            )
            for i, row in enumerate(rows)
        ]
        replies = [Reply(row["id"], reply=text) for row, text in zip(rows, texts, strict=True)]
        metric = load_metric("option_match")
        started = time.perf_counter()
        metric.compute(
            predictions=texts,
            references=[LETTERS[row["answer"]] for row in rows],
            options=[row["options"] for row in rows],
        )
        alone = time.perf_counter() - started

        started = time.perf_counter()
        scored = score_replies(replies, loaded, model="synthetic")
        judged = time.perf_counter() - started
        tables = scored.tables()
        write_scores(scored, tables, Path(home) / "scores")
        whole = time.perf_counter() - started

    intervals = sum(
        getattr(cell, "low", None) is not None
        for table in tables
        for line in table.lines
        for cell in line.cells
    )
    loop = loop_seconds(
        [v.right == 1 for v in scored.verdicts], [v.group_id for v in scored.verdicts]
    )
    print(f"{len(rows):,} rows, {intervals} intervals of {DRAWS:,} draws")
    print(f"score           {whole:6.2f} s (verdicts {judged:.2f} s); bar {BAR_S:.0f} s")
    print(f"option_match    {alone:6.2f} s alone: score takes {whole / alone:.1f} times that")
    print(f"one interval    {loop:6.2f} s by a plain loop: all of score takes {whole / loop:.2f}")
    print("within the bar" if whole <= BAR_S else "ABOVE THE BAR")


if __name__ == "__main__":
    main()
