"""Rows say the same in training as when a model is asked, and what is held out stays held out."""

import math

import datasets
import pytest
from jinja2 import TemplateError
from PIL import Image

from soubench.builders.demo_scenes import write_demo_source
from soubench.builders.errors import TrainError
from soubench.builders.sou.build import BuildOptions
from soubench.dataset_scripts.sou_train.sou_train import build_sou_train
from soubench.inference.chat import messages
from soubench.inference.dataset_rows import open_rows
from soubench.inference.questions import question_of
from soubench.inference.training.judge import measure_of
from soubench.inference.training.recipe import load_recipe
from soubench.inference.training.rows import check_conversations, training_rows


@pytest.fixture(scope="module")
def sou_cache(tmp_path_factory):
    home = tmp_path_factory.mktemp("sou-train")
    root = write_demo_source("visdrone", home / "visdrone", pictures=1, train_pictures=8)
    build_sou_train(
        "a-visdrone", {"visdrone": root}, BuildOptions(pictures="all"), cache_dir=home / "cache"
    )
    return home / "cache"


@pytest.fixture
def sou_train(sou_cache, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", sou_cache)


@pytest.mark.parametrize("system_role", [True, False])
@pytest.mark.parametrize("name", ["sou-train-visdrone", "shapes-qwen2-vl-2b-tuple"])
def test_training_says_what_predict_asks(name, system_role, sou_cache, shapes_cache, monkeypatch):
    cache = sou_cache if name.startswith("sou") else shapes_cache
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", cache)
    rows = training_rows(load_recipe(name), system_role=system_role).held_out
    assert len(rows)
    for row in rows.remove_columns("image"):
        question = question_of(row)
        asked = messages(question, [], system_role=system_role)
        said = [
            {"role": turn["role"], "content": [{"type": "text", "text": turn["content"]}]}
            for turn in row["prompt"]
        ]
        assert said == asked
        assert row["completion"] == [{"role": "assistant", "content": question.answer}]


def test_groups_are_held_out_whole_and_by_seed(sou_train):
    recipe = load_recipe("sou-train-visdrone").changed(held_out=0.4)
    rows = [training_rows(recipe, system_role=True, seed=seed) for seed in (0, 0, 1)]
    held = [set(one.held_out["group_id"][:]) for one in rows]
    groups = set(open_rows("sou-train", "a-visdrone", "train").rows["group_id"][:])
    assert all(len(one) == math.ceil(0.4 * len(groups)) for one in held)
    assert held[0] == held[1] != held[2]
    everything = training_rows(recipe.changed(held_out=0.0), system_role=True)
    assert len(everything.held_out) == 0
    assert len(everything.train) == len(rows[0].train) + len(rows[0].held_out)
    # Not one group is on both sides: the pictures of one are in no picture of the other.
    digests = [
        {row["image"].tobytes() for row in part} for part in (rows[0].train, rows[0].held_out)
    ]
    assert not digests[0] & digests[1]
    assert rows[0].train.column_names == ["id", "image", "prompt", "completion"]


def rows_of_a_user(folder, prompt, completion, image):
    """A folder that load_dataset reads, with one good row and the given one."""
    good = [{"role": "user", "content": "How many?"}], [{"role": "assistant", "content": "2"}]
    picture = Image.new("RGB", (8, 8))
    table = {
        "id": ["a", "b"],
        "image": [picture, picture] if image is None else [image, image],
        "prompt": [good[0], prompt],
        "completion": [good[1], completion],
    }
    datasets.Dataset.from_dict(table).to_parquet(folder / "train.parquet")
    settings = {"dataset": str(folder), "config": "default", "held_out": 0.0}
    return load_recipe("sou-train-visdrone").changed(**settings)


USER = [{"role": "user", "content": "How many?"}]
TWO = [{"role": "assistant", "content": "2"}]


@pytest.mark.parametrize(
    ("prompt", "completion", "image", "says"),
    [
        pytest.param(None, TWO, None, "row b: .* column prompt .* got None", id="no prompt"),
        pytest.param(
            USER,
            None,
            None,
            "row b: expected the column completion .* got None",
            id="no completion",
        ),
        pytest.param(
            USER,
            [{"role": "assistant", "content": " "}],
            None,
            "row b: expected the column completion",
            id="empty completion",
        ),
        pytest.param(
            [{"role": "human", "content": "?"}], TWO, None, "role .one of system, user", id="role"
        ),
        pytest.param(
            [{"role": "system", "content": "Be brief."}],
            TWO,
            None,
            "row b.*got system",
            id="system",
        ),
        pytest.param(USER, USER, None, "one turn of the assistant; got user and user", id="who"),
        pytest.param(USER * 2, TWO, None, "first and last.* got user, user and", id="user twice"),
        pytest.param(TWO + USER, TWO, None, "got assistant, user and", id="assistant first"),
        pytest.param(
            [{"role": "system", "content": "Hm"}] * 2 + USER, TWO, None, "got system, sys", id="two"
        ),
        pytest.param(USER, TWO * 2, None, "got user and assistant, assistant", id="two replies"),
        pytest.param(USER, TWO, "a.png", r"column image as datasets\.Image", id="image as text"),
    ],
)
def test_rows_that_cannot_be_trained_on_are_named(prompt, completion, image, says, tmp_path):
    recipe = rows_of_a_user(tmp_path, prompt, completion, image)
    with pytest.raises(TrainError, match=says):
        training_rows(recipe, system_role=True)


class Processor:
    """Has a template that writes so many turns at most, as some do."""

    def __init__(self, image_token, turns=2):
        self.image_token, self.turns = image_token, turns

    def apply_chat_template(self, chat, *, tokenize):
        if len(chat) > self.turns:
            raise TemplateError("too many turns")


def test_a_models_own_mark_of_a_picture_is_no_text(tmp_path):
    marked = [{"role": "user", "content": "<image>How many?"}]
    rows = training_rows(rows_of_a_user(tmp_path, marked, TWO, None), system_role=True).train
    check_conversations(rows, Processor("<|image_pad|>"))
    with pytest.raises(TrainError, match="row b: the column prompt has '<image>'"):
        check_conversations(rows, Processor("<image>"))


def test_turns_that_a_template_cannot_write_are_told(tmp_path):
    earlier = [*USER, *TWO, *USER]
    rows = training_rows(rows_of_a_user(tmp_path, earlier, TWO, None), system_role=True).train
    check_conversations(rows, Processor(None, turns=4))
    with pytest.raises(TrainError, match=r"row b .*\(user, assistant, user, assistant\): too many"):
        check_conversations(rows, Processor(None, turns=2))


@pytest.mark.parametrize("target", [None, " "])
def test_a_target_that_says_nothing_is_told(target, tmp_path):
    picture = Image.new("RGB", (8, 8))
    table = {"image": [picture] * 2, "question": ["How many?"] * 2, "target": ["2", target]}
    datasets.Dataset.from_dict(table).to_parquet(tmp_path / "train.parquet")
    recipe = load_recipe("sou-train-visdrone").changed(dataset=str(tmp_path), config="default")
    with pytest.raises(TrainError, match="row train-000001: expected a text in the column target"):
        training_rows(recipe, system_role=True)


def test_rows_without_questions_are_trained_on_without_judging(tmp_path):
    rows = training_rows(rows_of_a_user(tmp_path, USER, TWO, None), system_role=True).train
    with pytest.raises(TrainError, match=r"row a cannot be used: .* held_out = 0 in the"):
        measure_of("option_match", rows)


def test_held_out_rows_of_several_kinds_are_refused():
    table = {
        "id": ["a", "b"],
        "question": ["Which?", "What?"],
        "options": [["x", "y"], []],
        "answer": ["A", None],
        "target": ["A", "a ship"],
    }
    with pytest.raises(TrainError, match=r"several kinds: mcq \(row a\), text \(row b\)"):
        measure_of("option_match", datasets.Dataset.from_dict(table))


def test_groups_may_be_of_any_type(tmp_path):
    table = {
        "image": [Image.new("RGB", (8, 8))] * 4,
        "prompt": [USER] * 4,
        "completion": [TWO] * 4,
        "group_id": [[1], [1], [2, 3], None],
    }
    datasets.Dataset.from_dict(table).to_parquet(tmp_path / "train.parquet")
    recipe = load_recipe("sou-train-visdrone")
    recipe = recipe.changed(dataset=str(tmp_path), config="default", held_out=0.4)
    rows = training_rows(recipe, system_role=True)
    assert len(set(map(str, rows.held_out["group_id"]))) == 2
    assert len(rows.held_out) + len(rows.train) == 4
