"""``soubench model-card``: the Hub's metadata and what people read."""

import json

import pytest
import yaml
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import model_index_to_eval_results

from soubench.cli import main
from tests.inference.report_runs import change, make_run


def card_of(out, *runs):
    assert main(["model-card", *map(str, runs), "--out", str(out)]) == 0
    return ModelCard.load(out)


@pytest.fixture
def run(built, installed_metrics, tmp_path):
    return change(
        make_run(tmp_path / "run"),
        {0: "", 1: ("timeout",), 2: "Either A or B."},
        model={"name": "org/Model-7B", "parameters": 7_000_000_000, "revision": "ab" * 20},
    )


def test_every_score_of_the_run_is_in_the_model_index(run, tmp_path):
    card = card_of(tmp_path / "card.md", run)
    scores = json.loads((run / "scores.json").read_text())
    expected = {
        (g["group"], g["column"]): g for g in scores["groups"] if g["table"] == "sou_tables_3_and_6"
    }
    results = card.data.eval_results
    assert len(results) == len(expected) == 28
    assert len({result.metric_name for result in results}) == 28
    for result in results:
        _, group, column = result.metric_name.split(", ")
        found = expected[group, column]
        assert result.metric_value == pytest.approx(found["value"], abs=1e-6)
        assert result.metric_args["low"] == pytest.approx(found["low"], abs=1e-6)
        assert result.metric_args["n"] == found["n"]
        assert (result.metric_type, result.metric_args["metric"]) == ("accuracy", "option_match")
        assert (result.dataset_config, result.dataset_split) == ("aerial", "test")
        assert result.dataset_revision == scores["run"]["dataset"]["fingerprint"]


def test_the_metadata_has_the_form_that_the_hub_states(run, tmp_path):
    card = card_of(tmp_path / "card.md", run)
    text = (tmp_path / "card.md").read_text()
    data = yaml.safe_load(text.split("---\n")[1])
    name, results = model_index_to_eval_results(data["model-index"])
    assert name == "org/Model-7B"
    assert [r.metric_value for r in results] == [r.metric_value for r in card.data.eval_results]
    for result in data["model-index"][0]["results"]:
        assert result["task"]["type"]
        assert {"name", "type"} <= result["dataset"].keys()
        assert all({"type", "value"} <= metric.keys() for metric in result["metrics"])
    assert data["pipeline_tag"] == "image-text-to-text"
    assert set(data["tags"]) == {"soubench", "sou-vqa"}
    # Names of datasets must be ones of the Hub; this one is in the cache only.
    assert "datasets" not in data


def test_people_read_scores_data_settings_limits(run, tmp_path):
    text = card_of(tmp_path / "card.md", run).text
    scores = json.loads((run / "scores.json").read_text())
    titles = [line for line in text.splitlines() if line.startswith(("# ", "## "))]
    assert titles == ["# org/Model-7B", "## Scores", "## Data", "## How it was run", "## Limits"]
    assert scores["run"]["dataset"]["fingerprint"] in text
    assert scores["run"]["prompt"]["sha256"] in text
    assert "| a-aitod | org/Model-7B |" in text
    assert "Unparsed and errors" in text
    assert "timeout 1" in text
    assert "paper distractors" in text
    assert "soubench predict sou-vqa aerial --model org/Model-7B --split test --out RUN" in text
    assert str(tmp_path) not in text


def test_blind_and_limited_runs_are_marked_everywhere(built, installed_metrics, tmp_path):
    run = make_run(tmp_path / "run", "--blind", "--limit=12")
    plain = make_run(tmp_path / "plain")
    card = card_of(tmp_path / "card.md", run, plain)
    marked = [r for r in card.data.eval_results if "blind, limit 12" in r.metric_name]
    assert marked
    assert all(r.metric_args["blind"] for r in marked)
    assert len({r.metric_name for r in card.data.eval_results}) == len(card.data.eval_results)
    assert "they measure guessing" in card.text
    assert "Only a part of the rows was asked" in card.text


def test_a_card_may_be_over_several_datasets(built, installed_metrics, tmp_path):
    made = [
        make_run(tmp_path / "sou"),
        make_run(tmp_path / "shapes", dataset="primitive-shapes", config="tuple"),
    ]
    card = card_of(tmp_path / "card.md", *made)
    assert {r.dataset_type for r in card.data.eval_results} == {"sou-vqa", "primitive-shapes"}
    shapes = {
        r.metric_type: r for r in card.data.eval_results if r.dataset_type == "primitive-shapes"
    }
    scores = json.loads((made[1] / "scores.json").read_text())
    for group in scores["groups"]:
        assert shapes[group["measure"]].metric_value == pytest.approx(group["value"], abs=1e-6)


def test_the_same_runs_give_the_same_card(run, tmp_path):
    card_of(tmp_path / "a.md", run)
    card_of(tmp_path / "b.md", run)
    assert (tmp_path / "a.md").read_bytes() == (tmp_path / "b.md").read_bytes()


def test_runs_of_several_models_are_refused(run, tmp_path, capsys):
    other = make_run(tmp_path / "other")
    out = tmp_path / "card.md"
    assert main(["model-card", str(run), str(other), "--out", str(out)]) == 2
    assert "expected runs of one model" in capsys.readouterr().err
    assert not out.exists()
