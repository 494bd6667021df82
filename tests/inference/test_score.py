"""``soubench score``: hand-worked tables, every way in, and nothing lost on the way."""

import csv
import json
import random
import sys
from dataclasses import replace

import datasets
import numpy as np
import openpyxl
import pytest
from PIL import Image
from scipy.stats import chisquare

from soubench.builders.demo_plants import write_demo_plants
from soubench.builders.errors import RunError
from soubench.builders.sou.subsets import SUBSETS, Task
from soubench.cli import main
from soubench.dataset_scripts.plant_leaves.plant_leaves import build_plant_leaves
from soubench.inference.backends.baselines import BASELINES
from soubench.inference.breakdowns import drop_tables, letter_bias, rate_table, size_tables
from soubench.inference.dataset_rows import open_rows
from soubench.inference.layouts import Context, groups_of, tables_of
from soubench.inference.published_tables import published_rows
from soubench.inference.run_folder import Reply, ReplyError, RunFolder, read_run
from soubench.inference.score import groups_of as groups_in
from soubench.inference.score import score_replies
from soubench.inference.scores import Settings
from soubench.inference.tables import render_markdown, render_text
from tests.inference.test_published import verdict

pytestmark = pytest.mark.usefixtures("installed_metrics")
LETTERS = "ABCD"


def rows_of(dataset="sou-vqa", config="aerial", split=None):
    return list(open_rows(dataset, config, split).columns())


def oracle(row):
    return LETTERS[row["answer"]]


def wrong(row):
    return LETTERS[(row["answer"] + 1) % 4]


