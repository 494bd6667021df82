"""``soubench predict``: what it asks, of whom, and that nothing is asked twice."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter

import datasets
import evaluate
import pytest
from PIL import Image

from soubench.builders.errors import RunError
from soubench.cli import main
from soubench.inference.backends import Facts, failed
from soubench.inference.backends.baselines import blind_rule
from soubench.inference.dataset_rows import open_rows
from soubench.inference.predict import PredictOptions, Shard, choose_rows, plan, predict
from soubench.inference.questions import question_of
from soubench.inference.run_folder import Reply, merge_runs, read_run
from tests.light import LIGHT

ORACLE = ("--model", "baseline:oracle")


def run(out, *arguments, dataset="sou-vqa", config="aerial", model=ORACLE):
    assert main(["predict", dataset, config, *model, "--out", str(out), *arguments]) == 0
    return read_run(out)


def told(replies):
    return {reply.key: reply.reply for reply in replies}


def rows_of(dataset="sou-vqa", config="aerial"):
    return list(open_rows(dataset, config, None).columns())


def test_the_oracle_answers_every_row_right_and_run_json_pins_everything(built, tmp_path, capsys):
    description, replies = run(tmp_path / "run")
    rows = rows_of()
    assert told(replies) == {(row["id"], 0): "ABCD"[row["answer"]] for row in rows}
    loaded = open_rows("sou-vqa", "aerial", None)
    assert description["dataset"] == {
        "name": "sou-vqa",
        "config": "aerial",
        "split": "test",
        "source": "sou-vqa",
        "fingerprint": loaded.fingerprint,
        "rows": len(rows),
    }
    assert description["model"]["name"] == "baseline:oracle"
    assert re.fullmatch(r"[0-9a-f]{64}", description["prompt"]["sha256"])
    assert (description["coords"], description["shard"]) == ("pixel", "0/1")
    assert description["libraries"]["datasets"] == datasets.__version__
    output = capsys.readouterr().out
    assert f"{len(rows)} asked, {len(rows)} answered, 0 errors" in output
    assert f"Next: soubench score {tmp_path / 'run'}" in output


@pytest.mark.parametrize("config", ["sentence", "tuple"])
def test_shapes_are_asked_too(built, tmp_path, config):
    _, replies = run(tmp_path / "run", dataset="primitive-shapes", config=config)
    rows = rows_of("primitive-shapes", config)
    assert told(replies) == {(row["id"], 0): row["target"] for row in rows}


def test_random_letters_depend_on_row_and_seed_only(built, tmp_path):
    model = ("--model", "baseline:random")
    _, first = run(tmp_path / "a", model=model)
    _, again = run(tmp_path / "b", "--limit=20", model=model)
    _, other = run(tmp_path / "c", "--seed=1", model=model)
    assert told(again).items() <= told(first).items()
    assert told(other) != told(first)
    assert set(told(first).values()) == set("ABCD")


def test_constant_and_random_know_all_answer_types(built, tmp_path):
    _, replies = run(
        tmp_path / "x",
        dataset="primitive-shapes",
        config="tuple",
        model=("--model", "baseline:random"),
    )
    targets = {row["target"] for row in rows_of("primitive-shapes", "tuple")}
    assert {reply.reply for reply in replies} <= targets


def test_the_blind_baseline_says_what_scores_best_without_looking():
    def ask(i, options, index):
        row = {"id": str(i), "question": "Q", "options": options, "answer": index}
        return question_of(row)

    # The smallest number is right 3 times of 4, what is nearest to the median (3) twice.
    numbers = [
        ask(0, ["2", "3", "7"], 0),
        ask(1, ["9", "4", "5"], 1),
        ask(2, ["8", "2", "9"], 1),
        ask(3, ["1", "4", "6"], 2),
    ]
    name, reply = blind_rule(numbers, 0)
    assert name == "smallest-number"
    assert [reply(q) for q in numbers] == ["A", "B", "B", "A"]
    # "car" is right in three of four.
    kinds = [ask(i, ["bus", "car", "van"], int(i < 3)) for i in range(4)]
    name, reply = blind_rule(kinds, 0)
    assert name in {"most-common-answer", "constant-letter"}
    assert [reply(q) for q in kinds] == ["B"] * 4
    # No two boxes are alike, so knowing all answers must not be knowing the answer.
    boxes = [
        ask(i, [f"[{i},0,{i + 9},9]", f"[{i},0,{i + 99},99]"], 0 if i % 2 else 1) for i in range(8)
    ]
    assert blind_rule(boxes, 0)[0] != "most-common-answer"


def test_limit_is_even_over_subsets_and_tasks_and_grows(built):
    rows = [{"id": str(i), "subset": "a" if i < 80 else "b", "task": "CE"} for i in range(100)]
    chosen = choose_rows(rows, 30, seed=0)
    assert Counter(rows[i]["subset"] for i in chosen) == {"a": 15, "b": 15}
    assert Counter(rows[i]["subset"] for i in choose_rows(rows, 60, 0)) == {"a": 40, "b": 20}
    assert chosen == sorted(chosen)
    assert set(chosen) < set(choose_rows(rows, 31, 0))
    assert chosen != choose_rows(rows, 30, seed=1)
    assert choose_rows(rows, 1000, 0) == list(range(100))
    aerial = rows_of()
    cells = Counter((aerial[i]["subset"], aerial[i]["task"]) for i in choose_rows(aerial, 40, 0))
    assert set(cells.values()) == {2, 3}
    assert len(cells) == 18


@pytest.mark.parametrize("seed", range(5))
def test_a_small_limit_takes_every_subset_before_it_takes_one_twice(seed):
    tasks = {"big": "uvwxyz", "middle": "uvw", "one": "u"}
    rows = [
        {"id": f"{subset}/{task}/{i}", "subset": subset, "task": task}
        for subset, names in tasks.items()
        for task in names
        for i in range(9)
    ]
    before: set[int] = set()
    for limit in range(1, len(rows) + 1):
        chosen = choose_rows(rows, limit, seed)
        assert len(chosen) == limit
        assert before < set(chosen)
        before = set(chosen)
        subsets = Counter(rows[i]["subset"] for i in chosen)
        assert len(subsets) == min(limit, 3)
        strata = Counter((rows[i]["subset"], rows[i]["task"]) for i in chosen)
        if limit <= 90:
            every = [strata[subset, task] for subset, names in tasks.items() for task in names]
            assert max(every) - min(every) <= 1
    # the order of the rows does not matter
    turned = rows[::-1]
    assert {turned[i]["id"] for i in choose_rows(turned, 12, seed)} == {
        rows[i]["id"] for i in choose_rows(rows, 12, seed)
    }


def test_a_small_limit_takes_every_subset_and_every_task_of_a_build(built):
    aerial = rows_of()
    chosen = [aerial[i] for i in choose_rows(aerial, 12, 0)]
    assert set(Counter(row["subset"] for row in chosen).values()) == {4}
    assert set(Counter(row["task"] for row in chosen).values()) == {2}
    assert len({row["task"] for row in chosen}) == 6


def test_all_shards_together_are_the_whole_run(built, tmp_path):
    _, whole = run(tmp_path / "whole", "--limit=31")
    shards = [tmp_path / f"shard-{i}" for i in range(3)]
    for i in (2, 0, 1):
        run(shards[i], "--limit=31", f"--shard={i}/3")
    description, merged = merge_runs(shards)
    assert told(merged) == told(whole)
    assert len(merged) == 31
    assert description["dataset"]["rows"] == 31
    assert [len(read_run(path)[1]) for path in shards] == [11, 10, 10]


def test_an_empty_shard_says_so_and_is_one_of_all(built, tmp_path, capsys):
    shards = [tmp_path / f"s{i}" for i in range(3)]
    for i, path in enumerate(shards):
        run(path, "--limit=2", f"--shard={i}/3")
        assert ("holds no rows" in capsys.readouterr().out) == (i == 2)
    assert len(merge_runs(shards)[1]) == 2


@pytest.mark.parametrize("shard", ["3/3", "-1/3", "1", "a/b", "0/0"])
def test_a_shard_that_is_none_is_refused(built, tmp_path, shard, capsys):
    arguments = ["predict", "sou-vqa", "aerial", *ORACLE, f"--out={tmp_path / 'r'}"]
    assert main([*arguments, f"--shard={shard}"]) == 2
    assert "expected i/n" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_circular_asks_every_rotation_and_the_letter_moves(built, tmp_path):
    _, replies = run(tmp_path / "run", "--circular", "--limit=6")
    by_id = {}
    for reply in replies:
        by_id.setdefault(reply.id, {})[reply.rotation] = reply.reply
    assert len(by_id) == 6
    for letters in by_id.values():
        assert sorted(letters) == [0, 1, 2, 3]
        assert sorted(letters.values()) == list("ABCD")


class Scripted:
    """A back end that answers as it is told, and remembers what it was asked."""

    def __init__(self, answer=lambda n, q: Reply(q.id, q.rotation, reply="A"), fed=None):
        self.answer, self.fed, self.seen = answer, fed, []
        self.facts = Facts({"name": "scripted"}, {"max_new_tokens": 1})

    def fed_size(self, picture):
        return self.fed

    def replies(self, requests):
        for request in requests:
            self.seen.append(request)
            yield self.answer(len(self.seen), request.question)


def options(tmp_path, **more):
    return PredictOptions("sou-vqa", "aerial", tmp_path / "run", **more)


def test_blind_sends_no_picture(built, tmp_path):
    seeing, blind = Scripted(), Scripted()
    predict(plan(PredictOptions("sou-vqa", "aerial", tmp_path / "a", limit=3)), seeing)
    predict(plan(PredictOptions("sou-vqa", "aerial", tmp_path / "b", limit=3, blind=True)), blind)
    assert [len(r.pictures) for r in seeing.seen] == [1, 1, 1]
    assert [len(r.pictures) for r in blind.seen] == [0, 0, 0]
    assert read_run(tmp_path / "b")[0]["blind"] is True
    assert seeing.seen[0].pictures[0].open().size == seeing.seen[0].pictures[0].size_wh


@pytest.mark.parametrize("coords", ["norm1000", "unit", "model-pixel"])
def test_coords_reach_the_model_and_run_json(built, tmp_path, coords):
    backend = Scripted(fed=(100, 50))
    predict(plan(options(tmp_path, coords=coords, box_format="qwen3_vl")), backend)
    description, _ = read_run(tmp_path / "run")
    assert (description["coords"], description["box_format"]) == (coords, "qwen3_vl")
    rows = {row["id"]: row for row in rows_of()}
    whole = {"norm1000": (1000, 1000), "unit": (1, 1), "model-pixel": (100, 50)}[coords]
    checked = Counter()
    for request in backend.seen:
        row, question = rows[request.question.id], request.question
        assert "ABCD"[row["answer"]] == question.answer
        assert ("thousandths" in question.system) == (coords == "norm1000")
        size = request.pictures[0].size_wh
        if row["task"] == "OL":
            assert len(set(question.options)) == 4
            pairs = list(zip(row["options"], question.options, strict=True))
        elif row["task"] == "CR":
            pairs = [(row["question"], question.question)]
        else:
            assert list(question.options) == row["options"]
            continue
        for pixels, shown in pairs:
            pixels, shown = (re.findall(r"[\d.]+", t.split("[")[1]) for t in (pixels, shown))
            for i, (pixel, value) in enumerate(zip(pixels, shown, strict=True)):
                exact = int(pixel) * whole[i % 2] / size[i % 2]
                assert abs(float(value) - exact) <= (0.00051 if coords == "unit" else 0.51)
        checked[row["task"]] += 1
    assert checked == {"OL": 12, "CR": 12}


def test_model_pixels_of_an_unknown_size_are_an_error(built, tmp_path):
    with pytest.raises(RunError, match="as the model is fed it"):
        predict(plan(options(tmp_path, coords="model-pixel")), Scripted())


def test_passing_errors_are_asked_again_and_lasting_ones_are_not(built, tmp_path):
    def answer(n, question):
        if n in (3, 5):
            return failed(question, "timeout", "late", permanent=n == 5)
        return Reply(question.id, reply="A")

    first, second = Scripted(answer), Scripted()
    done = predict(plan(options(tmp_path, limit=8)), first)
    assert (done.asked, done.answered, done.errors, done.new) == (8, 6, 2, 8)
    done = predict(plan(options(tmp_path, limit=8)), second)
    assert (done.answered, done.errors, done.new) == (7, 1, 1)
    assert second.seen[0].question.id == first.seen[2].question.id


def test_settings_that_are_wrong_for_all_rows_cost_no_row(built, tmp_path):
    bad = Scripted(lambda n, q: failed(q, "http 400", "no pictures", permanent=True))
    with pytest.raises(RunError, match=r"first 8 requests failed.*http 400: no pic") as failure:
        predict(plan(options(tmp_path)), bad)
    assert "kept" not in str(failure.value)
    assert "There is no reply yet" in str(failure.value)
    assert len(bad.seen) == 8
    assert read_run(tmp_path / "run")[1] == []
    # Nothing was answered, so that the mended command may go by other settings.
    done = predict(plan(options(tmp_path, limit=10)), Scripted())
    assert (done.asked, done.errors) == (10, 0)
    assert read_run(tmp_path / "run")[0]["limit"] == 10
    with pytest.raises(RunError, match="all of the first 2 requests failed"):
        predict(plan(PredictOptions("sou-vqa", "aerial", tmp_path / "b", limit=2)), bad)


def test_a_server_that_dies_stops_the_run(built, tmp_path, monkeypatch):
    monkeypatch.setattr("soubench.inference.predict.FAILURES_IN_A_ROW", 10)

    def answer(n, question):
        if n < 5:
            return Reply(question.id, reply="A")
        return failed(question, "connection", "refused", permanent=False)

    dying = Scripted(answer)
    with pytest.raises(RunError, match=r"10 requests in a row failed.*Replies so far are kept in"):
        predict(plan(options(tmp_path)), dying)
    assert len(dying.seen) == 14
    done = predict(plan(options(tmp_path)), Scripted())
    assert done.new == done.asked - 4


def test_a_subset_that_is_too_large_does_not_stop_the_run(built, tmp_path, monkeypatch):
    monkeypatch.setattr("soubench.inference.predict.FAILURES_IN_A_ROW", 10)

    def answer(n, question):
        if n in range(2, 30):
            return failed(question, "http 413", "too large", permanent=True)
        if n in range(40, 60):
            return failed(question, "out of memory", "", permanent=False)
        return Reply(question.id, reply="A")

    done = predict(plan(options(tmp_path)), Scripted(answer))
    assert (done.asked, done.answered, done.errors) == (72, 24, 48)


def test_a_run_that_stopped_among_rows_that_are_too_large_goes_on(built, tmp_path):
    """Whether a start works is told by rows from all over, not by the next ones in order."""
    too_large = {row["id"] for row in rows_of()[20:50]}

    def answer(n, question):
        if question.id in too_large:
            return failed(question, "http 413", "too large", permanent=True)
        return Reply(question.id, reply="A")

    def until_killed(n, question):
        if n == 31:
            raise KeyboardInterrupt
        return answer(n, question)

    with pytest.raises(KeyboardInterrupt):
        predict(plan(options(tmp_path)), Scripted(until_killed))
    done = predict(plan(options(tmp_path)), Scripted(answer))
    assert (done.answered, done.errors, done.permanent, done.new) == (42, 30, 30, 42)


def test_a_command_that_failed_before_its_first_request_does_not_block_a_better_one(
    built, tmp_path
):
    out = f"--out={tmp_path / 'run'}"
    wrong = [*ORACLE, "--coords=model-pixel", out]
    assert main(["predict", "sou-vqa", "aerial-ol", *wrong]) == 2
    assert main(["predict", "sou-vqa", "aerial", *ORACLE, out]) == 0
    assert read_run(tmp_path / "run")[0]["coords"] == "pixel"


def test_another_prompt_model_or_build_is_another_run(built, tmp_path, capsys):
    out = f"--out={tmp_path / 'run'}"
    words = tmp_path / "words.toml"
    from importlib.resources import files

    text = (files("soubench.inference") / "words_v1.toml").read_text()
    words.write_text(text.replace("yes or no only", "yes or no"))
    assert main(["predict", "sou-vqa", "aerial", *ORACLE, out]) == 0
    for more, field in (
        ([f"--prompt={words}"], "prompt.sha256 was"),
        (["--model=baseline:random"], 'model.name was "baseline:oracle" there and is'),
        (["--limit=5"], "dataset.rows was 72 there and is 5 now"),
    ):
        assert main(["predict", "sou-vqa", "aerial", *ORACLE, out, *more]) == 2
        error = capsys.readouterr().err
        assert field in error
        assert error.count("\n") == 1
    assert main(["predict", "sou-vqa", "a-soda", *ORACLE, out]) == 2
    assert 'dataset.config was "aerial" there and is "a-soda" now' in capsys.readouterr().err
    file = tmp_path / "run" / "run.json"
    said = json.loads(file.read_text())
    said["dataset"]["fingerprint"] = "0" * 64
    file.write_text(json.dumps(said))
    assert main(["predict", "sou-vqa", "aerial", *ORACLE, out]) == 2
    assert f'dataset.fingerprint was "{"0" * 64}" there' in capsys.readouterr().err


def test_what_cannot_be_asked_is_said_in_one_line(built, tmp_path, capsys):
    def refused(*arguments):
        out = f"--out={tmp_path / 'r'}"
        assert main(["predict", *arguments, out]) == 2
        error = capsys.readouterr().err
        assert error.startswith("soubench: error: ")
        assert error.count("\n") == 1
        assert not (tmp_path / "r").exists()
        return error

    assert "expected one of baseline:random" in refused(
        "sou-vqa", "aerial", "--model=baseline:best"
    )
    assert "configs that are built" in refused("sou-vqa", "driving", *ORACLE)
    assert "leave one of them out" in refused(
        "sou-vqa", "aerial", "--model=m", "--backend=pipeline", "--base-url=http://x/v1"
    )
    assert "needs --base-url" in refused("sou-vqa", "aerial", "--model=m", "--backend=openai")
    assert "--prompt" in refused("sou-vqa", "aerial", *ORACLE, f"--prompt={tmp_path / 'none'}")
    assert "--dtype: expected auto" in refused("sou-vqa", "aerial", "--model=m", "--dtype=half-ish")


def write_folder(folder, **columns):
    folder.mkdir()
    datasets.Dataset.from_dict(columns).to_parquet(folder / "test-00000-of-00001.parquet")
    return folder


def test_a_folder_with_the_same_columns_and_no_pictures_needs_blind(tmp_path, capsys):
    folder = write_folder(
        tmp_path / "mine",
        question=["Which?", "What?"],
        options=[["x", "y"], ["x", "y", "z"]],
        answer=["y", "C"],
    )
    arguments = ["predict", str(folder), *ORACLE, f"--out={tmp_path / 'run'}"]
    assert main(arguments) == 2
    assert "--blind" in capsys.readouterr().err
    assert main([*arguments, "--blind", "--circular"]) == 0
    assert told(read_run(tmp_path / "run")[1]) == {
        ("test-000000", 0): "B",
        ("test-000000", 1): "A",
        ("test-000001", 0): "C",
        ("test-000001", 1): "B",
        ("test-000001", 2): "A",
    }


SLOW = (
    LIGHT
    + """
