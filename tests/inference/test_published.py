"""The papers' figures: what is carried over, and what follows from what."""

import csv
from importlib.resources import files
from statistics import mean

import pytest

from soubench.builders.sou.subsets import GROUPS, SUBSETS, Task
from soubench.inference.published_tables import MARK, published_rows, reference_line
from soubench.inference.scores import Verdict
from soubench.inference.tables import Board

FOLDER = files("soubench.inference") / "published"
DIMENSIONS = {
    "OLR": ("OC", "VG", "AR", "OE"),
    "GSI": ("API", "RSI", "ASI", "AC", "DC"),
    "FA": ("UI", "AI"),
    "STE": ("TAI", "CI"),
    "RB": ("NR", "OR", "HD"),
}


def names():
    return sorted(path.name for path in FOLDER.iterdir() if path.name.endswith(".csv"))


def test_every_file_is_a_table_that_the_readme_gives_a_source():
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert len(names()) == 17
    for name in names():
        assert f"`{name}`" in readme
        lines = list(csv.reader((FOLDER / name).read_text(encoding="utf-8").splitlines()))
        assert len(lines) > 1
        assert {len(line) for line in lines} == {len(lines[0])}


def test_every_models_aerial_row_follows_from_its_subset_rows_but_the_human_one():
    """Micro average over 514, 410 and 328 pictures, to the two printed decimals."""
    subsets = published_rows("sou_vqa_table6_aerial")
    agree, differ = set(), {}
    for row in published_rows("sou_vqa_table3"):
        if row["scenario"] != "aerial":
            continue
        members = [line for line in subsets if line["model"] == row["model"]]
        assert sorted(line["subset"] for line in members) == sorted(GROUPS["aerial"])
        pictures = [SUBSETS[line["subset"]].pictures for line in members]
        derived = {
            column: sum(float(line[column]) * n for line, n in zip(members, pictures, strict=True))
            / sum(pictures)
            for column in [*map(str, Task), "average"]
        }
        # Both are rounded to 0.01; a subset's figure is off by 0.005 at most, and so is the mean.
        wrong = {
            column: (value, float(row[column]))
            for column, value in derived.items()
            if abs(value - float(row[column])) > 0.0101
        }
        if wrong:
            differ[row["model"]] = wrong
        else:
            agree.add(row["model"])
    assert len(agree) == 16
    assert list(differ) == ["Human Performance"]
    assert differ["Human Performance"]["average"] == (pytest.approx(77.85, abs=0.01), 82.67)


def test_inconsistencies_of_rrs_are_as_the_readme_tells():
    tasks = {row["model"]: row for row in published_rows("rrs_table2_tasks")}
    proprietary = [row for row in tasks.values() if row["kind"] == "proprietary"]
    assert len(proprietary) == 5
    assert all(row["AC"] == row["Avg"] for row in proprietary)
    dimensions = {row["model"]: row for row in published_rows("rrs_table3_dimensions")}
    for model, row in tasks.items():
        for name, leaves in DIMENSIONS.items():
            expected = mean(float(row[leaf]) for leaf in leaves)
            assert float(dimensions[model][name]) == pytest.approx(expected, abs=0.011)
    perception = {row["model"]: row for row in published_rows("rrs_perception")}
    one = perception["LLaVA-OneVision-1.5-8B"]
    other = perception["InternLM-XComposer2-VL-7B"]
    leaves = ("SU", "SC", "ID", "OC", "VG", "AR", "OE")
    assert [leaf for leaf in leaves if one[leaf] != other[leaf]] == ["ID"]


def test_a_reference_line_is_marked_and_leaves_what_it_lacks_empty():
    row = {"model": "M", "CE": "12.50", "OC": "", "POI": "3"}
    line = reference_line(("driving", "M"), row, ["CE", "OC", "OL", "POI"])
    assert line.labels == ("driving", f"M{MARK}")
    assert line.cells == (12.5, None, None, 3.0)
    assert line.is_reference
    assert reference_line(("M",), row, ["OL"]) is None


def verdict(i, *, right, group, **more):
    fields = dict.fromkeys(
        ("config", "split", "scenario", "subset", "question_sha256", "parsed", "answer"), ""
    )
    fields |= {"task": "CE", "kind": "mcq", "reply": "A", "unparsed": False, "error": None}
    return Verdict(
        id=str(i),
        rotation=0,
        right=right,
        group_id=group,
        values={"accuracy": right},
        **(fields | more),
    )


def test_a_board_scores_any_selection():
    from soubench.inference.scores import ACCURACY

    board = Board(
        [
            verdict(1, right=1.0, group="a", task="CE"),
            verdict(2, right=0.0, group="a", task="OC", unparsed=True),
            verdict(3, right=0.0, group="b", task="OC", error="timeout"),
            verdict(4, right=1.0, group="b", task="OC"),
        ]
    )
    everything = board.score(board.where(), ACCURACY)
    assert (everything.value, everything.n, everything.clusters) == (0.5, 4, 2)
    assert (everything.unparsed_rate, everything.error_rate) == (0.25, 0.25)
    # CE 1 of 1, OC 1 of 3: the mean of the tasks is (1 + 1/3) / 2
    assert board.mean_of_tasks(board.where()).value == pytest.approx(2 / 3)
    assert board.score(board.where(task="OL"), ACCURACY) is None