def write_jsonl(path, replies):
    lines = [json.dumps({"id": key, "reply": reply}) for key, reply in replies.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def score(*arguments):
    return main(["score", *map(str, arguments)])


def scores_in(folder):
    return json.loads((folder / "scores.json").read_text(encoding="utf-8"))


def verdicts_in(folder):
    lines = (folder / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def group(scores, table, column, **keys):
    found = [
        g
        for g in scores["groups"]
        if (g["table"], g["column"]) == (table, column)
        and all(g[key] == value for key, value in keys.items())
    ]
    assert len(found) == 1
    return found[0]


def predict(out, *arguments, dataset="sou-vqa", config="aerial", model="baseline:oracle"):
    assert main(["predict", dataset, config, "--model", model, "--out", str(out), *arguments]) == 0
    return out


def edit_replies(run, change):
    """Write the replies of a run anew; ``change`` returns the new one, or None to drop it."""
    _, replies = read_run(run)
    kept = [new for reply in replies if (new := change(reply)) is not None]
    (run / "replies.jsonl").write_bytes(b"".join(reply.to_line() for reply in kept))


def sou(i, right, subset, task):
    scenario = SUBSETS[subset].scenario
    return verdict(
        f"{subset}{task}{i}",
        right=float(right),
        group=f"{subset}/{i}",
        subset=subset,
        task=str(task),
        scenario=scenario,
    )


# Tables by hand


def test_micro_averages_weigh_every_question_alike():
    verdicts = [
        *(sou(i, i < 1, "a-visdrone", Task.CE) for i in range(4)),  # 1 of 4
        *(sou(i, i < 2, "a-soda", Task.CE) for i in range(2)),  # 2 of 2
        *(sou(i, i < 3, "a-soda", Task.OC) for i in range(4)),  # 3 of 4
        *(sou(i, i < 0, "driving", Task.CE) for i in range(2)),  # 0 of 2
    ]
    (table,) = tables_of(verdicts, Context("t", "m"))
    values = {
        (line.labels[0].strip(), column): cell.value
        for line in table.lines
        for column, cell in zip(table.columns, line.cells, strict=True)
        if hasattr(cell, "value")
    }
    assert values == {
        ("driving", "CE"): 0.0,
        ("driving", "Average"): 0.0,
        ("aerial", "CE"): 3 / 6,
        ("aerial", "OC"): 3 / 4,
        ("aerial", "Average"): 6 / 10,
        ("a-visdrone", "CE"): 1 / 4,
        ("a-visdrone", "Average"): 1 / 4,
        ("a-soda", "CE"): 1.0,
        ("a-soda", "OC"): 3 / 4,
        ("a-soda", "Average"): 5 / 6,
        ("all", "CE"): 3 / 8,
        ("all", "OC"): 3 / 4,
        ("all", "Average"): 6 / 12,
    }
    # The papers' order: scenarios, and the aerial subsets below theirs
    assert [line.labels[0] for line in table.lines] == [
        "driving",
        "aerial",
        "  a-visdrone",
        "  a-soda",
        "all",
    ]
    assert table.columns[:7] == ("CE", "OC", "CR", "OL", "SCC", "POI", "Average")


def test_groups_of_any_users_set_are_its_own_names():
    assert groups_of([verdict(1, right=1.0, group="a", scenario="my-set", subset="val")]) == {
        "my-set": ("val",),
        "val": ("val",),
    }
    assert groups_of([verdict(1, right=1.0, group="a", scenario="x", subset="x")]) == {"x": ("x",)}


def test_published_rows_stand_beside_and_are_marked():
    verdicts = [sou(i, True, subset, task) for i in range(2) for subset in SUBSETS for task in Task]
    (table,) = tables_of(verdicts, Context("t", "ours", published=True))
    text = render_text(table)
    assert text.count(" *") == 6 * 17
    assert "Qwen3-VL-4B-Instruct *" in text
    assert any("pictures and prompts differ; no rank" in note for note in table.notes)
    markdown = render_markdown(table)
    # a pipe in a name would add a column
    assert {line.count("|") for line in markdown.splitlines() if line.startswith("|")} == {
        len(table.heads) + len(table.columns) + 1
    }


def test_rrs_columns_name_what_they_average():
    def rrs(i, right, sub, task, kind="mcq"):
        measure = {"mcq": "accuracy", "box": "acc@0.5", "mask": "mean_iou"}[kind]
        made = verdict(i, right=right, group=str(i), subset=sub, task=task, kind=kind)
        made.values.clear()
        made.values[measure] = right
        return made

    verdicts = [
        *(rrs(f"oc{i}", float(i < 3), "perception-object", "OC") for i in range(4)),  # 3 of 4
        *(rrs(f"vg{i}", float(i < 1), "perception-object", "VG", "box") for i in range(2)),
        rrs("su", 0.0, "perception-image", "SU"),
        rrs("rs", 0.25, "perception-pixel", "RS", "mask"),
    ]
    tasks, dimensions = tables_of(verdicts, Context("t", "m"))

    def values(table):
        (line,) = table.lines
        pairs = zip(table.columns, line.cells, strict=True)
        return {name: cell.value for name, cell in pairs if hasattr(cell, "value")}

    # Avg: 3 of 5 rows with options
    assert values(tasks) == {"Avg": 0.6, "SU": 0.0, "OC": 0.75, "VG": 0.5, "RS": 0.25}
    # OLR: (3/4 + 1/2) / 2, though OC has twice as many rows
    assert values(dimensions) == {"Avg": 0.6, "ILU": 0.0, "OLR": 0.625, "PLS": 0.25}
    assert "OLR of OC, VG" in dimensions.notes[0]
    assert {cell.average for cell in dimensions.lines[0].cells[1:4]} == {"tasks"}


def test_letter_bias_by_hand_and_by_scipy():
    def asked(i, replied, right):
        return verdict(
            i, right=float(replied == right), group=str(i), parsed=replied, answer=right, options=4
        )

    # 6 A of which 2 right, 1 B right, 1 unread; right: 2 of each
    pairs = [("A", r) for r in "AABCCD"] + [("B", "B"), ("", "D")]
    (bias,) = letter_bias([asked(i, *pair) for i, pair in enumerate(pairs)])
    assert [(u.replied, u.right, u.right_replies) for u in bias.letters] == [
        (6, 2, 2),
        (1, 2, 1),
        (0, 2, 0),
        (0, 2, 0),
    ]
    assert (bias.n, bias.unread) == (8, 1)
    # of the seven replies with a letter, A B C are right twice and D once
    assert (bias.chi_square, bias.p) == pytest.approx(chisquare([6, 1, 0, 0], [2, 2, 2, 1]))
    # recalls 1, 1/2, 0, 0: mean 0.375, squares .390625 .015625 .140625 .140625
    assert bias.recall_std == pytest.approx((0.6875 / 4) ** 0.5)


def test_size_bins_are_closed_above_and_take_only_tasks_about_one_object():
    areas = [64.0, 64.5, 144.0, 1024.0, 1025.0]
    verdicts = [
        verdict(i, right=1.0, group=str(i), task="CR", object_area_px=area, model_area_px=area / 4)
        for i, area in enumerate(areas)
    ]
    # one question counts a single object; its task does not ask about one
    verdicts.append(verdict(9, right=0.0, group="9", task="SCC", object_area_px=10.0))
    verdicts.append(verdict(10, right=0.0, group="9", task="SCC"))
    picture, seen = size_tables(verdicts, "t")
    assert picture.columns == ("CR", "n")
    assert {line.labels[0]: line.cells[-1] for line in picture.lines} == {
        "0 < area <= 64": "1",
        "64 < area <= 144": "2",
        "400 < area <= 1024": "1",
        "1024 < area": "1",
    }
    assert {line.labels[0]: line.cells[-1] for line in seen.lines} == {
        "0 < area <= 64": "3",
        "144 < area <= 400": "2",
    }


def test_a_corrupted_copy_is_held_against_its_clean_row():
    def copy(i, of, right, corruption, severity, **more):
        more = {"kind": "yes_no", "group": f"g{of}"} | more
        row = verdict(i, right=right, task="NR", **more)
        return replace(row, clean_id=str(of), corruption=corruption, severity=severity)

    clean = [verdict(i, right=float(i < 3), group=f"g{i}", task="OC") for i in range(4)]
    copies = [
        copy(10, 0, 0.0, "gaussian_noise", 1),
        copy(11, 1, 1.0, "gaussian_noise", 1),
        copy(12, 2, 0.0, "gaussian_noise", 3),
        copy(13, 3, 1.0, "occlusion", 2),
        copy(14, 0, 0.0, "occlusion", 2),
        copy(15, 99, 0.0, "occlusion", 2),  # its clean row was not asked
        copy(16, 0, 0.5, "occlusion", 2, kind="box"),  # no answer by an option
    ]
    assert drop_tables(clean, "t") == []
    (table,) = drop_tables([*copies, *clean], "t")
    found = {
        line.labels: [*(100 * cell.value for cell in line.cells[:3]), line.cells[3]]
        for line in table.lines
    }
    assert found == {
        ("gaussian noise", "1"): [100, 50, 50, "2"],  # rows 0 and 1
        ("gaussian noise", "3"): [100, 0, 100, "1"],
        ("gaussian noise", "all"): [100, pytest.approx(100 / 3), pytest.approx(200 / 3), "3"],
        ("occlusion", "2"): [50, 50, 0, "2"],  # 3 became right, 0 became wrong
        ("occlusion", "all"): [50, 50, 0, "2"],
        # Row 0 has two copies and counts twice: 4 of 5 clean, 2 of 5 corrupted.
        ("all", "all"): [pytest.approx(80), pytest.approx(40), pytest.approx(40), "5"],
    }
    drop = table.lines[-1].cells[2]
    assert (drop.measure, drop.unit, drop.n, drop.clusters) == ("drop", "share", 5, 4)
    # Pairs of one picture are drawn together: sums of differences by hand, over the same draws.
    by_group = np.array([[2, 2], [1, 0], [1, 1], [1, -1]], dtype=float)
    rng = np.random.default_rng(5)
    drawn = by_group[rng.integers(4, size=(20_000, 4))].sum(axis=1)
    low, high = np.quantile(drawn[:, 1] / drawn[:, 0], [0.025, 0.975])
    assert drop.low == pytest.approx(low, abs=0.05)
    assert drop.high == pytest.approx(high, abs=0.05)
    assert "Copies left out since their clean rows were not asked: 1." in table.notes[1]


# Through the command


def test_a_run_is_scored_where_it_lies(built, tmp_path, capsys):
    run = predict(tmp_path / "run", model="baseline:random")
    assert score(run) == 0
    output = capsys.readouterr().out
    rows, found = rows_of(), scores_in(run)
    _, replies = read_run(run)
    said = {reply.id: reply.reply for reply in replies}
    right = sum(said[row["id"]] == oracle(row) for row in rows)
    average = group(found, "sou_tables_3_and_6", "Average", group="aerial")
    assert average["value"] == pytest.approx(right / len(rows))
    assert (average["n"], average["measure"], average["average"]) == (len(rows), "accuracy", "rows")
    assert average["clusters"] == len({(row["subset"], row["group_id"]) for row in rows})
    assert found["title"] == "sou-vqa aerial test, paper distractors"
    assert (found["distractors"], found["schema"]) == ("paper", 1)
    assert found["run"]["model"]["name"] == "baseline:random"
    assert "paper distractors" in output
    lines = verdicts_in(run)
    assert [line["id"] for line in lines] == [row["id"] for row in rows]
    assert sum(line["right"] for line in lines) == right
    with (run / "scores.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == len(found["groups"])
    assert {float(line["value"]) for line in table} == {g["value"] for g in found["groups"]}
    assert "### Accuracy in %: sou-vqa aerial test, paper distractors" in (
        run / "scores.md"
    ).read_text(encoding="utf-8")


def test_object_areas_are_those_of_the_evidence(built, tmp_path):
    run = predict(tmp_path / "run")
    assert score(run) == 0
    for line, row in zip(verdicts_in(run), rows_of(), strict=True):
        evidence = row["evidence"]["objects"]
        expected = row["objects"]["area_px"][evidence[0]] if len(evidence) == 1 else None
        assert line["object_area_px"] == expected
        assert line["model_area_px"] is None
    assert {line["task"] for line in verdicts_in(run) if line["object_area_px"]} >= {"CR", "OL"}


def test_area_after_the_models_resize_follows_from_what_it_was_fed(built, tmp_path):
    run = predict(tmp_path / "run")
    edit_replies(run, lambda r: Reply(r.id, reply=r.reply, picture_wh=((28, 56),)))
    assert score(run) == 0
    sizes = {row["id"]: row["image"].size for row in open_rows("sou-vqa", "aerial", None).rows}
    for line in verdicts_in(run):
        if line["object_area_px"] is not None:
            width, height = sizes[line["id"]]
            expected = line["object_area_px"] * 28 * 56 / (width * height)
            assert line["model_area_px"] == pytest.approx(expected)
    assert any(g["table"] == "model_area" for g in scores_in(run)["groups"])


def test_errors_and_unparsed_replies_are_wrong_and_counted_apart(built, tmp_path, capsys):
    run = predict(tmp_path / "run")
    ids = [row["id"] for row in rows_of()]
    error = ReplyError("timeout", "60 s", permanent=True)

    def change(reply):
        if reply.id == ids[0]:
            return Reply(reply.id, error=error)
        if reply.id == ids[1]:
            return Reply(reply.id, reply="It could be A or B.")
        return None if reply.id == ids[2] else reply

    edit_replies(run, change)
    assert score(run) == 0
    output = capsys.readouterr().out
    n = len(ids)
    found = scores_in(run)
    assert found["counts"] == {
        "asked": n,
        "answered": n - 2,
        "missing": 1,
        "unknown": 0,
        "unparsed": 1,
        "errors": 2,
    }
    assert found["errors"] == {"timeout": 1, "missing": 1}
    average = group(found, "sou_tables_3_and_6", "Average", group="aerial")
    assert average["value"] == pytest.approx((n - 3) / n)
    assert average["n"] == n
    assert average["unparsed_rate"] == pytest.approx(1 / n)
    assert average["error_rate"] == pytest.approx(2 / n)
    assert f"Rows without a reply: 1 of {n}, such as {ids[2]}; they count as wrong." in output
    states = {line["id"]: (line["unparsed"], line["error"]) for line in verdicts_in(run)}
    assert states[ids[0]] == (False, "timeout")
    assert states[ids[1]] == (True, None)
    assert states[ids[2]] == (False, "missing")
    assert "Unparsed and errors" in output


def test_what_could_not_be_read_stands_in_the_papers_order():
    order = ["CE", "OC", "CR", "OL", "SCC", "POI"]
    rows = [sou(1, False, "driving", task) for task in reversed(order)]
    table = rate_table([replace(row, unparsed=True) for row in rows], "t")
    assert [line.labels[1] for line in table.lines] == order


def test_a_score_without_an_interval_says_why():
    def errors(*groups):
        rows = [verdict(i, right=0.0, group=g, kind="leaves") for i, g in enumerate(groups)]
        rows = [replace(row, values={"count_rmse": 2, "center_rmse": 1.0}) for row in rows]
        (table,) = tables_of(rows, Context("t", "m"))
        return render_text(table), render_markdown(table)

    for text in errors("a", "a"):
        assert text.count("none: one group") == 2
    for text in errors("a", "b"):
        assert text.count("none: groups agree") == 2


def test_order_of_replies_changes_no_byte_but_of_their_digest(built, tmp_path):
    run = predict(tmp_path / "run", model="baseline:random")
    assert score(run) == 0
    names = ("scores.csv", "scores.md", "verdicts.jsonl")
    before = {name: (run / name).read_bytes() for name in names}
    _, replies = read_run(run)
    random.Random(3).shuffle(replies)
    (run / "replies.jsonl").write_bytes(b"".join(reply.to_line() for reply in replies))
    assert score(run) == 0
    assert {name: (run / name).read_bytes() for name in names} == before


def test_each_more_wrong_row_lowers_the_score(built):
    loaded = open_rows("sou-vqa", "aerial", None)
    rows = rows_of()
    values = []
    for n_wrong in (0, 1, 5, len(rows)):
        replies = [
            Reply(row["id"], reply=wrong(row) if i < n_wrong else oracle(row))
            for i, row in enumerate(rows)
        ]
        scored = score_replies(replies, loaded, model="m")
        average = group(
            {"groups": list(groups_in(scored.tables()))},
            "sou_tables_3_and_6",
            "Average",
            group="aerial",
        )
        values.append(average["value"])
        assert average["low"] <= average["value"] <= average["high"]
    assert values == pytest.approx([1.0, 1 - 1 / len(rows), 1 - 5 / len(rows), 0.0])


def test_rotations_and_all_of_them_right(built, tmp_path, capsys):
    run = predict(tmp_path / "run", "--circular", config="a-soda-ce")
    rows = rows_of(config="a-soda-ce")
    # the first row is wrong in rotation 2, the second has no letter in rotation 0
    first, second = rows[0]["id"], rows[1]["id"]

    def change(reply):
        if reply.key == (first, 2):
            return Reply(first, 2, reply="ABCD"[("ABCD".index(reply.reply) + 1) % 4])
        return Reply(second, 0, reply="Hm.") if reply.key == (second, 0) else reply

    edit_replies(run, change)
    assert score(run) == 0
    found = scores_in(run)
    n = len(rows)
    values = {
        rotation: group(found, "sou_tables_3_and_6", "CE", group="aerial", rotation=rotation)[
            "value"
        ]
        for rotation in (0, 1, 2, 3, "circular")
    }
    assert values == pytest.approx(
        {0: (n - 1) / n, 1: 1, 2: (n - 1) / n, 3: 1, "circular": (n - 2) / n}
    )
    output = capsys.readouterr().out
    assert found["title"] == "sou-vqa a-soda-ce test, paper distractors, circular"
    assert f"Accuracy in %: {found['title']}" in output
    assert "baseline:oracle, rotation 3" in output


def test_shards_are_scored_as_the_run_that_they_are(built, tmp_path, capsys):
    whole = predict(tmp_path / "whole", model="baseline:random")
    shards = [
        predict(tmp_path / f"shard{i}", "--shard", f"{i}/3", model="baseline:random")
        for i in range(3)
    ]
    assert score(whole) == 0
    assert score(*reversed(shards), "--out", tmp_path / "merged") == 0
    assert scores_in(tmp_path / "merged")["groups"] == scores_in(whole)["groups"]
    assert score(*shards) == 2
    assert "need --out" in capsys.readouterr().err
    assert score(*shards[:2], "--out", tmp_path / "part") == 2
    assert "missing: 2/3" in capsys.readouterr().err


def test_a_limited_run_is_scored_on_what_was_asked(built, tmp_path):
    run = predict(tmp_path / "run", "--limit", "20")
    assert score(run) == 0
    found = scores_in(run)
    assert found["counts"]["asked"] == found["counts"]["answered"] == 20
    assert found["title"].endswith("limit 20")


def test_subsets_that_a_limit_left_out_are_told(built, tmp_path, capsys):
    assert score(predict(tmp_path / "all", "--limit", "3")) == 0
    assert "left out" not in capsys.readouterr().out
    run = predict(tmp_path / "run", "--limit", "2")
    assert score(run) == 0
    output = capsys.readouterr().out
    asked = {line["subset"] for line in verdicts_in(run)}
    (missing,) = {row["subset"] for row in rows_of()} - asked
    note = f"the limit of 2 rows left out all rows of {missing}; averages over subsets are of the"
    assert note in output
    assert note in (run / "scores.md").read_text(encoding="utf-8")


def test_blind_and_coords_stand_in_the_title_and_options_are_read_in_their_frame(built, tmp_path):
    run = predict(tmp_path / "run", "--coords", "norm1000", config="aerial-ol")
    rows = open_rows("sou-vqa", "aerial-ol", None).rows
    said = {}
    for row in rows:
        numbers = json.loads(row["options"][row["answer"]])
        scaled = [v * 1000 / row["image"].size[i % 2] for i, v in enumerate(numbers)]
        said[row["id"]] = f"[{','.join(f'{v:.0f}' for v in scaled)}]"
    edit_replies(run, lambda r: Reply(r.id, reply=said[r.id]))
    assert score(run) == 0
    found = scores_in(run)
    # options that became equal were given more decimals, which a rounded reply does not have
    assert group(found, "sou_tables_3_and_6", "OL", group="aerial")["value"] > 0.9
    assert found["title"].endswith("coords norm1000")


def test_another_build_is_refused(built, tmp_path, capsys):
    run = predict(tmp_path / "run")
    text = (run / "run.json").read_text(encoding="utf-8")
    fingerprint = json.loads(text)["dataset"]["fingerprint"]
    (run / "run.json").write_text(text.replace(fingerprint, "0" * 64), encoding="utf-8")
    assert score(run) == 2
    assert "expected the rows that were asked" in capsys.readouterr().err
    assert not (run / "scores.json").exists()


def write_replies(path, pairs, heads):
    """Write ids and replies in the format that the path's suffix names."""
    if path.suffix == ".jsonl":
        write_jsonl(path, dict(pairs))
    elif path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([heads, *pairs])
    else:
        book = openpyxl.Workbook()
        for pair in [heads, *pairs]:
            book.active.append(pair)
        book.save(path)


@pytest.mark.parametrize("kind", ["jsonl", "csv", "xlsx"])
def test_files_of_every_kind(built, tmp_path, capsys, kind):
    rows = rows_of(config="a-soda")
    path = tmp_path / f"answers.{kind}"
    pairs = [(row["id"], f"I'd say ({oracle(row)}).") for row in rows]
    pairs[0] = (rows[0]["id"], wrong(rows[0]))
    heads = {"csv": ("question_id", "prediction"), "xlsx": ("id", "response")}
    write_replies(path, pairs, heads.get(kind))
    arguments = ("--dataset", "sou-vqa", "--config", "a-soda", "--predictions", path)
    assert score(*arguments, "--name", "Ann") == 0
    found = scores_in(tmp_path / "answers-scores")
    average = group(found, "sou_tables_3_and_6", "Average", group="aerial")
    assert average["value"] == pytest.approx(1 - 1 / len(rows))
    assert found["run"]["model"]["name"] == "Ann"
    assert "paper distractors" in capsys.readouterr().out


def test_missing_and_unknown_ids_of_a_file_are_told_and_missing_ones_are_wrong(
    built, tmp_path, capsys
):
    rows = rows_of(config="a-soda")
    replies = {row["id"]: oracle(row) for row in rows[3:]} | {"x/1": "A", "x/2": "B"}
    path = write_jsonl(tmp_path / "a.jsonl", replies)
    arguments = ("--dataset", "sou-vqa", "--config", "a-soda", "--predictions", path)
    assert score(*arguments, "--out", tmp_path / "out") == 0
    output = capsys.readouterr().out
    assert f"Rows without a reply: 3 of {len(rows)}, such as {rows[0]['id']}" in output
    assert "Replies to ids that were not asked: 2, such as x/1" in output
    found = scores_in(tmp_path / "out")
    average = group(found, "sou_tables_3_and_6", "Average", group="aerial")
    assert (average["value"], average["n"]) == (
        pytest.approx(1 - 3 / len(rows)),
        len(rows),
    )


@pytest.mark.parametrize("kind", ["jsonl", "csv", "xlsx"])
def test_empty_cells_of_a_file_are_rows_without_a_reply(built, tmp_path, capsys, kind):
    rows = rows_of(config="a-soda")
    pairs = [(row["id"], oracle(row)) for row in rows]
    blank = (None, None, None) if kind == "jsonl" else (None, "", " ")
    pairs[1:4] = [(pair[0], cell) for pair, cell in zip(pairs[1:4], blank, strict=True)]
    path = tmp_path / f"a.{kind}"
    write_replies(path, pairs, ("id", "reply"))
    assert score("--dataset", "sou-vqa", "--config", "a-soda", "--predictions", path) == 0
    n = len(rows)
    note = f"Rows without a reply: 3 of {n}, such as {rows[1]['id']}; they count as wrong."
    assert note in capsys.readouterr().out
    found = scores_in(tmp_path / "a-scores")
    assert found["counts"] == {
        "asked": n,
        "answered": n - 3,
        "missing": 3,
        "unknown": 0,
        "unparsed": 0,
        "errors": 3,
    }
    average = group(found, "sou_tables_3_and_6", "Average", group="aerial")
    assert (average["value"], average["n"]) == (pytest.approx(1 - 3 / n), n)


def test_an_empty_reply_of_a_model_is_a_reply(built, tmp_path):
    run = predict(tmp_path / "run", config="a-soda")
    first = rows_of(config="a-soda")[0]["id"]
    edit_replies(run, lambda r: Reply(r.id, reply="") if r.id == first else r)
    assert score(run) == 0
    counts = scores_in(run)["counts"]
    assert (counts["answered"], counts["missing"]) == (counts["asked"], 0)
    assert counts["unparsed"] == 1


def test_wrong_usage_is_one_clear_line(built, tmp_path, capsys):
    path = write_jsonl(tmp_path / "a.jsonl", {"other/1": "A"})
    for arguments, message in (
        ([], "either RUN folders or --predictions"),
        (["--predictions", path], "--predictions needs --dataset"),
        ([tmp_path, "--split", "test"], "--split: only with --predictions"),
        ([tmp_path], "expected a RUN folder"),
        (
            ["--predictions", path, "--dataset", "sou-vqa", "--config", "aerial"],
            "none of the 1 ids",
        ),
        (["--predictions", path, "--dataset", "sou-vqa"], "expected one of the configs"),
    ):
        assert score(*arguments) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


def test_an_exported_folder_tells_its_distractors_too(built, tmp_path, capsys):
    out = tmp_path / "exported"
    assert main(["export", "sou-vqa", str(out)]) == 0
    rows = rows_of()
    path = write_jsonl(tmp_path / "a.jsonl", {row["id"]: oracle(row) for row in rows})
    arguments = ("--dataset", out, "--config", "aerial", "--predictions", path)
    assert score(*arguments, "--out", tmp_path / "scores") == 0
    assert scores_in(tmp_path / "scores")["distractors"] == "paper"
    assert scores_in(tmp_path / "scores")["counts"]["errors"] == 0


# Other datasets


def test_shapes_of_two_splits_make_one_table(built, tmp_path, capsys):
    runs = [
        predict(
            tmp_path / split,
            "--split",
            split,
            dataset="primitive-shapes",
            config="sentence",
        )
        for split in ("test", "od_size")
    ]
    # one reply of test holds no shape
    dropped = rows_of("primitive-shapes", "sentence", "test")[0]["id"]
    edit_replies(runs[0], lambda r: Reply(r.id, reply="No idea.") if r.id == dropped else r)
    assert score(*runs, "--out", tmp_path / "out", "--published") == 0
    found = scores_in(tmp_path / "out")
    for measure, name in (("sama", "shapes_table_2"), ("f1_macro", "shapes_table_6")):
        got = {g["column"]: g for g in found["groups"] if g["measure"] == measure}
        assert {g["table"] for g in got.values()} == {name}
        # 3 pictures per split
        assert got["test"]["value"] == pytest.approx(2 / 3)
        assert got["od_size"]["value"] == pytest.approx(1.0)
        assert got["test"]["unparsed_rate"] == pytest.approx(1 / 3)
    center = {g["column"]: g for g in found["groups"] if g["measure"] == "center_rmse"}
    assert (center["test"]["value"], center["test"]["n"]) == (0.0, 2)
    assert center["test"]["is_error"]
    output = capsys.readouterr().out
    assert "MiniCPM-V2.6 (sentence) *" in output
    assert "(tuple)" not in output
    assert "od_composition  od_occlusion  od_rotation  od_spatial" in output


@pytest.fixture(scope="module")
def plants(tmp_path_factory):
    home = tmp_path_factory.mktemp("plants")
    build_plant_leaves(write_demo_plants(home / "sources"), cache_dir=home / "cache")
    return home / "cache"


def test_leaves_have_the_errors_of_the_papers_table(plants, tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", plants)
    rows = rows_of("plant-leaves", "tuple", "test")
    replies = {row["id"]: row["target"] for row in rows}
    # one more leaf than there is, off by (3, 4) from the first; and one plant without an answer
    first, second = rows[0], rows[1]
    points = [tuple(p) for p in first["centers_xy"]]
    more = [(points[0][0] + 3, points[0][1] + 4), *points[1:], (9000, 9000)]
    replies[first["id"]] = f"(leaves={len(more)}, centers={more})"
    replies[second["id"]] = "I cannot tell."
    path = write_jsonl(tmp_path / "a.jsonl", replies)
    arguments = ("--dataset", "plant-leaves", "--config", "tuple", "--split", "test")
    assert score(*arguments, "--predictions", path, "--out", tmp_path / "out") == 0
    found = scores_in(tmp_path / "out")
    count = group(found, "plants_table_S4", "test", measure="count_rmse")
    squares = 1 + len(second["centers_xy"]) ** 2
    assert count["value"] == pytest.approx((squares / len(rows)) ** 0.5)
    assert (count["unit"], count["unparsed_rate"]) == ("leaves", pytest.approx(1 / len(rows)))
    center = group(found, "plants_table_S4", "test", measure="center_rmse")
    # sqrt((9 + 16) / 2) for one of the points of the first plant, 0 for the others
    off = (25 / 2) ** 0.5 / len(points)
    assert center["value"] == pytest.approx(off / (len(rows) - 1))
    assert center["n"] == len(rows) - 1
    by_id = {line["id"]: line for line in verdicts_in(tmp_path / "out")}
    assert by_id[first["id"]]["values"]["count_rmse"] == 1
    assert by_id[first["id"]]["right"] == 0.0
    assert by_id[rows[2]["id"]]["right"] == 1.0


RRS_ROWS = [
    {"id": "1", "task": "OC", "answer_type": "mcq", "options": ["1", "2"], "answer": "B"},
    {"id": "2", "task": "OE", "answer_type": "yes_no", "options": [], "answer": "no"},
    {"id": "3", "task": "VG", "answer_type": "box", "options": [], "answer": "[10,10,20,20]"},
    {
        "id": "4",
        "task": "RS",
        "answer_type": "mask",
        "options": [],
        "answer": '{"size": [2, 2], "counts": [0, 2, 2]}',
    },
    {
        "id": "5",
        "task": "IC",
        "answer_type": "text",
        "options": [],
        "answer": "a grey ship in a harbor",
    },
]
SUB_DIMENSIONS = {"RS": "perception-pixel", "IC": "perception-image"}


def write_rrs(folder):
    """Write a folder of one row for each kind of answer, as the Hub would hold it."""
    rows = [
        row
        | {
            "image": Image.new("RGB", (40, 20)),
            "question": "What?",
            "dimension": "perception",
            "sub_dimension": SUB_DIMENSIONS.get(row["task"], "perception-object"),
            "references": [row["answer"]],
            "group_id": row["id"],
        }
        for row in RRS_ROWS
    ]
    folder.mkdir()
    datasets.Dataset.from_list(rows).cast_column("image", datasets.Image()).to_parquet(
        str(folder / "test.parquet")
    )
    return folder


@pytest.fixture
def rrs(tmp_path):
    return write_rrs(tmp_path / "rare")


def test_every_kind_of_answer_has_its_metric(rrs, tmp_path, capsys):
    replies = {
        "1": "(B)",
        "2": "There is none, so no.",
        # 8 of 10 columns: IoU 0.8
        "3": "[10, 10, 18, 20]",
        # one of the two pixels: IoU 1/2
        "4": '{"size": [2, 2], "counts": [0, 1, 3]}',
        "5": "a grey ship",
    }
    path = write_jsonl(tmp_path / "a.jsonl", replies)
    assert score("--dataset", rrs, "--predictions", path, "--out", tmp_path / "out") == 0
    lines = {line["id"]: line for line in verdicts_in(tmp_path / "out")}
    assert {key: line["right"] for key, line in lines.items()} == pytest.approx(
        # ROUGE-L of "a grey ship": 3 words of 3 and of 6, F1 = 2/3
        {"1": 1.0, "2": 1.0, "3": 1.0, "4": 0.5, "5": 2 / 3}
    )
    assert lines["3"]["values"] == pytest.approx({"acc@0.5": 1.0, "mean_iou": 0.8})
    assert lines["4"]["values"] == pytest.approx({"mean_iou": 0.5, "dice": 2 / 3})
    assert lines["2"]["parsed"] == "no"
    found = scores_in(tmp_path / "out")
    assert {g["column"]: g["value"] for g in found["groups"] if g["table"] == "rrs_table_2"} == (
        pytest.approx({"Avg": 1.0, "OC": 1.0, "OE": 1.0, "VG": 1.0, "RS": 0.5})
    )
    assert "Bleu-1" in capsys.readouterr().out


def test_a_declared_box_format_decides_how_boxes_are_read(rrs, tmp_path):
    # thousandths of 40 x 20: (250, 500, 500, 1000) is the box, in pixels it lies outside
    path = write_jsonl(tmp_path / "a.jsonl", {"3": "[250, 500, 500, 1000]"})
    arguments = ("--dataset", rrs, "--predictions", path)
    for name, right in (("permille_xyxy", 1.0), ("pixel_xyxy", 0.0)):
        out = tmp_path / name
        assert score(*arguments, "--box-format", name, "--out", out) == 0
        assert {v["id"]: v["right"] for v in verdicts_in(out)}["3"] == right


def test_boxes_in_pixels_of_what_the_model_saw_need_to_know_what_it_saw(rrs, tmp_path, capsys):
    path = write_jsonl(tmp_path / "a.jsonl", {"3": "[20, 20, 40, 40]"})
    arguments = ("--dataset", rrs, "--predictions", path, "--box-format", "qwen2_5_vl")
    assert score(*arguments) == 2
    assert "input_sizes" in capsys.readouterr().err
    # fed at twice the size, it is the box
    loaded = open_rows(str(rrs), None, None)
    reply = Reply("3", reply="[20, 20, 40, 40]", picture_wh=((80, 40),))
    scored = score_replies([reply], loaded, model="m", settings=Settings("qwen2_5_vl"))
    assert {v.id: v.right for v in scored.verdicts}["3"] == 1.0


def test_papers_figures_beside_rrs(rrs, tmp_path, capsys):
    path = write_jsonl(tmp_path / "a.jsonl", {"1": "B"})
    assert score("--dataset", rrs, "--predictions", path, "--published") == 0
    output = capsys.readouterr().out
    rows = published_rows("rrs_table2_tasks")
    assert output.count("GPT-5.4 *") == 2
    gpt = next(line for line in output.splitlines() if line.startswith("GPT-5.4 *"))
    (row,) = (row for row in rows if row["model"] == "GPT-5.4")
    # in the papers' order, captions under their own column
    assert gpt.split()[2:6] == [row["Avg"], row["SU"], row["SC"], row["ID"]]


def test_any_dataset_with_these_columns_has_a_plain_table(tmp_path, capsys):
    rows = [
        {"question": f"Which is {i}?", "options": ["red", "green", "blue"], "answer": i % 3}
        for i in range(6)
    ]
    folder = tmp_path / "any"
    folder.mkdir()
    datasets.Dataset.from_list(rows).to_parquet(str(folder / "validation.parquet"))
    replies = {f"validation-{i:06d}": "red" for i in range(6)}
    path = write_jsonl(tmp_path / "a.jsonl", replies)
    assert score("--dataset", folder, "--predictions", path) == 0
    found = scores_in(tmp_path / "a-scores")
    accuracy = group(found, "plain_mcq", "accuracy")
    assert (accuracy["value"], accuracy["n"], accuracy["clusters"]) == (pytest.approx(1 / 3), 6, 6)
    (letters,) = found["letters"]
    assert [use["replied"] for use in letters["letters"]] == [6, 0, 0]
    assert (letters["options"], letters["chi_square"]) == (3, pytest.approx(12.0))
    # red always: recalls 1, 0, 0
    assert letters["recall_std"] == pytest.approx(2**0.5 / 3)
    assert found["distractors"] is None
    assert "distractors" not in capsys.readouterr().out


def test_without_scipy_the_extra_is_named(built, tmp_path, monkeypatch, capsys):
    run = predict(tmp_path / "run", "--limit", "4")
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    assert score(run) == 2
    assert 'pip install "soubench[metrics]"' in capsys.readouterr().err
    assert not (run / "verdicts.jsonl").exists()


def test_a_reply_that_names_a_file_is_not_read(rrs, tmp_path):
    Image.new("L", (2, 2), 255).save(tmp_path / "mask.png")
    path = write_jsonl(tmp_path / "a.jsonl", {"4": f"{tmp_path / 'mask.png'} "})
    arguments = ("--dataset", rrs, "--predictions", path, "--out", tmp_path / "out")
    assert score(*arguments) == 0
    line = next(v for v in verdicts_in(tmp_path / "out") if v["id"] == "4")
    assert (line["right"], line["unparsed"]) == (0.0, True)


def test_a_right_answer_that_is_none_is_named(rrs, tmp_path):
    loaded = open_rows(str(rrs), None, None)
    broken = loaded.rows.map(lambda row: row | {"answer": "somewhere"} if row["id"] == "3" else row)
    changed = type(loaded)(broken, *(getattr(loaded, n) for n in loaded.__slots__[1:]))
    with pytest.raises(RunError, match="3: expected the right box"):
        score_replies([Reply("3", reply="x")], changed, model="m")


def test_baselines_by_hand():
    counts = {"id": "OC1", "options": ["7", "12", "3", "40"], "answer": 1}
    assert BASELINES["constant letter"](counts) == "A"
    assert BASELINES["smallest number"](counts) == "C"
    assert BASELINES["oracle"](counts) == "B"
    letters = {BASELINES["random"](counts | {"id": f"OC{i}"}) for i in range(40)}
    assert letters == set("ABCD")


def test_a_killed_run_is_scored_as_far_as_it_went(built, tmp_path, capsys):
    run = predict(tmp_path / "run")
    data = (run / "replies.jsonl").read_bytes()
    (run / "replies.jsonl").write_bytes(data[: len(data) // 2])
    assert score(run) == 0
    found = scores_in(run)
    assert 0 < found["counts"]["missing"] < found["counts"]["asked"]
    average = group(found, "sou_tables_3_and_6", "Average", group="aerial")
    assert average["value"] == pytest.approx(
        1 - found["counts"]["missing"] / found["counts"]["asked"]
    )
    # scores do not keep the run from being finished
    with RunFolder.create_or_resume(run, json.loads((run / "run.json").read_text())):
        pass
    capsys.readouterr()


def test_the_measures_of_rrs_are_among_those_that_are_scored():
    """The card of rrs names them from its taxonomy."""
    from soubench.builders.rrs.taxonomy import SCORINGS as named
    from soubench.inference.scores import SCORINGS as scored

    for kind, scoring in named.items():
        measures = {(measure.metric, measure.name) for measure in scored[kind].measures}
        assert (scoring.metric, scoring.measure) in measures