import time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_predict import Scripted, PredictOptions, Reply, plan, predict

def answer(n, question):
    time.sleep(0.002)
    print(question.id, flush=True)
    return Reply(question.id, question.rotation, reply="A")

options = PredictOptions("sou-vqa", "aerial", Path(sys.argv[1]), circular=True)
print("done", predict(plan(options), Scripted(answer)).new)
"""
)


def test_kill_9_anywhere_repeats_nothing(built, tmp_path):
    """Killed again and again: every request is answered once in the end, one at most twice."""
    asked = Counter()
    command = [sys.executable, "-c", SLOW, str(tmp_path / "run"), os.path.dirname(__file__)]  # noqa: PTH120
    for after in (1, 40, 97, None):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines = []
        for line in child.stdout:
            lines.append(line)
            if len(lines) == after:
                os.kill(child.pid, signal.SIGKILL)
        child.wait()
        asked.update(line.strip() for line in lines if not line.startswith("done"))
    assert lines[-1].startswith("done")
    _, replies = read_run(tmp_path / "run")
    rows = rows_of()
    assert {r.key for r in replies} == {(row["id"], n) for row in rows for n in range(4)}
    assert len((tmp_path / "run" / "replies.jsonl").read_bytes().splitlines()) == len(rows) * 4
    # Each kill may cost the one request that was on its way.
    assert len(rows) * 4 <= sum(asked.values()) <= len(rows) * 4 + 3


def test_ctrl_c_says_how_to_go_on(built, tmp_path, capsys, monkeypatch):
    def interrupt(*_args, **_more):
        raise KeyboardInterrupt

    def interrupted():
        with monkeypatch.context() as patch:
            patch.setattr("soubench.inference.predict.predict", interrupt)
            with pytest.raises(SystemExit) as stopped:
                main(["predict", "sou-vqa", "aerial", *ORACLE, f"--out={tmp_path / 'run'}"])
        assert stopped.value.code == 130
        return capsys.readouterr().err

    assert "there is no reply yet. The same command goes on" in interrupted()
    run(tmp_path / "run")
    assert f"the replies so far are in {tmp_path / 'run'}. The same" in interrupted()


def test_shards_are_told_in_run_json(built, tmp_path):
    predict(plan(options(tmp_path, limit=9, shard=Shard(1, 4))), Scripted())
    description, replies = read_run(tmp_path / "run")
    assert (description["shard"], description["limit"]) == ("1/4", 9)
    assert len(replies) == description["dataset"]["rows"] == 2


RRS_ROWS = [
    # two pictures, five options; yes or no; a box; a mask; a caption
    ("ci", "mcq", list("vwxyz"), "E", 4, 2),
    ("oe", "yes_no", [], "no", -1, 1),
    ("vg", "box", [], "[12, 30, 20, 41]", -1, 1),
    ("rs", "mask", [], '{"size": [2, 2], "counts": [1, 2, 1]}', -1, 1),
    ("ic", "text", [], "A harbor with two ships.", -1, 1),
]


def write_rrs_like(folder):
    def picture(i):
        buffer = io.BytesIO()
        Image.new("RGB", (80, 50), (i, 0, 0)).save(buffer, "PNG")
        return {"bytes": buffer.getvalue(), "path": None}

    strings, number = datasets.List(datasets.Value("string")), datasets.Value("int32")
    text = {
        name: datasets.Value("string")
        for name in ("id", "sub_dimension", "task", "answer_type", "question", "answer")
    }
    features = datasets.Features(
        text
        | {"images": datasets.List(datasets.Image()), "options": strings, "references": strings}
        | {"answer_index": number}
    )
    rows = [
        {
            "id": f"r{i}",
            "images": [picture(10 * i + j) for j in range(pictures)],
            "sub_dimension": "perception-object",
            "task": task,
            "answer_type": kind,
            "question": f"Question {i}?",
            "options": options_,
            "answer": answer,
            "answer_index": index,
            "references": [answer] if kind == "text" else [],
        }
        for i, (task, kind, options_, answer, index, pictures) in enumerate(RRS_ROWS)
    ]
    folder.mkdir()
    datasets.Dataset.from_list(rows, features=features).to_parquet(folder / "test.parquet")
    return folder


def test_rows_of_every_answer_type_with_several_pictures(tmp_path, installed_metrics):
    folder = write_rrs_like(tmp_path / "rrs-like")
    backend = Scripted()
    predict(plan(PredictOptions(str(folder), None, tmp_path / "a", circular=True)), backend)
    asked = Counter(request.question.id for request in backend.seen)
    assert asked == {"r0": 5, "r1": 1, "r2": 1, "r3": 1, "r4": 1}
    assert [len(r.pictures) for r in backend.seen if r.question.rotation == 0] == [2, 1, 1, 1, 1]
    second = backend.seen[0].pictures[1].open()
    assert (second.size, second.getpixel((0, 0))) == ((80, 50), (1, 0, 0))

    metric = evaluate.load("acc_at_iou")
    for coords in ("pixel", "norm1000", "unit"):
        out = tmp_path / coords
        description, replies = run(out, f"--coords={coords}", dataset=str(folder), config="default")
        said = {reply.id: reply.reply for reply in replies}
        right = {f"r{i}": row[3] for i, row in enumerate(RRS_ROWS)}
        assert {k: v for k, v in said.items() if k != "r2"} == {
            k: v for k, v in right.items() if k != "r2"
        }
        result = metric.compute(
            predictions=[said["r2"]],
            references=[[12, 30, 20, 41]],
            format=description["box_format"],
            image_sizes=[[80, 50]],
        )
        assert result["mean_iou"] > 0.98
