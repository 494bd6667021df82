"""``soubench compare``: tests by hand and by scipy, the same rows only, and honest refusals."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from soubench.cli import main
from soubench.inference.compare import (
    Comparison,
    compare_pairs,
    holm_corrected,
    mcnemar,
)
from soubench.inference.dataset_rows import open_rows
from soubench.inference.run_folder import Reply, read_run
from soubench.inference.scores import SCORINGS
from tests.inference.test_published import verdict
from tests.inference.test_score import (
    RRS_ROWS,
    edit_replies,
    oracle,
    predict,
    rows_of,
    score,
    scores_in,
    write_jsonl,
    write_rrs,
    wrong,
)

pytestmark = pytest.mark.usefixtures("installed_metrics")


def compare(a, b, *arguments):
    return main(["compare", str(a), str(b), *map(str, arguments)])


def compared(a, b, out, *arguments):
    assert compare(a, b, "--out", out, *arguments) == 0
    data = json.loads(out.read_text(encoding="utf-8"))
    return data, {c["task"]: c for c in data["comparisons"]}


@pytest.mark.parametrize(
    ("only_first", "only_second", "p"),
    [
        (0, 0, 1.0),
        (3, 3, 1.0),
        # 2 * (1 + 5) / 2^5
        (1, 4, 12 / 32),
        # 2 / 2^8
        (8, 0, 2 / 256),
    ],
)
def test_mcnemar_by_hand(only_first, only_second, p):
    assert mcnemar(only_first, only_second) == pytest.approx(p)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_twice_the_smaller_tail(b, c):
    assert mcnemar(b, c) == pytest.approx(min(1.0, 2 * binom.cdf(min(b, c), b + c, 0.5)))
    assert mcnemar(b, c) == mcnemar(c, b)


def comparison(p, task="CE"):
    return Comparison(task, "test", "accuracy", "share", False, 1, 1, 0, 0, 0, None, None, p=p)


def test_holm_by_hand():
    # sorted .01 .02 .03 .04: times 4, 3, 2, 1 is .04 .06 .06 .04, and never falls: .04 .06 .06 .06
    found = holm_corrected([comparison(p) for p in (0.03, 0.01, 0.04, 0.02)])
    assert [c.p_holm for c in found] == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert [c.p_holm for c in holm_corrected([comparison(0.6), comparison(0.9)])] == [1.0, 1.0]
    overall, task, untested = holm_corrected(
        [comparison(0.01, "all"), comparison(0.01), comparison(None)]
    )
    assert (overall.p_holm, task.p_holm, untested.p_holm) == (None, 0.01, None)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_rejects_what_its_step_down_definition_rejects(p_values):
    corrected = [c.p_holm for c in holm_corrected([comparison(p) for p in p_values])]
    for alpha in (0.01, 0.05, 0.2):
        rejected = set()
        for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
            if p_values[i] * (len(p_values) - rank) > alpha:
                break
            rejected.add(i)
        assert {i for i, p in enumerate(corrected) if p <= alpha} == rejected


def test_two_runs_by_hand(built, tmp_path, capsys):
    a, b = predict(tmp_path / "a"), predict(tmp_path / "b")
    answers = {row["id"]: row for row in rows_of()}
    ce = [key for key, row in answers.items() if row["task"] == "CE"]
    # CE: A misses one row, B misses five others
    missed = {a: set(ce[:1]), b: set(ce[1:6])}
    for run, ids in missed.items():
        edit_replies(
            run, lambda r, ids=ids: Reply(r.id, reply=wrong(answers[r.id])) if r.id in ids else r
        )
    data, by_task = compared(a, b, tmp_path / "out" / "c.json")
    n = len(ce)
    assert (data["rows"], data["only_in_a"], data["only_in_b"]) == (len(answers), 0, 0)
    assert list(by_task) == ["CE", "OC", "CR", "OL", "SCC", "POI", "all"]
    found = by_task["CE"]
    assert (found["a"], found["b"]) == (pytest.approx((n - 1) / n), pytest.approx((n - 5) / n))
    assert found["difference"] == pytest.approx(-4 / n)
    assert (found["only_a"], found["only_b"]) == (5, 1)
    # 2 * (1 + 6) / 2^6, times six tasks
    assert found["p"] == pytest.approx(14 / 64)
    assert found["p_holm"] == 1.0
    assert found["low"] < -4 / n < found["high"]
    assert by_task["OC"]["p"] == 1.0
    assert (by_task["OC"]["low"], by_task["OC"]["high"]) == (None, None)
    assert by_task["all"]["p_holm"] is None
    # Both had to be scored first
    assert (a / "scores.json").exists()
    assert (b / "verdicts.jsonl").exists()
    output = capsys.readouterr().out
    assert "paper distractors" in output
    assert "McNemar" in output


def test_what_was_scored_before_the_run_went_on_is_scored_again(built, tmp_path):
    a, b = predict(tmp_path / "a"), predict(tmp_path / "b")
    _, replies = read_run(b)
    edit_replies(b, lambda r: None if r.id == replies[0].id else r)
    assert score(b) == 0
    assert scores_in(b)["counts"]["missing"] == 1
    (b / "replies.jsonl").write_bytes(b"".join(reply.to_line() for reply in replies))
    _, by_task = compared(a, b, tmp_path / "c.json")
    assert by_task["all"]["difference"] == 0.0


def test_only_rows_that_both_were_asked_count(built, tmp_path):
    a = predict(tmp_path / "a")
    b = predict(tmp_path / "b", "--limit", "30", model="baseline:random")
    data, by_task = compared(a, b, tmp_path / "c.json")
    n = len(rows_of())
    assert (data["rows"], data["only_in_a"], data["only_in_b"]) == (30, n - 30, 0)
    assert by_task["all"]["n"] == 30
    assert data["notes"] == ["limit is not limited in the first run and 30 in the second."]
    # and the other way round the same with the sign changed
    _, reverse = compared(b, a, tmp_path / "d.json")
    assert reverse["all"]["difference"] == pytest.approx(-by_task["all"]["difference"])
    assert reverse["all"]["p"] == by_task["all"]["p"]


def test_tasks_stand_in_the_papers_order_whichever_rows_come_first():
    def tasks_in(order, tasks, **more):
        rows = [
            verdict(f"{t}{i}", right=1.0, group=f"{i}", task=t, **more)
            for t in order
            for i in (1, 2)
        ]
        assert [c.task for c in compare_pairs([(row, row) for row in rows])] == [*tasks, "all"]

    sou = ["CE", "OC", "CR", "OL", "SCC", "POI"]
    tasks_in(reversed(sou), sou)
    tasks_in(["POI", "OL", "OC"], ["OC", "OL", "POI"])
    # RRS-10K has an OC too, and OR for OL
    tasks_in(["OR", "AC", "OC", "SU"], ["SU", "OC", "AC", "OR"])
    tasks_in(["z", "a"], ["z", "a"])


def test_box_formats_are_compared_where_both_were_asked_for_boxes(tmp_path):
    rrs = write_rrs(tmp_path / "rare")
    replies = write_jsonl(tmp_path / "f.jsonl", {row["id"]: row["answer"] for row in RRS_ROWS})
    for name in ("qwen3_vl", "pixel_xyxy"):
        given = ("--dataset", rrs, "--predictions", replies, "--box-format", name)
        assert score(*given, "--out", tmp_path / name) == 0
    data, _ = compared(tmp_path / "qwen3_vl", tmp_path / "pixel_xyxy", tmp_path / "c.json")
    assert data["notes"] == [
        "box_format is qwen3_vl in the first run and pixel_xyxy in the second."
    ]


def test_a_comparison_without_an_interval_says_why(built, tmp_path, capsys):
    a = predict(tmp_path / "a")
    b = predict(tmp_path / "b", "--limit", "1", model="baseline:constant")
    assert compare(a, b) == 0
    assert "none: one group" in capsys.readouterr().out
    assert compare(a, a) == 0
    assert "none: groups agree" in capsys.readouterr().out


def test_a_file_of_replies_compares_with_a_run(built, tmp_path):
    run = predict(tmp_path / "run", config="a-soda")
    rows = rows_of(config="a-soda")
    path = write_jsonl(tmp_path / "f.jsonl", {row["id"]: oracle(row) for row in rows[1:]})
    arguments = ("--dataset", "sou-vqa", "--config", "a-soda", "--predictions", path)
    assert score(*arguments, "--out", tmp_path / "file") == 0
    _, by_task = compared(run, tmp_path / "file", tmp_path / "c.json")
    # the row without a reply is wrong, not left out
    assert by_task["all"]["n"] == len(rows)
    assert (by_task["all"]["only_a"], by_task["all"]["only_b"]) == (1, 0)
    # a file says nothing of its prompt; how boxes are written does not matter where none are
    data, _ = compared(run, tmp_path / "file", tmp_path / "d.json")
    assert data["notes"] == ["the words of the prompt are not said in the second run."]


def test_another_build_is_refused_unless_rows_ask_the_same(built, tmp_path, capsys):
    a, b = predict(tmp_path / "a"), predict(tmp_path / "b", model="baseline:random")
    for run in (a, b):
        assert score(run) == 0
    scores = (b / "scores.json").read_text(encoding="utf-8")
    fingerprint = open_rows("sou-vqa", "aerial", None).fingerprint
    (b / "scores.json").write_text(scores.replace(fingerprint, "0" * 64), encoding="utf-8")
    assert compare(a, b) == 2
    assert "--across-builds" in capsys.readouterr().err
    # one row asks something else in the other build
    lines = (b / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    first = json.loads(lines[0]) | {"question_sha256": "other"}
    lines[0] = json.dumps(first)
    (b / "verdicts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    data, _ = compared(a, b, tmp_path / "c.json", "--across-builds")
    assert (data["rows"], data["other_question"]) == (len(lines) - 1, 1)


def test_runs_without_a_common_row_and_folders_that_are_no_runs(built, tmp_path, capsys):
    a = predict(tmp_path / "a", config="a-soda")
    b = predict(tmp_path / "b", config="a-aitod")
    assert compare(a, b) == 2
    assert "no row in common" in capsys.readouterr().err
    assert compare(a, tmp_path) == 2
    assert "expected a RUN folder" in capsys.readouterr().err
    (b / "scores.json").write_text("{}", encoding="utf-8")
    assert compare(a, b) == 2
    assert "Score the run again" in capsys.readouterr().err


def test_shapes_have_intervals_and_no_test_of_right_or_wrong(built, tmp_path):
    options = {"dataset": "primitive-shapes", "config": "tuple"}
    a = predict(tmp_path / "a", "--split", "test", model="baseline:random", **options)
    b = predict(tmp_path / "b", "--split", "test", **options)
    data, _ = compared(a, b, tmp_path / "c.json")
    by_measure = {c["measure"]: c for c in data["comparisons"]}
    assert set(by_measure) == {m.name for m in SCORINGS["shapes"].measures}
    assert all(c["p"] is None and c["only_a"] is None for c in by_measure.values())
    assert by_measure["sama"]["b"] == 1.0
    assert by_measure["sama"]["difference"] == pytest.approx(1 - by_measure["sama"]["a"])
    assert by_measure["center_rmse"]["is_error"]


def test_a_task_of_several_kinds_of_answers_says_which_line_is_of_which(tmp_path, capsys):
    """NR and OR of rrs repeat rows of other tasks, options as well as yes and no."""
    kinds = [("SU", "mcq"), ("NR", "mcq"), ("NR", "yes_no"), ("OE", "yes_no")]
    run = {"model": {"name": "m"}, "dataset": {"name": "rrs"}}
    scores = {"title": "t", "run": run, "runs": [run]}
    for name in "ab":
        lines = [
            asdict(verdict(i, right=1.0, group=str(i), task=task, kind=kind))
            for i, (task, kind) in enumerate(kinds)
        ]
        (tmp_path / name).mkdir()
        (tmp_path / name / "verdicts.jsonl").write_text("\n".join(map(json.dumps, lines)))
        (tmp_path / name / "scores.json").write_text(json.dumps(scores))
    assert compare(tmp_path / "a", tmp_path / "b") == 0
    said = capsys.readouterr().out
    named = [line.partition("  ")[0] for line in said.splitlines() if " accuracy " in line]
    assert sorted(named) == [
        *("NR (mcq)", "NR (yes/no)", "OE", "SU", "all (mcq)", "all (yes/no)"),
    ]


def test_a_real_difference_is_found_and_a_false_one_is_not_more_often_than_stated():
    """200 pairs of runs on 60 pictures of 2 rows: equal ones differ at 5 % about 10 times."""
    rng = np.random.default_rng(4)
    false_alarms = found = 0
    for _ in range(200):
        base = rng.random(120) < 0.5
        pairs = {}
        for name, gain in (("equal", 0.0), ("better", 0.25)):
            flips = rng.random((2, 120))
            a = base ^ (flips[0] < 0.15)
            b = base ^ (flips[1] < 0.15) | (rng.random(120) < gain)
            pairs[name] = [
                (
                    verdict(i, right=float(x), group=str(i // 2)),
                    verdict(i, right=float(y), group=str(i // 2)),
                )
                for i, (x, y) in enumerate(zip(a, b, strict=True))
            ]
        (equal,) = compare_pairs(pairs["equal"])
        (better,) = compare_pairs(pairs["better"])
        false_alarms += not equal.low <= 0 <= equal.high
        found += better.low > 0 and better.p < 0.05
    # binomial(200, 0.05) exceeds 22 less than once in a thousand
    assert false_alarms <= 22
    assert found >= 100
