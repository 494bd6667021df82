"""What VLMEvalKit and lmms-eval read: every field of a row, every pixel, soubench's own words."""

import base64
import importlib.util
import io

import datasets
import pandas as pd
import pytest
import yaml
from PIL import Image

from soubench.cli import main
from soubench.inference.chat import messages
from soubench.inference.dataset_rows import open_rows
from soubench.inference.questions import question_of

LETTERS = "ABCD"
CONFIGS = [
    pytest.param("sou-vqa", "aerial", "built", id="letters"),
    pytest.param("primitive-shapes", "tuple", "built", id="texts"),
    pytest.param("rrs", "all", "rrs", id="all kinds, one and two pictures"),
]


def export(to, dataset, config, folder, *more):
    return main(["export", dataset, str(folder), "--to", to, "--config", config, *more])


def rows_and_questions(dataset, config):
    loaded = open_rows(dataset, config, "test")
    return list(loaded.rows), [question_of(row) for row in loaded.columns()]


def pictures_in(row):
    return row["images"] if "images" in row else [row["image"]]


def pixels(image):
    return image.convert("RGB").size, image.convert("RGB").tobytes()


def utils_of(folder):
    """Import ``utils.py`` as lmms-eval does: from its file."""
    spec = importlib.util.spec_from_file_location("utils", folder / "utils.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TaskLoader(yaml.SafeLoader):
    """Reads ``!function`` as the name behind it."""


TaskLoader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


def task_of(folder):
    (path,) = folder.glob("*.yaml")
    return yaml.load(path.read_text(encoding="utf-8"), TaskLoader)


def docs_of(folder, task):
    files = {
        split: [str(folder / f) for f in names]
        for split, names in task["dataset_kwargs"]["data_files"].items()
    }
    cache = folder.parent / "loaded"
    loaded = datasets.load_dataset(task["dataset_path"], data_files=files, cache_dir=str(cache))
    return loaded[task["test_split"]]


@pytest.mark.parametrize(("dataset", "config", "cache"), CONFIGS)
def test_lmms_eval_has_every_field_every_pixel_and_our_words(
    dataset, config, cache, request, tmp_path
):
    request.getfixturevalue(cache)
    assert export("lmms-eval", dataset, config, tmp_path / "out", "--split=test") == 0
    rows, questions = rows_and_questions(dataset, config)
    task = task_of(tmp_path / "out")
    docs, utils = docs_of(tmp_path / "out", task), utils_of(tmp_path / "out")
    assert task["output_type"] == "generate_until"
    assert task["generation_kwargs"]["until"] == []
    named = {value for value in task.values() if isinstance(value, str) and "utils." in value}
    assert all(hasattr(utils, name.removeprefix("utils.")) for name in named)
    assert len(named) == 5
    assert len(docs) == len(rows)
    for doc, row, question in zip(docs, rows, questions, strict=True):
        for name, value in row.items():
            if name not in ("image", "images"):
                assert doc[name] == value, name
        shown = utils.doc_to_visual(doc)
        assert [pixels(i) for i in shown] == [pixels(i) for i in pictures_in(row)]
        assert utils.doc_to_target(doc) == question.answer
        parts = [{"type": "image", "url": picture} for picture in shown]
        assert utils.doc_to_messages(doc) == messages(question, parts)
        no_role = {"system_role": False}
        expected = messages(question, parts, system_role=False)
        assert utils.doc_to_messages(doc, no_role) == expected
        assert utils.doc_to_text(doc, no_role) == expected[-1]["content"][-1]["text"]
        judged = utils.process_results(doc, [question.answer])["soubench"]
        assert (judged["id"], judged["score"]) == (row["id"], 1.0)
        assert utils.process_results(doc, [""])["soubench"]["score"] == 0.0
    assert utils.mean_score([{"score": 1.0}, {"score": 0.0}]) == 0.5


def tsv_of(folder):
    (path,) = folder.glob("*.tsv")
    return pd.read_csv(path, sep="\t")


def cells(value):
    """Take a list in a cell apart as VLMEvalKit does."""
    value = str(value)
    return [part[1:-1] for part in value[1:-1].split(", ")] if value[0] == "[" else [value]


@pytest.mark.parametrize(("dataset", "config", "cache"), CONFIGS)
def test_vlmevalkit_has_the_pictures_and_the_questions(dataset, config, cache, request, tmp_path):
    request.getfixturevalue(cache)
    assert export("vlmevalkit", dataset, config, tmp_path / "out", "--split=test") == 0
    rows, questions = rows_and_questions(dataset, config)
    table = tsv_of(tmp_path / "out")
    assert list(table["index"]) == list(range(len(rows)))
    assert list(table["id"]) == [row["id"] for row in rows]
    images = [cells(value) for value in table["image"]]
    names = {}
    for line, row, question, image in zip(
        table.to_dict("records"), rows, questions, images, strict=True
    ):
        # A short cell names the line that has the picture.
        encoded = [images[int(i)][0] if len(i) <= 64 else i for i in image]
        decoded = [Image.open(io.BytesIO(base64.b64decode(data))) for data in encoded]
        assert [pixels(i) for i in decoded] == [pixels(i) for i in pictures_in(row)]
        for name, data in zip(cells(line["image_path"]), encoded, strict=True):
            assert name.endswith(".png")
            assert names.setdefault(name, data) == data
        assert line["answer"] == question.answer
        if "A" in table:
            options = [str(line[letter]) for letter in LETTERS]
            assert tuple(options) == question.options
            assert (line["hint"], line["question"]) == (question.system, question.question)
            assert (line["category"], line["l2-category"]) == (row["task"], row["subset"])
        else:
            # Without the columns A and B the tool asks what stands in the question.
            assert (
                line["question"]
                == messages(question, [], system_role=False)[0]["content"][0]["text"]
            )
    assert ("A" in table) == (dataset == "sou-vqa")
    assert len(set(names.values())) == len(names)


def test_a_picture_is_stored_once_in_the_tsv(built, tmp_path):
    assert export("vlmevalkit", "sou-vqa", "aerial", tmp_path / "out") == 0
    table = tsv_of(tmp_path / "out")
    whole = [value for value in table["image"].astype(str) if len(value) > 64]
    assert len(whole) == len(set(whole)) == table["image_path"].nunique() < len(table)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        pytest.param(["None", "one"], "'None' in column 'A'", id="for nothing"),
        pytest.param(["007", "8"], "'007' in column 'A'", id="for a number"),
    ],
)
def test_a_text_that_vlmevalkit_would_misread_is_refused(options, named, tmp_path, capsys):
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    rows = {"id": ["r1"], "image": [str(tmp_path / "a.png")], "question": ["Which?"]}
    features = datasets.Features(
        {
            "id": datasets.Value("string"),
            "image": datasets.Image(),
            "question": datasets.Value("string"),
            "options": datasets.List(datasets.Value("string")),
            "answer": datasets.Value("string"),
        }
    )
    rows |= {"options": [options], "answer": ["B"]}
    (tmp_path / "mine").mkdir()
    made = datasets.Dataset.from_dict(rows, features=features)
    made.to_parquet(tmp_path / "mine" / "test.parquet")
    assert export("vlmevalkit", str(tmp_path / "mine"), "default", tmp_path / "out") == 2
    error = capsys.readouterr().err
    assert "soubench: error: r1: VLMEvalKit would read" in error
    assert named in error
    assert "--to lmms-eval" in error
    assert not (tmp_path / "out").exists()
    assert export("lmms-eval", str(tmp_path / "mine"), "default", tmp_path / "out") == 0
