"""Result files of VLMEvalKit and lmms-eval score like the same replies in a run of our own."""

import json

import pandas as pd
import pytest

from soubench.builders.errors import FormatError
from soubench.cli import main
from soubench.inference.dataset_rows import open_rows
from soubench.inference.predictions import read_predictions
from soubench.inference.run_folder import RunFolder
from soubench.inference.score import score_replies
from tests.inference.exports.test_evaluation_exports import docs_of, export, task_of, utils_of

pytestmark = pytest.mark.usefixtures("installed_metrics", "built")
REPLIES = ("A", "The answer is (B).", "c", "", "I cannot tell.", "D: 4")


@pytest.fixture
def replies():
    ids = open_rows("sou-vqa", "aerial", "test").columns()["id"]
    return {row_id: REPLIES[i % len(REPLIES)] for i, row_id in enumerate(ids)}


def vlmevalkit_result(folder, file, replies, **more):
    """Write what ``vlmeval/inference.py`` does: all columns but the pictures, and a prediction."""
    (tsv,) = folder.glob("*.tsv")
    data = pd.read_csv(tsv, sep="\t").drop(columns="image")
    data["prediction"] = [replies[row_id] for row_id in data["id"]]
    data = data.assign(**more)
    if file.suffix == ".xlsx":
        data.to_excel(file, index=False)
    elif file.suffix == ".tsv":
        data.to_csv(file, sep="\t", index=False, quoting=1)
    else:
        file.write_text(json.dumps(data.to_dict("records"), indent=4, ensure_ascii=False))
    return file


def lmms_eval_samples(folder, file, replies, shape):
    """Write what lmms-eval logs with ``--log_samples``, with its task's own functions."""
    task, utils = task_of(folder), utils_of(folder)
    lines = []
    for i, doc in enumerate(docs_of(folder, task)):
        reply = replies[doc["id"]]
        sample = {"doc_id": i, "target": doc["right_answer"], "doc_hash": "0"}
        sample |= shape(reply) | utils.process_results(doc, [reply.strip()])
        sample["input"] = utils.doc_to_text(doc, None)
        lines.append(json.dumps(sample, ensure_ascii=False))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def scored(file, out):
    flags = ["--dataset=sou-vqa", "--config=aerial", f"--predictions={file}", f"--out={out}"]
    assert main(["score", *flags, "--name=model"]) == 0
    found = json.loads((out / "scores.json").read_text(encoding="utf-8"))
    verdicts = (out / "verdicts.jsonl").read_text(encoding="utf-8")
    return found["groups"], found["counts"], verdicts


def our_run(tmp_path, replies):
    """The same replies as ``soubench predict`` would have written them down."""
    from soubench.inference.run_folder import Reply

    loaded = open_rows("sou-vqa", "aerial", "test")
    made = [Reply(row_id, reply=reply) for row_id, reply in replies.items()]
    description = score_replies(made, loaded, model="model").parts[0].description
    with RunFolder.create_or_resume(tmp_path / "run", description) as run:
        for reply in made:
            run.append(reply)
    assert main(["score", str(tmp_path / "run")]) == 0
    found = json.loads((tmp_path / "run" / "scores.json").read_text(encoding="utf-8"))
    verdicts = (tmp_path / "run" / "verdicts.jsonl").read_text(encoding="utf-8")
    return found["groups"], found["counts"], verdicts


@pytest.mark.parametrize("suffix", ["xlsx", "tsv", "json"])
def test_results_of_vlmevalkit_score_like_a_run(tmp_path, replies, suffix):
    assert export("vlmevalkit", "sou-vqa", "aerial", tmp_path / "out") == 0
    file = vlmevalkit_result(tmp_path / "out", tmp_path / f"model_sou-vqa.{suffix}", replies)
    if suffix != "json":
        # A table cannot tell an empty reply from none, which is a row without a reply.
        replies = {row_id: reply for row_id, reply in replies.items() if reply}
    assert scored(file, tmp_path / "scores") == our_run(tmp_path, replies)


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(lambda reply: {"filtered_resps": reply}, id="0.7"),
        pytest.param(
            lambda reply: {"resps": [[reply]], "filtered_resps": [reply]}, id="before 0.7"
        ),
        pytest.param(
            lambda reply: {"resps": [reply], "filtered_resps": "thought taken out"},
            id="a filter that changes it",
        ),
    ],
)
def test_samples_of_lmms_eval_score_like_a_run(tmp_path, replies, shape):
    assert export("lmms-eval", "sou-vqa", "aerial", tmp_path / "out") == 0
    file = lmms_eval_samples(tmp_path / "out", tmp_path / "samples.jsonl", replies, shape)
    assert scored(file, tmp_path / "scores") == our_run(tmp_path, replies)


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        pytest.param({"filtered_resps": "A"}, "does not say which row", id="another task"),
        pytest.param(
            {"resps": ["A", "B"], "filtered_resps": ["A", "B"], "soubench": {"id": "r"}},
            "repeats: 1",
            id="asked twice",
        ),
    ],
)
def test_samples_that_cannot_be_read_are_named(tmp_path, sample, said):
    file = tmp_path / "samples.jsonl"
    file.write_text(json.dumps({"doc_id": 0, **sample}) + "\n")
    with pytest.raises(FormatError, match=f"line 1: .*{said}"):
        read_predictions(file)


def test_rows_with_a_doc_id_of_their_own_stay_as_they_are(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"doc_id": 7, "reply": "A"}) + "\n")
    (reply,) = read_predictions(file, id_column="doc_id")
    assert (reply.id, reply.reply) == ("7", "A")


@pytest.mark.parametrize("text", ['{"id": 1}', "[1]", "[", '"x"'])
def test_json_that_is_no_list_of_rows_is_refused(tmp_path, text):
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(FormatError, match="expected"):
        read_predictions(file)
