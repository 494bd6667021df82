"""The table: scores by hand, and the paper's own aerial rows."""

import csv
from importlib.resources import files

import pytest

from soubench.builders.sou.subsets import GROUPS, SUBSETS, Task
from soubench.inference.backends.baselines import BASELINES
from soubench.inference.sou_table import (
    AVERAGE,
    Score,
    pooled,
    score_replies,
    table_row,
    table_text,
)

PUBLISHED = files("soubench.inference") / "published"


def published(name):
    with (PUBLISHED / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_models_aerial_row_follows_from_its_subset_rows_but_the_human_one():
    """Micro average over 514, 410 and 328 pictures, to the two printed decimals."""
    subsets = published("sou_vqa_table6_aerial.csv")
    agree, differ = set(), {}
    for row in published("sou_vqa_table3.csv"):
        if row["scenario"] != "aerial":
            continue
        scores = {
            (line["subset"], task): Score(
                float(line[task]) / 100 * SUBSETS[line["subset"]].pictures,
                SUBSETS[line["subset"]].pictures,
            )
            for line in subsets
            if line["model"] == row["model"]
            for task in Task
        }
        assert len(scores) == 18
        derived = table_row(scores, "aerial")
        printed = {task.value: float(row[task]) for task in Task}
        printed[AVERAGE] = float(row["average"])
        # Both are rounded to 0.01; a subset's figure is off by 0.005 at most, and so is the mean.
        wrong = {k: (derived[k], v) for k, v in printed.items() if abs(derived[k] - v) > 0.0101}
        if wrong:
            differ[row["model"]] = wrong
        else:
            agree.add(row["model"])
    assert len(agree) == 16
    assert list(differ) == ["Human Performance"]
    assert differ["Human Performance"][AVERAGE] == (pytest.approx(77.85, abs=0.01), 82.67)


def test_pooling_weighs_questions_not_groups():
    assert pooled([Score(1, 1), Score(0, 3)]).percent == 25.0


def row(task, answer, options=("1", "2", "3", "4"), subset="a-soda"):
    return {
        "id": f"{task}{answer}",
        "subset": subset,
        "task": task,
        "options": list(options),
        "answer": answer,
    }


def test_replies_are_scored_per_subset_and_task(installed_metrics):
    rows = [row("CE", 0), row("CE", 1), row("OC", 2), row("OC", 3, subset="driving")]
    scores = score_replies(rows, ["A", "The answer is C.", "(C)", "no idea"])
    assert scores == {
        ("a-soda", Task.CE): Score(1.0, 2),
        ("a-soda", Task.OC): Score(1.0, 1),
        ("driving", Task.OC): Score(0.0, 1),
    }
    # aerial: CE 1 of 2, OC 1 of 1; on average 2 of 3
    assert table_row(scores, "aerial") == {
        "CE": 50.0,
        "OC": 100.0,
        AVERAGE: pytest.approx(200 / 3),
    }
    assert table_row(scores, "underwater") == {}


def test_one_reply_per_row_is_demanded():
    with pytest.raises(ValueError, match="1 rows, 2 replies"):
        score_replies([row("CE", 0)], ["A", "B"])


def test_baselines_by_hand():
    counts = row("OC", 1, ("7", "12", "3", "40"))
    assert BASELINES["constant letter"](counts) == "A"
    assert BASELINES["smallest number"](counts) == "C"
    assert BASELINES["oracle"](counts) == "B"
    letters = {BASELINES["random"](row("OC", i)) for i in range(40)}
    assert letters == set("ABCD")


def test_table_has_the_papers_columns_and_a_line_per_group_and_model():
    scores = {(subset, task): Score(1, 4) for subset in SUBSETS for task in Task}
    text = table_text({"random": scores, "oracle": scores})
    head, _, *lines = text.splitlines()
    assert head.split() == ["Subset", "Model", "CE", "OC", "CR", "OL", "SCC", "POI", AVERAGE]
    assert len(lines) == 2 * len(GROUPS)
    assert all(line.split()[-1] == "25.00" for line in lines)
