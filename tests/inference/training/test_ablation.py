"""The ablations train, ask and score every variant once, and write the papers' tables."""

import csv
import json

import datasets
import evaluate
import PIL.Image
import pytest

from soubench.builders.publishing.export import export_dataset
from soubench.cli import main
from soubench.inference.dataset_rows import open_rows
from soubench.inference.published_tables import published_rows
from soubench.inference.run_folder import read_run
from soubench.inference.training import ablation
from soubench.inference.training.recipe import load_recipe
from soubench.inference.training.train import TrainOptions

FLAGS = ["--effective-batch", "4", "--max-steps", "2", "--held-out-rows", "1"]


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "short.toml"
    path.write_text(
        'extends = "shapes-minicpm-v-sentence"\nmax_new_tokens = 8\nlearning_rate = 1e-3\n'
    )
    return str(path)


def ablate(kind, recipe, tiny, out, *flags):
    return main(["ablate", kind, recipe, "--out", str(out), "--model", str(tiny), *FLAGS, *flags])


def read_csv(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_parts_end_to_end(recipe, tiny_vlm, shapes, installed_metrics, tmp_path, capsys):
    out = tmp_path / "out"
    assert ablate("parts", recipe, tiny_vlm("llava"), out) == 0
    said = capsys.readouterr().out
    heads, *lines = read_csv(out / "parts.csv")
    # Columns and lines in the order of the paper's table.
    assert heads == ["Measure", "Trained", *list(published_rows("shapes_tableS1_parts")[0])[2:]]
    trained = ["vision and language", "language only", "vision only"]
    assert [line[1] for line in lines] == trained * 3
    # The first figure of each variant is that of the metric itself.
    for i, variant in enumerate(("both", "language", "vision")):
        _, replies = read_run(out / variant / "od_composition")
        rows = open_rows("primitive-shapes", "sentence", "od_composition").columns()
        wanted = evaluate.load("sama").compute(
            predictions=[reply.reply for reply in replies], references=rows["target"][:]
        )
        assert float(lines[i][2]) == pytest.approx(wanted["sama"])
    assert "Parts trained: model, primitive-shapes" in said
    assert "| vision only |" in (out / "parts.md").read_text()
    # Each variant trained the layers of its part only.
    for variant, parts in (("language", {"language"}), ("vision", {"vision"})):
        targets = json.loads((out / variant / "training" / "training.json").read_text())
        found = {"vision" if "vision" in name else "language" for name in targets["lora_targets"]}
        assert found == parts


def test_what_is_done_is_not_done_again(
    recipe, tiny_vlm, shapes, installed_metrics, tmp_path, capsys, monkeypatch
):
    out, flags = tmp_path / "out", ["--splits", "test", "od_size"]
    tiny = tiny_vlm("llava")
    assert ablate("format", recipe, tiny, out, *flags, "--only", "sentence-x1") == 0
    first = read_csv(out / "formats.csv")
    assert first[0] == [
        "Format",
        "Scale",
        *(
            f"{split} {label}"
            for split in ("test", "od_size")
            for label in ablation.MEASURES["shapes"].values()
        ),
    ]
    assert [line[:2] for line in first[1:]] == [["sentence", "1"]]
    asked = sorted((out / "sentence-x1").rglob("replies.jsonl"))
    before = [path.read_bytes() for path in asked]

    def refuse(*args, **kwargs):
        raise AssertionError("done twice")

    with monkeypatch.context() as m:
        m.setattr(ablation, "PipelineBackend", refuse)
        m.setattr("soubench.inference.training.train._load_model", refuse)
        assert ablate("format", recipe, tiny, out, *flags, "--only", "sentence-x1") == 0
    # Replies that were lost are asked for again, without another training.
    asked[0].unlink()
    with monkeypatch.context() as m:
        m.setattr("soubench.inference.training.train._load_model", refuse)
        assert ablate("format", recipe, tiny, out, *flags, "--only", "sentence-x1") == 0
    assert [json.loads(x)["reply"] for x in asked[0].read_text().splitlines()] == [
        json.loads(x)["reply"] for x in before[0].decode().splitlines()
    ]
    assert ablate("format", recipe, tiny, out, *flags, "--only", "tuple-x1.5") == 0
    done = [["sentence", "1"], ["tuple", "1.5"]]
    assert [line[:2] for line in read_csv(out / "scales.csv")[1:]] == done
    # The paper's figures stand below, in the same columns.
    published = ["--only", "tuple-x1.5", "--published"]
    assert ablate("format", recipe, tiny, out, *flags, *published) == 0
    for name, file in (
        ("formats", "shapes_tableS3_formats"),
        ("scales", "shapes_table5_center_rmse_scaling"),
    ):
        lines = read_csv(out / f"{name}.csv")[1:]
        wanted = published_rows(file)
        assert [line[1] for line in lines[2:]] == [f"{row['model']} *" for row in wanted]
        formats = [row.get("format") for row in wanted]
        if name == "formats":
            formats = ["sentence", "sentence", "tuple", "tuple"]
        assert [line[0] for line in lines[2:]] == formats
        column = "test_sama" if name == "formats" else "test"
        assert [float(line[2]) for line in lines[2:]] == [float(row[column]) for row in wanted]
    capsys.readouterr()
    # Other settings are another ablation.
    other = ["--limit", "1", "--only", "sentence-x1"]
    assert ablate("format", recipe, tiny, out, *flags, *other) == 2
    assert "limit was null there and is 1 now" in capsys.readouterr().err
    other = ["--max-steps", "1", "--only", "sentence-x1"]
    assert ablate("format", recipe, tiny, out, *flags, *other) == 2
    assert "recipe.max_steps was 2 there and is 1 now" in capsys.readouterr().err


def test_a_folder_of_any_name_is_asked_the_splits_of_its_dataset(recipe, shapes, tmp_path):
    export_dataset("primitive-shapes", tmp_path / "mine")
    mine = load_recipe(recipe).changed(dataset=str(tmp_path / "mine"))
    options = ablation.AblationOptions(TrainOptions(tmp_path / "out"))
    columns = list(published_rows("shapes_tableS1_parts")[0])[2:]
    assert list(options.splits_of(mine)) == columns


def test_another_datasets_own_measures_are_in_the_table(tiny_vlm, installed_metrics, tmp_path):
    folder = tmp_path / "leaves"
    folder.mkdir()
    for split, n in (("train", 8), ("test", 3)):
        datasets.Dataset.from_dict(
            {
                "id": [f"{split} {i}" for i in range(n)],
                "image": [PIL.Image.new("RGB", (64, 64), (20 * i, 99, 0)) for i in range(n)],
                "question": ["How many leaves are there, and where?"] * n,
                "leaf_count": [1] * n,
                "target": ["There are 1 leaves, centred at coordinates (5, 5)."] * n,
            }
        ).to_parquet(folder / f"{split}.parquet")
    own = tmp_path / "own.toml"
    own.write_text(
        f'extends = "plants-sentence"\ndataset = "{folder}"\nconfig = "default"\n'
        "max_new_tokens = 8\n"
    )
    out = tmp_path / "out"
    assert ablate("parts", str(own), tiny_vlm("llava"), out, "--only", "vision") == 0
    heads, *lines = read_csv(out / "parts.csv")
    assert heads == ["Measure", "Trained", "test"]
    labels = ["count RMSE, leaves", "center RMSE, px"]
    assert [line[:2] for line in lines] == [[label, "vision only"] for label in labels]
    assert float(lines[0][2]) >= 0


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--only", "visoin"], "expected some of both, language, vision, got 'visoin'"),
        (["--splits", "train"], "--splits: train is what is trained on"),
        (["--splits", "od_colour"], "od_colour"),
    ],
)
def test_what_makes_no_sense_is_told(flags, says, recipe, tiny_vlm, shapes, tmp_path, capsys):
    assert ablate("parts", recipe, tiny_vlm("llava"), tmp_path / "out", *flags) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_several_processes_are_refused(recipe, tiny_vlm, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert ablate("parts", recipe, tiny_vlm("llava"), tmp_path / "out") == 2
    assert "runs in one process" in capsys.readouterr().err
